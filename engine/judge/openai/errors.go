package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/mcptest/mcptest-operator/engine/judge"
)

const (
	// maxComplaints bounds how many of a server's complaints about one request are kept.
	maxComplaints = 3
	// maxComplaintBytes bounds the words of one.
	maxComplaintBytes = 160
)

// complaint is what a server that validates with pydantic (Mistral, FastAPI) says about one part of a request. It also
// repeats that part, which may be the candidate: it is not read.
type complaint struct {
	Location []any  `json:"loc"`
	Message  string `json:"msg"`
}

// complaints words a list of complaints, as in "body.max_completion_tokens: Extra inputs are not permitted"; it is empty
// when the body has none. They stand in detail, in message, or in message.detail.
func complaints(body []byte) string {
	var doc struct {
		Detail  json.RawMessage `json:"detail"`
		Message json.RawMessage `json:"message"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return ""
	}
	var inner struct {
		Detail json.RawMessage `json:"detail"`
	}
	_ = json.Unmarshal(doc.Message, &inner) // mostly it is a string: then there is nothing inside
	for _, raw := range []json.RawMessage{doc.Detail, inner.Detail, doc.Message} {
		var list []complaint
		if json.Unmarshal(raw, &list) != nil {
			continue
		}
		var said []string
		for _, c := range list[:min(len(list), maxComplaints)] {
			if c.Message != "" {
				said = append(said, c.String())
			}
		}
		if len(said) > 0 {
			return strings.Join(said, "; ")
		}
	}
	return ""
}

// String is one line.
func (c complaint) String() string {
	path := make([]string, len(c.Location))
	for i, step := range c.Location {
		path[i] = fmt.Sprint(step)
	}
	return clip(strings.Join(path, ".")) + ": " + clip(c.Message)
}

// clip makes one short line of a text.
func clip(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxComplaintBytes {
		s = strings.ToValidUTF8(s[:maxComplaintBytes], "") + "…"
	}
	return s
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
