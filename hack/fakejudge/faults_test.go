package fakejudge

import (
	"bytes"
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFaultsHaveTheProvidersOwnForm(t *testing.T) {
	for name, tc := range map[string]struct {
		rule                               string
		anthropic, openAI, gemini, mistral []string
	}{
		"malformed": {
			"fault: malformed", []string{`"input":{"score":"rather high"`}, []string{`"content":"{\"score\": 0."`},
			[]string{`"text":"{\"score\": 0."`}, []string{`"content":"{\"score\": 0."`},
		},
		"outOfRange": {
			"fault: outOfRange", []string{`"score":8`}, []string{`\"score\":8}`}, []string{`\"score\":8}`}, []string{`\"score\":8}`},
		},
		"emptyReason": {
			"fault: emptyReason", []string{`"reason":""`}, []string{`\"reason\":\"\"`}, []string{`\"reason\":\"\"`}, []string{`\"reason\":\"\"`},
		},
		"refusal": {
			"fault: refusal", []string{`"stop_reason":"refusal"`, ReasonPrefix}, []string{`"content":null`, `"refusal":"[stand-in judge]`},
			[]string{`"candidates":[{"finishReason":"SAFETY","finishMessage":"[stand-in judge]`}, []string{`"content":"[stand-in judge] I'm sorry`, `"refusal":null`},
		},
		"prose": {
			"fault: prose", []string{`"type":"text"`, `"stop_reason":"end_turn"`}, []string{`"content":"[stand-in judge] What`},
			[]string{`"text":"[stand-in judge] What`, `"finishReason":"STOP"`}, []string{`"content":"[stand-in judge] What`},
		},
		"embedded": {
			"fault: embedded, score: 0.5", []string{`"type":"text"`, `\"score\":0.5}`}, []string{`my verdict is:\n{`, `\"score\":0.5}`},
			[]string{`my verdict is:\n{`, `\"score\":0.5}`}, []string{`my verdict is:\n{`, `\"score\":0.5}`},
		},
		"429": {
			"fault: status, status: 429", []string{`"type":"rate_limit_error"`}, []string{`"code":"rate_limit_exceeded"`},
			[]string{`{"error":{"code":429,`, `"status":"RESOURCE_EXHAUSTED"}}`}, []string{`"object":"error"`, `"type":"rate_limited"`, `"code":"1300"`},
		},
		"529": {
			"fault: status, status: 529", []string{`"type":"overloaded_error"`, "Overloaded"}, []string{`"type":"server_error"`},
			[]string{`"status":"UNKNOWN"`}, []string{`"type":"internal_server_error"`},
		},
		"500": {
			"fault: status, status: 500", []string{`"type":"api_error"`}, []string{`"type":"server_error"`},
			[]string{`"status":"INTERNAL"`}, []string{`"type":"internal_server_error"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := start(t, Options{Rules: rulesOf(t, "rules: [{"+tc.rule+"}]")})
			mustContain(t, askAnthropic(t, url, anthropicCall(nonceA, "x", "Is it?")).body, tc.anthropic...)
			mustContain(t, askOpenAI(t, url, openAICall(nonceA, "x", "Is it?")).body, tc.openAI...)
			mustContain(t, askGemini(t, url, geminiCall(nonceA, "x", "Is it?")).body, tc.gemini...)
			mustContain(t, askOpenAI(t, url, mistralCall(nonceA, "x", "Is it?")).body, tc.mistral...)
			if st := s.Stats(); st.Faults != 4 || st.Answered != 0 || st.AnsweredKeys != 0 {
				t.Errorf("stats %+v", st)
			}
		})
	}
}

func TestAFaultWithTimesEndsInTheRulesScore(t *testing.T) {
	s, url := start(t, Options{Rules: rulesOf(t, `
rules:
- {when: {contains: nonsense}, fault: status, status: 429, retryAfter: 1500ms, times: 2, score: 0.25}
`)})
	call := anthropicCall(nonceA, "x", "Is it nonsense?")
	for range 2 {
		r := askAnthropic(t, url, call)
		if r.status != 429 || r.header.Get("Retry-After") != "2" || r.header.Get("Retry-After-Ms") != "1500" {
			t.Errorf("status %d, headers %v", r.status, r.header)
		}
	}
	if v := anthropicVerdict(t, askAnthropic(t, url, call)); *v.Score != 0.25 {
		t.Errorf("verdict %v", v)
	}
	s.Reset()
	if r := askAnthropic(t, url, call); r.status != 429 {
		t.Errorf("status %d after a reset, want 429 again", r.status)
	}
}

func TestADropIsNoAnswerAtAll(t *testing.T) {
	s, url := start(t, Options{Rules: rulesOf(t, "rules: [{fault: drop, times: 1}]")})
	resp, err := send(t.Context(), url)
	if err == nil {
		resp.Body.Close()
		t.Fatalf("status %d, want a broken connection", resp.StatusCode)
	}
	eventually(t, "the drop is counted", func() bool { return s.Stats().ByFault[FaultDrop] == 1 })
	if v := anthropicVerdict(t, askAnthropic(t, url, anthropicCall(nonceA, "x", "q"))); v.Score == nil {
		t.Error("no verdict after the drop")
	}
}

func TestAHangEndsWithTheClientOrTheServer(t *testing.T) {
	s, url := start(t, Options{Rules: rulesOf(t, "rules: [{fault: hang}]")})
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 2)
	go func() { errs <- sendErr(ctx, url) }()
	eventually(t, "it hangs", func() bool { return s.Stats().ByFault[FaultHang] == 1 })
	cancel()
	if err := <-errs; err == nil {
		t.Error("the hanging call got an answer")
	}
	eventually(t, "the client's end is seen", func() bool { return s.Stats().InFlight == 0 })

	go func() { errs <- sendErr(t.Context(), url) }()
	eventually(t, "it hangs again", func() bool { return s.Stats().ByFault[FaultHang] == 2 })
	s.Close()
	if err := <-errs; err == nil {
		t.Error("the hanging call got an answer from a closed server")
	}
}

func TestLatencyDelaysAndEndsWithTheClient(t *testing.T) {
	s, url := start(t, Options{Rules: rulesOf(t, `
rules: [{when: {contains: slow}, latency: 1h}]
latency: {min: 20ms, max: 30ms}
`)})
	began := time.Now()
	askAnthropic(t, url, anthropicCall(nonceA, "x", "Is it quick?"))
	if took := time.Since(began); took < 20*time.Millisecond {
		t.Errorf("answered after %v, want 20ms or more", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 1)
	go func() { errs <- sendErr(ctx, url) }()
	eventually(t, "it is waiting", func() bool { return s.Stats().InFlight == 1 })
	cancel()
	<-errs
	eventually(t, "it is aborted", func() bool { return s.Stats().Aborted == 1 })
	want := Stats{StandIn: Name, Calls: 2, Answered: 1, Aborted: 1, ByStatus: map[int]int64{200: 1}, ByModel: map[string]int64{"claude-test": 2}, ByFault: map[Fault]int64{}, Distinct: 2, AnsweredKeys: 1, AnsweredMost: 1, MaxInFlight: 1}
	if diff := cmp.Diff(want, s.Stats()); diff != "" {
		t.Error(diff)
	}
}

// send posts a slow question and returns what the client got.
func send(ctx context.Context, url string) (*http.Response, error) {
	call := anthropicCall(nonceB, "x", "Is it slow?")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/messages", bytes.NewReader(call.encode()))
	if err != nil {
		return nil, err
	}
	for k, v := range anthropicHeaders.headers() {
		req.Header.Set(k, v)
	}
	return http.DefaultTransport.RoundTrip(req)
}

func sendErr(ctx context.Context, url string) error {
	resp, err := send(ctx, url)
	if err == nil {
		resp.Body.Close()
	}
	return err
}
