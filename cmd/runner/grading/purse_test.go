package grading

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

// pricesOf is the price of a model, as a price file has it.
func pricesOf(t testing.TB, model, rates string) judge.Prices {
	t.Helper()
	p, err := judge.LoadPrices(strings.NewReader("models: {" + model + ": " + rates + "}"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// limited is a desk with a budget, and a purse at it for these questions.
func limited(limit, share float64, questions int) (*desk, *purse) {
	d := newDesk(1, 1, "clear")
	d.limit, d.share = limit, share
	o := optionsOf(d, &bench{})
	o.setDefaults()
	r := &run{Options: o, stopper: newStopper()}
	r.calls, r.cancelCalls = context.WithCancelCause(context.Background())
	r.posts, r.cancelPosts = context.WithCancelCause(context.Background())
	return d, newPurse(r, questions)
}

func (p *purse) mustReserve(t *testing.T, usd float64) {
	t.Helper()
	if err := p.Reserve(t.Context(), usd); err != nil {
		t.Fatalf("reserving %v: %v", usd, err)
	}
}

// finalClaim gives back, and returns what the collector was told at last.
func (p *purse) finalClaim(d *desk) wire.Claim {
	posted := make(chan struct{})
	close(posted)
	p.giveBack(posted)
	return d.claims[len(d.claims)-1]
}

func wantClaims(t *testing.T, want, got []wire.Claim) {
	t.Helper()
	want, got = slices.Clone(want), slices.Clone(got)
	for i := range got {
		if got[i].Number != int64(i)+1 {
			t.Errorf("claim %d has the number %d", i+1, got[i].Number)
		}
		got[i].Number = 0
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

func TestS42ACallWaitsUntilItIsGranted(t *testing.T) {
	d, p := limited(1, 0, 10)
	p.mustReserve(t, 0.25)
	p.mustReserve(t, 0.25)
	p.Settle(0.25, 0.125)
	p.mustReserve(t, 0.125) // what the first call did not need
	p.Settle(0.25, 0.25)
	p.Settle(0.125, 0.5) // more than it was estimated at
	p.mustReserve(t, 0.0625)
	p.Settle(0.0625, 0.0625)
	p.finalClaim(d)
	wantClaims(t, []wire.Claim{
		{Want: 0.25, Least: 0.25, Extra: 9 * 0.25},
		{Used: 0.25, Reserved: 0.25, Want: 0.5, Least: 0.25, Extra: 8 * 0.25},
		{Used: 0.875, Want: 0.9375, Least: 0.0625, Extra: 6 * 0.0625},
		{Used: 0.9375, Want: 0.9375, Final: true},
	}, d.claims)
}

func TestS42WhatIsGrantedInAdvanceSavesClaims(t *testing.T) {
	d, p := limited(100, 0.25, 64)
	for range 64 {
		p.mustReserve(t, 0.5)
		p.Settle(0.5, 0.5)
	}
	if n := len(d.claims); n > 3 {
		t.Errorf("%d claims for 64 calls of a budget that is enough", n)
	}
	for _, c := range d.claims {
		if c.Want+c.Extra > 32+1e-9 {
			t.Errorf("claim %+v asks for more than the 64 calls need", c)
		}
	}
	p.notAsked(1000)
	if got := p.finalClaim(d); got.Used != 32 || !got.Final {
		t.Errorf("the last claim is %+v, want 32 used", got)
	}
}

func TestS42WhatDoesNotFitEndsEverythingThatComesAfter(t *testing.T) {
	d, p := limited(1, 0, 10)
	p.mustReserve(t, 0.75)
	p.Settle(0.75, 0.75)
	for range 2 {
		if err := p.Reserve(t.Context(), 0.5); !errors.Is(err, judge.ErrBudgetExceeded) {
			t.Fatalf("err = %v, want %v", err, judge.ErrBudgetExceeded)
		}
	}
	if err := p.Reserve(t.Context(), 0.25); !errors.Is(err, judge.ErrBudgetExceeded) {
		t.Errorf("a call that would fit: %v, want none any more", err)
	}
	if len(d.claims) != 2 {
		t.Errorf("%d claims, want no other after the budget was exhausted: %+v", len(d.claims), d.claims)
	}
	if got := p.finalClaim(d); got.Used != 0.75 {
		t.Errorf("the last claim is %+v, want 0.75 used", got)
	}
}

func TestS42CallsThatWaitTogetherAreClaimedTogetherAndServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, p := limited(1, 0, 10)
		d.down = func(context.Context, string) error {
			time.Sleep(time.Second) // virtual
			return nil
		}
		var got []string
		var mu sync.Mutex
		var calls sync.WaitGroup
		for i, usd := range []float64{0.5, 0.25, 0.125, 0.25, 0.0625} {
			calls.Go(func() {
				err := p.Reserve(t.Context(), usd)
				mu.Lock()
				got = append(got, fmt.Sprintf("%d at %v: %v", i, time.Now().Second(), err == nil))
				mu.Unlock()
				if i == 0 {
					time.Sleep(4500 * time.Millisecond) // virtual
					p.Settle(usd, 0.25)
				}
			})
			synctest.Wait()
		}
		calls.Wait()
		// The first claim is for the first call. The others do not fit together; those that do are granted one by one.
		// What the first call did not need is the fourth's at once; the fifth is granted by the second claim after that.
		want := []string{"0 at 1: true", "1 at 2: true", "2 at 3: true", "3 at 5: true", "4 at 7: true"}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		wantClaims(t, []wire.Claim{
			{Want: 0.5, Least: 0.5, Extra: 4.5},
			{Used: 0.5, Reserved: 0.5, Want: 1.1875, Least: 0.25, Extra: 5 * 0.0625},
			{Used: 0.75, Reserved: 0.75, Want: 1.1875, Least: 0.125, Extra: 5 * 0.0625},
			{Used: 0.875, Reserved: 0.875, Want: 1.1875, Least: 0.25, Extra: 5 * 0.0625}, // waits, and asks again
			{Used: 0.875, Reserved: 0.875, Want: 1.1875, Least: 0.25, Extra: 5 * 0.0625},
		}, d.claims[:5])
	})
}

func TestS42SixteenCallsAtOnceSpendABudgetThatIsJustEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const questions, cost = 2 * 24, 0.3 // a call is estimated at a little less than a dollar
		d, b := newDesk(24, 16, "clear", "short"), &bench{}
		d.prices = pricesOf(t, "claude-test", "{input: 1000, output: 0}")
		d.limit, d.share = questions*cost+1, 0.25
		b.answer = func(_ context.Context, n int, _ judge.Request) (judge.Response, error) {
			time.Sleep(time.Duration(1+n%3) * time.Second) // virtual
			r := verdict(1, "it is")
			r.Tokens = judge.Tokens{Input: cost * 1000}
			return r, nil
		}
		if result := finish(t, optionsOf(d, b)); result.Passed != 24 || b.calls != questions {
			t.Errorf("result = %+v after %d calls, want all rows judged", result, b.calls)
		}
	})
}

