package collector

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
)

// controlPlane is a real API server, started by the first test that needs it.
var controlPlane struct {
	once   sync.Once
	env    *envtest.Environment
	config *rest.Config
	err    error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if controlPlane.env != nil {
		if err := controlPlane.env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the control plane:", err)
		}
	}
	os.Exit(code)
}

func apiServer(t *testing.T) *rest.Config {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" && os.Getenv("USE_EXISTING_CLUSTER") == "" {
		t.Fatal("this test needs an API server: run make test, which builds one and sets KUBEBUILDER_ASSETS, or set USE_EXISTING_CLUSTER=true")
	}
	controlPlane.once.Do(func() {
		controlPlane.env = &envtest.Environment{
			CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
			ErrorIfCRDPathMissing: true,
		}
		controlPlane.config, controlPlane.err = controlPlane.env.Start()
	})
	if controlPlane.err != nil {
		t.Fatal(controlPlane.err)
	}
	return controlPlane.config
}

// cluster is a namespace of a real API server with a collector that serves it.
type cluster struct {
	t         *testing.T
	ctx       context.Context
	live      client.Client
	namespace string
	url       string
	ca        []byte
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	config := apiServer(t)
	ctx, cancel := context.WithCancel(context.Background())
	live, err := client.New(config, client.Options{Scheme: newScheme()})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, ctx: ctx, live: live}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "collector-"}}
	c.create(ns)
	c.namespace = ns.Name
	c.account()

	cert, err := EnsureCertificate(ctx, live, c.namespace, "collector", []string{"127.0.0.1"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c.ca = cert.CAPEM
	ours := labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy})
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: newScheme(), Logger: logr.Discard(),
		Metrics: server.Options{BindAddress: "0"},
		Cache:   crcache.Options{ByObject: map[client.Object]crcache.ByObject{&corev1.Pod{}: {Label: ours}, &batchv1.Job{}: {Label: ours}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	log := logr.Discard()
	collector := New(Options{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), BindAddress: "127.0.0.1:0", Certificate: cert, Log: &log})
	if err := mgr.Add(collector); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		if err := live.Delete(context.Background(), ns); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ended: %v", err)
		}
	})
	wait, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	address, err := collector.Address(wait)
	if err != nil {
		t.Fatal(err)
	}
	c.url = "https://" + address
	return c
}

// account makes the service account that a controller makes in a whole cluster.
func (c *cluster) account() {
	c.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "default"}}
	if err := c.live.Create(c.ctx, account); err != nil && !apierrors.IsAlreadyExists(err) {
		c.t.Fatal(err)
	}
}

func (c *cluster) create(object client.Object) {
	c.t.Helper()
	if err := c.live.Create(c.ctx, object); err != nil {
		c.t.Fatal(err)
	}
}

func ownedBy(t *testing.T, owner client.Object) []metav1.OwnerReference {
	t.Helper()
	gvk, err := apiutil.GVKForObject(owner, newScheme())
	if err != nil {
		t.Fatal(err)
	}
	return controller(gvk.Kind, gvk.GroupVersion().String(), owner.GetName(), string(owner.GetUID()))
}

// start makes a run of rows, its Job of slices, and a pod for each slice.
func (c *cluster) start(name string, rows, completions int) []*corev1.Pod {
	c.t.Helper()
	return c.startRun(rootRun(name), rows, completions)
}

// startLimited is start for a run with a maxCost.
func (c *cluster) startLimited(name string, maxCost float64, rows, completions int) []*corev1.Pod {
	c.t.Helper()
	root := rootRun(name)
	root.Spec.MaxCost = &maxCost
	return c.startRun(root, rows, completions)
}

