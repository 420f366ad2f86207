package collector

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
)

func TestFindingsEndARowInOneWrite(t *testing.T) {
	w := newRun(t, 2, 1, "clear", "short")
	a := w.postFindings("pod-0", "run-0", findingsOf(answered("clear", 0.9, "ok"), answered("short", 0.7, "ok")))
	w.want(a, 200, "")
	var receipt wire.Receipt
	a.into(t, &receipt)
	if diff := cmp.Diff(wire.Receipt{Outcome: v1alpha1.OutcomePassed, Score: new(0.8)}, receipt); diff != "" {
		t.Error(diff)
	}
	run := w.run("run-0")
	s := run.Status
	if w.writes != 1 || s.Report == nil || *s.Report.Score != 0.8 || s.Outcome != v1alpha1.OutcomePassed || s.Judgments != nil {
		t.Errorf("%d writes, status %+v", w.writes, s)
	}
	if !runtree.IsComplete(run) || !apimeta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionPassed) || s.Summary.Calls != 2 || !s.CompletionTime.Time.Equal(epoch) {
		t.Errorf("the child was not concluded: %+v", s)
	}
	if got := metricOf(t, w, "mcptest_collector_reports_total", "outcome", "Passed"); got != 1 {
		t.Errorf("%v reports counted", got)
	}
	// The next pod is told.
	var leaf wire.Leaf
	w.ask("pod-0", http.MethodGet, "/v1/leaves/run-0", nil).into(t, &leaf)
	if !leaf.Done || leaf.Spec.Response != nil {
		t.Errorf("leaf = %+v", leaf)
	}
	var slice wire.Slice
	w.ask("pod-0", http.MethodGet, "/v1/slice", nil).into(t, &slice)
	if diff := cmp.Diff([]wire.SliceLeaf{{Name: "run-0", Done: true}, {Name: "run-1"}}, slice.Leaves); diff != "" {
		t.Error(diff)
	}
}

func TestARootThatIsItsOwnLeafIsLeftToItsReconciler(t *testing.T) {
	w := newLeafRun(t, "clear")
	w.want(w.postJudgments("pod-0", "run", answered("clear", 0.9, "ok")), 200, "")
	w.want(w.postFindings("pod-0", "run", findingsOf(answered("clear", 0.9, "ok"))), 200, "")
	s := w.run("run").Status
	if s.Report == nil || s.Judgments != nil || s.EvalSpec == nil || s.Row == nil {
		t.Errorf("status = %+v", s)
	}
	if s.Outcome != "" || s.Conditions != nil {
		t.Errorf("the collector concluded a root: %+v", s)
	}
}

func TestTheFirstReportOfARowStays(t *testing.T) {
	w := newRun(t, 1, 1, "clear")
	first := findingsOf(answered("clear", 0.9, "ok"))
	w.want(w.postFindings("pod-0", "run-0", first), 200, "")
	before := w.run("run-0")
	again := w.postFindings("pod-0", "run-0", first)
	w.want(again, 200, "")
	var receipt wire.Receipt
	again.into(t, &receipt)
	if receipt.Outcome != v1alpha1.OutcomePassed || *receipt.Score != 0.9 {
		t.Errorf("receipt = %+v", receipt)
	}
	w.want(w.postFindings("pod-0", "run-0", findingsOf(answered("clear", 0.1, "changed its mind"))), 409, "has its report already")
	w.want(w.postJudgments("pod-0", "run-0", answered("clear", 0.1, "late")), 200, "")
	if diff := cmp.Diff(before, w.run("run-0")); diff != "" {
		t.Errorf("the row changed:\n%s", diff)
	}
}

func TestTheSameAgainIsTheSameThoughItWasKeptOrCut(t *testing.T) {
	w := newRun(t, 1, 1, "clear", "short")
	// Kept on the way, with the reason cut, and the report too long for its bound.
	long := answered("clear", 0.9, strings.Repeat("because ", 40_000))
	f := findingsOf(long, answered("short", 1, "ok"))
	w.want(w.postJudgments("pod-0", "run-0", long), 200, "")
	w.want(w.postFindings("pod-0", "run-0", f), 200, "")
	if w.run("run-0").Status.Report.Truncated == nil {
		t.Fatal("the report was not cut")
	}
	w.want(w.postFindings("pod-0", "run-0", f), 200, "")
	f.Judgments[0].Reason += "!"
	w.want(w.postFindings("pod-0", "run-0", f), 409, "another one")
}

