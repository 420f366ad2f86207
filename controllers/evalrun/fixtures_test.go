package evalrun

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

var epoch = time.Unix(1700000000, 0).UTC()

func root(change ...func(*v1alpha1.EvalRun)) *v1alpha1.EvalRun {
	run := &v1alpha1.EvalRun{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "nightly", UID: "root-uid", Generation: 1}}
	run.Spec.EvalRef = &v1alpha1.EvalReference{Name: "weather"}
	for _, f := range change {
		f(run)
	}
	return run
}

func evalSpec(questions int) v1alpha1.EvalSpec {
	spec := v1alpha1.EvalSpec{Response: ptr.To("It is sunny."), Rubric: &v1alpha1.RubricSource{}}
	for i := range questions {
		spec.Rubric.Criteria = append(spec.Rubric.Criteria, v1alpha1.Criterion{Name: fmt.Sprintf("c%d", i), Description: "Good?"})
	}
	return spec
}

// planned are rows with so many judge calls each.
func planned(calls ...int) *plan.Plan {
	p := &plan.Plan{Digest: "sha256:fedcba9876543210", Revision: "sha256:0123456789abcdef"}
	for i, n := range calls {
		spec := evalSpec(n)
		if n == 0 {
			spec.Response = nil
		}
		name := fmt.Sprintf("row-%d", i)
		row := plan.Leaf(v1alpha1.Row{Name: name, Eval: name}, spec)
		p.Rows, p.Calls = append(p.Rows, row), p.Calls+row.Calls
	}
	return p
}

// kids are children of the root with these outcomes; "" is one that goes on.
func kids(outcomes ...v1alpha1.Outcome) []*v1alpha1.EvalRun {
	p := planned(make([]int, len(outcomes))...)
	for i := range p.Rows {
		p.Rows[i].Spec = evalSpec(1)
	}
	children := childrenOf(root(), p, nil)
	for i, o := range outcomes {
		children[i].UID = types.UID(children[i].Name)
		if o != "" {
			children[i].Status.Report = &v1alpha1.Report{Name: children[i].Spec.Row.Name, Outcome: o, Score: ptr.To(0.5)}
		}
	}
	return children
}

func job(change ...func(*batchv1.Job)) *batchv1.Job {
	j := buildJob(root(), planned(1, 1).Rows, testRunner())
	j.UID = "job-uid"
	for _, f := range change {
		f(j)
	}
	return j
}

func withCondition(kind batchv1.JobConditionType, reason, message string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message})
	}
}

func testRunner() Runner {
	return Runner{
		Image: "registry.example/mcptest-operator:v1", PullPolicy: corev1.PullIfNotPresent,
		CollectorURL: "https://collector.mcptest.svc:8443", CollectorCA: func() []byte { return []byte("PEM") },
	}
}

func pod(name string, change ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, f := range change {
		f(&p)
	}
	return p
}

func conclude(run *v1alpha1.EvalRun, s v1alpha1.Summary) {
	runtree.Conclude(run, runtree.Ending{Summary: s}, epoch)
}
