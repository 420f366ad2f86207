package collector

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
	"github.com/mcptest/mcptest-operator/engine/judge"
)

// newLimitedRun is a world with a run that may cost so many US dollars.
func newLimitedRun(t testing.TB, maxCost float64, rows, completions int) *world {
	t.Helper()
	w := newRun(t, rows, completions, "clear", "short")
	run := w.run("run")
	run.Spec.MaxCost = &maxCost
	if err := w.live.Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) claim(token string, claim wire.Claim) wire.Allowance {
	w.t.Helper()
	a := w.ask(token, http.MethodPost, "/v1/budget", claim)
	w.want(a, 200, "")
	var allowance wire.Allowance
	a.into(w.t, &allowance)
	return allowance
}

func (w *world) wantAllowance(got, want wire.Allowance) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("allowance (-want +got):\n%s", diff)
	}
}

func TestS42PodsTakeOfOneBudget(t *testing.T) {
	w := newLimitedRun(t, 1, 4, 2)
	recorder := events.NewFakeRecorder(10)
	w.collector.events = recorder
	// Two pods: an eighth of what is left after the need.
	w.wantAllowance(w.claim("pod-0", wire.Claim{Number: 1, Want: 0.2, Least: 0.1, Extra: 5}), wire.Allowance{Granted: 0.3})
	w.wantAllowance(w.claim("pod-1", wire.Claim{Number: 1, Want: 0.7, Least: 0.7}), wire.Allowance{Granted: 0.7})
	writes := w.writes
	w.wantAllowance(w.claim("pod-1", wire.Claim{Number: 1, Want: 0.7, Least: 0.7}), wire.Allowance{Granted: 0.7})
	if w.writes != writes {
		t.Error("the same claim again was written")
	}
	// The first pod spent 0.1, and gives the rest back while it waits for the call of the second.
	w.wantAllowance(w.claim("pod-0", wire.Claim{Number: 2, Used: 0.1, Want: 0.5, Least: 0.4}), wire.Allowance{Granted: 0.1, Wait: true})
	writes = w.writes
	w.wantAllowance(w.claim("pod-0", wire.Claim{Number: 3, Used: 0.1, Want: 0.5, Least: 0.4}), wire.Allowance{Granted: 0.1, Wait: true})
	if w.writes != writes {
		t.Error("a claim that only asks again was written")
	}
	w.wantAllowance(w.claim("pod-1", wire.Claim{Number: 2, Used: 0.6, Want: 0.8, Least: 0.2}), wire.Allowance{Granted: 0.8})
	w.wantAllowance(w.claim("pod-1", wire.Claim{Number: 3, Used: 0.7, Want: 0.9, Least: 0.2}), wire.Allowance{Granted: 0.9})
	w.wantAllowance(w.claim("pod-0", wire.Claim{Number: 4, Used: 0.1, Want: 0.5, Least: 0.4}), wire.Allowance{Granted: 0.1, Exhausted: true})
	w.wantAllowance(w.claim("pod-1", wire.Claim{Number: 4, Used: 0.9, Want: 1, Least: 0.1}), wire.Allowance{Granted: 0.9, Exhausted: true})
	w.wantAllowance(w.claim("pod-1", wire.Claim{Number: 5, Used: 0.75, Want: 0.75, Final: true}), wire.Allowance{Granted: 0.75, Exhausted: true})
	want := &v1alpha1.BudgetStatus{TakenUSD: 0.85, Exhausted: true, Accounts: []v1alpha1.BudgetAccount{
		{Slice: 0, Pod: "uid-pod-0", TakenUSD: 0.1, Claim: 4}, {Slice: 1, Pod: "uid-pod-1", TakenUSD: 0.75, Claim: 5},
	}}
	if diff := cmp.Diff(want, w.run("run").Status.Budget); diff != "" {
		t.Error(diff)
	}
	if got := <-recorder.Events; len(recorder.Events) != 0 || !strings.HasPrefix(got, "Warning BudgetExceeded maxCost $1.00 is used up") {
		t.Errorf("event %q and %d more, want one that says that maxCost is used up", got, len(recorder.Events))
	}
	if got := metricOf(t, w, "mcptest_collector_budgets_exhausted_total", "", ""); got != 1 {
		t.Errorf("%v budgets are counted, want 1", got)
	}
}

