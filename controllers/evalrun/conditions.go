package evalrun

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/condition"
)

// situation is where a run that has not ended stands: all of its conditions follow from it.
type situation = condition.Situation

// report writes where a run stands into its status. runtree.Conclude does so at its end.
func report(run *v1alpha1.EvalRun, s situation, now time.Time) {
	run.Status.ObservedGeneration = run.Generation
	condition.Set(&run.Status.Conditions, run.Generation, v1alpha1.ConditionComplete, metav1.ConditionFalse, s, now)
	condition.Apply(&run.Status.Conditions, run.Generation, s, now)
}
