package judge

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// step is what a scripted client does with one request.
type step func(ctx context.Context, r Request) (Response, error)

// script is a client that does the steps in their order, and remembers the requests.
type script struct {
	mu       sync.Mutex
	steps    []step
	requests []Request
	at       []time.Time
}

func (s *script) Complete(ctx context.Context, r Request) (Response, error) {
	s.mu.Lock()
	n := len(s.requests)
	s.requests = append(s.requests, r)
	s.at = append(s.at, time.Now())
	s.mu.Unlock()
	if n >= len(s.steps) {
		return Response{}, errors.New("the script has ended")
	}
	return s.steps[n](ctx, r)
}

var tokensOfStep = Tokens{Input: 1000, CacheRead: 400, Output: 100}

// say answers through structured output.
func say(text string) step {
	return func(context.Context, Request) (Response, error) {
		return Response{Answer: Answer{Text: text, Structured: true}, Tokens: tokensOfStep}, nil
	}
}

func fail(err error) step {
	return func(context.Context, Request) (Response, error) { return Response{}, err }
}

func status(code int, after time.Duration) step {
	return fail(&StatusError{Provider: openaiP, Status: code, RetryAfter: after, Host: "h"})
}

func hang(ctx context.Context, _ Request) (Response, error) {
	<-ctx.Done()
	return Response{}, ctx.Err()
}

const valid = `{"reason":"ok","score":0.5}`

var (
	gpt      = Model{Name: "gpt-test", Provider: openaiP}
	question = Question{Kind: KindText, Ask: "Is it good?", Candidate: "yes"}
)

// newJudge returns a judge with one client, half the most jitter, and a price for gpt-test.
func newJudge(t *testing.T, c Client, set ...func(*Options)) *Judge {
	t.Helper()
	prices, err := LoadPrices(strings.NewReader("models: {gpt-test: {input: 1, output: 10, cacheRead: 0.1}}"))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Clients: map[v1alpha1.Provider]Client{openaiP: c, anthropicP: c}, Prices: prices,
		Jitter: func() float64 { return 0.5 }, NonceKey: testKey,
	}
	for _, f := range set {
		f(&o)
	}
	return New(o)
}

// usageOf is the usage of so many answered requests among so many sent.
func usageOf(calls, sent int32) v1alpha1.Usage {
	n := int64(calls)
	return v1alpha1.Usage{
		Calls: calls, Retries: max(0, sent-1), InputTokens: 1000 * n, CachedInputTokens: 400 * n, OutputTokens: 100 * n,
		CostUSD: float64(n) * (600 + 40 + 1000) / 1e6,
	}
}

