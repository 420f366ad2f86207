// Package wire holds what the clients of all providers do alike with HTTP.
package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
)

const (
	// MaxBodyBytes bounds the body of a response.
	MaxBodyBytes = 4 << 20
	// maxMessageBytes bounds what an error keeps of a provider's words.
	maxMessageBytes = 500
)

// ErrBodyTooLong says that a response was longer than MaxBodyBytes.
var ErrBodyTooLong = errors.New("the response is longer than 4 MiB")

// HTTPClient returns a client like base (nil: a plain one) that bounds response bodies and follows no redirect:
// net/http would send a key in a header of a provider's own, such as X-Api-Key, along to another host.
func HTTPClient(base *http.Client) *http.Client {
	c := http.Client{}
	if base != nil {
		c = *base
	}
	next := c.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	c.Transport = limitedTransport{next}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// Host returns the host of a base URL, for messages; "" when there is none.
func Host(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil {
		return ""
	}
	return u.Host
}

// limitedTransport bounds the bodies of responses.
type limitedTransport struct{ next http.RoundTripper }

func (t limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	res.Body = &limitedBody{ReadCloser: res.Body, left: MaxBodyBytes}
	return res, nil
}

type limitedBody struct {
	io.ReadCloser
	left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrBodyTooLong
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one more than allowed, to tell the end from the limit
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, ErrBodyTooLong
	}
	return n, err
}

// Status makes the error of a response that is no success; nil for one that is, and for none at all.
// It reads what is left of the body.
func Status(p v1alpha1.Provider, host string, res *http.Response) *judge.StatusError {
	if res == nil || res.StatusCode >= 200 && res.StatusCode < 300 {
		return nil
	}
	// The message is only what people read; a body that breaks off has none.
	body, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	e := &judge.StatusError{
		Provider: p, Host: host, Status: res.StatusCode,
		RetryAfter: RetryAfter(res.Header, time.Now()), Message: message(body),
	}
	if res.StatusCode < 400 {
		e.Message = "redirects are not followed; set " + judge.BaseURLVariable(p) + " to where the service is"
	}
	return e
}

// RetryAfter reads how long a response asks to wait: Retry-After in seconds or as a date, or OpenAI's retry-after-ms.
// It is 0 when the response does not say, and never negative.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return duration(ms, time.Millisecond)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return duration(s, time.Second)
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// duration is n units, between 0 and a day.
func duration(n float64, unit time.Duration) time.Duration {
	const most = 24 * time.Hour
	if math.IsNaN(n) || n <= 0 {
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(most)))
}

// message finds a provider's words in the body of an error: error.message, error, message or detail of a JSON object,
// else the body itself.
func message(body []byte) string {
	var doc struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	var inner struct {
		Message string `json:"message"`
	}
	text := string(body)
	if json.Unmarshal(body, &doc) == nil {
		var plain string
		switch {
		case json.Unmarshal(doc.Error, &inner) == nil && inner.Message != "":
			text = inner.Message
		case json.Unmarshal(doc.Error, &plain) == nil && plain != "":
			text = plain
		case doc.Message != "":
			text = doc.Message
		case json.Unmarshal(doc.Detail, &plain) == nil && plain != "":
			text = plain
		}
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if len(text) <= maxMessageBytes {
		return text
	}
	cut := maxMessageBytes
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// Fault makes the error of a request that got no status of an error. When the provider answered with a whole
// response that cannot be read it is *judge.MalformedError, because it may have billed the request; else err itself.
func Fault(p v1alpha1.Provider, host string, res *http.Response, err error) error {
	if res == nil || isBroken(err) {
		return err
	}
	return &judge.MalformedError{Provider: p, Host: host, Reason: err.Error()}
}

// isBroken reports whether the connection, or the caller's patience, ended before the response did.
func isBroken(err error) bool {
	var network net.Error
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network)
}
