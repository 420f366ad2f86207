package controllers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
	engine "github.com/mcptest/mcptest-operator/engine/rubric"
)

// stage is a namespace of its own for one story.
type stage struct{ namespace string }

func newStage(ctx context.Context) *stage {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "story-"}}
	Expect(api.Create(ctx, ns)).To(Succeed())
	return &stage{ns.Name}
}

func (s *stage) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: name}
}

func (s *stage) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.namespace, Name: name}
}

func (s *stage) rubric(ctx context.Context, name, text string) *v1alpha1.Rubric {
	r := &v1alpha1.Rubric{ObjectMeta: s.meta(name), Spec: v1alpha1.RubricSpec{Text: text}}
	Expect(api.Create(ctx, r)).To(Succeed())
	return r
}

// eval makes an eval with a response and the rubric "kind".
func (s *stage) eval(ctx context.Context, name string, change ...func(*v1alpha1.Eval)) *v1alpha1.Eval {
	e := &v1alpha1.Eval{ObjectMeta: s.meta(name), Spec: v1alpha1.EvalSpec{
		Prompt: "How is the weather?", Response: ptr.To("It is sunny."), Rubric: &v1alpha1.RubricSource{Ref: "kind"},
	}}
	for _, f := range change {
		f(e)
	}
	Expect(api.Create(ctx, e)).To(Succeed())
	return e
}

func twoByTwo(e *v1alpha1.Eval) {
	e.Spec.Matrix = &v1alpha1.Matrix{Models: []v1alpha1.ModelName{"claude-a", "claude-b"}, Prompts: []string{"one", "two"}}
}

// start makes a run of an eval.
func (s *stage) start(ctx context.Context, name, eval string, change ...func(*v1alpha1.EvalRun)) *v1alpha1.EvalRun {
	run := &v1alpha1.EvalRun{ObjectMeta: s.meta(name)}
	if eval != "" {
		run.Spec.EvalRef = &v1alpha1.EvalReference{Name: eval}
	}
	for _, f := range change {
		f(run)
	}
	Expect(api.Create(ctx, run)).To(Succeed())
	return run
}

func (s *stage) run(ctx context.Context, name string) *v1alpha1.EvalRun {
	GinkgoHelper()
	run := &v1alpha1.EvalRun{}
	Expect(api.Get(ctx, s.key(name), run)).To(Succeed())
	return run
}

// children are the names of the children of a run.
func (s *stage) children(ctx context.Context, root string) []v1alpha1.EvalRun {
	GinkgoHelper()
	list := &v1alpha1.EvalRunList{}
	Expect(api.List(ctx, list, client.InNamespace(s.namespace), client.MatchingLabels{v1alpha1.LabelParent: root})).To(Succeed())
	return list.Items
}

// job waits for the Job of a run.
func (s *stage) job(ctx context.Context, name string) *batchv1.Job {
	GinkgoHelper()
	job := &batchv1.Job{}
	Eventually(ctx, func() error { return api.Get(ctx, s.key(name), job) }).Should(Succeed())
	return job
}

func (s *stage) noJob(ctx context.Context) {
	GinkgoHelper()
	jobs := &batchv1.JobList{}
	Expect(api.List(ctx, jobs, client.InNamespace(s.namespace))).To(Succeed())
	Expect(jobs.Items).To(BeEmpty())
}

// condition waits until a condition of a run is "Status Reason", and returns its message.
func (s *stage) condition(ctx context.Context, run, kind, want string) string {
	GinkgoHelper()
	message := ""
	Eventually(ctx, func() string {
		r := &v1alpha1.EvalRun{}
		if err := api.Get(ctx, s.key(run), r); err != nil {
			return err.Error()
		}
		var text string
		text, message = conditionText(r.Status.Conditions, kind)
		return text
	}).Should(Equal(want))
	return message
}

func conditionText(conditions []metav1.Condition, kind string) (text, message string) {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return "absent", ""
	}
	return fmt.Sprintf("%s %s", c.Status, c.Reason), c.Message
}

// collect plays the collector: it writes the report of a leaf that a judge scored so.
func (s *stage) collect(ctx context.Context, leaf string, score float64) {
	GinkgoHelper()
	s.report(ctx, leaf, v1alpha1.Findings{
		Judgments: []v1alpha1.Judgment{{Score: &score, Reason: "so it is", Usage: v1alpha1.Usage{Calls: 1}}},
		Models:    []string{"claude-a"},
	})
}

// overBudget plays the collector: a leaf ends because the run's maxCost is used up.
func (s *stage) overBudget(ctx context.Context, leaf string) {
	GinkgoHelper()
	s.report(ctx, leaf, v1alpha1.Findings{Reason: v1alpha1.RowBudgetExceeded, Error: "maxCost was used up"})
}