func TestAsk(t *testing.T) {
	reset := &StatusError{Provider: openaiP, Status: 500}
	tests := map[string]struct {
		steps []step
		want  Verdict
		// err is a part of the error.
		err   string
		usage v1alpha1.Usage
		// waits are the pauses before the second and later requests.
		waits []time.Duration
	}{
		"a verdict": {
			steps: []step{say(valid)}, want: Verdict{Score: 0.5, Reason: "ok"}, usage: usageOf(1, 1),
		},
		"an invalid verdict is asked for again": {
			steps: []step{say(`{"reason":"ok","score":8}`), say(`{"reason":"","score":1}`), say(valid)},
			want:  Verdict{Score: 0.5, Reason: "ok"}, usage: usageOf(3, 3), waits: []time.Duration{0, 0},
		},
		"twice, then it is an error": {
			steps: []step{say(`{}`), say(`{"reason":"ok"}`), say(`{"reason":"ok","score":2}`), say(valid)},
			err:   `gpt-test gave no valid verdict, asked 3 times: score is "2"`, usage: usageOf(3, 3), waits: []time.Duration{0, 0},
		},
		"faults are retried with exponential backoff": {
			steps: []step{status(500, 0), status(529, 0), status(408, 0), status(409, 0), fail(io.ErrUnexpectedEOF), say(valid)},
			want:  Verdict{Score: 0.5, Reason: "ok"}, usage: usageOf(1, 6),
			waits: []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second},
		},
		"six times": {
			steps: []step{fail(reset), fail(reset), fail(reset), fail(reset), fail(reset), fail(reset), say(valid)},
			err:   "asking gpt-test: given up after 6 attempts: openai answered 500", usage: usageOf(0, 6),
			waits: []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second},
		},
		"Retry-After is obeyed": {
			steps: []step{status(429, 7*time.Second), say(valid)},
			want:  Verdict{Score: 0.5, Reason: "ok"}, usage: usageOf(1, 2), waits: []time.Duration{7*time.Second + 250*time.Millisecond},
		},
		"a Retry-After that nobody waits for": {
			steps: []step{status(429, time.Hour), say(valid)},
			err:   "it asks to wait 1h0m0s, and the most that is waited is 5m0s", usage: usageOf(0, 1),
		},
		"a broken answer was answered, and is retried": {
			steps: []step{
				func(context.Context, Request) (Response, error) {
					return Response{Tokens: tokensOfStep}, &MalformedError{Provider: openaiP, Host: "h", Reason: "x"}
				}, say(valid),
			},
			want: Verdict{Score: 0.5, Reason: "ok"}, usage: usageOf(2, 2), waits: []time.Duration{250 * time.Millisecond},
		},
		"a call that takes too long is retried": {
			steps: []step{hang, say(valid)},
			want:  Verdict{Score: 0.5, Reason: "ok"}, usage: usageOf(1, 2), waits: []time.Duration{120*time.Second + 250*time.Millisecond},
		},
		"400 is not retried":     {steps: []step{status(400, 0), say(valid)}, err: "openai answered 400 Bad Request (asked h)", usage: usageOf(0, 1)},
		"401 names the variable": {steps: []step{status(401, 0), say(valid)}, err: "check the key in OPENAI_API_KEY (asked h)", usage: usageOf(0, 1)},
		"403 names the variable": {steps: []step{status(403, 0), say(valid)}, err: "OPENAI_API_KEY", usage: usageOf(0, 1)},
		"404 is not retried":     {steps: []step{status(404, 0), say(valid)}, err: "check judge.model and OPENAI_BASE_URL", usage: usageOf(0, 1)},
		"a verdict after faults and repairs": {
			steps: []step{status(503, 0), say("{}"), status(503, 0), say(valid)},
			want:  Verdict{Score: 0.5, Reason: "ok"}, usage: usageOf(2, 4),
			waits: []time.Duration{250 * time.Millisecond, 0, 250 * time.Millisecond},
		},
		"what was answered counts when the end is an error": {
			steps: []step{say("{}"), status(401, 0)}, err: "401", usage: usageOf(1, 2), waits: []time.Duration{0},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: tt.steps}
				got, usage, err := newJudge(t, s).Ask(t.Context(), gpt, question)
				if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
					t.Fatalf("error = %v, want %q", err, tt.err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("verdict (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.usage, usage, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
					t.Errorf("usage (-want +got):\n%s", diff)
				}
				var waits []time.Duration
				for i := 1; i < len(s.at); i++ {
					waits = append(waits, s.at[i].Sub(s.at[i-1]))
				}
				if diff := cmp.Diff(tt.waits, waits); diff != "" {
					t.Errorf("waits (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestErrorsKeepTheirKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, err := newJudge(t, &script{steps: []step{status(401, 0)}}).Ask(t.Context(), gpt, question)
		var s *StatusError
		if !errors.As(err, &s) || s.Status != 401 {
			t.Errorf("%v is no StatusError", err)
		}
		_, _, err = newJudge(t, &script{steps: []step{say("{}"), say("{}"), say("{}")}}).Ask(t.Context(), gpt, question)
		var invalid *InvalidVerdictError
		if !errors.As(err, &invalid) || invalid.Asked != 3 {
			t.Errorf("%v is no InvalidVerdictError", err)
		}
		_, _, err = New(Options{}).Ask(t.Context(), gpt, question)
		var deferred *DeferredError
		if !errors.As(err, &deferred) || !strings.Contains(err.Error(), "OPENAI_API_KEY") {
			t.Errorf("%v is no DeferredError that names the variable", err)
		}
	})
}

func TestRepairsSayWhatWasWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{say(`{"reason":"ok","score":8}`), say(`{"score":1,"reason":""}`), say(valid)}}
		if _, _, err := newJudge(t, s).Ask(t.Context(), gpt, question); err != nil {
			t.Fatal(err)
		}
		turns := s.requests[2].Turns
		if len(s.requests[0].Turns) != 0 || len(s.requests[1].Turns) != 1 || len(turns) != 2 {
			t.Fatalf("turns: %+v", s.requests)
		}
		for i, want := range []string{`score is "8"; it must be a number from 0 to 1`, "reason is empty"} {
			if !strings.Contains(turns[i].Complaint, want) {
				t.Errorf("complaint %q, want %q in it", turns[i].Complaint, want)
			}
		}
		if turns[0].Answer.Text != `{"reason":"ok","score":8}` || s.requests[2].Prefix != s.requests[0].Prefix {
			t.Error("the conversation does not go on from where it was")
		}
	})
}

func TestRetryAfterBeyondTheDeadlineFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		s := &script{steps: []step{status(429, time.Minute)}}
		_, usage, err := newJudge(t, s).Ask(ctx, gpt, question)
		if err == nil || !strings.Contains(err.Error(), "it asks to wait 1m0s, and only 10s are left") {
			t.Errorf("error = %v", err)
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("it took %v", d)
		}
		if usage.Calls != 0 || usage.Retries != 0 {
			t.Errorf("usage = %+v", usage)
		}
	})
}

func TestBackoffBeyondTheDeadlineFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, _, err := newJudge(t, &script{steps: []step{status(500, 0)}}).Ask(ctx, gpt, question)
		if err == nil || !strings.Contains(err.Error(), "no time is left for another attempt") || ctx.Err() != nil {
			t.Errorf("error = %v, context %v", err, ctx.Err())
		}
	})
}

func TestCancellationEndsEveryWait(t *testing.T) {
	cause := errors.New("the run was suspended")
	for name, steps := range map[string][]step{
		"during a call":  {hang},
		"during a pause": {status(429, time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(cause) })
				start := time.Now()
				s := &script{steps: steps}
				_, _, err := newJudge(t, s).Ask(ctx, gpt, question)
				if !errors.Is(err, cause) || time.Since(start) != time.Second || len(s.requests) != 1 {
					t.Errorf("error = %v after %v and %d requests", err, time.Since(start), len(s.requests))
				}
			})
		})
	}
	t.Run("while waiting for a slot", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			j := newJudge(t, &script{steps: []step{hang}}, func(o *Options) { o.Concurrency = 1 })
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan error, 2)
			for range 2 {
				go func() {
					_, _, err := j.Ask(ctx, gpt, question)
					done <- err
				}()
			}
			synctest.Wait()
			cancel(cause)
			for range 2 {
				if err := <-done; !errors.Is(err, cause) {
					t.Errorf("error = %v", err)
				}
			}
		})
	})
}

func TestConcurrencyIsBoundedAndNoSlotIsHeldDuringPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most, first atomic.Int32
		c := clientFunc(func(ctx context.Context, r Request) (Response, error) {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Second) // virtual
			if first.Add(1) == 1 {
				return Response{}, &StatusError{Provider: openaiP, Status: 429, RetryAfter: 100 * time.Second}
			}
			return say(valid)(ctx, r)
		})
		j := newJudge(t, c, func(o *Options) { o.Concurrency = 2 })
		start := time.Now()
		var wg sync.WaitGroup
		var finished [8]time.Duration
		for i := range finished {
			wg.Go(func() {
				if _, _, err := j.Ask(t.Context(), gpt, question); err != nil {
					t.Error(err)
				}
				finished[i] = time.Since(start)
			})
		}
		wg.Wait()
		if most.Load() != 2 {
			t.Errorf("%d requests at once, want 2", most.Load())
		}
		quick := 0
		for _, d := range finished {
			if d <= 4*time.Second {
				quick++
			}
		}
		// One of eight waits 100 s; the others take 8 calls of 1 s, two at once.
		if quick != 7 {
			t.Errorf("%d of 8 were done after 4 s, want 7: %v", quick, finished)
		}
	})
}

type clientFunc step

func (f clientFunc) Complete(ctx context.Context, r Request) (Response, error) { return f(ctx, r) }

