package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

const (
	// defaultTimeout bounds one request: longer than the collector takes at most.
	defaultTimeout = 60 * time.Second
	// maxTokenBytes bounds a token file.
	maxTokenBytes = 16 << 10
	// maxProblemBytes bounds what is read of a refusal.
	maxProblemBytes = 64 << 10
	// maxRetryAfter is the longest wait that a collector can ask for.
	maxRetryAfter = time.Minute
)

// ClientOptions say which collector is asked, and who asks.
type ClientOptions struct {
	// URL is that of the collector, https only.
	URL string
	// CA is the only authority that is trusted, as PEM.
	CA []byte
	// TokenFile holds the token. It is read for each request, because it is renewed in place.
	TokenFile string
	// Timeout bounds one request. Default 60 s.
	Timeout time.Duration
}

// Client speaks to a collector. It tries each request once. It is safe for concurrent use.
type Client struct {
	base      *url.URL
	tokenFile string
	http      *http.Client
}

// NewClient makes a Client. It trusts nothing but the given authority, uses no proxy and follows no redirect: the
// token is shown to the collector alone.
func NewClient(o ClientOptions) (*Client, error) {
	base, err := url.Parse(o.URL)
	if err != nil || base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("the collector's URL %q is not an https URL, such as https://collector.example.svc:8443", o.URL)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(o.CA) {
		return nil, errors.New("the collector's authority is not a PEM certificate")
	}
	if o.TokenFile == "" {
		return nil, errors.New("no token file was named")
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	return &Client{
		base:      base,
		tokenFile: o.TokenFile,
		http: &http.Client{
			Timeout: o.Timeout,
			Transport: &http.Transport{
				TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13},
				TLSHandshakeTimeout: 10 * time.Second,
				IdleConnTimeout:     90 * time.Second,
				ForceAttemptHTTP2:   true,
				// A collector that went away without a word is noticed, also by a request that waits for it.
				HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Slice asks what this pod grades.
func (c *Client) Slice(ctx context.Context) (Slice, error) {
	var slice Slice
	return slice, c.do(ctx, http.MethodGet, &slice, nil, "v1", "slice")
}

// Leaf asks for one row.
func (c *Client) Leaf(ctx context.Context, name string) (Leaf, error) {
	var leaf Leaf
	return leaf, c.do(ctx, http.MethodGet, &leaf, nil, "v1", "leaves", name)
}

// PostJudgments has judgments kept while their rows are being graded.
func (c *Client) PostJudgments(ctx context.Context, j Judgments) error {
	return c.do(ctx, http.MethodPost, nil, j, "v1", "judgments")
}

// PostFindings ends a row.
func (c *Client) PostFindings(ctx context.Context, name string, f v1alpha1.Findings) (Receipt, error) {
	var receipt Receipt
	return receipt, c.do(ctx, http.MethodPost, &receipt, f, "v1", "leaves", name, "findings")
}

// Budget makes a claim on the budget of the run.
func (c *Client) Budget(ctx context.Context, claim Claim) (Allowance, error) {
	var allowance Allowance
	return allowance, c.do(ctx, http.MethodPost, &allowance, claim, "v1", "budget")
}

// StatusError is a refusal of the collector.
type StatusError struct {
	// Status is the HTTP status.
	Status int
	// Message says why.
	Message string
	// RetryAfter is when to come again, at most a minute; 0 when the collector did not say.
	RetryAfter time.Duration
}

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the collector answered %d: %s", e.Status, e.Message)
}

// Status is the status of a refusal; 0 for any other error.
func Status(err error) int {
	var refused *StatusError
	if errors.As(err, &refused) {
		return refused.Status
	}
	return 0
}

// Temporary tells whether the same request may succeed later: the collector is away, or too busy. A refusal that is
// about the request itself is not.
func Temporary(err error) bool {
	var certificate *tls.CertificateVerificationError
	switch status := Status(err); {
	case err == nil, errors.Is(err, context.Canceled), errors.As(err, new(*permanentError)):
		return false
	case status == 0:
		// Another collector may be behind the same name by then; but this one is no collector of ours.
		return !errors.As(err, &certificate)
	default:
		return status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
	}
}

// permanentError is an error that no later attempt changes.
type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

func (c *Client) do(ctx context.Context, method string, answer, body any, path ...string) error {
	target := c.base.JoinPath(escape(path)...)
	var payload io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return &permanentError{fmt.Errorf("writing a request to the collector: %w", err)}
		}
		payload = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, target.String(), payload)
	if err != nil {
		return &permanentError{fmt.Errorf("making a request to the collector: %w", err)}
	}
	token, err := readToken(c.tokenFile)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("asking the collector: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return refusal(res)
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, MaxBody+1))
	switch {
	case err != nil:
		return fmt.Errorf("reading the collector's answer: %w", err)
	case len(data) > MaxBody:
		return &permanentError{fmt.Errorf("the collector's answer is longer than %d bytes", MaxBody)}
	case answer == nil:
		return nil
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("reading the collector's answer: %w", err)
	}
	return nil
}

func escape(path []string) []string {
	out := make([]string, len(path))
	for i, part := range path {
		out[i] = url.PathEscape(part)
	}
	return out
}

func refusal(res *http.Response) error {
	refused := &StatusError{Status: res.StatusCode, Message: http.StatusText(res.StatusCode)}
	var problem Problem
	data, err := io.ReadAll(io.LimitReader(res.Body, maxProblemBytes))
	if err == nil && json.Unmarshal(data, &problem) == nil && problem.Message != "" {
		refused.Message = problem.Message
	}
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds > 0 {
		refused.RetryAfter = min(maxRetryAfter, time.Duration(seconds)*time.Second)
	}
	return refused
}

func readToken(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading the pod's token: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxTokenBytes))
	if err != nil {
		return "", fmt.Errorf("reading the pod's token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", fmt.Errorf("the token file %s is empty", path)
	}
	return token, nil
}
