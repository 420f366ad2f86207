package runtree_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
)

func child(name string, parent types.UID) v1alpha1.EvalRun {
	owner := &v1alpha1.EvalRun{ObjectMeta: metav1.ObjectMeta{Name: "root", UID: parent}}
	response := "It is sunny."
	return v1alpha1.EvalRun{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1alpha1.GroupVersion.WithKind("EvalRun"))},
		},
		Spec: v1alpha1.EvalRunSpec{
			Row:  &v1alpha1.Row{Name: name, Eval: name},
			Eval: &v1alpha1.EvalSpec{Response: &response, Rubric: &v1alpha1.RubricSource{RubricSpec: v1alpha1.RubricSpec{Text: "Kind?"}}},
		},
	}
}

func TestARunIsAChildOnlyWhenARunControlsItAndItHasARow(t *testing.T) {
	foreign := child("a", "u")
	foreign.OwnerReferences[0].APIVersion = "other.example/v1"
	noController := child("a", "u")
	noController.OwnerReferences[0].Controller = nil
	noRow := child("a", "u")
	noRow.Spec.Row = nil
	for name, tc := range map[string]struct {
		run  v1alpha1.EvalRun
		want bool
	}{
		"a child":                     {child("a", "u"), true},
		"nobody owns it":              {v1alpha1.EvalRun{}, false},
		"another kind of EvalRun":     {foreign, false},
		"owned, but not controlled":   {noController, false},
		"controlled, but without row": {noRow, false},
	} {
		if got := runtree.IsChild(&tc.run); got != tc.want {
			t.Errorf("%s: IsChild = %v, want %v", name, got, tc.want)
		}
	}
}

func TestChildNamesSortAsTheRowsDoAndFitIntoALabel(t *testing.T) {
	parent := strings.Repeat("r", 57)
	var names []string
	for n := range 5000 {
		names = append(names, runtree.ChildName(parent, n, 5000))
	}
	if !slices.IsSorted(names) || len(names[4999]) > 63 {
		t.Errorf("sorted: %v; the last has %d characters, want at most 63", slices.IsSorted(names), len(names[4999]))
	}
	if got := runtree.ChildName("run", 3, 4); got != "run-3" {
		t.Errorf("got %q, want run-3", got)
	}
}

func TestLeavesAreTheChildrenInOrderOrTheRootItself(t *testing.T) {
	root := &v1alpha1.EvalRun{ObjectMeta: metav1.ObjectMeta{Name: "root", UID: "u"}}
	names := func(leaves []*v1alpha1.EvalRun) (out []string) {
		for _, l := range leaves {
			out = append(out, l.Name)
		}
		return out
	}
	leaves := runtree.Leaves(root, []v1alpha1.EvalRun{child("root-1", "u"), child("other-0", "v"), child("root-0", "u")})
	if diff := cmp.Diff([]string{"root-0", "root-1"}, names(leaves)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int32{1, 1}, runtree.Calls(leaves)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"root"}, names(runtree.Leaves(root, nil))); diff != "" {
		t.Error(diff)
	}
}

func TestARootSaysWhatItGradesOnceItIsFrozen(t *testing.T) {
	root := &v1alpha1.EvalRun{}
	if _, ok := runtree.Row(root); ok {
		t.Error("a run that has not begun says what it grades")
	}
	leaf := child("a", "u")
	root.Status.Row, root.Status.EvalSpec = leaf.Spec.Row, leaf.Spec.Eval
	if row, ok := runtree.Row(root); !ok || row.Name != "a" || row.Calls != 1 {
		t.Errorf("row = %+v %v, want the frozen one", row, ok)
	}
}