func TestRefusedFeaturesAreLeftOutAndRememberedPerModel(t *testing.T) {
	refuse := func(f Feature) step {
		return fail(&UnsupportedError{Feature: f, Err: &StatusError{Provider: openaiP, Status: 400, Message: "no"}})
	}
	words := func(_ context.Context, r Request) (Response, error) {
		return Response{Answer: Answer{Text: "I say: " + valid}, Tokens: tokensOfStep}, nil
	}
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{
			refuse(FeatureTemperature), refuse(FeatureMaxCompletionTokens), refuse(FeatureStructuredOutput), words, words, say(valid),
		}}
		j := newJudge(t, s)
		start := time.Now()
		_, usage, err := j.Ask(t.Context(), gpt, question)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(usageOf(1, 4), usage, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
			t.Errorf("refused requests are no calls (-want +got):\n%s", diff)
		}
		if time.Since(start) != 0 {
			t.Errorf("there was a pause of %v", time.Since(start))
		}
		if _, usage, err := j.Ask(t.Context(), gpt, question); err != nil || usage.Retries != 0 {
			t.Fatalf("what was refused is not remembered: %+v, %v", usage, err)
		}
		if _, _, err := j.Ask(t.Context(), Model{Name: "other", Provider: openaiP}, question); err != nil {
			t.Fatal(err)
		}
		all := FeatureTemperature | FeatureMaxCompletionTokens | FeatureStructuredOutput
		for i, want := range []Feature{0, FeatureTemperature, FeatureTemperature | FeatureMaxCompletionTokens, all, all, 0} {
			r := s.requests[i]
			if r.Without != want || (r.Temperature == nil) != want.Has(FeatureTemperature) ||
				strings.HasSuffix(r.Question, plainInstruction) != want.Has(FeatureStructuredOutput) {
				t.Errorf("request %d goes without %b, want %b: %+v", i, r.Without, want, r)
			}
		}
	})
}

func TestAFeatureThatIsRefusedAgainIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := fail(&UnsupportedError{Feature: FeatureTemperature, Err: &StatusError{Provider: openaiP, Status: 400, Message: "no"}})
		s := &script{steps: []step{refuse, refuse, say(valid)}}
		if _, _, err := newJudge(t, s).Ask(t.Context(), gpt, question); err == nil || len(s.requests) != 2 {
			t.Errorf("error = %v after %d requests", err, len(s.requests))
		}
	})
}

func TestAServerThatIgnoresTheSchemaIsAskedInWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{say("```json\n" + valid + "\n```"), func(_ context.Context, r Request) (Response, error) {
			return Response{Answer: Answer{Text: "Here:\n```json\n" + valid + "\n```"}}, nil
		}}}
		if _, _, err := newJudge(t, s).Ask(t.Context(), gpt, question); err != nil {
			t.Fatal(err)
		}
		if !s.requests[1].Without.Has(FeatureStructuredOutput) {
			t.Error("the second request asks for structured output again")
		}
	})
}

func TestAnAnswerThatWasCutMayBeLongerTheNextTime(t *testing.T) {
	cut := func(context.Context, Request) (Response, error) {
		return Response{Answer: Answer{Text: `{"rea`, Structured: true, Cut: true}}, nil
	}
	synctest.Test(t, func(t *testing.T) {
		for p, want := range map[v1alpha1.Provider][]int64{anthropicP: {1024, 4096, 16384}, openaiP: {8192, 16384, 16384}} {
			s := &script{steps: []step{cut, cut, say(valid)}}
			if _, _, err := newJudge(t, s).Ask(t.Context(), Model{Name: "m", Provider: p}, question); err != nil {
				t.Fatal(err)
			}
			for i, r := range s.requests {
				if r.MaxTokens != want[i] {
					t.Errorf("%s: request %d may have %d tokens, want %d", p, i, r.MaxTokens, want[i])
				}
			}
		}
	})
}

func TestUnpricedCallsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, usage, err := newJudge(t, &script{steps: []step{say("{}"), say(valid)}}).Ask(t.Context(), Model{Name: "local", Provider: openaiP}, question)
		if err != nil || usage.UnpricedCalls != 2 || usage.CostUSD != 0 {
			t.Errorf("usage = %+v, %v", usage, err)
		}
	})
}

func TestBackoffIsJitteredAndCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := make([]step, 40)
		for i := range steps {
			steps[i] = status(500, 0)
		}
		s := &script{steps: steps}
		j := newJudge(t, s, func(o *Options) {
			o.MaxAttempts = 40
			o.Jitter = func() float64 { return 1 - math.SmallestNonzeroFloat64 }
		})
		if _, _, err := j.Ask(t.Context(), gpt, question); err == nil {
			t.Fatal("no error")
		}
		for i := 1; i < len(s.at); i++ {
			if d := s.at[i].Sub(s.at[i-1]); d > backoffCap || i > 8 && d != backoffCap {
				t.Errorf("pause %d is %v", i, d)
			}
		}
	})
}
