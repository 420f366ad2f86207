// Package gemini asks judge models through the Gemini API.
package gemini

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/genai"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/judge/internal/wire"
)

// DefaultBaseURL is where the API is, unless it is said otherwise.
const DefaultBaseURL = "https://generativelanguage.googleapis.com"

// apiVersion is the version that has structured output and system instructions.
const apiVersion = "v1beta"

// noKey stands for a key that is empty: the SDK would look for another one in the environment.
const noKey = "none"

// Client asks one endpoint of the Gemini API. It is safe for concurrent use.
type Client struct {
	models *genai.Models
	host   string
	key    string
	// err is why there are no models.
	err error
}

var _ judge.Client = (*Client)(nil)

// New returns a client with a key, which travels in the header X-Goog-Api-Key. baseURL is the host, with or without the
// API's version behind it; empty means DefaultBaseURL. base nil means a plain HTTP client.
//
// Nothing else of the environment counts: no other key, no base URL, no project, no location and no other backend of the SDK's.
func New(key, baseURL string, base *http.Client) *Client {
	if key == "" {
		key = noKey
	}
	if baseURL == "" {
		baseURL = DefaultBaseURL
	}
	baseURL = strings.TrimSuffix(strings.TrimRight(baseURL, "/"), "/"+apiVersion)
	c := &Client{host: wire.Host(baseURL), key: key}
	client, err := newSDK(&genai.ClientConfig{
		APIKey:     key,
		Backend:    genai.BackendGeminiAPI,
		HTTPClient: recording(wire.HTTPClient(base)),
		// No RetryOptions: the SDK then sends each request once.
		HTTPOptions: genai.HTTPOptions{BaseURL: baseURL, APIVersion: apiVersion},
	})
	if err != nil {
		// The SDK prints its configuration, with the key, into its errors.
		c.err = errors.New("the client of the Gemini API cannot be set up: check " + judge.BaseURLVariable(v1alpha1.ProviderGemini))
		return c
	}
	c.models = client.Models
	return c
}

// Complete makes one request. The verdict is output by a JSON schema; for models that refuse it, it is text.
func (c *Client) Complete(ctx context.Context, r judge.Request) (judge.Response, error) {
	switch {
	case c.err != nil:
		return judge.Response{}, c.err
	case strings.ContainsAny(r.Model, "?&#") || strings.Contains(r.Model, ".."):
		// The name becomes a part of a path. The SDK refuses most of these, each time anew; this is final, as what the service says of
		// a model that is not there.
		return judge.Response{}, &judge.StatusError{
			Provider: v1alpha1.ProviderGemini, Host: c.host, Status: http.StatusNotFound,
			Message: fmt.Sprintf("no model can have the name %q", r.Model),
		}
	}
	var x exchange
	m, err := c.generate(context.WithValue(ctx, exchangeKey{}, &x), r)
	if status := c.status(&x); status != nil {
		return judge.Response{}, unsupported(status, r)
	}
	switch {
	case err != nil:
		return judge.Response{}, c.fault(&x, err)
	case len(m.Candidates) == 0 && blocked(m) == "", len(m.Candidates) > 0 && m.Candidates[0] == nil:
		return judge.Response{Tokens: tokens(m)}, &judge.MalformedError{
			Provider: v1alpha1.ProviderGemini, Host: c.host, Reason: "it has no candidates",
		}
	}
	return response(m, r), nil
}

// errOdd says that a response is JSON of another form than the API's.
var errOdd = errors.New("it has not the form of a GenerateContentResponse")

// generate asks the SDK, once. The SDK asserts types of what it reads and panics over a response of another form.
func (c *Client) generate(ctx context.Context, r judge.Request) (m *genai.GenerateContentResponse, err error) {
	defer func() {
		if recover() != nil {
			m, err = nil, errOdd
		}
	}()
	return c.models.GenerateContent(ctx, r.Model, contents(r), config(r))
}
