// Package anthropic asks judge models through Anthropic's Messages API.
package anthropic

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/judge/internal/wire"
)

// DefaultBaseURL is where the API is, unless it is said otherwise.
const DefaultBaseURL = "https://api.anthropic.com"

// toolDescription says what the tool is for.
const toolDescription = "Records your verdict on the candidate. Call it exactly once."

// Client asks one endpoint of the Messages API. It is safe for concurrent use.
type Client struct {
	messages sdk.MessageService
	host     string
}

var _ judge.Client = (*Client)(nil)

// New returns a client with a key. baseURL empty means DefaultBaseURL; base nil means a plain HTTP client.
//
// Nothing else of the environment counts: no other credential, no profile, no header and no telemetry of the SDK's.
func New(key, baseURL string, base *http.Client) *Client {
	if baseURL == "" {
		baseURL = DefaultBaseURL
	}
	return &Client{
		host: wire.Host(baseURL),
		messages: sdk.NewMessageService(
			option.WithBaseURL(baseURL),
			option.WithAPIKey(key),
			option.WithHTTPClient(wire.HTTPClient(base)),
			option.WithMaxRetries(0),
			option.WithOpenTelemetryTraces(false),
		),
	}
}

// Complete makes one request. The verdict is a forced call of record_verdict; for models that refuse to be forced
// it is output by a JSON schema, and for those that refuse that, text.
func (c *Client) Complete(ctx context.Context, r judge.Request) (judge.Response, error) {
	var res *http.Response
	m, err := c.messages.New(ctx, params(r), option.WithResponseInto(&res))
	if status := wire.Status(v1alpha1.ProviderAnthropic, c.host, res); status != nil {
		return judge.Response{}, unsupported(status, r)
	}
	switch {
	case err != nil:
		return judge.Response{}, wire.Fault(v1alpha1.ProviderAnthropic, c.host, res, err)
	case m == nil: // null: the SDK makes no message of it
		return judge.Response{}, &judge.MalformedError{Provider: v1alpha1.ProviderAnthropic, Host: c.host, Reason: "it is empty"}
	}
	return response(m, r), nil
}

// params words the request.
func params(r judge.Request) sdk.MessageNewParams {
	p := sdk.MessageNewParams{
		Model:     r.Model,
		MaxTokens: r.MaxTokens,
		System:    []sdk.TextBlockParam{{Text: r.System}},
		Messages: []sdk.MessageParam{sdk.NewUserMessage(
			sdk.ContentBlockParamUnion{OfText: &sdk.TextBlockParam{
				Text: r.Prefix, CacheControl: sdk.NewCacheControlEphemeralParam(), // S-46
			}},
			sdk.NewTextBlock(r.Question),
		)},
	}
	if r.Temperature != nil {
		p.Temperature = sdk.Float(*r.Temperature)
	}
	forced := !r.Without.Has(judge.FeatureForcedTool)
	switch {
	case forced:
		choice := sdk.ToolChoiceParamOfTool(judge.ToolName)
		choice.OfTool.DisableParallelToolUse = sdk.Bool(true)
		p.ToolChoice = choice
		p.Tools = []sdk.ToolUnionParam{{OfTool: &sdk.ToolParam{
			Name:        judge.ToolName,
			Description: sdk.String(toolDescription),
			InputSchema: sdk.ToolInputSchemaParam{
				Properties: r.Schema.Properties, Required: r.Schema.Required,
				ExtraFields: map[string]any{"additionalProperties": false},
			},
		}}}
	case !r.Without.Has(judge.FeatureStructuredOutput):
		p.OutputConfig = sdk.OutputConfigParam{Format: sdk.JSONOutputFormatParam{Schema: outputSchema(r.Schema)}}
	}
	for _, t := range r.Turns {
		p.Messages = append(p.Messages, turn(t, forced)...)
	}
	return p
}

// outputSchema is the schema for output: it takes no bounds of numbers.
func outputSchema(s judge.Schema) map[string]any {
	var properties map[string]map[string]any
	// The schema is the judge's own; were it no JSON the provider would say so.
	_ = json.Unmarshal(s.Properties, &properties)
	for _, p := range properties {
		delete(p, "minimum")
		delete(p, "maximum")
	}
	return map[string]any{"type": "object", "properties": properties, "required": s.Required, "additionalProperties": false}
}

// turn words an answer that was no valid verdict, and what was wrong with it.
func turn(t judge.Turn, tools bool) []sdk.MessageParam {
	if tools && t.Answer.ToolUseID != "" && strings.HasPrefix(t.Answer.Text, "{") {
		return []sdk.MessageParam{
			sdk.NewAssistantMessage(sdk.NewToolUseBlock(t.Answer.ToolUseID, json.RawMessage(t.Answer.Text), judge.ToolName)),
			sdk.NewUserMessage(sdk.NewToolResultBlock(t.Answer.ToolUseID, t.Complaint, true)),
		}
	}
	said := strings.TrimSpace(t.Answer.Text) // the API refuses white space at the end, and empty text
	if said == "" {
		said = "(no answer)"
	}
	return []sdk.MessageParam{
		sdk.NewAssistantMessage(sdk.NewTextBlock(said)),
		sdk.NewUserMessage(sdk.NewTextBlock(t.Complaint)),
	}
}

// response finds the answer in a message. Input tokens come apart here, and are added up.
func response(m *sdk.Message, r judge.Request) judge.Response {
	u := m.Usage
	res := judge.Response{Tokens: judge.Tokens{
		Input:     u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens,
		CacheRead: u.CacheReadInputTokens, CacheWrite: u.CacheCreationInputTokens,
		Output: u.OutputTokens,
	}}
	a := &res.Answer
	var text strings.Builder
	for _, b := range m.Content {
		switch {
		case b.Type == "text":
			text.WriteString(b.Text)
		case b.Type == "tool_use" && b.Name == judge.ToolName && a.ToolUseID == "":
			a.Text, a.ToolUseID, a.Structured = string(b.Input), b.ID, true
		}
	}
	if a.ToolUseID == "" {
		a.Text = text.String()
		a.Structured = r.Without.Has(judge.FeatureForcedTool) && !r.Without.Has(judge.FeatureStructuredOutput)
	}
	switch m.StopReason {
	case sdk.StopReasonMaxTokens:
		a.Cut = true
	case sdk.StopReasonRefusal:
		if a.Refusal = text.String(); a.Refusal == "" {
			a.Refusal = "it stopped with stop_reason refusal"
		}
	}
	return res
}

// unsupported tells which part of the request a 400 is about, if it names one that the judge can do without.
func unsupported(e *judge.StatusError, r judge.Request) error {
	if e.Status != http.StatusBadRequest {
		return e
	}
	said := strings.ToLower(e.Message)
	forced := !r.Without.Has(judge.FeatureForcedTool)
	var f judge.Feature
	switch {
	case r.Temperature != nil && (strings.Contains(said, "temperature") || strings.Contains(said, "sampling parameter")):
		f = judge.FeatureTemperature
	case forced && (strings.Contains(said, "tool_choice") || strings.Contains(said, "tool choice") || strings.Contains(said, "forced tool")):
		f = judge.FeatureForcedTool
	case !forced && !r.Without.Has(judge.FeatureStructuredOutput) &&
		(strings.Contains(said, "output_config") || strings.Contains(said, "output format") || strings.Contains(said, "json_schema")):
		f = judge.FeatureStructuredOutput
	default:
		return e
	}
	return &judge.UnsupportedError{Feature: f, Err: e}
}
