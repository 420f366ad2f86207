package judge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

// A reply is what a troubled provider does with one request.
type reply func(w http.ResponseWriter, r *http.Request, wire wireForm)

// wireForm words answers as one provider does. Every one takes 1000 input tokens, 400 of them from the cache, and 100 output tokens.
type wireForm struct {
	// verdict answers through structured output, prose without it.
	verdict, prose func(text string) string
	refusal, cut   func() string
	failure        func(message string) string
}

// costPerCall is what such an answer costs at the price of this file, in US dollars: 600 x 1 + 400 x 0.1 + 100 x 5, per million.
const costPerCall = 0.00114

const priceFile = "models: {claude-test: {input: 1, output: 5, cacheRead: 0.1}, gpt-test: {input: 1, output: 5, cacheRead: 0.1}}"

func anthropicMessage(stop, content string) string {
	return `{"id":"m","type":"message","role":"assistant","model":"claude-test","stop_reason":"` + stop + `","content":[` + content + `],` +
		`"usage":{"input_tokens":600,"cache_read_input_tokens":400,"cache_creation_input_tokens":0,"output_tokens":100}}`
}

func openaiCompletion(finish, message string) string {
	return `{"id":"c","object":"chat.completion","model":"gpt-test","choices":[{"index":0,"finish_reason":"` + finish + `","message":` + message + `}],` +
		`"usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100,"prompt_tokens_details":{"cached_tokens":400}}}`
}

func openaiText(text string) string {
	return `{"role":"assistant","content":` + strconv.Quote(text) + `,"refusal":null}`
}

const refusalText = "I cannot help with that."

var wireForms = map[string]wireForm{
	"claude-test": {
		verdict: func(text string) string {
			return anthropicMessage("tool_use", `{"type":"tool_use","id":"t","name":"record_verdict","input":`+text+`}`)
		},
		prose: func(text string) string {
			return anthropicMessage("end_turn", `{"type":"text","text":`+strconv.Quote(text)+`}`)
		},
		refusal: func() string { return anthropicMessage("refusal", `{"type":"text","text":"`+refusalText+`"}`) },
		cut: func() string {
			return anthropicMessage("max_tokens", `{"type":"tool_use","id":"t","name":"record_verdict","input":{}}`)
		},
		failure: func(message string) string {
			return `{"type":"error","error":{"type":"api_error","message":` + strconv.Quote(message) + `}}`
		},
	},
	"gpt-test": {
		verdict: func(text string) string { return openaiCompletion("stop", openaiText(text)) },
		prose:   func(text string) string { return openaiCompletion("stop", openaiText(text)) },
		refusal: func() string {
			return openaiCompletion("stop", `{"role":"assistant","content":null,"refusal":"`+refusalText+`"}`)
		},
		cut:     func() string { return openaiCompletion("length", openaiText(`{"reason":"it`)) },
		failure: func(message string) string { return `{"error":{"message":` + strconv.Quote(message) + `}}` },
	},
}

// write answers 200 with a body.
func write(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, body)
}

func fine(w http.ResponseWriter, _ *http.Request, f wireForm) {
	write(w, f.verdict(`{"reason":"good","score":0.9}`))
}

func says(text string) reply {
	return func(w http.ResponseWriter, _ *http.Request, f wireForm) { write(w, f.verdict(text)) }
}

func chats(w http.ResponseWriter, _ *http.Request, f wireForm) {
	write(w, f.prose("What a fine answer!"))
}
func refuses(w http.ResponseWriter, _ *http.Request, f wireForm) { write(w, f.refusal()) }
func cuts(w http.ResponseWriter, _ *http.Request, f wireForm)    { write(w, f.cut()) }

// garbles answers 200 with what is not the provider's format.
func garbles(w http.ResponseWriter, _ *http.Request, _ wireForm) { write(w, "<html>hello</html>") }

// answers declines with a status.
func answers(status int, header ...string) reply {
	return func(w http.ResponseWriter, _ *http.Request, f wireForm) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, f.failure("trouble "+strconv.Itoa(status)))
	}
}

// hangs answers nothing until the client gives up.
func hangs(_ http.ResponseWriter, r *http.Request, _ wireForm) { <-r.Context().Done() }