// status changes the status of a run as the collector would.
func (s *stage) status(ctx context.Context, name string, edit func(*v1alpha1.EvalRunStatus)) {
	GinkgoHelper()
	Eventually(ctx, func() error {
		run := s.run(ctx, name)
		before := run.DeepCopy()
		edit(&run.Status)
		return api.Status().Patch(ctx, run, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}).Should(Succeed())
}

// report writes the report that findings make of a leaf.
func (s *stage) report(ctx context.Context, leaf string, found v1alpha1.Findings) {
	GinkgoHelper()
	Eventually(ctx, func() error {
		run := s.run(ctx, leaf)
		row, ok := runtree.Row(run)
		if !ok {
			return fmt.Errorf("run %s does not say what it grades", leaf)
		}
		before := run.DeepCopy()
		report := engine.Score(row.Row, &row.Spec, found)
		run.Status.Report = &report
		if runtree.IsChild(run) {
			runtree.Conclude(run, runtree.Ending{Summary: engine.Summarize([]*v1alpha1.Report{&report})}, now.Now())
		}
		return api.Status().Patch(ctx, run, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}).Should(Succeed())
}

// endJob plays the Job controller: the Job started, and ended so.
func (s *stage) endJob(ctx context.Context, job *batchv1.Job, target, end batchv1.JobConditionType, reason, message string) {
	GinkgoHelper()
	at := metav1.Now()
	job.Status.StartTime = &at
	for _, kind := range []batchv1.JobConditionType{target, end} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: at, LastProbeTime: at,
		})
	}
	if end == batchv1.JobComplete {
		job.Status.CompletionTime = &at
	}
	Expect(api.Status().Update(ctx, job)).To(Succeed())
}

// pod plays the Job controller: it makes the pod of a slice. Its status is then written by the story.
func (s *stage) pod(ctx context.Context, job *batchv1.Job, index int) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{ObjectMeta: s.meta(fmt.Sprintf("%s-%d", job.Name, index)), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Labels = maps.Clone(job.Spec.Template.Labels)
	pod.Labels[batchv1.JobCompletionIndexAnnotation] = fmt.Sprint(index)
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	pod.Spec.ServiceAccountName = "default" // the API server of these stories has no admission plugin that says so
	Expect(api.Create(ctx, pod)).To(Succeed())
	return pod
}

func containerState(pod *corev1.Pod, state corev1.ContainerState) {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "runner", State: state}}
}

// serviceAccount plays the service account controller, without which no pod is admitted.
func (s *stage) serviceAccount(ctx context.Context) {
	Expect(client.IgnoreAlreadyExists(api.Create(ctx, &corev1.ServiceAccount{ObjectMeta: s.meta("default")}))).To(Succeed())
}

// touch makes the reconcilers look at a run.
func (s *stage) touch(ctx context.Context, run string) {
	GinkgoHelper()
	r := s.run(ctx, run)
	before := r.DeepCopy()
	metav1.SetMetaDataAnnotation(&r.ObjectMeta, "story", fmt.Sprint(now.Now().UnixNano()))
	Expect(api.Patch(ctx, r, client.MergeFrom(before))).To(Succeed())
}

// change edits an object.
func change[T client.Object](ctx context.Context, object T, edit func(T)) {
	GinkgoHelper()
	Eventually(ctx, func() error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		edit(object)
		return api.Update(ctx, object)
	}).Should(Succeed())
}

// events are the reasons of the events of a run, in the order of the alphabet.
func (s *stage) events(ctx context.Context, run string) []string {
	list := &eventsv1.EventList{}
	if err := api.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
		return []string{err.Error()}
	}
	var reasons []string
	for _, e := range list.Items {
		if e.Regarding.Name == run {
			reasons = append(reasons, e.Reason)
		}
	}
	slices.Sort(reasons)
	return reasons
}

// versions are the resource versions of all that a namespace holds of ours.
func (s *stage) versions(ctx context.Context) map[string]string {
	GinkgoHelper()
	out := map[string]string{}
	for _, list := range []client.ObjectList{&v1alpha1.EvalRunList{}, &v1alpha1.EvalList{}, &v1alpha1.RubricList{}, &batchv1.JobList{}} {
		Expect(api.List(ctx, list, client.InNamespace(s.namespace))).To(Succeed())
		items, err := meta.ExtractList(list)
		Expect(err).NotTo(HaveOccurred())
		for _, item := range items {
			object, err := meta.Accessor(item)
			Expect(err).NotTo(HaveOccurred())
			out[fmt.Sprintf("%T %s", item, object.GetName())] = object.GetResourceVersion()
		}
	}
	return out
}

func toJSON(v any) string {
	GinkgoHelper()
	data, err := json.Marshal(v)
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(string(data))
}
