package judge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// ToolName is the name of the tool, or of the schema, through which a judge records its verdict (S-44).
const ToolName = "record_verdict"

// Client puts one request to one provider. Implementations make exactly one HTTP request a call and
// never retry: retries, limits and repairs are the Judge's. They are safe for concurrent use.
//
// Errors are *StatusError (the provider refused), *UnsupportedError (it does not know a part of the
// request), *MalformedError (it answered, but not in its own format), or what the transport says.
type Client interface {
	Complete(ctx context.Context, r Request) (Response, error)
}

// Request is one request to a judge. System, Prefix and Question follow each other; only the Question
// differs between the calls about one candidate (S-46).
type Request struct {
	Model string
	// Temperature is nil when the parameter must not be sent.
	Temperature *float64
	// System holds the instructions.
	System string
	// Prefix is the material that is graded; a prompt cache may end after it.
	Prefix string
	// Question is what is asked about it.
	Question string
	// Turns are earlier answers of this conversation that were no valid verdict, with what was wrong.
	Turns []Turn
	// Schema is the JSON schema of a verdict.
	Schema Schema
	// MaxTokens bounds the answer.
	MaxTokens int64
	// Without holds the features that this model is known to refuse.
	Without Feature
}

// Turn is an answer that was no valid verdict, and what the judge is told about it.
type Turn struct {
	Answer    Answer
	Complaint string
}

// Response is what a provider answered.
type Response struct {
	Answer Answer
	Tokens Tokens
}

// Answer is the part of a response in which a verdict is looked for.
type Answer struct {
	// Text is the JSON of the verdict when Structured is set, else what the model wrote.
	Text string
	// Structured says that Text came through the provider's structured output.
	Structured bool
	// ToolUseID identifies the call of the tool, where the verdict came as one.
	ToolUseID string
	// Refusal is not empty when the model declined to answer: its words, or a description.
	Refusal string
	// Cut says that the answer ended because it reached MaxTokens.
	Cut bool
}

// Tokens counts what a request took.
type Tokens struct {
	// Input is every token that went to the model, cached ones included.
	Input int64
	// CacheRead is the part of Input that was served from the provider's prompt cache.
	CacheRead int64
	// CacheWrite is the part of Input that was written to the provider's prompt cache at a price of its own.
	CacheWrite int64
	// Output is every token that came from the model.
	Output int64
}

// counted is what a server said, without numbers below 0, which nothing can take.
func (t Tokens) counted() Tokens {
	return Tokens{Input: max(0, t.Input), CacheRead: max(0, t.CacheRead), CacheWrite: max(0, t.CacheWrite), Output: max(0, t.Output)}
}

// Schema is the JSON schema of a verdict: an object that has all of the Properties and no others.
type Schema struct {
	// Properties is a JSON object: the schema of each property, in the order in which a judge should fill them.
	Properties json.RawMessage
	// Required lists the keys of Properties.
	Required []string
}

// JSON returns the schema as one JSON document.
func (s Schema) JSON() json.RawMessage {
	return fmt.Appendf(nil, `{"type":"object","properties":%s,"required":["%s"],"additionalProperties":false}`,
		s.Properties, strings.Join(s.Required, `","`))
}

// Feature is a part of a request that some models and servers refuse. Features can be combined with |.
type Feature uint8

// The features that a Judge can do without.
const (
	// FeatureTemperature is the temperature parameter (S-47).
	FeatureTemperature Feature = 1 << iota
	// FeatureForcedTool is the forced call of record_verdict, in Anthropic's protocol (S-44). Models that refuse it
	// are asked through a JSON schema for their output.
	FeatureForcedTool
	// FeatureStructuredOutput is the JSON schema for the output (S-44). Models and servers that refuse it are asked in words.
	FeatureStructuredOutput
	// FeatureMaxCompletionTokens is the limit's new name in the OpenAI protocol; older servers know max_tokens only.
	FeatureMaxCompletionTokens
)

// Has reports whether all of g is in f.
func (f Feature) Has(g Feature) bool { return f&g == g }

// StatusError is an HTTP status with which a provider declined a request.
type StatusError struct {
	Provider v1alpha1.Provider
	// Host is the host that was asked.
	Host string
	// Status is the HTTP status code.
	Status int
	// RetryAfter is how long the provider asked to wait; 0 when it did not say.
	RetryAfter time.Duration
	// Message is what the provider said, cut to 500 bytes.
	Message string
}

// Error says which status came from where, and for 401 and 403 which variable holds the key (S-40).
func (e *StatusError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s answered %d", e.Provider, e.Status)
	if text := http.StatusText(e.Status); text != "" {
		b.WriteString(" " + text)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	switch e.Status {
	case http.StatusUnauthorized:
		fmt.Fprintf(&b, "; check the key in %s", KeyHint(e.Provider))
	case http.StatusForbidden:
		fmt.Fprintf(&b, "; check what the key in %s may do", KeyHint(e.Provider))
	case http.StatusNotFound:
		fmt.Fprintf(&b, "; check judge.model and %s", BaseURLVariable(e.Provider))
	}
	if e.Host != "" {
		fmt.Fprintf(&b, " (asked %s)", e.Host)
	}
	return b.String()
}

// UnsupportedError says that a request was refused because of one of its features.
type UnsupportedError struct {
	Feature Feature
	Err     *StatusError
}

func (e *UnsupportedError) Error() string { return e.Err.Error() }

// Unwrap returns the status behind the error.
func (e *UnsupportedError) Unwrap() error { return e.Err }

// MalformedError says that a provider answered a request, and may have billed it, but not in its own format.
type MalformedError struct {
	Provider v1alpha1.Provider
	Host     string
	Reason   string
}

func (e *MalformedError) Error() string {
	return fmt.Sprintf("the answer of %s (%s) cannot be read: %s", e.Provider, e.Host, e.Reason)
}

// InvalidVerdictError says that a judge's verdict stayed invalid after it was asked again (S-40).
type InvalidVerdictError struct {
	Model string
	// Problem is what was wrong with the last answer.
	Problem string
	// Asked is how often the judge was asked.
	Asked int
}

func (e *InvalidVerdictError) Error() string {
	return fmt.Sprintf("%s gave no valid verdict, asked %d times: %s", e.Model, e.Asked, e.Problem)
}
