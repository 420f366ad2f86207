package fakejudge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

func TestCountersAddUpUnderConcurrency(t *testing.T) {
	s, url := start(t, Options{Rules: rulesOf(t, `
rules:
- {when: {contains: broken}, fault: status, status: 500}
latency: 1ms
`)})
	const workers, each = 8, 20
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				nonce := fmt.Sprintf("%032x", w*1000+i)
				switch i % 4 {
				case 0: // the same question from every worker, its nonce apart
					askAnthropic(t, url, anthropicCall(nonce, "x", "same?"))
				case 1:
					askOpenAI(t, url, openAICall(nonce, "x", fmt.Sprintf("worker %d asks %d", w, i)))
				case 2:
					askAnthropic(t, url, anthropicCall(nonce, "x", "broken?"))
				case 3:
					askAnthropic(t, url, anthropicCall(nonce, "x", "refused?").with("max_tokens", nil))
				}
				s.Stats()
			}
		})
	}
	wg.Wait()
	st := s.Stats()
	const n = workers * each / 4
	if st.Calls != 4*n || st.Answered != 2*n || st.Faults != n || st.Refused != n || st.Aborted != 0 || st.InFlight != 0 {
		t.Errorf("stats %+v", st)
	}
	if st.AnsweredTwice != 1 || st.AnsweredMost != n || st.AnsweredKeys != n+1 || st.Distinct != n+3 {
		t.Errorf("keys %+v", st)
	}
	if st.MaxInFlight < 2 || st.MaxInFlight > workers || st.ByStatus[200] != 2*n || st.ByStatus[500] != n || st.ByStatus[400] != n {
		t.Errorf("status %+v", st)
	}
	if st.ByModel["claude-test"] != 2*n || st.ByModel["gpt-4o-test"] != n {
		t.Errorf("models %+v", st.ByModel)
	}
}

