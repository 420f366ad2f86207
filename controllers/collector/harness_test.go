package collector

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
)

const namespace = "team"

var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// world is an API server that is played, with a collector in front of it.
type world struct {
	t         testing.TB
	live      client.WithWatch
	cached    *cache
	collector *Collector
	registry  *prometheus.Registry
	handler   http.Handler

	mu      sync.Mutex
	now     time.Time
	tokens  map[string]authenticationv1.TokenReviewStatus
	reviews int
	writes  int
	// beforeWrite is called before each write of a status; an error is the answer to it.
	beforeWrite func(n int) error
	reviewErr   error
}

// cache is a client whose reads can be made to lag: what is hidden is not found, and what is old is returned as it was.
type cache struct {
	client.WithWatch
	mu     sync.Mutex
	hidden map[string]bool
	old    map[string]client.Object
}

func (c *cache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	c.mu.Lock()
	hidden, old := c.hidden[key.Name], c.old[key.Name]
	c.mu.Unlock()
	if hidden {
		return c.WithWatch.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: "no-such-object"}, obj, opts...)
	}
	if run, ok := obj.(*v1alpha1.EvalRun); ok && old != nil {
		old.(*v1alpha1.EvalRun).DeepCopyInto(run)
		return nil
	}
	return c.WithWatch.Get(ctx, key, obj, opts...)
}

func (c *cache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := c.WithWatch.List(ctx, list, opts...); err != nil {
		return err
	}
	if runs, ok := list.(*v1alpha1.EvalRunList); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		var seen []v1alpha1.EvalRun
		for _, run := range runs.Items {
			if !c.hidden[run.Name] {
				seen = append(seen, run)
			}
		}
		runs.Items = seen
	}
	return nil
}

func (c *cache) hide(name string) { c.mu.Lock(); c.hidden[name] = true; c.mu.Unlock() }
func (c *cache) show(name string) { c.mu.Lock(); delete(c.hidden, name); c.mu.Unlock() }
func (c *cache) keepOld(o *v1alpha1.EvalRun) {
	c.mu.Lock()
	c.old[o.Name] = o.DeepCopy()
	c.mu.Unlock()
}

func newWorld(t testing.TB, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, now: epoch, tokens: map[string]authenticationv1.TokenReviewStatus{}, registry: prometheus.NewRegistry()}
	w.live = fake.NewClientBuilder().WithScheme(newScheme()).WithStatusSubresource(&v1alpha1.EvalRun{}).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				if review, ok := obj.(*authenticationv1.TokenReview); ok {
					return w.review(review)
				}
				return c.Create(ctx, obj, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				w.mu.Lock()
				w.writes++
				n, before := w.writes, w.beforeWrite
				w.mu.Unlock()
				if before != nil {
					if err := before(n); err != nil {
						return err
					}
				}
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		}).Build()
	w.cached = &cache{WithWatch: w.live, hidden: map[string]bool{}, old: map[string]client.Object{}}
	log := logr.Discard()
	w.collector = New(Options{Client: w.cached, Reader: w.live, Now: w.clock, Registerer: w.registry, Log: &log})
	w.handler = w.collector.Handler()
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) review(review *authenticationv1.TokenReview) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reviews++
	if w.reviewErr != nil {
		return w.reviewErr
	}
	if len(review.Spec.Audiences) != 1 || review.Spec.Audiences[0] != wire.Audience {
		w.t.Errorf("a token was reviewed for %v", review.Spec.Audiences)
	}
	review.Status = w.tokens[review.Spec.Token]
	return nil
}

// bound is what the API server says of a good token of a pod.
func bound(pod string) authenticationv1.TokenReviewStatus {
	return authenticationv1.TokenReviewStatus{
		Authenticated: true,
		Audiences:     []string{wire.Audience},
		User: authenticationv1.UserInfo{
			Username: "system:serviceaccount:" + namespace + ":default",
			Extra: map[string]authenticationv1.ExtraValue{
				extraPodName: {pod}, extraPodUID: {"uid-" + pod},
			},
		},
	}
}

type answer struct {
	code    int
	header  http.Header
	body    []byte
	problem string
}

func (a answer) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("answer %d %s: %v", a.code, a.body, err)
	}
}

// ask sends a request with the token of a pod.
func (w *world) ask(token, method, path string, body any) answer {
	w.t.Helper()
	var payload bytes.Buffer
	switch b := body.(type) {
	case nil:
	case string:
		payload.WriteString(b)
	default:
		if err := json.NewEncoder(&payload).Encode(b); err != nil {
			w.t.Fatal(err)
		}
	}
	r := httptest.NewRequest(method, path, &payload)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, r)
	a := answer{code: recorder.Code, header: recorder.Header(), body: recorder.Body.Bytes()}
	var problem wire.Problem
	if a.code != http.StatusOK && json.Unmarshal(a.body, &problem) == nil {
		a.problem = problem.Message
	}
	return a
}

func (w *world) postJudgments(token, leaf string, judgments ...v1alpha1.Judgment) answer {
	w.t.Helper()
	return w.ask(token, http.MethodPost, "/v1/judgments", wire.Judgments{Leaves: []wire.LeafJudgments{{Name: leaf, Judgments: judgments}}})
}

