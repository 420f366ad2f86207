package judge

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestS42Purse(t *testing.T) {
	// move is a reservation, or a settlement of one.
	type move struct {
		reserve       float64
		settle, costs float64
		refused       bool
	}
	tests := map[string][]move{
		"S-42 what fits is given":                        {{reserve: 0.4}, {reserve: 0.6}},
		"S-42 what is reserved counts":                   {{reserve: 0.6}, {reserve: 1.1, refused: true}},
		"S-42 what was spent counts":                     {{reserve: 0.6}, {settle: 0.6, costs: 0.9}, {reserve: 0.2, refused: true}},
		"S-42 what was not spent is free again":          {{reserve: 0.9}, {settle: 0.9, costs: 0.1}, {reserve: 0.9}},
		"S-42 a call that cost nothing gives all back":   {{reserve: 1}, {settle: 1}, {reserve: 1}},
		"S-42 a call may cost more than its estimate":    {{reserve: 0.9}, {settle: 0.9, costs: 1.5}, {reserve: 0, refused: true}},
		"S-42 after one that did not fit no call starts": {{reserve: 0.9}, {settle: 0.9, costs: 0.9}, {reserve: 0.2, refused: true}, {reserve: 0.05, refused: true}},
	}
	for name, moves := range tests {
		t.Run(name, func(t *testing.T) {
			p := NewPurse(1)
			for i, m := range moves {
				if m.settle > 0 {
					p.Settle(m.settle, m.costs)
					continue
				}
				if err := p.Reserve(t.Context(), m.reserve); errors.Is(err, ErrBudgetExceeded) != m.refused || !m.refused && err != nil {
					t.Errorf("move %d: error %v, want refused: %v", i, err, m.refused)
				}
			}
		})
	}
}

func TestS42ABudgetIsSpentToTheLastCent(t *testing.T) {
	p := NewPurse(0.3)
	for _, usd := range []float64{0.1, 0.2} { // whose sum, in binary fractions, is above 0.3
		if err := p.Reserve(t.Context(), usd); err != nil {
			t.Errorf("%v of 0.3: %v", usd, err)
		}
	}
	p.Settle(0.1, 0.1)
	p.Settle(0.2, 0.2)
	if err := p.Reserve(t.Context(), 0.000001); !errors.Is(err, ErrBudgetExceeded) {
		t.Errorf("a millionth more: error = %v", err)
	}
}

func TestS42ACallThatDoesNotFitWaitsForThoseUnderWay(t *testing.T) {
	for name, tc := range map[string]struct {
		calls int
		cost  float64 // of each; 0.3 is reserved
		given int32
	}{
		"S-42 calls that cost less leave room":            {20, 0.045, 16}, // 0.72 is spent then, and 0.3 more would not fit
		"S-42 calls as dear as their estimate leave none": {20, 0.3, 3},
		"S-42 dearer calls leave none":                    {20, 0.5, 3},
		"S-42 calls that cost nothing leave all":          {20, 0, 20},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := NewPurse(1)
				var given atomic.Int32
				var wg sync.WaitGroup
				for range tc.calls {
					wg.Go(func() {
						err := p.Reserve(t.Context(), 0.3)
						if errors.Is(err, ErrBudgetExceeded) {
							return
						}
						given.Add(1)
						time.Sleep(time.Second) // virtual
						p.Settle(0.3, tc.cost)
					})
				}
				wg.Wait()
				if given.Load() != tc.given {
					t.Errorf("%d calls were made, want %d", given.Load(), tc.given)
				}
			})
		})
	}
}

func TestS42WhoWaitsCanBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPurse(1)
		if err := p.Reserve(t.Context(), 0.9); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Reserve(ctx, 0.9); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v, want that of the context", err)
		}
		p.Settle(0.9, 0.05)
		if err := p.Reserve(t.Context(), 0.9); err != nil {
			t.Errorf("who gave up keeps nothing: %v", err)
		}
	})
}

// ledger is a budget that writes down what happens, and refuses from a number of calls on.
type ledger struct {
	mu       sync.Mutex
	most     int
	reserved []float64
	settled  [][2]float64
}

func (l *ledger) Reserve(_ context.Context, usd float64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.reserved) == l.most {
		return ErrBudgetExceeded
	}
	l.reserved = append(l.reserved, usd)
	return nil
}

func (l *ledger) Settle(reserved, cost float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled = append(l.settled, [2]float64{reserved, cost})
}

// stepCost is what an answered step of a script costs: 600 fresh tokens at 1, 400 cached at 0.1, 100 of output at 10.
const stepCost = (600 + 40 + 1000) / 1e6