// drops closes the connection without an answer.
func drops(http.ResponseWriter, *http.Request, wireForm) { panic(http.ErrAbortHandler) }

// breaksOff closes the connection within the answer.
func breaksOff(w http.ResponseWriter, _ *http.Request, f wireForm) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "5000")
	fmt.Fprint(w, f.verdict(`{"reason":"good","score":0.9}`)[:20])
	panic(http.ErrAbortHandler)
}

// troubled is a provider that does the replies in their order, the last one for ever.
type troubled struct {
	mu      sync.Mutex
	replies []reply
	form    wireForm
	sent    int32
}

func (s *troubled) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A server notices that its client went away once it has read the request.
	_, _ = io.Copy(io.Discard, r.Body)
	s.mu.Lock()
	next := s.replies[min(int(s.sent), len(s.replies)-1)]
	s.sent++
	s.mu.Unlock()
	next(w, r, s.form)
}

// graderAt returns a grader that asks the server, and waits for nothing but Retry-After.
func graderAt(t *testing.T, url string, set func(*judge.Options)) *rubric.Grader {
	t.Helper()
	prices, err := judge.LoadPrices(strings.NewReader(priceFile))
	if err != nil {
		t.Fatal(err)
	}
	clients, env := providersAt(url)
	o := judge.Options{Clients: clients, Prices: prices, CallTimeout: 30 * time.Second, Jitter: func() float64 { return 0 }}
	if set != nil {
		set(&o)
	}
	return &rubric.Grader{Asker: judge.New(o), Env: env, Now: time.Now}
}

// textEval is an eval with one question, for a model.
func textEval(model v1alpha1.ModelName) *v1alpha1.EvalSpec {
	response := "an answer"
	return &v1alpha1.EvalSpec{
		Response: &response, Judge: &v1alpha1.JudgeSpec{Model: model},
		Rubric: &v1alpha1.RubricSource{RubricSpec: v1alpha1.RubricSpec{Text: "Is it good?"}},
	}
}