func TestTheScoreIsComputedHere(t *testing.T) {
	// A runner has no way to say a score or an outcome: findings hold none. What it adds is not read.
	w := newRun(t, 1, 1, "clear")
	body := `{"judgments":[{"question":"clear","score":0.2,"reason":"no"}],"models":["m"],"outcome":"Passed","score":1,"report":{"outcome":"Passed"}}`
	w.want(w.ask("pod-0", http.MethodPost, "/v1/leaves/run-0/findings", body), 200, "")
	if s := w.run("run-0").Status; s.Outcome != v1alpha1.OutcomeFailed || *s.Report.Score != 0.2 {
		t.Errorf("outcome %s, score %v", s.Outcome, s.Report.Score)
	}
}

func TestFindingsThatLackAnAnswerAreAnError(t *testing.T) {
	w := newRun(t, 1, 1, "clear", "short")
	w.want(w.postFindings("pod-0", "run-0", findingsOf(answered("clear", 1, "ok"), unanswered("short", "529 overloaded"))), 200, "")
	s := w.run("run-0").Status
	if s.Outcome != v1alpha1.OutcomeError || !strings.Contains(s.Report.Note, "529") || s.Report.Score != nil {
		t.Errorf("outcome %s, report %+v", s.Outcome, s.Report)
	}
}

func TestReportsAreRedacted(t *testing.T) {
	const secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	w := newRun(t, 1, 1, "clear")
	f := findingsOf(answered("clear", 1, "it shows "+secret))
	f.Error = "the header was " + secret
	w.want(w.postFindings("pod-0", "run-0", f), 200, "")
	data, err := json.Marshal(w.run("run-0").Status)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), secret) {
		t.Errorf("the secret is in the status")
	}
}

func TestFindingsThatCannotBeAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(f *v1alpha1.Findings)
		says   string
	}{
		"a provider nobody knows": {func(f *v1alpha1.Findings) { f.Provider = "evil" }, "provider"},
		"more models than judges": {func(f *v1alpha1.Findings) { f.Models = []string{"a", "b"} }, "more models"},
		"a model like a book":     {func(f *v1alpha1.Findings) { f.Models = []string{strings.Repeat("m", 1000)} }, "too long"},
		"a version like a book":   {func(f *v1alpha1.Findings) { f.PromptVersion = strings.Repeat("1", 1000) }, "too long"},
		"a question twice":        {func(f *v1alpha1.Findings) { f.Judgments = append(f.Judgments, f.Judgments[0]) }, "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRun(t, 1, 1, "clear")
			f := findingsOf(answered("clear", 1, "ok"))
			tc.change(&f)
			w.want(w.postFindings("pod-0", "run-0", f), 422, tc.says)
			if w.writes != 0 {
				t.Errorf("%d writes", w.writes)
			}
		})
	}
}

func TestTheCacheIsNeverChanged(t *testing.T) {
	leaf := childRun("run", 0, 1, evalOf("clear"))
	leaf.Spec.Row.Cell = &v1alpha1.Cell{Prompt: "password=hunter2hunter2 " + strings.Repeat("p", 8000)}
	w := newWorld(t, rootRun("run"), leaf, jobOfRun("run", 1), podOfJob("pod-0", "run", "0"))
	w.tokens["pod-0"] = bound("pod-0")
	shared := w.run("run-0")
	before := shared.DeepCopy()
	w.collector.client = &sharing{cache: w.cached, run: shared}
	long := answered("clear", 0.9, strings.Repeat("long ", 100_000))
	w.want(w.postJudgments("pod-0", "run-0", long), 200, "")
	w.want(w.postFindings("pod-0", "run-0", findingsOf(long)), 200, "")
	if diff := cmp.Diff(before, shared); diff != "" {
		t.Errorf("an object of the cache was changed:\n%.2000s", diff)
	}
	if report := w.run("run-0").Status.Report; report == nil || report.Truncated == nil {
		t.Error("the report was not written and cut")
	}
}