// without is a valid verdict that says so about what it took.
func without(t Tokens) step {
	return func(ctx context.Context, r Request) (Response, error) {
		res, err := say(valid)(ctx, r)
		res.Tokens = t
		return res, err
	}
}

func TestS42ACertificateThatIsNotTrustedCostsNothing(t *testing.T) {
	l := &ledger{most: 1}
	untrusted := &tls.CertificateVerificationError{Err: errors.New("unknown authority")}
	_, _, err := newJudge(t, &script{steps: []step{fail(fmt.Errorf("post: %w", untrusted))}}, func(o *Options) { o.Budget = l }).Ask(t.Context(), gpt, question)
	if !errors.As(err, new(*tls.CertificateVerificationError)) || len(l.settled) != 1 || l.settled[0][1] != 0 {
		t.Errorf("error %v, settled %v", err, l.settled)
	}
}

func TestS42WhatARequestIsSettledWith(t *testing.T) {
	const estimate = -1 // stands for what was reserved
	tests := map[string]struct {
		steps []step
		// costs are what the requests were settled with, in their order.
		costs []float64
	}{
		"S-42 an answer with what it cost":          {[]step{say(valid)}, []float64{stepCost}},
		"S-42 every repair is a call":               {[]step{say("{}"), say("{}"), say(valid)}, []float64{stepCost, stepCost, stepCost}},
		"S-42 what the provider declined is free":   {[]step{status(500, 0), status(429, 0), say(valid)}, []float64{0, 0, stepCost}},
		"S-42 a parameter that is refused is free":  {[]step{fail(&UnsupportedError{Feature: FeatureTemperature, Err: &StatusError{Provider: openaiP, Status: 400}}), say(valid)}, []float64{0, stepCost}},
		"S-42 what never left this machine is free": {[]step{fail(fmt.Errorf("post: %w", &net.OpError{Op: "dial", Err: io.EOF})), say(valid)}, []float64{0, stepCost}},
		"S-42 a connection that broke may have been billed": {
			[]step{fail(&net.OpError{Op: "read", Err: io.EOF}), fail(io.ErrUnexpectedEOF), say(valid)}, []float64{estimate, estimate, stepCost},
		},
		"S-42 a proxy says that the provider did not answer": {[]step{status(502, 0), status(504, 0), status(503, 0), say(valid)}, []float64{estimate, estimate, 0, stepCost}},
		"S-42 an answer that does not say what it took":      {[]step{without(Tokens{})}, []float64{estimate}},
		"S-42 so does one that cannot be read":               {[]step{fail(&MalformedError{Provider: openaiP}), say(valid)}, []float64{estimate, stepCost}},
		"S-42 numbers below 0 give nothing back":             {[]step{without(Tokens{Input: -1e9, Output: 100})}, []float64{1000e-6}},
		"S-42 so may a call that took too long":              {[]step{hang, say(valid)}, []float64{estimate, stepCost}},
		"S-42 an answer that cannot be read costs what it says": {[]step{func(context.Context, Request) (Response, error) {
			return Response{Tokens: tokensOfStep}, &MalformedError{Provider: openaiP}
		}, say(valid)}, []float64{stepCost, stepCost}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &ledger{most: 100}
				if _, _, err := newJudge(t, &script{steps: tt.steps}, func(o *Options) { o.Budget = l }).Ask(t.Context(), gpt, question); err != nil {
					t.Fatal(err)
				}
				var want [][2]float64
				for i, cost := range tt.costs {
					if cost == estimate {
						cost = l.reserved[i]
					}
					want = append(want, [2]float64{l.reserved[i], cost})
				}
				if diff := cmp.Diff(want, l.settled, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
					t.Errorf("settled {reserved, cost} (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestS42TheEstimateIsReservedBeforeTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{most: 100}
		called := func(ctx context.Context, r Request) (Response, error) {
			if len(l.reserved) != len(l.settled)+1 {
				t.Errorf("%d reservations and %d settlements when a request was sent", len(l.reserved), len(l.settled))
			}
			return say(`{}`)(ctx, r)
		}
		_, _, err := newJudge(t, &script{steps: []step{called, called, called}}, func(o *Options) { o.Budget = l }).Ask(t.Context(), gpt, question)
		if err == nil {
			t.Fatal("three invalid verdicts are no error")
		}
		input, output := NewEstimator(question).Tokens(question)
		want := (float64(input)*1 + float64(output)*10) / 1e6
		if len(l.reserved) != 3 || math.Abs(l.reserved[0]-want) > 1e-12 {
			t.Errorf("reserved %v, want %v for the first of 3", l.reserved, want)
		}
		if !(l.reserved[0] < l.reserved[1] && l.reserved[1] < l.reserved[2]) {
			t.Errorf("reserved %v: a conversation that grew costs more", l.reserved)
		}
	})
}

func TestS42NoCallStartsWithoutBudget(t *testing.T) {
	tests := map[string]struct {
		most  int
		steps []step
		calls int32
	}{
		"S-42 the first call": {0, []step{say(valid)}, 0},
		"S-42 a retry":        {1, []step{status(500, 0), say(valid)}, 0},
		"S-42 a repair, and what was answered is kept": {1, []step{say("{}"), say(valid)}, 1},
		"S-42 one more repair":                         {2, []step{say("{}"), say("{}"), say(valid)}, 2},
		"S-42 the same question without a parameter":   {1, []step{fail(&UnsupportedError{Feature: FeatureTemperature, Err: &StatusError{Provider: openaiP, Status: 400}}), say(valid)}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: tt.steps}
				_, usage, err := newJudge(t, s, func(o *Options) { o.Budget = &ledger{most: tt.most} }).Ask(t.Context(), gpt, question)
				if !errors.Is(err, ErrBudgetExceeded) {
					t.Errorf("error = %v, want ErrBudgetExceeded", err)
				}
				if len(s.requests) != tt.most || usage.Calls != tt.calls {
					t.Errorf("%d requests were sent and %d calls counted, want %d and %d", len(s.requests), usage.Calls, tt.most, tt.calls)
				}
			})
		})
	}
}