func TestS42ACallWaitsForThoseOfOtherPods(t *testing.T) {
	const patience = DefaultMoneyPatience
	for name, tc := range map[string]struct {
		others  time.Duration // how long the calls of others take; 0: for ever, their pod died
		granted bool
		took    time.Duration // at most, and no more than a poll less
	}{
		"that end":           {10 * time.Second, true, 11 * time.Second},
		"of a pod that died": {0, false, patience + 2*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, p := limited(1, 0, 10)
				d.others, d.othersReserved = 0.9, 0.8
				if tc.others > 0 {
					time.AfterFunc(tc.others, func() {
						d.mu.Lock()
						defer d.mu.Unlock()
						d.others, d.othersReserved = 0.4, 0
					})
				}
				began := time.Now()
				err := p.Reserve(t.Context(), 0.5)
				if took := time.Since(began); (err == nil) != tc.granted || took > tc.took || took < tc.took-3*time.Second {
					t.Errorf("%v after %v, want it granted: %v, after about %v", err, took, tc.granted, tc.took)
				}
				if err != nil && !errors.Is(err, judge.ErrBudgetExceeded) {
					t.Errorf("err = %v", err)
				}
				if last := d.claims[len(d.claims)-1]; last.Impatient == tc.granted {
					t.Errorf("the last claim is %+v", last)
				}
				if err == nil {
					p.Settle(0.5, 0.5)
				}
				p.finalClaim(d)
			})
		})
	}
}

