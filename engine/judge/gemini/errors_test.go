package gemini

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/engine/judge"
)

// failure is the body of an error in Google's form.
func failure(message string, details ...string) string {
	return `{"error":{"code":400,"message":"` + message + `","status":"INVALID_ARGUMENT","details":[` + strings.Join(details, ",") + `]}}`
}

func TestEveryErrorIsOneRequest(t *testing.T) {
	retry := func(delay string) string {
		return `{"@type":"type.googleapis.com/google.rpc.Help"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"` + delay + `"}`
	}
	const wrongKey = `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}`
	tests := map[string]struct {
		status  int
		header  map[string]string
		body    string
		without judge.Feature
		want    judge.StatusError
		feature judge.Feature
		// err is a part of the error as people read it.
		err string
	}{
		"S-40 Retry-After":                      {status: 429, header: map[string]string{"Retry-After": "7"}, body: failure("slow down", retry("34s")), want: judge.StatusError{RetryAfter: 7 * time.Second, Message: "slow down"}},
		"S-40 RetryInfo without Retry-After":    {status: 429, body: failure("slow down", retry("34.074824224s")), want: judge.StatusError{RetryAfter: 34074824224, Message: "slow down"}},
		"RetryInfo that asks for weeks":         {status: 429, body: failure("slow down", retry("9000h")), want: judge.StatusError{RetryAfter: 24 * time.Hour, Message: "slow down"}},
		"RetryInfo below 0":                     {status: 429, body: failure("slow down", retry("-3s")), want: judge.StatusError{Message: "slow down"}},
		"RetryInfo that is no duration":         {status: 429, body: failure("slow down", retry("soon")), want: judge.StatusError{Message: "slow down"}},
		"overloaded":                            {status: 503, body: failure("The model is overloaded."), want: judge.StatusError{Message: "The model is overloaded."}},
		"a proxy's page":                        {status: 502, header: map[string]string{"Content-Type": "text/html"}, body: "<html>bad  gateway\n", want: judge.StatusError{Message: "<html>bad gateway"}},
		"an empty body":                         {status: 500, want: judge.StatusError{}},
		"S-40 a wrong key names the variable":   {status: 400, body: failure("API key not valid. Please pass a valid API key.", wrongKey), want: judge.StatusError{Message: "API key not valid. Please pass a valid API key.; check the key in GEMINI_API_KEY (or GOOGLE_API_KEY)"}, err: "gemini answered 400"},
		"S-40 so does one that has expired":     {status: 400, body: failure("API key expired."), want: judge.StatusError{Message: "API key expired.; check the key in GEMINI_API_KEY (or GOOGLE_API_KEY)"}},
		"S-40 401 names the variable":           {status: 401, body: failure("no"), want: judge.StatusError{Message: "no"}, err: "check the key in GEMINI_API_KEY"},
		"S-40 403 names the variable":           {status: 403, body: failure("no"), want: judge.StatusError{Message: "no"}, err: "what the key in GEMINI_API_KEY"},
		"a key that is repeated is taken out":   {status: 403, body: failure("Consumer 'api_key:" + theKey + "' has been suspended."), want: judge.StatusError{Message: "Consumer 'api_key:[REDACTED:key]' has been suspended."}},
		"also where the message is cut":         {status: 403, body: failure(strings.Repeat("x", 490) + theKey), want: judge.StatusError{Message: strings.Repeat("x", 490) + "[REDACTED:…"}},
		"an unknown model":                      {status: 404, body: failure("models/gemini-test is not found"), want: judge.StatusError{Message: "models/gemini-test is not found"}, err: "check judge.model and GEMINI_BASE_URL"},
		"a redirect is not followed":            {status: 307, header: map[string]string{"Location": "/elsewhere"}, want: judge.StatusError{Message: "redirects are not followed; set GEMINI_BASE_URL to where the service is"}},
		"another 400":                           {status: 400, body: failure("Request contains an invalid argument."), want: judge.StatusError{Message: "Request contains an invalid argument."}},
		"S-47 temperature is refused":           {status: 400, body: failure("This model does not support the temperature parameter."), want: judge.StatusError{Message: "This model does not support the temperature parameter."}, feature: judge.FeatureTemperature},
		"S-44 the schema is refused":            {status: 400, body: failure("The specified schema produces a constraint that has too many states."), want: judge.StatusError{Message: "The specified schema produces a constraint that has too many states."}, feature: judge.FeatureStructuredOutput},
		"S-44 JSON mode is refused":             {status: 400, body: failure("JSON mode is not enabled for models/gemma-4"), want: judge.StatusError{Message: "JSON mode is not enabled for models/gemma-4"}, feature: judge.FeatureStructuredOutput},
		"S-44 the schema's field is not known":  {status: 400, body: failure(`Unknown name \"responseJsonSchema\" at 'generation_config': Cannot find field.`), want: judge.StatusError{Message: `Unknown name "responseJsonSchema" at 'generation_config': Cannot find field.`}, feature: judge.FeatureStructuredOutput},
		"what is not sent is not refused":       {status: 400, body: failure("JSON mode is not enabled"), without: judge.FeatureStructuredOutput, want: judge.StatusError{Message: "JSON mode is not enabled"}},
		"only a 400 is about what is supported": {status: 500, body: failure("temperature"), want: judge.StatusError{Message: "temperature"}},
		"details of another form":               {status: 429, body: `{"error":{"message":"slow down","details":"none"}}`, want: judge.StatusError{Message: "slow down"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tt.status, tt.header, tt.body)
			r := request()
			r.Without = tt.without
			_, err := New(theKey, s.URL, nil).Complete(t.Context(), r)
			var status *judge.StatusError
			if !errors.As(err, &status) {
				t.Fatalf("error = %v, want a StatusError", err)
			}
			tt.want.Provider, tt.want.Status, tt.want.Host = "gemini", tt.status, strings.TrimPrefix(s.URL, "http://")
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
			if strings.Contains(err.Error(), theKey) || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error = %v, want %q and no key", err, tt.err)
			}
		})
	}
}

