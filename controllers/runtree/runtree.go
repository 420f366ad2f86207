// Package runtree knows how the EvalRuns of one run hang together: a root, and a child for each row when there is more
// than one. A run that grades one row itself is a leaf: every child, and a root with one row. All of it is pure.
package runtree

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/condition"
	"github.com/mcptest/mcptest-operator/engine/plan"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

// IsChild tells whether a run grades a row of another run, which controls it.
func IsChild(run *v1alpha1.EvalRun) bool { return parentOf(run) != nil }

// Parent is the name and UID of the run that a child belongs to; false for a root.
func Parent(run *v1alpha1.EvalRun) (*metav1.OwnerReference, bool) {
	owner := parentOf(run)
	return owner, owner != nil
}

func parentOf(run *v1alpha1.EvalRun) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(run)
	if owner == nil || owner.Kind != "EvalRun" || owner.APIVersion != v1alpha1.GroupVersion.String() || run.Spec.Row == nil {
		return nil
	}
	return owner
}

// ChildName is the name of the n-th of count children of a run: always the same, in the order of the rows when sorted,
// and at most 63 characters long for a parent that admission let in.
func ChildName(parent string, n, count int) string {
	return fmt.Sprintf("%s-%0*d", parent, len(strconv.Itoa(max(count-1, 0))), n)
}

// Leaves are the runs that grade the rows of a root, in the order of the rows: its children, or the root itself when it
// has none. children may hold other runs.
func Leaves(root *v1alpha1.EvalRun, children []v1alpha1.EvalRun) []*v1alpha1.EvalRun {
	var leaves []*v1alpha1.EvalRun
	for i := range children {
		if owner := parentOf(&children[i]); owner != nil && owner.UID == root.UID {
			leaves = append(leaves, &children[i])
		}
	}
	if len(leaves) == 0 {
		return []*v1alpha1.EvalRun{root}
	}
	slices.SortFunc(leaves, func(a, b *v1alpha1.EvalRun) int { return cmp.Compare(a.Name, b.Name) })
	return leaves
}

// Row is what a leaf grades: of a child what its spec says, of a root what was frozen when it began. False while a root
// has not begun.
func Row(leaf *v1alpha1.EvalRun) (plan.Row, bool) {
	if row, spec := Graded(leaf); row != nil {
		return plan.Leaf(*row, *spec), true
	}
	return plan.Row{}, false
}

// Graded is what Row is made of, without the price of its digest; nil while a root has not begun.
func Graded(leaf *v1alpha1.EvalRun) (*v1alpha1.Row, *v1alpha1.EvalSpec) {
	switch {
	case leaf.Spec.Row != nil && leaf.Spec.Eval != nil:
		return leaf.Spec.Row, leaf.Spec.Eval
	case leaf.Status.Row != nil && leaf.Status.EvalSpec != nil:
		return leaf.Status.Row, leaf.Status.EvalSpec
	}
	return nil, nil
}

// Calls are the projected calls of leaves, as plan.Slices wants them.
func Calls(leaves []*v1alpha1.EvalRun) []int32 {
	calls := make([]int32, len(leaves))
	for i, leaf := range leaves {
		if row, spec := Graded(leaf); row != nil {
			calls[i] = plan.Calls(spec)
		}
	}
	return calls
}

// Ending is how a run ends.
type Ending struct {
	// Summary is the run in numbers.
	Summary v1alpha1.Summary
	// Note is what its conditions say; empty: the summary in words.
	Note string
	// OverBudget tells of a run with children that the budget did not reach for all of its rows (S-42). Of a leaf its
	// report tells.
	OverBudget bool
}

// Conclude ends a run in its status: outcome, summary, times and conditions. It is called once, when everything that
// the run waits for is there.
func Conclude(run *v1alpha1.EvalRun, e Ending, now time.Time) {
	at := metav1.NewTime(now)
	s := &run.Status
	s.ObservedGeneration = run.Generation
	s.Outcome = rubric.RunOutcome(e.Summary)
	s.Summary = &e.Summary
	s.CompletionTime = &at
	s.Judgments = nil
	note := cmp.Or(e.Note, Sentence(e.Summary))
	set := func(kind string, status metav1.ConditionStatus, reason string) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: condition.Clip(note, condition.MaxMessage),
			ObservedGeneration: run.Generation, LastTransitionTime: at,
		})
	}
	passed := metav1.ConditionFalse
	switch s.Outcome {
	case v1alpha1.OutcomePassed:
		passed = metav1.ConditionTrue
	case v1alpha1.OutcomeDeferred:
		passed = metav1.ConditionUnknown
	}
	set(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonFinished)
	verdict := string(s.Outcome)
	if e.OverBudget || IsOverBudget(run) {
		verdict = string(v1alpha1.RowBudgetExceeded)
	}
	set(v1alpha1.ConditionPassed, passed, verdict)
	// A verdict does not block: the run did what it was asked to. Who wants a gate reads Passed.
	set(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonFinished)
	meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionReconciling)
	meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionStalled)
}

// IsComplete tells whether a run ended.
func IsComplete(run *v1alpha1.EvalRun) bool {
	return meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionComplete)
}

// IsOverBudget tells whether a leaf was not judged to its end because the run's maxCost was used up (S-42).
func IsOverBudget(leaf *v1alpha1.EvalRun) bool {
	return leaf.Status.Report != nil && leaf.Status.Report.Reason == v1alpha1.RowBudgetExceeded
}

// USD writes an amount of money with two decimals, or with as many as it has: "$0.50", "$0.0125".
func USD(amount float64) string {
	text := strconv.FormatFloat(amount, 'f', -1, 64)
	if _, decimals, _ := strings.Cut(text, "."); len(decimals) < 2 {
		text = strconv.FormatFloat(amount, 'f', 2, 64)
	}
	return "$" + text
}

// Sentence tells a summary in words: "3 of 4 rows passed, 1 failed; 4 judge calls, $0.0123".
func Sentence(s v1alpha1.Summary) string {
	text := fmt.Sprintf("%d of %d rows passed", s.Passed, s.Rows)
	for _, part := range []struct {
		n    int32
		word string
	}{{s.Failed, "failed"}, {s.Deferred, "deferred"}, {s.Errored, "errored"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.word)
		}
	}
	calls := "judge calls"
	if s.Calls == 1 {
		calls = "judge call"
	}
	return text + fmt.Sprintf("; %d %s, $%.4f", s.Calls, calls, s.CostUSD)
}
