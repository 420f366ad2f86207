package evalrun

import (
	"time"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// timeLeft is how long a run that ended is still kept; false when it is kept for good. At or below 0 its time is over.
func timeLeft(run *v1alpha1.EvalRun, now time.Time) (time.Duration, bool) {
	if run.Spec.TTLSecondsAfterFinished == nil || run.Status.CompletionTime == nil {
		return 0, false
	}
	ttl := time.Duration(*run.Spec.TTLSecondsAfterFinished) * time.Second
	return run.Status.CompletionTime.Add(ttl).Sub(now), true
}
