package collector

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// metrics count what the collector does. No label holds the name of an object.
type metrics struct {
	requests   *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	rejections *prometheus.CounterVec
	judgments  prometheus.Counter
	reports    *prometheus.CounterVec
	conflicts  prometheus.Counter
	exhausted  prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcptest_collector_requests_total", Help: "Requests of runners, by path and status code.",
		}, []string{"path", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mcptest_collector_request_duration_seconds", Help: "How long requests of runners took, by path.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"path"}),
		rejections: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcptest_collector_rejections_total", Help: "Requests that were refused, by reason.",
		}, []string{"reason"}),
		judgments: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mcptest_collector_judgments_kept_total", Help: "Judgments that were kept while their row was being graded.",
		}),
		reports: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcptest_collector_reports_total", Help: "Reports that were written, by the outcome of their row.",
		}, []string{"outcome"}),
		conflicts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mcptest_collector_write_conflicts_total", Help: "Writes of a status that were made again because the object had changed.",
		}),
		exhausted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mcptest_collector_budgets_exhausted_total", Help: "Runs whose maxCost was used up before all of their rows were judged.",
		}),
	}
	if registerer != nil {
		m.requests = register(registerer, m.requests)
		m.duration = register(registerer, m.duration)
		m.rejections = register(registerer, m.rejections)
		m.judgments = register(registerer, m.judgments)
		m.reports = register(registerer, m.reports)
		m.conflicts = register(registerer, m.conflicts)
		m.exhausted = register(registerer, m.exhausted)
	}
	return m
}

// register returns the collector to count with: the one that is registered already, when there is one.
func register[C prometheus.Collector](registerer prometheus.Registerer, collector C) C {
	var already prometheus.AlreadyRegisteredError
	if err := registerer.Register(collector); errors.As(err, &already) {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing
		}
	}
	return collector
}

func (m *metrics) served(path string, status int, took time.Duration) {
	m.requests.WithLabelValues(path, strconv.Itoa(status)).Inc()
	m.duration.WithLabelValues(path).Observe(took.Seconds())
}

func (m *metrics) refused(reason string) { m.rejections.WithLabelValues(reason).Inc() }

func (m *metrics) reported(outcome v1alpha1.Outcome) {
	m.reports.WithLabelValues(string(outcome)).Inc()
}
