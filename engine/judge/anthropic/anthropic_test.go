package anthropic

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
		Model: "claude-test", Temperature: ptr(0.0), System: "instructions", Prefix: "the candidate", Question: "the question", MaxTokens: 1024,
		Schema: judge.Schema{Properties: json.RawMessage(`{"reason":{"type":"string"},"score":{"type":"number","minimum":0,"maximum":1}}`), Required: []string{"reason", "score"}},
	}
}

const answer = `{"id":"m","type":"message","role":"assistant","model":"claude-test","content":[
  {"type":"text","text":"Let me see."},{"type":"tool_use","id":"tu_1","name":"record_verdict","input":{"reason":"ok","score":0.5}}],
  "stop_reason":"tool_use","usage":{"input_tokens":10,"cache_read_input_tokens":200,"cache_creation_input_tokens":30,"output_tokens":7}}`

func object(t *testing.T, s string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

const firstMessage = `{"role":"user","content":[
  {"type":"text","text":"the candidate","cache_control":{"type":"ephemeral"}},{"type":"text","text":"the question"}]}`

const tools = `"tool_choice":{"type":"tool","name":"record_verdict","disable_parallel_tool_use":true},
  "tools":[{"name":"record_verdict","description":"Records your verdict on the candidate. Call it exactly once.","input_schema":{"type":"object",
    "properties":{"reason":{"type":"string"},"score":{"type":"number","minimum":0,"maximum":1}},"required":["reason","score"],"additionalProperties":false}}]`

func TestWireBody(t *testing.T) {
	tests := map[string]struct {
		change func(*judge.Request)
		want   string
	}{
		"a forced tool, and a breakpoint after the prefix": {
			change: func(*judge.Request) {},
			want: `{"model":"claude-test","max_tokens":1024,"temperature":0,"system":[{"type":"text","text":"instructions"}],
			  "messages":[` + firstMessage + `],` + tools + `}`,
		},
		"no temperature": {
			change: func(r *judge.Request) { r.Temperature = nil },
			want: `{"model":"claude-test","max_tokens":1024,"system":[{"type":"text","text":"instructions"}],
			  "messages":[` + firstMessage + `],` + tools + `}`,
		},
		"an output schema without bounds, for models that refuse to be forced": {
			change: func(r *judge.Request) { r.Without = judge.FeatureForcedTool },
			want: `{"model":"claude-test","max_tokens":1024,"temperature":0,"system":[{"type":"text","text":"instructions"}],
			  "messages":[` + firstMessage + `],
			  "output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"reason":{"type":"string"},"score":{"type":"number"}},
			    "required":["reason","score"],"additionalProperties":false}}}}`,
		},
		"words": {
			change: func(r *judge.Request) { r.Without = judge.FeatureForcedTool | judge.FeatureStructuredOutput },
			want: `{"model":"claude-test","max_tokens":1024,"temperature":0,"system":[{"type":"text","text":"instructions"}],
			  "messages":[` + firstMessage + `]}`,
		},
		"the conversation goes on": {
			change: func(r *judge.Request) {
				r.Turns = []judge.Turn{
					{Answer: judge.Answer{Text: `{"score":8}`, ToolUseID: "tu_1", Structured: true}, Complaint: "wrong"},
					{Answer: judge.Answer{Text: " I will not. "}, Complaint: "still wrong"},
					{Complaint: "say something"},
				}
			},
			want: `{"model":"claude-test","max_tokens":1024,"temperature":0,"system":[{"type":"text","text":"instructions"}],
			  "messages":[` + firstMessage + `,
			    {"role":"assistant","content":[{"type":"tool_use","id":"tu_1","name":"record_verdict","input":{"score":8}}]},
			    {"role":"user","content":[{"type":"tool_result","tool_use_id":"tu_1","is_error":true,"content":[{"type":"text","text":"wrong"}]}]},
			    {"role":"assistant","content":[{"type":"text","text":"I will not."}]},
			    {"role":"user","content":[{"type":"text","text":"still wrong"}]},
			    {"role":"assistant","content":[{"type":"text","text":"(no answer)"}]},
			    {"role":"user","content":[{"type":"text","text":"say something"}]}],` + tools + `}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, 200, nil, answer)
			r := request()
			tt.change(&r)
			if _, err := New("the-key", s.URL, nil).Complete(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object(t, tt.want), s.body); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if s.path != "/v1/messages" || s.header.Get("X-Api-Key") != "the-key" || s.header.Get("Anthropic-Version") == "" {
				t.Errorf("%s with headers %v", s.path, s.header)
			}
		})
	}
}

func TestNothingElseOfTheEnvironmentCounts(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "another")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "another")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Extra: 1")
	s := serve(t, 200, nil, answer)
	if _, err := New("the-key", s.URL, nil).Complete(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	if s.header.Get("X-Api-Key") != "the-key" || s.header.Get("Authorization") != "" || s.header.Get("X-Extra") != "" {
		t.Errorf("headers %v", s.header)
	}
}

func TestResponses(t *testing.T) {
	tests := map[string]struct {
		body    string
		without judge.Feature
		want    judge.Response
	}{
		"the call of the tool, and all input tokens": {
			body: answer,
			want: judge.Response{
				Answer: judge.Answer{Text: `{"reason":"ok","score":0.5}`, Structured: true, ToolUseID: "tu_1"},
				Tokens: judge.Tokens{Input: 240, CacheRead: 200, CacheWrite: 30, Output: 7},
			},
		},
		"text is no verdict": {
			body: `{"content":[{"type":"text","text":"0.5"}],"stop_reason":"end_turn","usage":{}}`,
			want: judge.Response{Answer: judge.Answer{Text: "0.5"}},
		},
		"text is one by an output schema": {
			body: `{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"{}"}],"stop_reason":"end_turn","usage":{}}`, without: judge.FeatureForcedTool,
			want: judge.Response{Answer: judge.Answer{Text: "{}", Structured: true}},
		},
		"a refusal": {
			body: `{"content":[],"stop_reason":"refusal","usage":{}}`,
			want: judge.Response{Answer: judge.Answer{Refusal: "it stopped with stop_reason refusal"}},
		},
		"a cut answer": {
			body: `{"content":[],"stop_reason":"max_tokens","usage":{}}`,
			want: judge.Response{Answer: judge.Answer{Cut: true}},
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
		"rate limit":                 {status: 429, header: map[string]string{"Retry-After": "7"}, body: body("slow down"), want: judge.StatusError{RetryAfter: 7 * time.Second, Message: "slow down"}},
		"overloaded":                 {status: 529, body: body("overloaded"), want: judge.StatusError{Message: "overloaded"}},
		"a proxy's page":             {status: 502, header: map[string]string{"Content-Type": "text/html"}, body: "<html>bad  gateway\n", want: judge.StatusError{Message: "<html>bad gateway"}},
		"wrong key":                  {status: 401, body: body("invalid x-api-key"), want: judge.StatusError{Message: "invalid x-api-key"}},
		"a redirect is not followed": {status: 307, header: map[string]string{"Location": "/elsewhere"}, want: judge.StatusError{Message: "redirects are not followed; set ANTHROPIC_BASE_URL to where the service is"}},
		"another 400":                {status: 400, body: body("max_tokens: too large"), want: judge.StatusError{Message: "max_tokens: too large"}},
		"temperature is refused":     {status: 400, body: body("`temperature` is deprecated for this model."), want: judge.StatusError{Message: "`temperature` is deprecated for this model."}, feature: judge.FeatureTemperature},
		"the forced tool is refused": {status: 400, body: body("tool_choice: not supported"), want: judge.StatusError{Message: "tool_choice: not supported"}, feature: judge.FeatureForcedTool},
		"the output schema is refused": {
			status: 400, body: body("output_config.format: not supported"), without: judge.FeatureForcedTool,
			want: judge.StatusError{Message: "output_config.format: not supported"}, feature: judge.FeatureStructuredOutput,
		},
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
			tt.want.Provider, tt.want.Status, tt.want.Host = "anthropic", tt.status, strings.TrimPrefix(s.URL, "http://")
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
	for name, body := range map[string]string{"no JSON": "oops", "null": "null", "too long": `{"x":"` + strings.Repeat("x", 5<<20) + `"}`} {
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
