package openai

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/engine/judge"
)

// served is a server that answers every request alike, and what it was sent last.
type served struct {
	*httptest.Server
	calls  atomic.Int32
	header http.Header
	path   string
	body   map[string]any
}

func serve(t *testing.T, status int, header map[string]string, body string) *served {
	t.Helper()
	s := &served{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		s.header, s.path, s.body = r.Header, r.URL.Path, nil
		data, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(data, &s.body)
		}
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		for k, v := range header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func ptr[T any](v T) *T { return &v }

func request() judge.Request {
	return judge.Request{
		Model: "gpt-test", Temperature: ptr(0.0), System: "instructions", Prefix: "the candidate", Question: "the question", MaxTokens: 1024,
		Schema: judge.Schema{Properties: json.RawMessage(`{"reason":{"type":"string"},"score":{"type":"number","minimum":0,"maximum":1}}`), Required: []string{"reason", "score"}},
	}
}

const answer = `{"id":"c","object":"chat.completion","model":"gpt-test","choices":[{"index":0,"finish_reason":"stop",
  "message":{"role":"assistant","content":"{\"reason\":\"ok\",\"score\":0.5}","refusal":null}}],
  "usage":{"prompt_tokens":240,"completion_tokens":7,"total_tokens":247,"prompt_tokens_details":{"cached_tokens":200,"cache_write_tokens":30}}}`

func object(t *testing.T, s string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

const firstMessages = `{"role":"system","content":"instructions"},
  {"role":"user","content":[{"type":"text","text":"the candidate"},{"type":"text","text":"the question"}]}`

const format = `"response_format":{"type":"json_schema","json_schema":{"name":"record_verdict","strict":true,"schema":{"type":"object",
    "properties":{"reason":{"type":"string"},"score":{"type":"number","minimum":0,"maximum":1}},"required":["reason","score"],"additionalProperties":false}}}`

func TestWireBody(t *testing.T) {
	tests := map[string]struct {
		change func(*judge.Request)
		want   string
	}{
		"a strict schema": {
			change: func(*judge.Request) {},
			want:   `{"model":"gpt-test","max_completion_tokens":1024,"temperature":0,"messages":[` + firstMessages + `],` + format + `}`,
		},
		"no temperature": {
			change: func(r *judge.Request) { r.Temperature = nil },
			want:   `{"model":"gpt-test","max_completion_tokens":1024,"messages":[` + firstMessages + `],` + format + `}`,
		},
		"words": {
			change: func(r *judge.Request) { r.Without = judge.FeatureStructuredOutput },
			want:   `{"model":"gpt-test","max_completion_tokens":1024,"temperature":0,"messages":[` + firstMessages + `]}`,
		},
		"the limit's old name": {
			change: func(r *judge.Request) { r.Without = judge.FeatureMaxCompletionTokens },
			want:   `{"model":"gpt-test","max_tokens":1024,"temperature":0,"messages":[` + firstMessages + `],` + format + `}`,
		},
		"the conversation goes on": {
			change: func(r *judge.Request) {
				r.Turns = []judge.Turn{{Answer: judge.Answer{Text: `{"score":8}`}, Complaint: "wrong"}, {Complaint: "say something"}}
			},
			want: `{"model":"gpt-test","max_completion_tokens":1024,"temperature":0,"messages":[` + firstMessages + `,
			  {"role":"assistant","content":"{\"score\":8}"},{"role":"user","content":"wrong"},
			  {"role":"assistant","content":"(no answer)"},{"role":"user","content":"say something"}],` + format + `}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, 200, nil, answer)
			r := request()
			tt.change(&r)
			if _, err := New("the-key", s.URL+"/v1", nil).Complete(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object(t, tt.want), s.body); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if s.path != "/v1/chat/completions" || s.header.Get("Authorization") != "Bearer the-key" {
				t.Errorf("%s with headers %v", s.path, s.header)
			}
		})
	}
}

func TestNothingElseOfTheEnvironmentCounts(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "another")
	t.Setenv("OPENAI_ORG_ID", "another")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Extra: 1")
	s := serve(t, 200, nil, answer)
	if _, err := New("the-key", s.URL, nil).Complete(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	if s.header.Get("Authorization") != "Bearer the-key" || s.header.Get("Openai-Organization") != "" || s.header.Get("X-Extra") != "" {
		t.Errorf("headers %v", s.header)
	}
}

func TestResponses(t *testing.T) {
	choice := func(message, finish string) string {
		return `{"choices":[{"index":0,"message":` + message + `,"finish_reason":"` + finish + `"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`
	}
	few := judge.Tokens{Input: 1, Output: 2}
	tests := map[string]struct {
		body    string
		without judge.Feature
		want    judge.Response
	}{
		"the verdict, and the cached tokens": {
			body: answer,
			want: judge.Response{
				Answer: judge.Answer{Text: `{"reason":"ok","score":0.5}`, Structured: true},
				Tokens: judge.Tokens{Input: 240, CacheRead: 200, CacheWrite: 30, Output: 7},
			},
		},
		"words": {
			body: choice(`{"content":"0.5"}`, "stop"), without: judge.FeatureStructuredOutput,
			want: judge.Response{Answer: judge.Answer{Text: "0.5"}, Tokens: few},
		},
		"a refusal": {
			body: choice(`{"content":null,"refusal":"I cannot"}`, "stop"),
			want: judge.Response{Answer: judge.Answer{Structured: true, Refusal: "I cannot"}, Tokens: few},
		},
		"a filter": {
			body: choice(`{"content":"x"}`, "content_filter"),
			want: judge.Response{Answer: judge.Answer{Text: "x", Structured: true, Refusal: "its content filter stopped it"}, Tokens: few},
		},
		"a context window that is full": {
			body: choice(`{"content":"{"}`, "model_length"),
			want: judge.Response{Answer: judge.Answer{Text: "{", Structured: true, Cut: true}, Tokens: few},
		},
		"parts: thoughts are no answer": {
			body: choice(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"{\"score\":1}"}]},{"type":"text","text":"{\"score\""},{"type":"text","text":":0}"}]}`, "stop"),
			want: judge.Response{Answer: judge.Answer{Text: `{"score":0}`, Structured: true}, Tokens: few},
		},
		"content that is neither": {
			body: choice(`{"content":[1,2]}`, "stop"),
			want: judge.Response{Answer: judge.Answer{Text: "[1,2]", Structured: true}, Tokens: few},
		},
		"a cut answer": {
			body: choice(`{"content":"{"}`, "length"),
			want: judge.Response{Answer: judge.Answer{Text: "{", Structured: true, Cut: true}, Tokens: few},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := request()
			r.Without = tt.without
			got, err := New("k", serve(t, 200, nil, tt.body).URL, nil).Complete(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryErrorIsOneRequest(t *testing.T) {
	body := func(message string) string {
		return `{"type":"error","error":{"type":"x","message":"` + message + `"}}`
	}
	tests := map[string]struct {
		status  int
		header  map[string]string
		body    string
		without judge.Feature
		want    judge.StatusError
		feature judge.Feature
	}{
		"rate limit":                      {status: 429, header: map[string]string{"Retry-After": "7"}, body: body("slow down"), want: judge.StatusError{RetryAfter: 7 * time.Second, Message: "slow down"}},
		"overloaded":                      {status: 529, body: body("overloaded"), want: judge.StatusError{Message: "overloaded"}},
		"a proxy's page":                  {status: 502, header: map[string]string{"Content-Type": "text/html"}, body: "<html>bad  gateway\n", want: judge.StatusError{Message: "<html>bad gateway"}},
		"wrong key":                       {status: 401, body: body("invalid x-api-key"), want: judge.StatusError{Message: "invalid x-api-key"}},
		"a redirect is not followed":      {status: 307, header: map[string]string{"Location": "/elsewhere"}, want: judge.StatusError{Message: "redirects are not followed; set OPENAI_BASE_URL to where the service is"}},
		"another 400":                     {status: 400, body: body("max_tokens: too large"), want: judge.StatusError{Message: "max_tokens: too large"}},
		"temperature is refused":          {status: 400, body: body("`temperature` is deprecated for this model."), want: judge.StatusError{Message: "`temperature` is deprecated for this model."}, feature: judge.FeatureTemperature},
		"the schema is refused":           {status: 400, body: body("response_format is not supported"), want: judge.StatusError{Message: "response_format is not supported"}, feature: judge.FeatureStructuredOutput},
		"the limit is not known":          {status: 422, body: body("unknown field max_completion_tokens"), want: judge.StatusError{Message: "unknown field max_completion_tokens"}, feature: judge.FeatureMaxCompletionTokens},
		"what is not sent is not refused": {status: 400, body: body("response_format is not supported"), without: judge.FeatureStructuredOutput, want: judge.StatusError{Message: "response_format is not supported"}},
		"a plain error":                   {status: 500, body: `{"error":"broken"}`, want: judge.StatusError{Message: "broken"}},
		"an error of FastAPI":             {status: 404, body: `{"detail":"Not Found"}`, want: judge.StatusError{Message: "Not Found"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tt.status, tt.header, tt.body)
			r := request()
			r.Without = tt.without
			_, err := New("the-key", s.URL, nil).Complete(t.Context(), r)
			var status *judge.StatusError
			if !errors.As(err, &status) {
				t.Fatalf("error = %v, want a StatusError", err)
			}
			tt.want.Provider, tt.want.Status, tt.want.Host = "openai", tt.status, strings.TrimPrefix(s.URL, "http://")
			if diff := cmp.Diff(tt.want, *status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			var unsupported *judge.UnsupportedError
			if errors.As(err, &unsupported) != (tt.feature != 0) || tt.feature != 0 && unsupported.Feature != tt.feature {
				t.Errorf("error %v is about feature %v, want %v", err, unsupported, tt.feature)
			}
			if n := s.calls.Load(); n != 1 {
				t.Errorf("%d requests, want 1: retries are the judge's", n)
			}
			if strings.Contains(err.Error(), "the-key") {
				t.Errorf("the error tells the key: %v", err)
			}
		})
	}
}

func TestAnswersThatCannotBeRead(t *testing.T) {
	for name, body := range map[string]string{"no JSON": "oops", "null": "null", "no choices": `{"choices":[]}`, "too long": `{"x":"` + strings.Repeat("x", 5<<20) + `"}`} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, 200, map[string]string{"Content-Type": "application/json"}, body)
			_, err := New("k", s.URL, nil).Complete(t.Context(), request())
			var malformed *judge.MalformedError
			if !errors.As(err, &malformed) || s.calls.Load() != 1 {
				t.Errorf("error = %v after %d requests, want a MalformedError after 1", err, s.calls.Load())
			}
		})
	}
}

func TestABrokenConnectionIsNoAnswer(t *testing.T) {
	for name, before := range map[string]string{"at once": "", "in the body": `{"content":[`} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if before != "" {
					w.Header().Set("Content-Length", "1000")
					_, _ = io.WriteString(w, before)
					_ = http.NewResponseController(w).Flush()
				}
				panic(http.ErrAbortHandler)
			}))
			defer s.Close()
			_, err := New("k", s.URL, nil).Complete(t.Context(), request())
			var malformed *judge.MalformedError
			var status *judge.StatusError
			if err == nil || errors.As(err, &malformed) || errors.As(err, &status) {
				t.Errorf("error = %v, want the transport's", err)
			}
		})
	}
}