func TestS42OwnCallsAreWaitedForHoweverLongTheyTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, p := limited(1, 0, 10)
		p.mustReserve(t, 0.75)
		time.AfterFunc(3*DefaultMoneyPatience, func() { p.Settle(0.75, 0.25) })
		began := time.Now()
		p.mustReserve(t, 0.5)
		if took := time.Since(began); took != 3*DefaultMoneyPatience {
			t.Errorf("granted after %v, want as soon as the other call ended", took)
		}
		p.Settle(0.5, 0.5)
		p.finalClaim(d)
	})
}

func TestS42AStopEndsTheWaitForOtherPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, b := withModel(newDesk(3, 2, "clear"), "claude-sonnet-5-5"), &bench{}
		d.limit, d.others, d.othersReserved = 1, 1, 1
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		began := time.Now()
		if _, err := Run(ctx, optionsOf(d, b)); !errors.Is(err, ErrInterrupted) || b.calls != 0 {
			t.Errorf("%v after %d calls, want that it was told to stop", err, b.calls)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
		if last := d.claims[len(d.claims)-1]; !last.Final || last.Used != 0 {
			t.Errorf("the last claim is %+v, want nothing used", last)
		}
	})
}

func TestS42ACallThatNobodyWaitsForTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, p := limited(1, 0, 10)
		d.down = func(context.Context, string) error {
			time.Sleep(time.Second) // virtual
			return nil
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Reserve(ctx, 0.5) }()
		synctest.Wait()
		cancel(rubric.ErrStopped)
		if err := <-ended; !errors.Is(err, rubric.ErrStopped) {
			t.Errorf("err = %v, want the cause of the context", err)
		}
		time.Sleep(2 * time.Second) // virtual
		if p.committed != 0 || len(p.waiting) != 0 {
			t.Errorf("%v is committed, and %d calls wait", p.committed, len(p.waiting))
		}
		if got := p.finalClaim(d); got.Used != 0 || !got.Final {
			t.Errorf("the last claim is %+v, want nothing used", got)
		}
	})
}