func TestAnswersThatCannotBeRead(t *testing.T) {
	for name, tt := range map[string]struct{ body, reason string }{
		"no JSON":                        {"the candidate, again", "it is no JSON"},
		"no candidates":                  {`{"candidates":[],"usageMetadata":{"promptTokenCount":5}}`, "it has no candidates"},
		"a candidate that is null":       {`{"candidates":[null]}`, "form"},
		"candidates of another form":     {`{"candidates":"the candidate"}`, "form"},
		"a candidate of another form":    {`{"candidates":["the candidate"]}`, "form"},
		"content of another form":        {`{"candidates":[{"content":"the candidate"}]}`, "form"},
		"tokens of another form":         {`{"candidates":[{"content":{"parts":[{"text":"x"}]}}],"usageMetadata":{"promptTokenCount":"the candidate"}}`, "form"},
		"a list":                         {`["the candidate"]`, "form"},
		"another object":                 {`{"text":"the candidate"}`, "it has no candidates"},
		"longer than what is ever read":  {`{"x":"` + strings.Repeat("x", 5<<20) + `"}`, "4 MiB"},
		"JSON that ends before its end":  {`{"candidates":[`, "it is no JSON"},
		"no body at all":                 {"", "it has no candidates"},
		"a number where an object is":    {`{"candidates":[{"citationMetadata":7}]}`, "form"},
		"a part that is none":            {`{"candidates":[{"content":{"parts":["the candidate"]}}]}`, "form"},
		"a prompt feedback that is none": {`{"promptFeedback":"the candidate"}`, "form"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, 200, nil, tt.body)
			_, err := New(theKey, s.URL, nil).Complete(t.Context(), request())
			var malformed *judge.MalformedError
			if !errors.As(err, &malformed) || malformed.Provider != "gemini" || s.calls.Load() != 1 {
				t.Fatalf("error = %v after %d requests, want a MalformedError after 1", err, s.calls.Load())
			}
			if !strings.Contains(malformed.Reason, tt.reason) || strings.Contains(err.Error(), "the candidate") {
				t.Errorf("error = %v, want %q and nothing of the answer (S-48)", err, tt.reason)
			}
		})
	}
}

func TestABrokenConnectionIsNoAnswer(t *testing.T) {
	for name, before := range map[string]string{"at once": "", "in the body": `{"candidates":[`} {
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
			_, err := New(theKey, s.URL, nil).Complete(t.Context(), request())
			var malformed *judge.MalformedError
			var status *judge.StatusError
			if err == nil || errors.As(err, &malformed) || errors.As(err, &status) {
				t.Errorf("error = %v, want the transport's", err)
			}
			if before == "" && !errors.As(err, new(*url.Error)) {
				t.Errorf("error = %T %v, want a *url.Error: the judge hints at the base URL for it", err, err)
			}
		})
	}
}

// A name that would lead to another path is refused without a request, and for good.
func TestNamesThatAreNoModels(t *testing.T) {
	for _, model := range []string{"../files", "gemini?x=1", "gemini&x", "gemini#x"} {
		s := serve(t, 200, nil, answer)
		r := request()
		r.Model = model
		_, err := New(theKey, s.URL, nil).Complete(t.Context(), r)
		var status *judge.StatusError
		if !errors.As(err, &status) || status.Status != 404 || !strings.Contains(err.Error(), "check judge.model") || s.calls.Load() != 0 {
			t.Errorf("%s: %v after %d requests", model, err, s.calls.Load())
		}
	}
}

func FuzzDetails(f *testing.F) {
	f.Add([]byte(failure("x", `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.5s"}`)), "API key")
	f.Add([]byte(`{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"-9223372036854775808ns"}]}}`), "")
	f.Fuzz(func(t *testing.T, body []byte, message string) {
		list := detailsOf(body)
		if wait := list.retryDelay(); wait < 0 || wait > maxRetryDelay {
			t.Errorf("%q asks to wait %v", body, wait)
		}
		list.wrongKey(message)
	})
}
