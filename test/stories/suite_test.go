// Package stories tells what users see, on a real cluster: kubectl applies manifests, the operator's own binary runs
// as a process, Jobs run the runner's binary in pods, and the plugin's binary prints the report. Only the judge is a
// stand-in. `make test` starts the cluster and runs this package in it.
package stories

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/hack/fakejudge"
	"github.com/mcptest/mcptest-operator/test/local"
)

// patience is how long anything in a cluster may take before a story fails.
const patience = 2 * time.Minute

var (
	repo       string
	clusterDir string
	api        client.WithWatch
	operator   *local.Manager
)

func TestStories(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "stories")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	var err error
	repo, err = filepath.Abs("../..")
	Expect(err).NotTo(HaveOccurred())
	clusterDir = os.Getenv("CLUSTER_DIR")
	Expect(clusterDir).NotTo(BeEmpty(), "these stories need a cluster with a process node: run `make test`, or `make stories`")

	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	api, err = client.NewWithWatch(ctrl.GetConfigOrDie(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())

	Expect(local.InstallCRDs(ctx, repo)).To(Succeed())
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: local.SystemNamespace}}
	Expect(client.IgnoreAlreadyExists(api.Create(ctx, system))).To(Succeed())
	operator, err = local.NewManager(repo, clusterDir)
	Expect(err).NotTo(HaveOccurred())
	Expect(operator.Start(ctx)).To(Succeed())
})

var _ = AfterSuite(func() {
	if operator != nil {
		Expect(operator.Kill()).To(Succeed())
	}
})

// must returns the output of a command that has to succeed.
func must(r result) string {
	GinkgoHelper()
	Expect(r.code).To(BeZero(), "%s\n%s%s", r.command, r.stdout, r.stderr)
	return r.stdout
}

// bench is what one story works with: a namespace of its own that enforces restricted pods, and a judge of its own.
type bench struct {
	namespace string
	judge     *local.Judge
}

// newBench makes a namespace with a Secret whose keys lead to a stand-in judge.
func newBench(ctx SpecContext, rules string) *bench {
	GinkgoHelper()
	b := newBenchWithoutKeys(ctx, rules)
	b.giveKeys(ctx, v1alpha1.DefaultJudgeSecret)
	return b
}

func newBenchWithoutKeys(ctx SpecContext, rules string) *bench {
	GinkgoHelper()
	parsed, err := fakejudge.ParseRules([]byte(rules))
	Expect(err).NotTo(HaveOccurred())
	judge, err := local.StartJudge(fakejudge.Options{Rules: parsed, Keys: []string{theKey}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(judge.Stop)
	b := &bench{judge: judge}

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "story-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	Expect(api.Create(ctx, ns)).To(Succeed())
	b.namespace = ns.Name
	DeferCleanup(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			b.tell(ctx)
		}
		Expect(client.IgnoreNotFound(api.Delete(ctx, ns))).To(Succeed())
	})
	return b
}

// theKey is what stands for an API key in these stories. It must never show up anywhere.
const theKey = "sk-stories-8f3b1c0aa1"

func (b *bench) giveKeys(ctx context.Context, secret string) {
	GinkgoHelper()
	Expect(api.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: secret},
		StringData: b.judge.Keys(theKey),
	})).To(Succeed())
}

// tell prints what a failed story left behind.
func (b *bench) tell(ctx context.Context) {
	for _, args := range [][]string{
		{"get", "mcptest,jobs,pods", "-o", "wide"},
		{"describe", "er"},
		{"get", "er", "-o", "yaml"},
	} {
		r := kubectl(ctx, append(args, "-n", b.namespace)...)
		GinkgoWriter.Println(r.command, "\n", r.stdout, r.stderr)
	}
	GinkgoWriter.Println("manager:\n", operator.Log())
}

// apply applies manifests as a user would.
func (b *bench) apply(ctx context.Context, manifests string) {
	GinkgoHelper()
	must(kubectlWith(ctx, strings.NewReader(manifests), "apply", "-n", b.namespace, "-f", "-"))
}

// run reads a run; its zero value when there is none yet.
func (b *bench) run(ctx context.Context, name string) *v1alpha1.EvalRun {
	run := &v1alpha1.EvalRun{}
	if err := api.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: name}, run); client.IgnoreNotFound(err) != nil {
		GinkgoWriter.Println("get run:", err)
	}
	return run
}

// outcome polls the outcome of a run.
func (b *bench) outcome(ctx context.Context, name string) func() v1alpha1.Outcome {
	return func() v1alpha1.Outcome { return b.run(ctx, name).Status.Outcome }
}

// condition polls a condition of a run, as "Status Reason: message".
func (b *bench) condition(ctx context.Context, name, kind string) func() string {
	return func() string {
		for _, c := range b.run(ctx, name).Status.Conditions {
			if c.Type == kind {
				return string(c.Status) + " " + c.Reason + ": " + c.Message
			}
		}
		return ""
	}
}
