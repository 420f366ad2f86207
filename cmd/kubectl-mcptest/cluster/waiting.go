package cluster

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// Waiting says what a run waits for, as its conditions tell it: "RubricNotFound: ..."; empty when it waits for nothing
// but its judges.
func Waiting(run *v1alpha1.EvalRun) string {
	if c := Stalled(run); c != nil {
		return c.Reason + ": " + c.Message
	}
	ready := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionFalse {
		return ""
	}
	return ready.Reason + ": " + ready.Message
}

// Stalled is the condition by which a run cannot go on until somebody changes something; nil when it can.
func Stalled(run *v1alpha1.EvalRun) *metav1.Condition {
	c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionStalled)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return c
}