func (c *cluster) startRun(root *v1alpha1.EvalRun, rows, completions int) []*corev1.Pod {
	c.t.Helper()
	name := root.Name
	root.Namespace, root.UID = c.namespace, ""
	c.create(root)
	for n := range rows {
		child := childRun(name, n, rows, evalOf("clear", "short"))
		child.Namespace, child.UID, child.OwnerReferences = c.namespace, "", ownedBy(c.t, root)
		c.create(child)
	}
	ours := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}
	template := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: "default",
		Containers: []corev1.Container{{Name: "runner", Image: "runner"}},
	}
	indexed := batchv1.IndexedCompletion
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name, Labels: ours, OwnerReferences: ownedBy(c.t, root)},
		Spec: batchv1.JobSpec{
			Completions: new(int32(completions)), Parallelism: new(int32(completions)), CompletionMode: &indexed,
			Suspend:  new(true), // its pods are made by hand here
			Template: corev1.PodTemplateSpec{Spec: template},
		},
	}
	c.create(job)
	var pods []*corev1.Pod
	for index := range completions {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: c.namespace, Name: fmt.Sprintf("%s-pod-%d", name, index), OwnerReferences: ownedBy(c.t, job),
				Labels:      map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
				Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: fmt.Sprint(index)},
			},
			Spec: template,
		}
		c.create(pod)
		pods = append(pods, pod)
	}
	return pods
}

// token asks the API server for a token; of a pod when there is one.
func (c *cluster) token(audience string, pod *corev1.Pod) string {
	c.t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{audience}, ExpirationSeconds: new(int64(3600)),
	}}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "default"}}
	if err := c.live.SubResource("token").Create(c.ctx, account, request); err != nil {
		c.t.Fatal(err)
	}
	return request.Status.Token
}

func (c *cluster) as(token string) *wire.Client {
	c.t.Helper()
	cl, err := wire.NewClient(wire.ClientOptions{URL: c.url, CA: c.ca, TokenFile: tokenFile(c.t, token)})
	if err != nil {
		c.t.Fatal(err)
	}
	return cl
}

func (c *cluster) pod(pod *corev1.Pod) *wire.Client { return c.as(c.token(wire.Audience, pod)) }

func (c *cluster) run(name string) *v1alpha1.EvalRun {
	c.t.Helper()
	run, err := c.read(name)
	if err != nil {
		c.t.Fatal(err)
	}
	return run
}

// read is run for goroutines, which may not end a test.
func (c *cluster) read(name string) (*v1alpha1.EvalRun, error) {
	run := &v1alpha1.EvalRun{}
	return run, c.live.Get(c.ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, run)
}

// eventually asks until the collector's caches are there.
func (c *cluster) eventually(ask func() error) {
	c.t.Helper()
	if err := c.settled(ask); err != nil {
		c.t.Fatal(err)
	}
}

// settled asks until the answer is not a temporary one, and returns it.
func (c *cluster) settled(ask func() error) error {
	var err error
	c.poll(func() bool { err = ask(); return !wire.Temporary(err) })
	return err
}

func (c *cluster) refused(err error, status int) {
	c.t.Helper()
	if wire.Status(err) != status {
		c.t.Errorf("err = %v, want %d", err, status)
	}
}

