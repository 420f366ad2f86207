package gemini

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/engine/judge"
)

// served is a server that answers every request alike, and what it was sent last.
type served struct {
	*httptest.Server
	calls  atomic.Int32
	header http.Header
	url    string
	raw    []byte
	body   map[string]any
}

func serve(t *testing.T, status int, header map[string]string, body string) *served {
	t.Helper()
	s := &served{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		s.header, s.url, s.body = r.Header, r.URL.String(), nil
		var err error
		if s.raw, err = io.ReadAll(r.Body); err == nil {
			err = json.Unmarshal(s.raw, &s.body)
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

const theKey = "AIzaTheKey-0123456789"

func request() judge.Request {
	return judge.Request{
		Model: "gemini-test", Temperature: ptr(0.0), System: "instructions", Prefix: "the candidate", Question: "the question", MaxTokens: 8192,
		Schema: judge.Schema{
			Properties: json.RawMessage(`{"evidence":{"type":"string"},"reason":{"type":"string"},"score":{"type":"number","minimum":0,"maximum":1}}`),
			Required:   []string{"evidence", "reason", "score"},
		},
	}
}

const answer = `{"candidates":[{"index":0,"finishReason":"STOP","content":{"role":"model","parts":[
  {"text":"Let me see: {}","thought":true},{"text":"{\"evidence\":\"e\",\"reason\":\"ok\",","thoughtSignature":"c2ln"},{"text":"\"score\":0.5}"}]}}],
  "usageMetadata":{"promptTokenCount":240,"cachedContentTokenCount":200,"candidatesTokenCount":7,"thoughtsTokenCount":30,"totalTokenCount":277},
  "modelVersion":"gemini-test","responseId":"r"}`

func object(t *testing.T, s string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

const (
	firstContent = `{"role":"user","parts":[{"text":"the candidate"},{"text":"the question"}]}`
	system       = `"systemInstruction":{"role":"user","parts":[{"text":"instructions"}]}`
	format       = `"responseMimeType":"application/json","responseJsonSchema":{"type":"object","additionalProperties":false,
	  "properties":{"evidence":{"type":"string"},"reason":{"type":"string"},"score":{"type":"number","minimum":0,"maximum":1}},
	  "required":["evidence","reason","score"],"propertyOrdering":["evidence","reason","score"]}`
)

func TestWireBody(t *testing.T) {
	tests := map[string]struct {
		change func(*judge.Request)
		want   string
	}{
		"S-44 a JSON schema, S-46 the question last, S-47 temperature 0": {
			change: func(*judge.Request) {},
			want:   `{"contents":[` + firstContent + `],` + system + `,"generationConfig":{"temperature":0,"maxOutputTokens":8192,` + format + `}}`,
		},
		"S-47 no temperature": {
			change: func(r *judge.Request) { r.Temperature = nil },
			want:   `{"contents":[` + firstContent + `],` + system + `,"generationConfig":{"maxOutputTokens":8192,` + format + `}}`,
		},
		"a temperature keeps its digits": {
			change: func(r *judge.Request) { r.Temperature = ptr(0.7) },
			want:   `{"contents":[` + firstContent + `],` + system + `,"generationConfig":{"temperature":0.7,"maxOutputTokens":8192,` + format + `}}`,
		},
		"S-44 words": {
			change: func(r *judge.Request) { r.Without = judge.FeatureStructuredOutput },
			want:   `{"contents":[` + firstContent + `],` + system + `,"generationConfig":{"temperature":0,"maxOutputTokens":8192}}`,
		},
		"S-40 the conversation goes on": {
			change: func(r *judge.Request) {
				r.Turns = []judge.Turn{{Answer: judge.Answer{Text: `{"score":8}`}, Complaint: "wrong"}, {Answer: judge.Answer{Text: " "}, Complaint: "say something"}}
			},
			want: `{"contents":[` + firstContent + `,
			  {"role":"model","parts":[{"text":"{\"score\":8}"}]},{"role":"user","parts":[{"text":"wrong"}]},
			  {"role":"model","parts":[{"text":"(no answer)"}]},{"role":"user","parts":[{"text":"say something"}]}],` +
				system + `,"generationConfig":{"temperature":0,"maxOutputTokens":8192,` + format + `}}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, 200, nil, answer)
			r := request()
			tt.change(&r)
			if _, err := New(theKey, s.URL, nil).Complete(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object(t, tt.want), s.body); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if s.url != "/v1beta/models/gemini-test:generateContent" || s.header.Get("X-Goog-Api-Key") != theKey || s.header.Get("Authorization") != "" {
				t.Errorf("%s with headers %v", s.url, s.header)
			}
		})
	}
}

// The score follows from the reason only where the reason is written first.
func TestThePropertiesKeepTheirOrderOnTheWire(t *testing.T) {
	s := serve(t, 200, nil, answer)
	if _, err := New(theKey, s.URL, nil).Complete(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	at := func(key string) int { return bytes.Index(s.raw, []byte(`"`+key+`":{`)) }
	if order := []int{at("evidence"), at("reason"), at("score")}; order[0] < 0 || !slices.IsSorted(order) {
		t.Errorf("properties at %v in %s", order, s.raw)
	}
}

func TestBaseURLs(t *testing.T) {
	for name, path := range map[string]string{"the host": "", "a slash": "/", "a gateway's prefix": "/gw", "with the version": "/v1beta", "and a slash": "/gw/v1beta/"} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, 200, nil, answer)
			if _, err := New(theKey, s.URL+path, nil).Complete(t.Context(), request()); err != nil {
				t.Fatal(err)
			}
			want := strings.TrimSuffix(strings.TrimRight(path, "/"), "/v1beta") + "/v1beta/models/gemini-test:generateContent"
			if s.url != want {
				t.Errorf("asked %s, want %s", s.url, want)
			}
		})
	}
}

// Not parallel: the environment and the standard logger are the process's.
func TestS24NothingElseOfTheEnvironmentCounts(t *testing.T) {
	other := serve(t, 200, nil, answer)
	for name, value := range map[string]string{
		"GOOGLE_API_KEY": "another", "GEMINI_API_KEY": "another", "GOOGLE_GEMINI_BASE_URL": other.URL, "GEMINI_BASE_URL": other.URL,
		"GOOGLE_GENAI_USE_VERTEXAI": "true", "GOOGLE_GENAI_USE_ENTERPRISE": "1", "GOOGLE_VERTEX_BASE_URL": other.URL,
		"GOOGLE_CLOUD_PROJECT": "another", "GOOGLE_CLOUD_LOCATION": "another", "GOOGLE_CLOUD_REGION": "another",
		"GOOGLE_APPLICATION_CREDENTIALS": "/does/not/exist.json",
	} {
		t.Setenv(name, value)
	}
	var logged bytes.Buffer
	out := log.Writer()
	log.SetOutput(&logged)
	defer log.SetOutput(out)

	s := serve(t, 200, nil, answer)
	for key, want := range map[string]string{theKey: theKey, "": noKey} {
		if _, err := New(key, s.URL, nil).Complete(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
		if got := s.header.Values("X-Goog-Api-Key"); !slices.Equal(got, []string{want}) {
			t.Errorf("the key %q is sent as %q", key, got)
		}
		if s.url != "/v1beta/models/gemini-test:generateContent" {
			t.Errorf("asked %s", s.url)
		}
	}
	if n := other.calls.Load(); n != 0 {
		t.Errorf("the environment's server got %d requests", n)
	}
	if logged.Len() != 0 {
		t.Errorf("logged %q", &logged)
	}
	log.Print("another line")
	if !strings.Contains(logged.String(), "another line") {
		t.Errorf("the logger lost its output: %q", &logged)
	}
	for baseURL, host := range map[string]string{"": "generativelanguage.googleapis.com", s.URL: strings.TrimPrefix(s.URL, "http://")} {
		if c := New(theKey, baseURL, nil); c.host != host || c.err != nil {
			t.Errorf("base URL %q: host %q, %v", baseURL, c.host, c.err)
		}
	}
}

func TestOtherLinesPassTheFilterOfTheLogger(t *testing.T) {
	var out bytes.Buffer
	w := without{&out}
	for _, line := range []string{"a\n", "Warning: " + bothKeys + ". Using GOOGLE_API_KEY.\n", "b\n"} {
		if n, err := io.WriteString(w, line); err != nil || n != len(line) {
			t.Errorf("%q: wrote %d, %v", line, n, err)
		}
	}
	if out.String() != "a\nb\n" {
		t.Errorf("passed %q", &out)
	}
}

func TestResponses(t *testing.T) {
	const usage = `"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2}`
	candidate := func(text, finish string) string {
		return `{"candidates":[{"content":{"parts":[{"text":` + text + `}]},"finishReason":"` + finish + `"}],` + usage + `}`
	}
	few := judge.Tokens{Input: 1, Output: 2}
	tests := map[string]struct {
		body    string
		without judge.Feature
		want    judge.Response
	}{
		"the verdict without the thoughts, and the tokens with them": {
			body: answer,
			want: judge.Response{
				Answer: judge.Answer{Text: `{"evidence":"e","reason":"ok","score":0.5}`, Structured: true},
				Tokens: judge.Tokens{Input: 240, CacheRead: 200, Output: 37},
			},
		},
		"words": {
			body: candidate(`"0.5"`, "STOP"), without: judge.FeatureStructuredOutput,
			want: judge.Response{Answer: judge.Answer{Text: "0.5"}, Tokens: few},
		},
		"a cut answer": {
			body: candidate(`"{"`, "MAX_TOKENS"),
			want: judge.Response{Answer: judge.Answer{Text: "{", Structured: true, Cut: true}, Tokens: few},
		},
		"cut while it thought": {
			body: `{"candidates":[{"content":{"role":"model"},"finishReason":"MAX_TOKENS"}],"usageMetadata":{"promptTokenCount":1,"thoughtsTokenCount":8192}}`,
			want: judge.Response{Answer: judge.Answer{Structured: true, Cut: true}, Tokens: judge.Tokens{Input: 1, Output: 8192}},
		},
		"an answer that could be continued is not continued": {
			body: `{"candidates":[{"content":{"parts":[{"text":"{"}]},"finishReason":"CONTINUATION","continuationToken":"dG9r"}],` + usage + `}`,
			want: judge.Response{Answer: judge.Answer{Text: "{", Structured: true, Cut: true}, Tokens: few},
		},
		"a prompt that is blocked": {
			body: `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":1}}`,
			want: judge.Response{
				Answer: judge.Answer{Structured: true, Refusal: "it did not read the prompt: promptFeedback.blockReason is PROHIBITED_CONTENT"},
				Tokens: judge.Tokens{Input: 1},
			},
		},
		"S-40 SAFETY": {
			body: `{"candidates":[{"finishReason":"SAFETY","index":0}],` + usage + `}`,
			want: judge.Response{Answer: judge.Answer{Structured: true, Refusal: "it stopped with finishReason SAFETY"}, Tokens: few},
		},
		"S-40 RECITATION": {
			body: `{"candidates":[{"finishReason":"RECITATION"}],` + usage + `}`,
			want: judge.Response{Answer: judge.Answer{Structured: true, Refusal: "it stopped with finishReason RECITATION"}, Tokens: few},
		},
		"S-40 PROHIBITED_CONTENT, half-way": {
			body: candidate(`"{"`, "PROHIBITED_CONTENT"),
			want: judge.Response{Answer: judge.Answer{Text: "{", Structured: true, Refusal: "it stopped with finishReason PROHIBITED_CONTENT"}, Tokens: few},
		},
		"a reason that is not known yet": {
			body: candidate(`"{"`, "TOO_BORING"),
			want: judge.Response{Answer: judge.Answer{Text: "{", Structured: true, Refusal: "it stopped with finishReason TOO_BORING"}, Tokens: few},
		},
		"no usage": {
			body: `{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}]}`,
			want: judge.Response{Answer: judge.Answer{Text: "x", Structured: true}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := request()
			r.Without = tt.without
			s := serve(t, 200, nil, tt.body)
			got, err := New(theKey, s.URL, nil).Complete(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
			if n := s.calls.Load(); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}
