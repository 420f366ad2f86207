package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/judge/internal/wire"
)

const (
	// maxErrorBytes bounds what is read of the body of an error.
	maxErrorBytes = 64 << 10
	// maxRetryDelay is the longest wait that a RetryInfo can ask for, as for Retry-After.
	maxRetryDelay = 24 * time.Hour
	// minKeyBytes is the least length of a key that is looked for in messages: a shorter one is a stand-in's, and is in every text.
	minKeyBytes = 8
)

// status makes the error of a response that is no success; nil for one that is, and for none at all.
func (c *Client) status(x *exchange) *judge.StatusError {
	if x.response == nil {
		return nil
	}
	body := c.withoutKey(x.body)
	x.response.Body = io.NopCloser(bytes.NewReader(body))
	e := wire.Status(v1alpha1.ProviderGemini, c.host, x.response)
	if e == nil {
		return nil
	}
	details := detailsOf(body)
	if e.RetryAfter == 0 {
		e.RetryAfter = details.retryDelay()
	}
	if e.Status == http.StatusBadRequest && details.wrongKey(e.Message) {
		// S-40 says 401 of it; Google says 400.
		e.Message += "; check the key in " + judge.KeyHint(v1alpha1.ProviderGemini)
	}
	return e
}

// withoutKey takes the key out of a body, before messages are cut: Google repeats it in some of them (of a key that was suspended).
func (c *Client) withoutKey(body []byte) []byte {
	if len(c.key) < minKeyBytes {
		return body
	}
	return bytes.ReplaceAll(body, []byte(c.key), []byte("[REDACTED:key]"))
}

// detail is one of the details of an error, as google.rpc has them; only the fields that are read.
type detail struct {
	Type       string `json:"@type"`
	Reason     string `json:"reason"`
	RetryDelay string `json:"retryDelay"`
}

type details []detail

// detailsOf reads the details in the body of an error: none when it is not in Google's form.
func detailsOf(body []byte) details {
	var doc struct {
		Error struct {
			Details details `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return nil
	}
	return doc.Error.Details
}

// retryDelay is how long a google.rpc.RetryInfo asks to wait: 0 when there is none, a day at most.
func (list details) retryDelay() time.Duration {
	for _, d := range list {
		if strings.HasSuffix(d.Type, "google.rpc.RetryInfo") {
			wait, err := time.ParseDuration(d.RetryDelay)
			if err != nil {
				return 0
			}
			return min(max(0, wait), maxRetryDelay)
		}
	}
	return 0
}

// wrongKey reports whether a request was refused because of its key.
func (list details) wrongKey(message string) bool {
	for _, d := range list {
		if strings.HasPrefix(d.Reason, "API_KEY_") {
			return true
		}
	}
	return strings.Contains(strings.ToLower(message), "api key")
}

// unsupported tells which part of the request a 400 is about, if it names one that the judge can do without.
func unsupported(e *judge.StatusError, r judge.Request) error {
	if e.Status != http.StatusBadRequest {
		return e
	}
	said := strings.ToLower(e.Message)
	structured := !r.Without.Has(judge.FeatureStructuredOutput)
	var f judge.Feature
	switch {
	case r.Temperature != nil && (strings.Contains(said, "temperature") || strings.Contains(said, "sampling parameter")):
		f = judge.FeatureTemperature
	case structured && (strings.Contains(said, "schema") || strings.Contains(said, "json mode") || strings.Contains(said, "structured output") ||
		strings.Contains(said, "mime_type") || strings.Contains(said, "mimetype") || strings.Contains(said, "mime type")):
		f = judge.FeatureStructuredOutput
	default:
		return e
	}
	return &judge.UnsupportedError{Feature: f, Err: e}
}

// fault makes the error of a request that got no status of an error. The SDK's own words are left out: they hold the
// whole response, which may repeat the candidate.
func (c *Client) fault(x *exchange, err error) error {
	var transport *url.Error
	if errors.As(err, &transport) {
		return transport
	}
	found := wire.Fault(v1alpha1.ProviderGemini, c.host, x.response, err)
	var malformed *judge.MalformedError
	if errors.As(found, &malformed) {
		malformed.Reason = unreadable(err)
	}
	return found
}

// unreadable says what is wrong with a response that cannot be read.
func unreadable(err error) string {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, wire.ErrBodyTooLong):
		return wire.ErrBodyTooLong.Error()
	case errors.As(err, &syntax):
		return "it is no JSON: " + syntax.Error()
	default:
		return errOdd.Error()
	}
}
