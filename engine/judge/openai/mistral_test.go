package openai

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/engine/judge"
)

func TestMistralIsNeverSentTheLimitsNewName(t *testing.T) {
	for name, without := range map[string]judge.Feature{"at first": 0, "after a refusal": judge.FeatureTemperature} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, 200, nil, answer)
			r := request()
			r.Without = without
			if _, err := NewMistral("the-key", s.URL+"/v1", nil).Complete(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			want := object(t, `{"model":"gpt-test","max_tokens":1024,"temperature":0,"messages":[`+firstMessages+`],`+format+`}`)
			if diff := cmp.Diff(want, s.body); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if s.path != "/v1/chat/completions" || s.header.Get("Authorization") != "Bearer the-key" {
				t.Errorf("%s with headers %v", s.path, s.header)
			}
		})
	}
}

func TestMistralsErrorsNameMistral(t *testing.T) {
	tests := map[string]struct {
		status  int
		body    string
		message string
		err     string
		feature judge.Feature
	}{
		"a wrong key":    {status: 401, body: `{"detail":"Unauthorized"}`, message: "Unauthorized", err: "check the key in MISTRAL_API_KEY"},
		"too many calls": {status: 429, body: `{"object":"error","message":"Rate limit exceeded","type":"rate_limited","param":null,"code":"1300"}`, message: "Rate limit exceeded", err: "mistral answered 429"},
		"an unknown model": {
			status: 400, body: `{"object":"error","message":"Invalid model: mistral-typo","type":"invalid_model","param":null,"code":"1500"}`, message: "Invalid model: mistral-typo", err: "mistral answered 400",
		},
		"a field that it does not know": {
			status: 422, body: `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted","input":7}]},"type":"invalid_request_error","param":null,"code":null}`,
			message: "body.seed: Extra inputs are not permitted", err: "mistral answered 422",
		},
		"a temperature that it refuses": {
			status: 422, body: `{"detail":[{"type":"x","loc":["body","temperature"],"msg":"not for this model","input":0}]}`,
			message: "body.temperature: not for this model", err: "not for this model", feature: judge.FeatureTemperature,
		},
		"a schema that it refuses": {
			status: 400, body: `{"message":[{"type":"x","loc":["body","response_format"],"msg":"not for this model","input":{}}]}`,
			message: "body.response_format: not for this model", err: "not for this model", feature: judge.FeatureStructuredOutput,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tt.status, nil, tt.body)
			_, err := NewMistral("the-key", s.URL, nil).Complete(t.Context(), request())
			var status *judge.StatusError
			if !errors.As(err, &status) || status.Provider != "mistral" || status.Status != tt.status || status.Message != tt.message || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error = %v, want message %q and %q", err, tt.message, tt.err)
			}
			var unsupported *judge.UnsupportedError
			if errors.As(err, &unsupported) != (tt.feature != 0) || tt.feature != 0 && unsupported.Feature != tt.feature {
				t.Errorf("error %v is about feature %v, want %v", err, unsupported, tt.feature)
			}
			if n := s.calls.Load(); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
	var malformed *judge.MalformedError
	_, err := NewMistral("k", serve(t, 200, nil, `{"choices":[]}`).URL, nil).Complete(t.Context(), request())
	if !errors.As(err, &malformed) || malformed.Provider != "mistral" {
		t.Errorf("error = %v, want a MalformedError of mistral", err)
	}
}

// A server that repeats the part of the request that it refuses must not carry the candidate into an error (S-48).
func TestComplaintsLeaveOutWhatTheyRepeat(t *testing.T) {
	detail := func(n int) string {
		one := `{"type":"x","loc":["body","messages",1],"msg":"` + strings.Repeat("é", 200) + `\nno","input":"the candidate","ctx":{"given":"the candidate"}}`
		return "[" + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + "]"
	}
	for name, tt := range map[string]struct {
		body string
		want int
	}{
		"one":                      {`{"detail":` + detail(1) + `}`, 1},
		"many are cut":             {`{"message":{"detail":` + detail(9) + `}}`, maxComplaints},
		"a message that is a list": {`{"message":` + detail(2) + `}`, 2},
		"a plain detail":           {`{"detail":"Not Found"}`, 0},
		"a list without words":     {`{"detail":[{"loc":["body"]}]}`, 0},
		"a list of something else": {`{"detail":[1]}`, 0},
		"no JSON":                  {`<html>`, 0},
		"nothing":                  {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := complaints([]byte(tt.body))
			if n := strings.Count(got, "body.messages.1: é"); n != tt.want || strings.Contains(got, "candidate") || strings.Contains(got, "\n") || len(got) > maxComplaints*2*maxComplaintBytes {
				t.Errorf("%d complaints in %q, want %d", n, got, tt.want)
			}
		})
	}
}

func FuzzComplaints(f *testing.F) {
	f.Add([]byte(`{"message":{"detail":[{"loc":["body",1,null,{}],"msg":"x"}]}}`))
	f.Add([]byte(`{"detail":[{"loc":["\xff"],"msg":"\xff\ufffd"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		said := complaints(body)
		if strings.ContainsAny(said, "\n\r") || len(said) > maxComplaints*(2*maxComplaintBytes+16) {
			t.Errorf("%q becomes %q", body, said)
		}
		if !json.Valid(body) && said != "" {
			t.Errorf("%q is no JSON and becomes %q", body, said)
		}
	})
}