func TestS42ALimitedRunKeepsWhatWasJudgedAndEndsTheRest(t *testing.T) {
	const (
		questions = 2 * 40
		limit     = 30.0
		actual    = 0.7 // what a call costs; it is estimated at a little less than a dollar
	)
	for name, tc := range map[string]struct {
		concurrency int
		share       float64
	}{
		"one call at once":              {1, 0},
		"many, granted one by one":      {8, 0},
		"many, granted in advance":      {8, 0.25},
		"two, granted a few in advance": {2, 0.05},
	} {
		t.Run(name, func(t *testing.T) {
			d, b := newDesk(40, tc.concurrency, "clear", "short"), &bench{}
			d.prices = pricesOf(t, "claude-test", "{input: 1000, output: 0}")
			d.limit, d.share = limit, tc.share
			b.answer = func(context.Context, int, judge.Request) (judge.Response, error) {
				r := verdict(1, "it is")
				r.Tokens = judge.Tokens{Input: actual * 1000}
				return r, nil
			}
			result := finish(t, optionsOf(d, b))
			if result.Rows != 40 || result.Passed == 0 || result.Errored == 0 || result.Passed+result.Errored != 40 {
				t.Fatalf("result = %+v, want some rows passed and the others errored", result)
			}
			exhausted, calls := 0, int32(0)
			for name, row := range d.rows {
				calls += row.report.Usage.Calls
				switch {
				case row.report.Reason == v1alpha1.RowBudgetExceeded:
					exhausted++
				case row.report.Usage.Calls != 2:
					t.Errorf("%s passed with %d calls", name, row.report.Usage.Calls)
				}
			}
			if int(calls) != b.calls || exhausted != result.Errored {
				t.Errorf("%d of %d calls are in the reports, %d of %d errors say why", calls, b.calls, exhausted, result.Errored)
			}
			spent := float64(b.calls) * actual
			if spent > limit || spent < limit-float64(tc.concurrency)-1 {
				t.Errorf("%d calls cost %v, want %v, or less by what calls at once may cost", b.calls, spent, limit)
			}
			if last := d.claims[len(d.claims)-1]; !last.Final || math.Abs(last.Used-spent) > 1e-6 {
				t.Errorf("the last claim is %+v, want %v used", last, spent)
			}
			if n := len(d.claims); tc.share >= 0.25 && n > questions/4 {
				t.Errorf("%d claims for %d calls", n, b.calls)
			}
		})
	}
}

func TestS42ARowThatTheBudgetDoesNotReachEndsWithoutACall(t *testing.T) {
	d, b := newDesk(5, 4, "clear"), &bench{}
	d.limit = 1e-6
	result := finish(t, optionsOf(withModel(d, "claude-sonnet-5-5"), b))
	if want := (Result{Rows: 5, Errored: 5}); result != want || b.calls != 0 {
		t.Errorf("result = %+v and %d calls, want %+v and none", result, b.calls, want)
	}
	for name, row := range d.rows {
		if row.report.Reason != v1alpha1.RowBudgetExceeded || !strings.Contains(row.report.Note, "maxCost") {
			t.Errorf("%s: %s: %s", name, row.report.Reason, row.report.Note)
		}
	}
}

// withModel has every row judged by a model.
func withModel(d *desk, model v1alpha1.ModelName) *desk {
	for _, r := range d.rows {
		r.spec.Judge = &v1alpha1.JudgeSpec{Model: model}
	}
	return d
}

func TestS42ARunWithoutMaxCostNeverAsks(t *testing.T) {
	d, b := newDesk(3, 4, "clear"), &bench{}
	if result := finish(t, optionsOf(d, b)); result.Passed != 3 || len(d.claims) != 0 {
		t.Errorf("result = %+v, claims %+v; want none", result, d.claims)
	}
}

func TestS42ARunThatNeedsNoJudgeNeverAsks(t *testing.T) {
	d, b := newDesk(3, 4, "clear"), &bench{}
	d.limit = 1
	for _, r := range d.rows {
		r.spec.Response = new(" ")
	}
	if result := finish(t, optionsOf(d, b)); result.Rows != 3 || result.Open != 0 || len(d.claims) != 0 {
		t.Errorf("result = %+v, claims %+v; want none", result, d.claims)
	}
}

func TestS42AModelThatOnlyTheKeysNameNeedsAPrice(t *testing.T) {
	d, b := withModel(newDesk(2, 4, "clear"), ""), &bench{}
	d.limit = 1
	o := optionsOf(d, b)
	o.Env.Model = "claude-unheard-of"
	result := finish(t, o)
	if result.Errored != 2 || b.calls != 0 || len(d.claims) != 0 {
		t.Errorf("result = %+v, %d calls, claims %+v; want two errors and no call", result, b.calls, d.claims)
	}
	if note := d.rows["run-000"].report.Note; !strings.Contains(note, "claude-unheard-of has no known price") || !strings.Contains(note, "chart's prices") {
		t.Errorf("the note %q does not name the model and what to do", note)
	}

	t.Run("which the operator can be given", func(t *testing.T) {
		d.prices = pricesOf(t, "claude-unheard-of", "{input: 1, output: 5}")
		for _, r := range d.rows {
			r.report = nil
		}
		if result := finish(t, o); result.Passed != 2 {
			t.Errorf("result = %+v, want both passed", result)
		}
		if usage := d.rows["run-000"].report.Usage; usage.CostUSD == 0 || usage.UnpricedCalls != 0 {
			t.Errorf("usage = %+v, want a price", usage)
		}
	})
}