func TestS42AClaimTouchesNothingElseOfTheRun(t *testing.T) {
	w := newLimitedRun(t, 1, 2, 1)
	w.updateStatus("run", func(s *v1alpha1.EvalRunStatus) {
		s.Digest, s.Job, s.Rows = "sha256:1", "run", []v1alpha1.RowResult{{Run: "run-0"}}
	})
	before := w.run("run").Status
	w.claim("pod-0", wire.Claim{Want: 0.5})
	after := w.run("run").Status
	if after.Budget == nil {
		t.Fatal("nothing was entered")
	}
	after.Budget = nil
	if diff := cmp.Diff(before, after); diff != "" {
		t.Error(diff)
	}
}

func TestS42APodIsToldThatItsRunIsLimited(t *testing.T) {
	prices, err := judge.LoadPrices(strings.NewReader("models: {our-model: {input: 1, output: 5}}"))
	if err != nil {
		t.Fatal(err)
	}
	w := newLimitedRun(t, 1, 2, 1)
	w.collector.prices = prices
	w.want(w.postJudgments("pod-0", "run-1", answered("clear", 0.9, "ok")), 200, "")
	var slice wire.Slice
	w.ask("pod-0", http.MethodGet, "/v1/slice", nil).into(t, &slice)
	if want := []wire.SliceLeaf{{Name: "run-0", Calls: 2}, {Name: "run-1", Calls: 1}}; !slice.Limited || !cmp.Equal(want, slice.Leaves) {
		t.Errorf("slice = %+v, want it limited, and the calls of each row", slice)
	}
	if _, ok := slice.Prices.Cost("our-model", judge.Tokens{Input: 1}); !ok {
		t.Error("the price that the operator was given is not handed on")
	}

	unlimited := newRun(t, 2, 1, "clear")
	a := unlimited.ask("pod-0", http.MethodGet, "/v1/slice", nil)
	if strings.Contains(string(a.body), "limited") || strings.Contains(string(a.body), "prices") || strings.Contains(string(a.body), "calls") {
		t.Errorf("a pod of a run without maxCost is told %s", a.body)
	}
}

func TestS42ClaimsThatCannotBeAreRefused(t *testing.T) {
	for name, body := range map[string]any{
		"used below 0":               wire.Claim{Used: -1},
		"want below used":            wire.Claim{Used: 2, Want: 1},
		"extra below 0":              wire.Claim{Want: 1, Extra: -1},
		"reserved below 0":           wire.Claim{Want: 1, Reserved: -1},
		"reserved above used":        wire.Claim{Used: 1, Want: 1, Reserved: 2},
		"least below 0":              wire.Claim{Want: 1, Least: -1},
		"least above want":           wire.Claim{Used: 1, Want: 2, Least: 1.5},
		"a number below 0":           wire.Claim{Want: 1, Number: -1},
		"a number past all":          `{"used": 1e400}`,
		"something that is no claim": `[]`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newLimitedRun(t, 1, 1, 1)
			a := w.ask("pod-0", http.MethodPost, "/v1/budget", body)
			if a.code != http.StatusUnprocessableEntity && a.code != http.StatusBadRequest || w.run("run").Status.Budget != nil {
				t.Errorf("answered %d %s, budget %+v", a.code, a.body, w.run("run").Status.Budget)
			}
		})
	}
	w := newRun(t, 1, 1, "clear")
	w.want(w.ask("pod-0", http.MethodPost, "/v1/budget", wire.Claim{Want: 1}), http.StatusUnprocessableEntity, "has no maxCost")
	w.want(w.ask("nobody", http.MethodPost, "/v1/budget", wire.Claim{Want: 1}), http.StatusUnauthorized, "")
}