func TestARowIsGradedThroughARealAPIServer(t *testing.T) {
	c := newCluster(t)
	pods := c.start("run", 3, 2)
	first, second := c.pod(pods[0]), c.pod(pods[1])
	var slice wire.Slice
	c.eventually(func() (err error) { slice, err = first.Slice(c.ctx); return err })
	if len(slice.Leaves) == 0 || slice.Leaves[0].Name != "run-0" {
		t.Fatalf("slice = %+v", slice)
	}
	good := findingsOf(answered("clear", 0.9, "ok"), answered("short", 0.7, "ok"))
	if err := first.PostJudgments(c.ctx, wire.Judgments{Leaves: []wire.LeafJudgments{{Name: "run-0", Judgments: good.Judgments[:1]}}}); err != nil {
		t.Fatal(err)
	}
	leaf, err := first.Leaf(c.ctx, "run-0")
	if err != nil || len(leaf.Judgments) != 1 || leaf.Judgments[0].Question != "clear" {
		t.Errorf("a retried pod is told %+v, %v", leaf.Judgments, err)
	}
	// Another pod of the same run, with a good token of its own, may not touch this row.
	_, err = second.PostFindings(c.ctx, "run-0", good)
	c.refused(err, http.StatusForbidden)
	_, err = second.Leaf(c.ctx, "run-0")
	c.refused(err, http.StatusForbidden)

	receipt, err := first.PostFindings(c.ctx, "run-0", good)
	if err != nil || receipt.Outcome != v1alpha1.OutcomePassed || *receipt.Score != 0.8 {
		t.Fatalf("receipt = %+v, %v", receipt, err)
	}
	run := c.run("run-0")
	if run.Status.Report == nil || !runtree.IsComplete(run) || run.Status.Judgments != nil || run.Status.Summary.Passed != 1 {
		t.Errorf("status = %+v", run.Status)
	}
	// The same again is accepted, another report is not.
	again, err := first.PostFindings(c.ctx, "run-0", good)
	if err != nil || *again.Score != 0.8 {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	_, err = first.PostFindings(c.ctx, "run-0", findingsOf(answered("clear", 0.1, "no"), answered("short", 0.1, "no")))
	c.refused(err, http.StatusConflict)
	if after := c.run("run-0"); after.ResourceVersion != run.ResourceVersion {
		t.Error("the row was written again")
	}
}

func TestTokensThatARealAPIServerDoesNotVouchFor(t *testing.T) {
	c := newCluster(t)
	pods := c.start("run", 2, 1)
	victim := c.start("victim", 2, 1)
	good := findingsOf(answered("clear", 1, "forged"), answered("short", 1, "forged"))
	own := c.pod(pods[0])
	c.eventually(func() error { _, err := own.Slice(c.ctx); return err })

	for name, token := range map[string]string{
		"another audience":          c.token("https://kubernetes.default.svc", pods[0]),
		"a token bound to no pod":   c.token(wire.Audience, nil),
		"no token of this cluster":  "eyJhbGciOiJub25lIn0.e30.",
		"another audience, unbound": c.token("vault", nil),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.as(token).Slice(c.ctx)
			c.refused(err, http.StatusUnauthorized)
		})
	}
	t.Run("a row of another run", func(t *testing.T) {
		_, err := own.PostFindings(c.ctx, "victim-0", good)
		c.refused(err, http.StatusForbidden)
		err = own.PostJudgments(c.ctx, wire.Judgments{Leaves: []wire.LeafJudgments{{Name: "victim-0", Judgments: good.Judgments}}})
		c.refused(err, http.StatusForbidden)
		if s := c.run("victim-0").Status; s.Report != nil || s.Judgments != nil {
			t.Errorf("the row was written: %+v", s)
		}
	})
	t.Run("a pod that belongs to nothing", func(t *testing.T) {
		stray := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "stray"}, Spec: *victim[0].Spec.DeepCopy()}
		c.create(stray)
		_, err := c.pod(stray).Slice(c.ctx)
		c.refused(err, http.StatusForbidden)
	})
	t.Run("a pod that ended", func(t *testing.T) {
		ended := c.pod(victim[0])
		c.eventually(func() error { _, err := ended.Slice(c.ctx); return err })
		victim[0].Status.Phase = corev1.PodFailed
		if err := c.live.Status().Update(c.ctx, victim[0]); err != nil {
			t.Fatal(err)
		}
		c.until(func() error { _, err := ended.Slice(c.ctx); return err }, http.StatusForbidden)
	})
	t.Run("a pod that was deleted, and one of the same name", func(t *testing.T) {
		if err := c.live.Delete(c.ctx, pods[0], client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
		// At once for the API server; the collector remembers the review, and asks for the pod each time.
		c.until(func() error { _, err := own.Slice(c.ctx); return err }, http.StatusUnauthorized)
		anew := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: c.namespace, Name: pods[0].Name, Labels: pods[0].Labels, Annotations: pods[0].Annotations, OwnerReferences: pods[0].OwnerReferences,
		}, Spec: pods[0].Spec}
		c.create(anew)
		_, err := own.Slice(c.ctx)
		c.refused(err, http.StatusUnauthorized)
		c.eventually(func() error { _, err := c.pod(anew).Slice(c.ctx); return err })
	})
}

// until asks until the answer is this status.
func (c *cluster) until(ask func() error, status int) {
	c.t.Helper()
	var err error
	if !c.poll(func() bool { err = ask(); return wire.Status(err) == status }) {
		c.t.Fatalf("the answer never became %d; the last one was %v", status, err)
	}
}

