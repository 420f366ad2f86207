package evalrun

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/condition"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
)

// event is one line of the story that `kubectl describe` tells.
type event struct {
	kind   string // Normal or Warning
	reason string
	action string
	note   string
}

// announce sends the events of a status that was written, and counts a run that ended.
func (r *Reconciler) announce(before, after *v1alpha1.EvalRun) {
	for _, e := range story(before, after) {
		r.Events.Eventf(after, nil, e.kind, e.reason, e.action, "%s", condition.Clip(e.note, maxNote))
	}
	if runtree.IsComplete(after) && !runtree.IsComplete(before) {
		observe(after)
	}
}

// story tells what happened between two statuses of a run. No text of a candidate is in it.
func story(before, after *v1alpha1.EvalRun) []event {
	var events []event
	normal := func(reason, action, format string, args ...any) {
		events = append(events, event{corev1.EventTypeNormal, reason, action, fmt.Sprintf(format, args...)})
	}
	was, is := &before.Status, &after.Status
	rows := int32(0)
	if is.Summary != nil {
		rows = is.Summary.Rows
	}
	if was.Digest == "" && is.Digest != "" {
		normal("Resolved", "Resolve", "%s, %s at most", count(rows, "row"), count(is.ProjectedCalls, "judge call"))
	}
	if was.Job == "" && is.Job != "" {
		if rows > 1 {
			normal("ChildrenCreated", "Expand", "%s, one a row", count(rows, "child run"))
		}
		normal("JobCreated", "Start", "Job %s grades %s", is.Job, count(rows, "row"))
	}
	if runtree.IsComplete(after) {
		if !runtree.IsComplete(before) {
			events = append(events, ending(after))
		}
		return events
	}
	now, then := ready(after), ready(before)
	if now == nil || then != nil && then.Reason == now.Reason {
		return events
	}
	held := then != nil && then.Reason == v1alpha1.ReasonSuspended
	blocked := then != nil && then.Status == metav1.ConditionFalse
	switch {
	case now.Status == metav1.ConditionFalse:
		events = append(events, event{corev1.EventTypeWarning, now.Reason, "Reconcile", now.Message})
	case now.Reason == v1alpha1.ReasonSuspended:
		normal(now.Reason, "Suspend", "%s", now.Message)
	case held:
		normal("Resumed", "Resume", "%s", now.Message)
	case blocked && now.Reason == v1alpha1.ReasonRunning:
		normal(now.Reason, "Reconcile", "%s", now.Message)
	}
	return events
}

func ending(run *v1alpha1.EvalRun) event {
	e := event{kind: corev1.EventTypeNormal, reason: string(run.Status.Outcome), action: "Finish"}
	if o := run.Status.Outcome; o == v1alpha1.OutcomeFailed || o == v1alpha1.OutcomeError {
		e.kind = corev1.EventTypeWarning
	}
	if c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionComplete); c != nil {
		e.note = c.Message
	}
	return e
}

func ready(run *v1alpha1.EvalRun) *metav1.Condition {
	return meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionReady)
}

// count writes a number of things: "1 row", "4 rows".
func count(n int32, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
