// Package controllers_test tells the stories of the reconcilers against a real API server. There is no Job controller, no
// kubelet and no collector: the stories play them by writing statuses.
package controllers_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/eval"
	"github.com/mcptest/mcptest-operator/controllers/evalrun"
	"github.com/mcptest/mcptest-operator/controllers/rubric"
	"github.com/mcptest/mcptest-operator/engine/judge"
)

// Deadlines of what the stories wait for.
const (
	soon    = 20 * time.Second
	between = 50 * time.Millisecond
)

var (
	env    *envtest.Environment
	api    client.Client // reads live
	mgr    manager.Manager
	runs   *evalrun.Reconciler
	stop   context.CancelFunc
	exited = make(chan error, 1)
	now    = &shiftedClock{}
)

func TestControllers(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" && os.Getenv("USE_EXISTING_CLUSTER") != "true" && os.Getenv("USE_EXISTING_CLUSTER") != "1" {
		t.Fatal("these stories need an API server: run `make test`, or set KUBEBUILDER_ASSETS, or USE_EXISTING_CLUSTER=1 for one without a Job controller")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(soon)
	SetDefaultEventuallyPollingInterval(between)
	SetDefaultConsistentlyDuration(500 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(between)
	RunSpecs(t, "controllers")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	if os.Getenv("USE_EXISTING_CLUSTER") == "1" { // envtest knows "true" only
		Expect(os.Setenv("USE_EXISTING_CLUSTER", "true")).To(Succeed())
	}
	ctrl.SetLogger(GinkgoLogr)
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	env = &envtest.Environment{
		Scheme:                scheme,
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	config, err := env.Start()
	Expect(err).NotTo(HaveOccurred())
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 200, 400
	api, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	startManager(config, scheme)
}, NodeTimeout(time.Minute))

var _ = AfterSuite(func() {
	if stop != nil {
		stop()
		Eventually(exited).Should(Receive(BeNil()))
	}
	if env != nil {
		Expect(env.Stop()).To(Succeed())
	}
})

func startManager(config *rest.Config, scheme *runtime.Scheme) {
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy})}
	var err error
	mgr, err = ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{ByObject: map[client.Object]cache.ByObject{&batchv1.Job{}: ours, &corev1.Pod{}: ours}},
		Client:  client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
	})
	Expect(err).NotTo(HaveOccurred())
	var ctx context.Context
	ctx, stop = context.WithCancel(context.Background())
	runs = newRunReconciler()
	Expect(runs.SetupWithManager(ctx, mgr)).To(Succeed())
	Expect((&eval.Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: now}).SetupWithManager(ctx, mgr)).To(Succeed())
	Expect((&rubric.Reconciler{Client: mgr.GetClient(), Clock: now}).SetupWithManager(mgr)).To(Succeed())
	go func() { exited <- mgr.Start(ctx) }()
	Expect(mgr.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
}

// newRunReconciler is a reconciler that remembers nothing, as after a restart.
func newRunReconciler() *evalrun.Reconciler {
	return &evalrun.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("mcptest-operator"), Clock: now,
		Prices: judge.DefaultPrices(),
		Runner: evalrun.Runner{
			Image: "runner:test", CollectorURL: "https://collector.test:8443", CollectorCA: func() []byte { return []byte("PEM") },
		},
	}
}

// shiftedClock is the machine's clock, moved by the stories.
type shiftedClock struct{ shift atomic.Int64 }

var _ clock.PassiveClock = &shiftedClock{}

func (c *shiftedClock) Now() time.Time                  { return time.Now().Add(time.Duration(c.shift.Load())) }
func (c *shiftedClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