func TestAHoldProvesThatNothingIsBoughtTwice(t *testing.T) {
	s, url := start(t, Options{})
	s.Hold(2)
	ask := func(ctx context.Context, i int) error {
		call := anthropicCall(fmt.Sprintf("%032x", i*7919), "x", fmt.Sprintf("question %d", i))
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/messages", bytes.NewReader(call.encode()))
		if err != nil {
			return err
		}
		for k, v := range anthropicHeaders.headers() {
			req.Header.Set(k, v)
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	ctx, kill := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	got := make([]bool, 5)
	for i := range got {
		wg.Go(func() { got[i] = ask(ctx, i) == nil })
	}
	eventually(t, "two answered, three held", func() bool { st := s.Stats(); return st.Answered == 2 && st.Held == 3 })
	kill()
	wg.Wait()
	eventually(t, "three aborted", func() bool { return s.Stats().Aborted == 3 })
	s.Release()
	for i := range got {
		if !got[i] { // a client that resumes asks for the rest only
			if err := ask(t.Context(), i); err != nil {
				t.Error(err)
			}
		}
	}
	if st := s.Stats(); st.Answered != 5 || st.AnsweredTwice != 0 || st.Held != 0 {
		t.Errorf("resumed: %+v", st)
	}
	if err := ask(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if st := s.Stats(); st.AnsweredTwice != 1 {
		t.Errorf("asked again: %+v", st)
	}
}

func TestReleaseAnswersWhatWasHeld(t *testing.T) {
	s, url := start(t, Options{})
	s.Hold(0)
	done := make(chan reply, 1)
	go func() { done <- askAnthropic(t, url, anthropicCall(nonceA, "x", "q")) }()
	eventually(t, "held", func() bool { return s.Stats().Held == 1 })
	s.Release()
	if r := <-done; r.status != 200 {
		t.Errorf("status %d: %s", r.status, r.body)
	}
}

func TestResetStartsOverWhileCallsAreInFlight(t *testing.T) {
	s, url := start(t, Options{})
	s.Hold(0)
	done := make(chan reply, 1)
	go func() { done <- askAnthropic(t, url, anthropicCall(nonceA, "x", "q")) }()
	eventually(t, "held", func() bool { return s.Stats().Held == 1 })
	s.Reset()
	<-done
	eventually(t, "ended", func() bool { return s.Stats().InFlight == 0 })
	if st := s.Stats(); st.Calls != 0 || st.Answered != 0 || len(st.ByStatus) != 0 {
		t.Errorf("a call from before the reset was counted: %+v", st)
	}
}

func TestSetsAreBounded(t *testing.T) {
	s, url := start(t, Options{MaxDistinct: 2})
	for i := range 4 {
		askAnthropic(t, url, anthropicCall(nonceA, "x", fmt.Sprintf("q%d", i)))
	}
	if st := s.Stats(); st.Distinct != 2 || st.AnsweredKeys != 2 || !st.Capped || st.Answered != 4 {
		t.Errorf("stats %+v", st)
	}
	for i := range maxModelNames + 5 {
		c := s.stats.begin()
		c.sawModel(fmt.Sprint("m", i))
		c.end()
	}
	if n := len(s.Stats().ByModel); n != maxModelNames+1 {
		t.Errorf("%d model names", n)
	}
}

func TestControls(t *testing.T) {
	s, url := start(t, Options{})
	control := url + controlPrefix
	for _, tc := range []struct {
		name, path, body string
		status           int
		want             string
	}{
		{"hold", "hold", `{"after": 0}`, 200, `"done":"hold"`},
		{"release", "release", ``, 200, `"done":"release"`},
		{"hold without a number", "hold", `{}`, 400, `hold takes {\"after\": N}`},
		{"hold with a typo", "hold", `{"afer": 1}`, 400, `hold takes`},
		{"hold below 0", "hold", `{"after": -1}`, 400, `hold takes`},
		{"rules", "rules", "default: {score: 0.5}", 200, `"done":"rules"`},
		{"rules with a typo", "rules", "defalt: {score: 0.5}", 400, `unknown field \"defalt\"; known here are rules, default, latency, models`},
		{"reset", "reset", ``, 200, `"done":"reset"`},
		{"an unknown one", "restart", ``, 404, "no such control"},
		{"stats by POST", "stats", ``, 405, "stats takes GET"},
		{"too much", "rules", strings.Repeat("#", maxControlBytes+1), 413, "1 MiB"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := post(t, control+tc.path, []byte(tc.body), nil)
			if r.status != tc.status {
				t.Errorf("status %d, want %d: %s", r.status, tc.status, r.body)
			}
			mustContain(t, r.body, tc.want)
		})
	}
	if v := anthropicVerdict(t, askAnthropic(t, url, anthropicCall(nonceA, "x", "q"))); *v.Score != 0.5 {
		t.Errorf("the new rules do not hold: %v", v)
	}
	resp, err := http.Get(control + "stats")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var st Stats
	if err := json.NewDecoder(resp.Body).Decode(&st); err != nil || st.Answered != 1 || st.StandIn != Name || s.Stats().Answered != 1 {
		t.Errorf("stats %+v (%v)", st, err)
	}
}

func TestWhatIsNotACallIsRefused(t *testing.T) {
	_, url := start(t, Options{})
	if r := post(t, url+"/v1/complete", nil, nil); r.status != 404 || !strings.Contains(r.body, "not_found_error") {
		t.Errorf("%d %s", r.status, r.body)
	}
	resp, err := http.Get(url + "/v1/messages")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 405 || resp.Header.Get("Allow") != "POST" {
		t.Errorf("GET: %d %v", resp.StatusCode, resp.Header)
	}
	big := make([]byte, MaxBodyBytes+1)
	if r := post(t, url+"/v1/messages", big, anthropicHeaders.headers()); r.status != 413 || !strings.Contains(r.body, "request_too_large") {
		t.Errorf("%d %s", r.status, r.body)
	}
	for _, body := range []string{"", "{", "[]", "null", `{"a":1} x`} {
		if r := post(t, url+"/v1/messages", []byte(body), anthropicHeaders.headers()); r.status != 400 {
			t.Errorf("%q: %d %s", body, r.status, r.body)
		}
		if r := post(t, url+"/v1/chat/completions", []byte(body), openAIHeaders.headers()); r.status != 400 {
			t.Errorf("%q: %d %s", body, r.status, r.body)
		}
	}
}

func TestInvalidRulesInCodeAreSaidInEveryAnswer(t *testing.T) {
	_, url := start(t, Options{Rules: Rules{Rules: []Rule{{Score: At(7)}}}})
	r := askAnthropic(t, url, anthropicCall(nonceA, "x", "q"))
	if r.status != 500 || !strings.Contains(r.body, "rules[0]: score is 7") {
		t.Errorf("%d %s", r.status, r.body)
	}
}