func TestS42AClaimThatWasOvertakenIsDecidedAnew(t *testing.T) {
	w := newLimitedRun(t, 1, 4, 2)
	w.cached.keepOld(w.run("run")) // the cache does not see what follows
	w.wantAllowance(w.claim("pod-0", wire.Claim{Want: 0.75}), wire.Allowance{Granted: 0.75})
	w.wantAllowance(w.claim("pod-1", wire.Claim{Want: 0.75}), wire.Allowance{Wait: true})
	if got := w.run("run").Status.Budget.TakenUSD; got != 0.75 {
		t.Errorf("%v taken, want 0.75", got)
	}

	t.Run("a few times", func(t *testing.T) {
		w.mu.Lock()
		w.beforeWrite = func(int) error {
			return apierrors.NewConflict(schema.GroupResource{Resource: "evalruns"}, "run", fmt.Errorf("changed"))
		}
		w.mu.Unlock()
		w.want(w.ask("pod-0", http.MethodPost, "/v1/budget", wire.Claim{Used: 0.5, Want: 0.5, Final: true}), http.StatusServiceUnavailable, "is being changed")
	})
}

func TestS42PodsThatComeAtOnceNeverGetMoreThanThereIs(t *testing.T) {
	w := newLimitedRun(t, 1, 12, 12)
	var all sync.WaitGroup
	granted := make([]float64, 12)
	for i := range granted {
		all.Go(func() {
			for n := range 5 {
				var allowance wire.Allowance
				claim := wire.Claim{Number: int64(n) + 1, Used: granted[i], Want: granted[i] + 0.03, Least: 0.03}
				w.ask(fmt.Sprintf("pod-%d", i), http.MethodPost, "/v1/budget", claim).into(t, &allowance)
				granted[i] = allowance.Granted
			}
		})
	}
	all.Wait()
	sum := 0.0
	for _, g := range granted {
		sum += g
	}
	b := w.run("run").Status.Budget
	if nanoOf(sum) != nanoOf(0.99) || nanoOf(b.TakenUSD) != nanoOf(sum) || len(b.Accounts) != 12 {
		t.Errorf("granted %v, budget %+v; want 33 calls of 0.03", sum, b)
	}
	// Whether somebody was told to wait or that it is over depends on who came last; who waits no longer is told.
	var last wire.Allowance
	w.ask("pod-0", http.MethodPost, "/v1/budget", wire.Claim{Number: 6, Used: granted[0], Want: granted[0] + 0.03, Least: 0.03, Impatient: true}).into(t, &last)
	if !last.Exhausted || last.Granted != granted[0] || !w.run("run").Status.Budget.Exhausted {
		t.Errorf("the last claim was answered %+v", last)
	}
	if len(w.collector.claims.runs) != 0 {
		t.Errorf("the queue of claims remembers %d runs", len(w.collector.claims.runs))
	}
}

func TestAClaimWaitsForItsTurnNoLongerThanItsRequest(t *testing.T) {
	var q claimQueue
	leave, err := q.enter(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	other, err := q.enter(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	other()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := q.enter(ctx, "run"); err == nil {
		t.Error("two claims have their turn at once")
	}
	leave()
	leave, err = q.enter(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	leave()
	if len(q.runs) != 0 {
		t.Errorf("the queue remembers %v", q.runs)
	}
}

func TestS42ALeafThatTheBudgetDidNotReachSaysSo(t *testing.T) {
	w := newLimitedRun(t, 1, 2, 1)
	f := findingsOf(answered("clear", 0.9, "ok"))
	f.Reason, f.Error = v1alpha1.RowBudgetExceeded, "maxCost was used up"
	w.want(w.postFindings("pod-0", "run-0", f), 200, "")
	run := w.run("run-0")
	if r := run.Status.Report; r == nil || r.Outcome != v1alpha1.OutcomeError || r.Reason != v1alpha1.RowBudgetExceeded || r.Usage.Calls != 1 {
		t.Fatalf("report = %+v, want an error that says why, with what was judged", run.Status.Report)
	}
	for _, c := range run.Status.Conditions {
		if c.Type == v1alpha1.ConditionPassed && (c.Status != "False" || c.Reason != "BudgetExceeded" || !strings.Contains(c.Message, "maxCost")) {
			t.Errorf("Passed = %+v, want False BudgetExceeded", c)
		}
	}
	unlimited := newRun(t, 1, 1, "clear", "short")
	unlimited.want(unlimited.postFindings("pod-0", "run-0", f), http.StatusUnprocessableEntity, "the run has none")
	f.Reason = "Because"
	w.want(w.postFindings("pod-0", "run-1", f), http.StatusUnprocessableEntity, "reason is unknown")
}