func (w *world) postFindings(token, leaf string, f v1alpha1.Findings) answer {
	w.t.Helper()
	return w.ask(token, http.MethodPost, "/v1/leaves/"+leaf+"/findings", f)
}

func (w *world) run(name string) *v1alpha1.EvalRun {
	w.t.Helper()
	run := &v1alpha1.EvalRun{}
	if err := w.live.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, run); err != nil {
		w.t.Fatal(err)
	}
	return run
}

// updateStatus changes a run as somebody else would.
func (w *world) updateStatus(name string, change func(*v1alpha1.EvalRunStatus)) {
	w.t.Helper()
	run := w.run(name)
	change(&run.Status)
	if err := w.live.Status().Update(context.Background(), run); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) want(a answer, code int, says string) {
	w.t.Helper()
	if a.code != code || !strings.Contains(a.problem, says) {
		w.t.Fatalf("answered %d %s; want %d with %q", a.code, a.body, code, says)
	}
}

func controller(kind, apiVersion, name, uid string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(uid), Controller: new(true)}}
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)}
}

// evalOf is an eval with these criteria.
func evalOf(criteria ...string) *v1alpha1.EvalSpec {
	spec := &v1alpha1.EvalSpec{Response: new("Paris is the capital of France."), Rubric: &v1alpha1.RubricSource{}}
	for _, name := range criteria {
		spec.Rubric.Criteria = append(spec.Rubric.Criteria, v1alpha1.Criterion{Name: name, Description: "It is " + name + "."})
	}
	return spec
}

func rootRun(name string) *v1alpha1.EvalRun {
	return &v1alpha1.EvalRun{ObjectMeta: meta(name), Spec: v1alpha1.EvalRunSpec{EvalRef: &v1alpha1.EvalReference{Name: "capital"}}}
}

func childRun(root string, n, count int, spec *v1alpha1.EvalSpec) *v1alpha1.EvalRun {
	run := &v1alpha1.EvalRun{ObjectMeta: meta(runtree.ChildName(root, n, count))}
	run.Labels = map[string]string{v1alpha1.LabelParent: root}
	run.OwnerReferences = controller("EvalRun", v1alpha1.GroupVersion.String(), root, "uid-"+root)
	run.Spec = v1alpha1.EvalRunSpec{Eval: spec, Row: &v1alpha1.Row{Name: fmt.Sprintf("row %d", n), Eval: "capital"}}
	return run
}

func jobOfRun(root string, completions int32) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: meta(root), Spec: batchv1.JobSpec{Completions: &completions}}
	job.OwnerReferences = controller("EvalRun", v1alpha1.GroupVersion.String(), root, "uid-"+root)
	return job
}

func podOfJob(name, job, index string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: meta(name)}
	pod.OwnerReferences = controller("Job", "batch/v1", job, "uid-"+job)
	pod.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: index}
	pod.Labels = map[string]string{batchv1.JobCompletionIndexAnnotation: index}
	return pod
}

// newRun is a world with a run of rows in slices, and a pod with a token of the same name for each slice.
func newRun(t testing.TB, rows, completions int, criteria ...string) *world {
	t.Helper()
	objects := []client.Object{rootRun("run"), jobOfRun("run", int32(completions))}
	for n := range rows {
		objects = append(objects, childRun("run", n, rows, evalOf(criteria...)))
	}
	for index := range completions {
		objects = append(objects, podOfJob(fmt.Sprintf("pod-%d", index), "run", fmt.Sprint(index)))
	}
	w := newWorld(t, objects...)
	for index := range completions {
		pod := fmt.Sprintf("pod-%d", index)
		w.tokens[pod] = bound(pod)
	}
	return w
}

// newLeafRun is a world with a run that grades its only row itself.
func newLeafRun(t testing.TB, criteria ...string) *world {
	t.Helper()
	root := rootRun("run")
	root.Status.EvalSpec, root.Status.Row = evalOf(criteria...), &v1alpha1.Row{Name: "capital", Eval: "capital"}
	w := newWorld(t, root, jobOfRun("run", 1), podOfJob("pod-0", "run", "0"))
	w.tokens["pod-0"] = bound("pod-0")
	return w
}

func answered(question string, score float64, reason string) v1alpha1.Judgment {
	return v1alpha1.Judgment{
		QuestionKey: v1alpha1.QuestionKey{Question: question}, Model: "judge-1", Score: &score, Reason: reason,
		Usage: v1alpha1.Usage{Calls: 1, InputTokens: 100, OutputTokens: 10, CostUSD: 0.001},
	}
}

func unanswered(question, why string) v1alpha1.Judgment {
	return v1alpha1.Judgment{QuestionKey: v1alpha1.QuestionKey{Question: question}, Model: "judge-1", Error: why}
}

func findingsOf(judgments ...v1alpha1.Judgment) v1alpha1.Findings {
	at := metav1.NewTime(epoch)
	return v1alpha1.Findings{
		Judgments: judgments, Provider: v1alpha1.ProviderAnthropic, Models: []string{"judge-1"}, PromptVersion: "1",
		StartedAt: &at, FinishedAt: &at,
	}
}