func TestS42ACollectorThatIsAwayIsWaitedForBeforeACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, b := withModel(newDesk(3, 2, "clear"), "claude-sonnet-5-5"), &bench{}
		d.limit = 1
		back := time.Now().Add(3 * time.Minute)
		d.down = func(_ context.Context, what string) error {
			if what == "budget" && time.Now().Before(back) {
				if b.calls > 0 {
					t.Error("a call was made that nobody granted")
				}
				return refused(http.StatusServiceUnavailable)
			}
			return nil
		}
		if result := finish(t, optionsOf(d, b)); result.Passed != 3 {
			t.Errorf("result = %+v", result)
		}
	})
}

func TestS42ACollectorThatDoesNotGrantEndsTheRun(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		exit   int
	}{
		"that stays away":            {http.StatusServiceUnavailable, 1},
		"that does not know the pod": {http.StatusForbidden, wire.ExitConfig},
		"that takes no such claim":   {http.StatusUnprocessableEntity, wire.ExitData},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, b := withModel(newDesk(3, 2, "clear"), "claude-sonnet-5-5"), &bench{}
				d.limit = 1
				d.down = func(_ context.Context, what string) error {
					if what == "budget" {
						return refused(tc.status)
					}
					return nil
				}
				result, err := Run(t.Context(), optionsOf(d, b))
				if ExitCode(err) != tc.exit || b.calls != 0 || result.Open != 3 {
					t.Errorf("result = %+v, %v (exit code %d), %d calls; want exit code %d and no call", result, err, ExitCode(err), b.calls, tc.exit)
				}
			})
		})
	}
}

func TestS42AStopGivesBackWhatWasNotSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, b := withModel(newDesk(10, 2, "clear"), "claude-sonnet-5-5"), &bench{}
		d.limit, d.share = 1, 0.25
		ctx, stop := context.WithCancel(t.Context())
		b.answer = func(context.Context, int, judge.Request) (judge.Response, error) {
			stop()
			time.Sleep(time.Second) // virtual
			return verdict(1, "it is"), nil
		}
		_, err := Run(ctx, optionsOf(d, b))
		if !errors.Is(err, ErrInterrupted) {
			t.Fatalf("err = %v, want that it was told to stop", err)
		}
		cost, _ := judge.DefaultPrices().Cost("claude-sonnet-5-5", judge.Tokens{Input: 10, Output: 5})
		last := d.claims[len(d.claims)-1]
		if want := cost * float64(b.calls); !last.Final || math.Abs(last.Used-want) > 1e-9 {
			t.Errorf("the last claim is %+v, want the %v of %d calls", last, want, b.calls)
		}
	})
}

func TestS42WhatCannotBeGivenBackHoldsUpNobodyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, b := withModel(newDesk(2, 2, "clear"), "claude-sonnet-5-5"), &bench{}
		d.limit = 1
		d.down = func(_ context.Context, what string) error {
			if what == "budget" && b.calls == 2 {
				return refused(http.StatusServiceUnavailable)
			}
			return nil
		}
		began := time.Now()
		if result := finish(t, optionsOf(d, b)); result.Passed != 2 {
			t.Errorf("result = %+v, want both passed", result)
		}
		if took := time.Since(began); took > 2*DefaultFlush {
			t.Errorf("took %v", took)
		}
	})
}
