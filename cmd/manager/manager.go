package main

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector"
	"github.com/mcptest/mcptest-operator/controllers/eval"
	"github.com/mcptest/mcptest-operator/controllers/evalrun"
	"github.com/mcptest/mcptest-operator/controllers/rubric"
	"github.com/mcptest/mcptest-operator/engine/judge"
)

const (
	// unlimited: no request waits here. A run makes a child for each of its rows, and the collector reads and writes each
	// of them once: any rate would be the speed of a big run. What bounds the manager is how many requests it has under
	// way (16 children a reconcile, 128 runners), and the API server protects itself by priority and fairness.
	unlimited = -1
	// shutdownTimeout is above the time in which the collector ends the requests under way.
	shutdownTimeout = 30 * time.Second
	leaderID        = "mcptest-operator.eval.mcptest.dev"
	// reporter is who the operator's events come from.
	reporter = "mcptest-operator"
)

// What the manager may do in its own namespace, and in asking who calls, is in config/rbac and in the chart.

// newManager puts the operator together. Nothing runs until the manager is started.
func newManager(ctx context.Context, config *rest.Config, o *options) (manager.Manager, error) {
	prices, err := o.prices()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = unlimited
	config.UserAgent = reporter + "/" + version
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cacheOptions(o.watchNamespaces),
		Client:                        client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
		Metrics:                       metricsOptions(o.metricsBind),
		HealthProbeBindAddress:        o.probeBind,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              leaderID,
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       ptr.To(shutdownTimeout),
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	serving, err := addCollector(ctx, mgr, o, prices)
	if err != nil {
		return nil, err
	}
	if err := addReconcilers(ctx, mgr, o, prices, serving); err != nil {
		return nil, err
	}
	return mgr, addChecks(mgr, serving)
}

// cacheOptions: of Jobs and pods only those of runs are kept, and of nothing the managed fields.
func cacheOptions(namespaces []string) cache.Options {
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy})}
	o := cache.Options{
		ByObject:         map[client.Object]cache.ByObject{&batchv1.Job{}: ours, &corev1.Pod{}: ours},
		DefaultTransform: cache.TransformStripManagedFields(),
	}
	for _, namespace := range namespaces {
		if o.DefaultNamespaces == nil {
			o.DefaultNamespaces = make(map[string]cache.Config)
		}
		o.DefaultNamespaces[namespace] = cache.Config{}
	}
	return o
}

// metricsOptions: metrics are served over HTTPS to those who may read them, as their token and RBAC say.
func metricsOptions(bind string) metricsserver.Options {
	o := metricsserver.Options{BindAddress: bind}
	if bind != "0" {
		o.SecureServing = true
		o.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return o
}

// addCollector adds the collector, which every replica serves, and makes its certificate.
func addCollector(ctx context.Context, mgr manager.Manager, o *options, prices judge.Prices) (*collector.Collector, error) {
	// What the collector reads is in the cache before it serves: the manager starts caches first.
	for _, object := range []client.Object{&v1alpha1.EvalRun{}, &batchv1.Job{}, &corev1.Pod{}} {
		if _, err := mgr.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return nil, fmt.Errorf("watching %T, are the CRDs installed?: %w", object, err)
		}
	}
	certificate, err := collector.EnsureCertificate(ctx, mgr.GetClient(), o.namespace, o.collectorSecret, o.collectorHosts(), time.Now())
	if err != nil {
		return nil, fmt.Errorf("making the collector's certificate: %w", err)
	}
	serving := collector.New(collector.Options{
		Client:      mgr.GetClient(),
		Reader:      mgr.GetAPIReader(),
		BindAddress: o.collectorBind,
		Certificate: certificate,
		Prices:      prices,
		Events:      mgr.GetEventRecorder(reporter),
		Registerer:  metrics.Registry,
	})
	if err := mgr.Add(serving); err != nil {
		return nil, fmt.Errorf("adding the collector: %w", err)
	}
	return serving, nil
}

// addReconcilers adds the reconcilers, which the leader runs.
func addReconcilers(ctx context.Context, mgr manager.Manager, o *options, prices judge.Prices, serving *collector.Collector) error {
	model := v1alpha1.ModelName(o.defaultModel)
	runs := &evalrun.Reconciler{
		Client:            mgr.GetClient(),
		Live:              mgr.GetAPIReader(),
		Events:            mgr.GetEventRecorder(reporter),
		Clock:             clock.RealClock{},
		DefaultJudgeModel: model,
		Prices:            judge.DefaultPrices().With(prices),
		Runner: evalrun.Runner{
			Image: o.runnerImage, PullPolicy: o.runnerPull,
			CollectorURL: o.collectorURL, CollectorCA: serving.CA,
		},
	}
	if err := runs.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	evals := &eval.Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}, DefaultJudgeModel: model}
	if err := evals.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	return (&rubric.Reconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}}).SetupWithManager(mgr)
}

// addChecks: the process is alive while it answers, and ready while the collector serves, which is after the caches are
// filled.
func addChecks(mgr manager.Manager, serving *collector.Collector) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the liveness check: %w", err)
	}
	if err := mgr.AddReadyzCheck("collector", serving.ReadyCheck); err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	return nil
}
