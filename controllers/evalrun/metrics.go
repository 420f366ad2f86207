package evalrun

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

var (
	finished = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mcptest_evalruns_finished_total",
		Help: "Runs that ended, by outcome: Passed, Failed, Deferred or Error.",
	}, []string{"outcome"})
	duration = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "mcptest_evalrun_duration_seconds",
		Help:    "From the beginning to the end of a run.",
		Buckets: []float64{1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200},
	})
)

func init() { metrics.Registry.MustRegister(finished, duration) }

// observe counts a run that ended.
func observe(run *v1alpha1.EvalRun) {
	finished.WithLabelValues(string(run.Status.Outcome)).Inc()
	if run.Status.StartTime != nil && run.Status.CompletionTime != nil {
		duration.Observe(run.Status.CompletionTime.Sub(run.Status.StartTime.Time).Seconds())
	}
}
