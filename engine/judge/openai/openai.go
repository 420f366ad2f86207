// Package openai asks judge models through OpenAI's Chat Completions API, which Mistral and many other servers speak too.
package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/judge/internal/wire"
)

// Where the APIs are, unless it is said otherwise.
const (
	DefaultBaseURL        = "https://api.openai.com/v1"
	DefaultMistralBaseURL = "https://api.mistral.ai/v1"
)

// maxErrorBytes bounds what is read of the body of an error.
const maxErrorBytes = 64 << 10

// Client asks one endpoint of the Chat Completions API. It is safe for concurrent use.
type Client struct {
	completions sdk.ChatCompletionService
	host        string
	dialect     dialect
}

var _ judge.Client = (*Client)(nil)

// dialect is what sets a provider that speaks the protocol apart.
type dialect struct {
	provider       v1alpha1.Provider
	defaultBaseURL string
	// without holds the features that none of its models has.
	without judge.Feature
}

// New returns a client with a key, for OpenAI or any server that speaks its protocol. baseURL empty means
// DefaultBaseURL; base nil means a plain HTTP client.
//
// Nothing else of the environment counts: no organization, no project, no header of the SDK's.
func New(key, baseURL string, base *http.Client) *Client {
	return newClient(dialect{provider: v1alpha1.ProviderOpenAI, defaultBaseURL: DefaultBaseURL}, key, baseURL, base)
}

// NewMistral returns a client like New's for Mistral: it knows max_tokens only. baseURL empty means DefaultMistralBaseURL.
func NewMistral(key, baseURL string, base *http.Client) *Client {
	return newClient(dialect{
		provider: v1alpha1.ProviderMistral, defaultBaseURL: DefaultMistralBaseURL, without: judge.FeatureMaxCompletionTokens,
	}, key, baseURL, base)
}

func newClient(d dialect, key, baseURL string, base *http.Client) *Client {
	if baseURL == "" {
		baseURL = d.defaultBaseURL
	}
	return &Client{
		host:    wire.Host(baseURL),
		dialect: d,
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
	r.Without |= c.dialect.without
	var res *http.Response
	m, err := c.completions.New(ctx, params(r), option.WithResponseInto(&res))
	if status := c.status(res); status != nil {
		return judge.Response{}, unsupported(status, r)
	}
	switch {
	case err != nil:
		return judge.Response{}, wire.Fault(c.dialect.provider, c.host, res, err)
	case m == nil: // null: the SDK makes no completion of it
		return judge.Response{}, &judge.MalformedError{Provider: c.dialect.provider, Host: c.host, Reason: "it is empty"}
	case len(m.Choices) == 0:
		return judge.Response{Tokens: tokens(m)}, &judge.MalformedError{Provider: c.dialect.provider, Host: c.host, Reason: "it has no choices"}
	}
	return response(m, r), nil
}

// status makes the error of a response that is no success; nil for one that is, and for none at all.
func (c *Client) status(res *http.Response) *judge.StatusError {
	if res == nil || res.StatusCode < 400 {
		return wire.Status(c.dialect.provider, c.host, res)
	}
	// The body is only what people read; one that breaks off has no words.
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBytes))
	res.Body = io.NopCloser(bytes.NewReader(body))
	e := wire.Status(c.dialect.provider, c.host, res)
	if said := complaints(body); said != "" {
		e.Message = said
	}
	return e
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
		Text:       text(choice.Message),
		Structured: !r.Without.Has(judge.FeatureStructuredOutput),
		Refusal:    choice.Message.Refusal,
		// model_length is Mistral's word for a full context window.
		Cut: choice.FinishReason == "length" || choice.FinishReason == "model_length",
	}
	if choice.FinishReason == "content_filter" && a.Refusal == "" {
		a.Refusal = "its content filter stopped it"
	}
	return judge.Response{Answer: a, Tokens: tokens(m)}
}

// text is what a message says. Mistral's models that think answer in a list of parts, of which only text is the answer.
func text(m sdk.ChatCompletionMessage) string {
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	raw := m.JSON.Content.Raw()
	if !strings.HasPrefix(raw, "[") || json.Unmarshal([]byte(raw), &parts) != nil {
		return m.Content
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Type == "text" {
			b.WriteString(p.Text)
		}
	}
	return b.String()
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