// TestS42TheOvershootIsThatOfTheCallsInFlight: calls cost far more than their estimates here.
func TestS42TheOvershootIsThatOfTheCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots = 4
		var now, most, sent atomic.Int32
		c := clientFunc(func(ctx context.Context, r Request) (Response, error) {
			sent.Add(1)
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Second) // virtual
			return Response{Answer: Answer{Text: valid, Structured: true}, Tokens: Tokens{Output: 5000}}, nil
		})
		input, output := NewEstimator(question).Tokens(question)
		estimate, actual := (float64(input)+float64(output)*10)/1e6, 5000*10/1e6
		limit := 3*actual + 2.5*estimate
		j := newJudge(t, c, func(o *Options) { o.Concurrency, o.Budget = slots, NewPurse(limit) })
		var wg sync.WaitGroup
		var refused atomic.Int32
		for range 40 {
			wg.Go(func() {
				if _, _, err := j.Ask(t.Context(), gpt, question); errors.Is(err, ErrBudgetExceeded) {
					refused.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		spent := float64(sent.Load()) * actual
		if over := spent - limit; over > float64(most.Load())*(actual-estimate)+1e-9 {
			t.Errorf("spent %v of %v with %d calls at once: %v more than what they were underestimated by", spent, limit, most.Load(), over)
		}
		if refused.Load() != 40-sent.Load() || sent.Load() < slots {
			t.Errorf("%d calls were made and %d refused, of 40", sent.Load(), refused.Load())
		}
	})
}

func TestS42AModelWithoutAPriceIsNotAskedWithinABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := &script{steps: []step{say(valid)}}, &ledger{most: 100}
		local := Model{Name: "llama-9", Provider: openaiP}
		_, _, err := newJudge(t, s, func(o *Options) { o.Budget = l }).Ask(t.Context(), local, question)
		var unpriced *UnpricedError
		if !errors.As(err, &unpriced) || unpriced.Model != "llama-9" {
			t.Fatalf("error = %v, want UnpricedError", err)
		}
		for _, want := range []string{"llama-9", "--prices", "models: {llama-9: {input: 1, output: 5}}"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
		if len(s.requests) != 0 || len(l.reserved) != 0 {
			t.Errorf("%d requests were sent and %d reservations made", len(s.requests), len(l.reserved))
		}
		if _, _, err := newJudge(t, s).Ask(t.Context(), local, question); err != nil {
			t.Errorf("without a budget: %v", err)
		}
	})
}

func TestS42Priced(t *testing.T) {
	prices, err := LoadPrices(strings.NewReader("models: {known: {input: 1, output: 5}, \"local-*\": {input: 0, output: 0}}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		models   []string
		unpriced string
	}{
		"S-42 all have a price":              {[]string{"known", "local-a"}, ""},
		"S-42 the first that has none":       {[]string{"known", "x", "y"}, "x"},
		"S-42 a release has its model's":     {[]string{"known-20260101"}, ""},
		"S-42 another model does not":        {[]string{"known-mini"}, "known-mini"},
		"S-42 no models need no price":       {nil, ""},
		"S-42 a price of nothing is a price": {[]string{"local-b"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var models []Model
			for _, m := range tt.models {
				models = append(models, Model{Name: m})
			}
			if got, ok := prices.Priced(models); got != tt.unpriced || ok != (tt.unpriced == "") {
				t.Errorf("Priced = %q, %v; want %q", got, ok, tt.unpriced)
			}
		})
	}
}
