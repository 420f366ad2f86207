package eval

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/condition"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
)

// newest is the root run that ended last; nil when none has ended.
func newest(runs []v1alpha1.EvalRun) *v1alpha1.EvalRun {
	var last *v1alpha1.EvalRun
	for i := range runs {
		run := &runs[i]
		if runtree.IsChild(run) || !runtree.IsComplete(run) || run.Status.CompletionTime == nil {
			continue
		}
		if last == nil || later(run, last) {
			last = run
		}
	}
	return last
}

// later tells whether a run ended after another; of two that ended in the same second, the one with the greater name did.
func later(a, b *v1alpha1.EvalRun) bool {
	if at, bt := a.Status.CompletionTime, b.Status.CompletionTime; !at.Equal(bt) {
		return bt.Before(at)
	}
	return a.Name > b.Name
}

// takeOver writes into the status of an eval how a run ended. Without one, what is known from earlier stays: runs are
// deleted when their time is over.
func takeOver(e *v1alpha1.Eval, run *v1alpha1.EvalRun, now time.Time) {
	s := &e.Status
	if run == nil {
		if s.LastRun == nil {
			never := condition.Situation{Reason: v1alpha1.ReasonNeverRun, Message: "no run of this eval has ended"}
			condition.Set(&s.Conditions, e.Generation, v1alpha1.ConditionPassed, metav1.ConditionUnknown, never, now)
		}
		return
	}
	s.LastRun = &v1alpha1.RunResult{Name: run.Name, Digest: run.Status.Digest, Outcome: run.Status.Outcome}
	message := "run " + run.Name
	if summary := run.Status.Summary; summary != nil {
		if summary.Score != nil {
			score := *summary.Score
			s.LastRun.Score = &score
		}
		message += ": " + runtree.Sentence(*summary)
	}
	passed := metav1.ConditionFalse
	switch run.Status.Outcome {
	case v1alpha1.OutcomePassed:
		passed = metav1.ConditionTrue
	case v1alpha1.OutcomeDeferred:
		passed = metav1.ConditionUnknown
	}
	verdict := condition.Situation{Reason: string(run.Status.Outcome), Message: message}
	condition.Set(&s.Conditions, e.Generation, v1alpha1.ConditionPassed, passed, verdict, now)
}