// TestS40JudgeTrouble: how a row ends (S-39, S-40), what its note says, and that every call that was answered is paid for.
func TestS40JudgeTrouble(t *testing.T) {
	const passed, failed = v1alpha1.OutcomePassed, v1alpha1.OutcomeError
	tests := map[string]struct {
		replies []reply
		outcome v1alpha1.Outcome
		// note is a part of the row's note; KEY and URL stand for the provider's variables.
		note string
		// calls were answered and are paid for; sent is how many requests the provider saw.
		calls, sent int32
		options     func(*judge.Options)
	}{
		"S-40 429 with Retry-After, then fine":                   {replies: []reply{answers(429, "Retry-After-Ms", "20"), fine}, outcome: passed, calls: 1, sent: 2},
		"S-40 529, then fine":                                    {replies: []reply{answers(529), fine}, outcome: passed, calls: 1, sent: 2},
		"S-40 500, then fine":                                    {replies: []reply{answers(500), fine}, outcome: passed, calls: 1, sent: 2},
		"S-40 408, 409, 502, 503, 504, then fine":                {replies: []reply{answers(408), answers(409), answers(502), answers(503), answers(504), fine}, outcome: passed, calls: 1, sent: 6},
		"S-39 500 for ever":                                      {replies: []reply{answers(500)}, outcome: failed, note: "given up after 6 attempts", sent: 6},
		"S-39 429 for ever":                                      {replies: []reply{answers(429)}, outcome: failed, note: "429 Too Many Requests: trouble 429", sent: 6},
		"S-40 a Retry-After that nobody waits for":               {replies: []reply{answers(429, "Retry-After", "3600")}, outcome: failed, note: "it asks to wait 1h0m0s, and the most that is waited is 5m0s", sent: 1},
		"S-40 a dropped connection, then fine":                   {replies: []reply{drops, fine}, outcome: passed, calls: 1, sent: 2},
		"S-40 an answer that breaks off, then fine":              {replies: []reply{breaksOff, fine}, outcome: passed, calls: 1, sent: 2},
		"S-39 dropped connections for ever":                      {replies: []reply{drops}, outcome: failed, note: "check URL, and that the judge can be reached from here", sent: 6},
		"S-39 hangs past the call's deadline, for ever":          {replies: []reply{hangs}, outcome: failed, note: "given up after 2 attempts: no answer within 800ms", sent: 2, options: func(o *judge.Options) { o.CallTimeout, o.MaxAttempts = 800*time.Millisecond, 2 }},
		"S-40 hangs past the call's deadline, then fine":         {replies: []reply{hangs, fine}, outcome: passed, calls: 1, sent: 2, options: func(o *judge.Options) { o.CallTimeout = 1900 * time.Millisecond }},
		"S-40 malformed twice, then fine":                        {replies: []reply{says(`{"score":"rather high"}`), says(`{"verdict":1}`), fine}, outcome: passed, calls: 3, sent: 3},
		"S-40 malformed three times":                             {replies: []reply{says(`{"verdict":1}`), says(`{"verdict":1}`), says(`{"verdict":1}`), fine}, outcome: failed, note: "gave no valid verdict, asked 3 times: reason is missing", calls: 3, sent: 3},
		"S-40 out of range for ever":                             {replies: []reply{says(`{"reason":"good","score":8}`)}, outcome: failed, note: `asked 3 times: score is "8"; it must be a number from 0 to 1`, calls: 3, sent: 3},
		"S-40 an empty reason, then fine":                        {replies: []reply{says(`{"reason":" ","score":1}`), fine}, outcome: passed, calls: 2, sent: 2},
		"S-40 an empty reason for ever":                          {replies: []reply{says(`{"reason":"","score":1}`)}, outcome: failed, note: "reason is empty", calls: 3, sent: 3},
		"S-40 a refusal, then fine":                              {replies: []reply{refuses, fine}, outcome: passed, calls: 2, sent: 2},
		"S-39 a refusal for ever":                                {replies: []reply{refuses}, outcome: failed, note: "the judge refused to answer: \"" + refusalText, calls: 3, sent: 3},
		"S-40 cut off, then fine":                                {replies: []reply{cuts, fine}, outcome: passed, calls: 2, sent: 2},
		"S-40 chat without a verdict, then fine":                 {replies: []reply{chats, fine}, outcome: passed, calls: 2, sent: 2},
		"S-39 chat for ever":                                     {replies: []reply{chats}, outcome: failed, note: "gave no valid verdict, asked 3 times", calls: 3, sent: 3},
		"S-40 401 is not retried":                                {replies: []reply{answers(401), fine}, outcome: failed, note: "401 Unauthorized: trouble 401; check the key in KEY", sent: 1},
		"S-40 403 is not retried":                                {replies: []reply{answers(403), fine}, outcome: failed, note: "403 Forbidden: trouble 403; check what the key in KEY may do", sent: 1},
		"S-40 400 is not retried":                                {replies: []reply{answers(400), fine}, outcome: failed, note: "400 Bad Request: trouble 400", sent: 1},
		"S-40 404 is not retried":                                {replies: []reply{answers(404), fine}, outcome: failed, note: "check judge.model and URL", sent: 1},
		"S-40 a redirect is not followed":                        {replies: []reply{answers(307, "Location", "/elsewhere"), fine}, outcome: failed, note: "redirects are not followed", sent: 1},
		"S-40 faults and invalid verdicts together":              {replies: []reply{answers(503), says(`{}`), drops, says(`{"reason":"x","score":-1}`), answers(529), fine}, outcome: passed, calls: 3, sent: 6},
		"S-40 what was paid for counts when the end is an error": {replies: []reply{says(`{}`), says(`{}`), answers(401)}, outcome: failed, note: "KEY", calls: 2, sent: 3},
	}
	for name, tt := range tests {
		for model, form := range wireForms {
			t.Run(name+" "+model, func(t *testing.T) {
				t.Parallel()
				s := &troubled{replies: tt.replies, form: form}
				ts := httptest.NewServer(s)
				defer ts.Close()
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				spec := textEval(v1alpha1.ModelName(model))
				f, err := graderAt(t, ts.URL, tt.options).Grade(ctx, spec, nil, nil)
				if err != nil {
					t.Fatalf("the row was not judged to its end: %v", err)
				}
				report := rubric.Score(v1alpha1.Row{Name: "row", Eval: "row"}, spec, f)

				if report.Outcome != tt.outcome || (report.Score != nil) != (tt.outcome == passed) {
					t.Errorf("%s with score %v (%s), want %s", report.Outcome, report.Score, report.Note, tt.outcome)
				}
				if report.Score != nil && *report.Score != 0.9 {
					t.Errorf("score %v, want that of the valid verdict, 0.9", *report.Score)
				}
				provider, _ := judge.ProviderOf(model)
				want := strings.NewReplacer("KEY", judge.KeyVariable(provider), "URL", judge.BaseURLVariable(provider)).Replace(tt.note)
				if !strings.Contains(report.Note, want) || (report.Note == "") != (want == "") {
					t.Errorf("note %q, want %q in it", report.Note, want)
				}
				usage := v1alpha1.Usage{
					Calls: tt.calls, Retries: tt.sent - 1,
					InputTokens: 1000 * int64(tt.calls), CachedInputTokens: 400 * int64(tt.calls), OutputTokens: 100 * int64(tt.calls),
					CostUSD: costPerCall * float64(tt.calls),
				}
				if diff := cmp.Diff(usage, report.Usage, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
					t.Errorf("usage (-want +got):\n%s", diff)
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.sent != tt.sent {
					t.Errorf("the provider saw %d requests, want %d", s.sent, tt.sent)
				}
			})
		}
	}
}

// TestS40AnAnswerThatCannotBeReadIsACall: the provider may have billed it, though nobody knows how much.
func TestS40AnAnswerThatCannotBeReadIsACall(t *testing.T) {
	for model, form := range wireForms {
		s := &troubled{replies: []reply{garbles, fine}, form: form}
		ts := httptest.NewServer(s)
		defer ts.Close()
		spec := textEval(v1alpha1.ModelName(model))
		f, err := graderAt(t, ts.URL, nil).Grade(t.Context(), spec, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		report := rubric.Score(v1alpha1.Row{Name: "row", Eval: "row"}, spec, f)
		if u := report.Usage; report.Outcome != v1alpha1.OutcomePassed || u.Calls != 2 || u.Retries != 1 || u.CostUSD != costPerCall {
			t.Errorf("%s: %s (%s) with %+v, want Passed with 2 calls and the cost of one", model, report.Outcome, report.Note, u)
		}
	}
}

// TestS40TheEvalsDeadlineEndsAHangingCall: no row outlasts its deadline; what was judged before is kept and paid for.
func TestS40TheEvalsDeadlineEndsAHangingCall(t *testing.T) {
	for model, form := range wireForms {
		for name, last := range map[string]reply{
			"hang":                            hangs,
			"Retry-After beyond the deadline": answers(429, "Retry-After", "30"),
			"faults without an end":           answers(500),
			"invalid verdicts without an end": says(`{}`),
		} {
			t.Run(name+" "+model, func(t *testing.T) {
				t.Parallel()
				s := &troubled{replies: []reply{fine, last}, form: form}
				ts := httptest.NewServer(s)
				defer ts.Close()
				response := "an answer"
				spec := &v1alpha1.EvalSpec{
					Response: &response, Judge: &v1alpha1.JudgeSpec{Model: v1alpha1.ModelName(model)},
					Rubric: &v1alpha1.RubricSource{RubricSpec: v1alpha1.RubricSpec{
						Tree: &v1alpha1.TreeNode{Ask: "first?", IfYes: &v1alpha1.TreeNode{
							Ask: "second?", IfYes: leaf(1), IfNo: leaf(0),
						}, IfNo: leaf(0)},
					}},
				}
				ctx, cancel := context.WithTimeout(t.Context(), 1900*time.Millisecond)
				defer cancel()
				f, err := graderAt(t, ts.URL, nil).Grade(ctx, spec, nil, nil)
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				report := rubric.Score(v1alpha1.Row{Name: "row", Eval: "row"}, spec, f)
				if report.Outcome != v1alpha1.OutcomeError || report.Score != nil {
					t.Errorf("%s with score %v, want Error without one", report.Outcome, report.Score)
				}
				if report.Usage.Calls == 0 || report.Usage.CostUSD < costPerCall {
					t.Errorf("usage %+v: the question that was answered is not paid for", report.Usage)
				}
			})
		}
	}
}

func leaf(score float64) *v1alpha1.TreeNode { return &v1alpha1.TreeNode{Score: &score} }
