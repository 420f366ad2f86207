// Package openai asks judge models through OpenAI's Chat Completions API, which many other servers speak too.
package openai

import (
	"context"
	"net/http"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/judge/internal/wire"
)

// DefaultBaseURL is where the API is, unless it is said otherwise.
const DefaultBaseURL = "https://api.openai.com/v1"

// Client asks one endpoint of the Chat Completions API. It is safe for concurrent use.
type Client struct {
	completions sdk.ChatCompletionService
	host        string
}

var _ judge.Client = (*Client)(nil)

// New returns a client with a key. baseURL empty means DefaultBaseURL; base nil means a plain HTTP client.
//
// Nothing else of the environment counts: no organization, no project, no header of the SDK's.
func New(key, baseURL string, base *http.Client) *Client {
	if baseURL == "" {
		baseURL = DefaultBaseURL
	}
	return &Client{
		host: wire.Host(baseURL),
		completions: sdk.NewChatCompletionService(
			option.WithBaseURL(baseURL),
			option.WithAPIKey(key),
			option.WithHTTPClient(wire.HTTPClient(base)),
			option.WithMaxRetries(0),
		),
	}
}

// Complete makes one request. The verdict is output by a strict JSON schema; for models and servers that refuse
// response_format it is text.
func (c *Client) Complete(ctx context.Context, r judge.Request) (judge.Response, error) {
	var res *http.Response
	m, err := c.completions.New(ctx, params(r), option.WithResponseInto(&res))
	if status := wire.Status(v1alpha1.ProviderOpenAI, c.host, res); status != nil {
		return judge.Response{}, unsupported(status, r)
	}
	switch {
	case err != nil:
		return judge.Response{}, wire.Fault(v1alpha1.ProviderOpenAI, c.host, res, err)
	case len(m.Choices) == 0:
		return judge.Response{Tokens: tokens(m)}, &judge.MalformedError{Provider: v1alpha1.ProviderOpenAI, Host: c.host, Reason: "it has no choices"}
	}
	return response(m, r), nil
}

// params words the request.
func params(r judge.Request) sdk.ChatCompletionNewParams {
	p := sdk.ChatCompletionNewParams{
		Model: r.Model,
		Messages: []sdk.ChatCompletionMessageParamUnion{
			sdk.SystemMessage(r.System),
			sdk.UserMessage([]sdk.ChatCompletionContentPartUnionParam{sdk.TextContentPart(r.Prefix), sdk.TextContentPart(r.Question)}),
		},
	}
	if r.Without.Has(judge.FeatureMaxCompletionTokens) {
		p.MaxTokens = sdk.Int(r.MaxTokens)
	} else {
		p.MaxCompletionTokens = sdk.Int(r.MaxTokens)
	}
	if r.Temperature != nil {
		p.Temperature = sdk.Float(*r.Temperature)
	}
	if !r.Without.Has(judge.FeatureStructuredOutput) {
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
				Name: judge.ToolName, Strict: sdk.Bool(true), Schema: r.Schema.JSON(),
			},
		}
	}
	for _, t := range r.Turns {
		said := t.Answer.Text
		if said == "" {
			said = "(no answer)"
		}
		p.Messages = append(p.Messages, sdk.AssistantMessage(said), sdk.UserMessage(t.Complaint))
	}
	return p
}

// response finds the answer in a completion.
func response(m *sdk.ChatCompletion, r judge.Request) judge.Response {
	choice := m.Choices[0]
	a := judge.Answer{
		Text:       choice.Message.Content,
		Structured: !r.Without.Has(judge.FeatureStructuredOutput),
		Refusal:    choice.Message.Refusal,
		Cut:        choice.FinishReason == "length",
	}
	if choice.FinishReason == "content_filter" && a.Refusal == "" {
		a.Refusal = "its content filter stopped it"
	}
	return judge.Response{Answer: a, Tokens: tokens(m)}
}

// tokens counts what a completion took.
func tokens(m *sdk.ChatCompletion) judge.Tokens {
	return judge.Tokens{
		Input:      m.Usage.PromptTokens,
		CacheRead:  m.Usage.PromptTokensDetails.CachedTokens,
		CacheWrite: m.Usage.PromptTokensDetails.CacheWriteTokens,
		Output:     m.Usage.CompletionTokens,
	}
}

// unsupported tells which part of the request a 400 is about, if it names one that the judge can do without. Some
// servers say 422 for it.
func unsupported(e *judge.StatusError, r judge.Request) error {
	if e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity {
		return e
	}
	said := strings.ToLower(e.Message)
	var f judge.Feature
	switch {
	case r.Temperature != nil && strings.Contains(said, "temperature"):
		f = judge.FeatureTemperature
	case !r.Without.Has(judge.FeatureMaxCompletionTokens) && strings.Contains(said, "max_completion_tokens"):
		f = judge.FeatureMaxCompletionTokens
	case !r.Without.Has(judge.FeatureStructuredOutput) &&
		(strings.Contains(said, "response_format") || strings.Contains(said, "json_schema") || strings.Contains(said, "structured output")):
		f = judge.FeatureStructuredOutput
	default:
		return e
	}
	return &judge.UnsupportedError{Feature: f, Err: e}
}