func TestConcludeTellsTheVerdictAndBlocksNothing(t *testing.T) {
	for outcome, tc := range map[v1alpha1.Outcome]struct {
		summary v1alpha1.Summary
		passed  string
	}{
		v1alpha1.OutcomePassed:   {v1alpha1.Summary{Rows: 1, Passed: 1}, "True Passed"},
		v1alpha1.OutcomeFailed:   {v1alpha1.Summary{Rows: 2, Passed: 1, Failed: 1}, "False Failed"},
		v1alpha1.OutcomeError:    {v1alpha1.Summary{Rows: 2, Failed: 1, Errored: 1}, "False Error"},
		v1alpha1.OutcomeDeferred: {v1alpha1.Summary{Rows: 1, Deferred: 1}, "Unknown Deferred"},
	} {
		t.Run(string(outcome), func(t *testing.T) {
			run := &v1alpha1.EvalRun{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			run.Status.Conditions = []metav1.Condition{{Type: "Reconciling", Status: "True"}, {Type: "Stalled", Status: "True"}}
			run.Status.Judgments = make([]v1alpha1.Judgment, 1)
			runtree.Conclude(run, runtree.Ending{Summary: tc.summary}, time.Unix(1, 0))
			got := map[string]string{}
			for _, c := range run.Status.Conditions {
				got[c.Type] = string(c.Status) + " " + c.Reason
			}
			want := map[string]string{"Complete": "True Finished", "Ready": "True Finished", "Passed": tc.passed}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if run.Status.Outcome != outcome || run.Status.ObservedGeneration != 2 || run.Status.Judgments != nil || !runtree.IsComplete(run) {
				t.Errorf("status = %+v", run.Status)
			}
		})
	}
}

func TestASummaryInWords(t *testing.T) {
	got := runtree.Sentence(v1alpha1.Summary{Rows: 5, Passed: 2, Failed: 1, Deferred: 1, Errored: 1, Calls: 4, CostUSD: 0.01234})
	if want := "2 of 5 rows passed, 1 failed, 1 deferred, 1 errored; 4 judge calls, $0.0123"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestS42ARunThatItsBudgetDidNotReachForSaysSo(t *testing.T) {
	summary := v1alpha1.Summary{Rows: 2, Passed: 1, Errored: 1}
	over := &v1alpha1.Report{Outcome: v1alpha1.OutcomeError, Reason: v1alpha1.RowBudgetExceeded}
	for name, tc := range map[string]struct {
		report *v1alpha1.Report
		ending runtree.Ending
		want   string
	}{
		"a leaf over budget":              {over, runtree.Ending{Summary: summary}, "False BudgetExceeded"},
		"a leaf with another error":       {&v1alpha1.Report{Outcome: v1alpha1.OutcomeError}, runtree.Ending{Summary: summary}, "False Error"},
		"a root with a row over budget":   {nil, runtree.Ending{Summary: summary, OverBudget: true}, "False BudgetExceeded"},
		"a root whose rows have no judge": {nil, runtree.Ending{Summary: summary}, "False Error"},
	} {
		t.Run(name, func(t *testing.T) {
			run := &v1alpha1.EvalRun{Status: v1alpha1.EvalRunStatus{Report: tc.report, Budget: &v1alpha1.BudgetStatus{TakenUSD: 1}}}
			runtree.Conclude(run, tc.ending, time.Unix(1, 0))
			for _, c := range run.Status.Conditions {
				if got := string(c.Status) + " " + c.Reason; c.Type == v1alpha1.ConditionPassed && got != tc.want {
					t.Errorf("Passed = %s, want %s", got, tc.want)
				}
			}
			if run.Status.Outcome != v1alpha1.OutcomeError || run.Status.Budget == nil {
				t.Errorf("status = %+v, want Error, and the budget kept", run.Status)
			}
		})
	}
}

func TestMoneyIsWrittenAsItIs(t *testing.T) {
	for amount, want := range map[float64]string{0.5: "$0.50", 12: "$12.00", 0.25: "$0.25", 0.0125: "$0.0125", 0.000001: "$0.000001", 1e6: "$1000000.00"} {
		if got := runtree.USD(amount); got != want {
			t.Errorf("USD(%v) = %s, want %s", amount, got, want)
		}
	}
}