// poll asks until done says so, for at most 20 s, and reports whether it did.
func (c *cluster) poll(done func() bool) bool {
	return wait.PollUntilContextTimeout(c.ctx, 50*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		return done(), nil
	}) == nil
}

func TestManyWritersOfOneRowLoseNothing(t *testing.T) {
	c := newCluster(t)
	pods := c.start("run", 1, 1)
	own := c.pod(pods[0])
	c.eventually(func() error { _, err := own.Slice(c.ctx); return err })
	var all sync.WaitGroup
	all.Go(func() { // a reconciler that writes the same status all the time
		for n := range 20 {
			run, err := c.read("run-0")
			if err != nil {
				t.Error(err)
				return
			}
			from := run.DeepCopy()
			run.Status.ProjectedCalls = int32(n + 1)
			if err := c.live.Status().Patch(c.ctx, run, client.MergeFrom(from)); err != nil {
				t.Error(err)
			}
		}
	})
	for _, question := range []string{"clear", "short"} {
		all.Go(func() {
			batch := wire.Judgments{Leaves: []wire.LeafJudgments{{Name: "run-0", Judgments: []v1alpha1.Judgment{answered(question, 0.5, "ok")}}}}
			if err := c.settled(func() error { return own.PostJudgments(c.ctx, batch) }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	s := c.run("run-0").Status
	if len(s.Judgments) != 2 || s.ProjectedCalls != 20 {
		t.Errorf("%d judgments and %d projected calls, want 2 and 20", len(s.Judgments), s.ProjectedCalls)
	}
}

// A condition takes 32768 bytes: words of that length would make the whole status invalid, and the row would never end.
func TestARowEndsWhateverTheLengthOfItsError(t *testing.T) {
	c := newCluster(t)
	own := c.pod(c.start("run", 1, 1)[0])
	c.eventually(func() error { _, err := own.Slice(c.ctx); return err })
	long := findingsOf(unanswered("clear", strings.Repeat("no ", 15000)), unanswered("short", "no"))
	receipt, err := own.PostFindings(c.ctx, "run-0", long)
	if err != nil || receipt.Outcome != v1alpha1.OutcomeError {
		t.Errorf("receipt = %+v, %v; want Error", receipt, err)
	}
}

// The reconciler and the pods write to one object. Nobody may lose what the other wrote, and no money may get lost.
func TestS42ClaimsAndAReconcilerWriteTheSameRun(t *testing.T) {
	const pods = 4
	c := newCluster(t)
	var all sync.WaitGroup
	for i, pod := range c.startLimited("run", 1, pods, pods) {
		own := c.pod(pod)
		c.eventually(func() error { _, err := own.Slice(c.ctx); return err })
		all.Go(func() {
			has, used := 0.0, 0.0
			for range 10 {
				claim := wire.Claim{Used: used, Want: has + 0.02}
				err := c.settled(func() error {
					allowance, err := own.Budget(c.ctx, claim)
					if err == nil {
						has = allowance.Granted
					}
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
				used = has
			}
			final := wire.Claim{Used: used - 0.01, Want: used - 0.01, Final: true}
			if err := c.settled(func() error { _, err := own.Budget(c.ctx, final); return err }); err != nil {
				t.Errorf("pod %d: %v", i, err)
			}
		})
	}
	all.Go(func() { // as the reconciler writes: with a lock, and again when it lost
		for n := range 20 {
			c.poll(func() bool {
				run, err := c.read("run")
				if err != nil {
					return false
				}
				from := run.DeepCopy()
				run.Status.ProjectedCalls = int32(n + 1)
				return c.live.Status().Patch(c.ctx, run, client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{})) == nil
			})
		}
	})
	all.Wait()
	s := c.run("run").Status
	if s.ProjectedCalls != 20 || s.Budget == nil || len(s.Budget.Accounts) != pods || s.Budget.Exhausted {
		t.Fatalf("%d projected calls, budget %+v; want 20, and an account a pod", s.ProjectedCalls, s.Budget)
	}
	if got, want := nanoOf(s.Budget.TakenUSD), nanoOf(pods*(10*0.02-0.01)); got != want {
		t.Errorf("%v taken, want %v", got, want)
	}
}
