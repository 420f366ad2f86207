package eval

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

var epoch = time.Unix(1700000000, 0)

func TestTheStatusOfAnEvalFollowsFromItsPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		plan *plan.Plan
		err  error
		want string
	}{
		"a valid eval": {plan: &plan.Plan{Digest: "sha256:x", Rows: make([]plan.Row, 4), Calls: 8}, want: "True Valid sha256:x 4 8"},
		"a missing Rubric heals": {
			err: fmt.Errorf("eval: %w", &plan.NotFoundError{Kind: plan.KindRubric, Name: "a"}), want: "False RubricNotFound  0 0",
		},
		"a missing ConfigMap heals":        {err: &plan.NotFoundError{Kind: plan.KindConfigMap, Name: "a"}, want: "False ConfigMapNotFound  0 0"},
		"a missing key of a ConfigMap too": {err: &plan.NotFoundError{Kind: plan.KindConfigMapKey, Name: "a/b"}, want: "False ConfigMapNotFound  0 0"},
		"an invalid eval is stalled":       {err: errors.New("spec.rubric: bad"), want: "False InvalidSpec  0 0 stalled"},
	} {
		t.Run(name, func(t *testing.T) {
			e := &v1alpha1.Eval{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: v1alpha1.EvalStatus{Digest: "old", Rows: 9, JudgeCalls: 9}}
			assess(e, tc.plan, tc.err, epoch)
			ready := meta.FindStatusCondition(e.Status.Conditions, "Ready")
			got := fmt.Sprintf("%s %s %s %d %d", ready.Status, ready.Reason, e.Status.Digest, e.Status.Rows, e.Status.JudgeCalls)
			if meta.IsStatusConditionTrue(e.Status.Conditions, "Stalled") {
				got += " stalled"
			}
			if got != tc.want || e.Status.ObservedGeneration != 2 {
				t.Errorf("got %q of generation %d, want %q of 2", got, e.Status.ObservedGeneration, tc.want)
			}
		})
	}
}

func run(name string, at time.Duration, summary v1alpha1.Summary) v1alpha1.EvalRun {
	r := v1alpha1.EvalRun{ObjectMeta: metav1.ObjectMeta{Name: name}}
	r.Status.Digest = "sha256:" + name
	runtree.Conclude(&r, runtree.Ending{Summary: summary}, epoch.Add(at))
	return r
}

func TestTheNewestFinishedRootRunCounts(t *testing.T) {
	passed := v1alpha1.Summary{Rows: 1, Passed: 1}
	child := run("child", time.Hour, passed)
	child.Spec.Row = &v1alpha1.Row{Name: "r", Eval: "r"}
	child.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&v1alpha1.EvalRun{}, v1alpha1.GroupVersion.WithKind("EvalRun"))}
	for name, tc := range map[string]struct {
		runs []v1alpha1.EvalRun
		want string
	}{
		"none":                          {nil, ""},
		"one that goes on":              {[]v1alpha1.EvalRun{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, ""},
		"the last to end":               {[]v1alpha1.EvalRun{run("a", time.Minute, passed), run("b", 0, passed)}, "a"},
		"the greater name within 1s":    {[]v1alpha1.EvalRun{run("a", 0, passed), run("b", 0, passed)}, "b"},
		"children are rows and no runs": {[]v1alpha1.EvalRun{child, run("a", 0, passed)}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if last := newest(tc.runs); last != nil {
				got = last.Name
			}
			if got != tc.want {
				t.Errorf("newest = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAnEvalTakesOverTheVerdictOfItsNewestRun(t *testing.T) {
	score := 0.8
	for name, tc := range map[string]struct {
		summary v1alpha1.Summary
		want    string
	}{
		"passed":                {v1alpha1.Summary{Rows: 1, Passed: 1, Score: &score}, "True Passed"},
		"failed":                {v1alpha1.Summary{Rows: 1, Failed: 1, Score: &score}, "False Failed"},
		"an error is no pass":   {v1alpha1.Summary{Rows: 1, Errored: 1, Score: &score}, "False Error"},
		"deferred is not known": {v1alpha1.Summary{Rows: 1, Deferred: 1, Score: &score}, "Unknown Deferred"},
	} {
		t.Run(name, func(t *testing.T) {
			last, e := run("r", 0, tc.summary), &v1alpha1.Eval{}
			takeOver(e, &last, epoch)
			want := &v1alpha1.RunResult{Name: "r", Digest: "sha256:r", Outcome: last.Status.Outcome, Score: &score}
			if diff := cmp.Diff(want, e.Status.LastRun); diff != "" {
				t.Error(diff)
			}
			c := meta.FindStatusCondition(e.Status.Conditions, "Passed")
			if got := string(c.Status) + " " + c.Reason; got != tc.want {
				t.Errorf("Passed = %q, want %q", got, tc.want)
			}
			takeOver(e, nil, epoch)
			if e.Status.LastRun == nil || e.Status.LastRun.Name != "r" {
				t.Error("the last run was forgotten when it was deleted")
			}
		})
	}
	e := &v1alpha1.Eval{}
	takeOver(e, nil, epoch)
	if c := meta.FindStatusCondition(e.Status.Conditions, "Passed"); c == nil || c.Reason != "NeverRun" {
		t.Errorf("Passed = %+v, want NeverRun", c)
	}
}

func TestOnlyConfigMapsAreLookedAtAgain(t *testing.T) {
	with := []plan.NamedEval{{Spec: v1alpha1.EvalSpec{ResponseFrom: &v1alpha1.ResponseSource{}}}}
	for name, tc := range map[string]struct {
		evals []plan.NamedEval
		err   error
		want  time.Duration
	}{
		"without one":         {[]plan.NamedEval{{}}, errors.New("x"), 0},
		"with one":            {with, nil, recheckPresent},
		"with one in trouble": {with, errors.New("x"), recheckMissing},
	} {
		if got := recheck(tc.evals, tc.err); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// The newer object may differ in nothing that the watch of Evals lets through.
func TestAStatusThatMetANewerEvalIsWrittenAgain(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	e := &v1alpha1.Eval{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "weather"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(e).WithIndex(&v1alpha1.EvalRun{}, indexEvalRef, evalRef).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return apierrors.NewConflict(schema.GroupResource{Resource: "evals"}, "weather", errors.New("newer"))
		}}).Build()
	r := &Reconciler{Client: c, Live: c, Clock: clocktesting.NewFakePassiveClock(epoch)}
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(e)})
	if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > time.Second {
		t.Errorf("result = %+v, %v; want another look soon", result, err)
	}
}

func TestAnEvalIsToldOfRunsThatEnded(t *testing.T) {
	over := run("a", 0, v1alpha1.Summary{Rows: 1, Passed: 1})
	going := v1alpha1.EvalRun{}
	if !(ended{}).Update(event.UpdateEvent{ObjectOld: &going, ObjectNew: &over}) {
		t.Error("not of one that just ended")
	}
	if (ended{}).Update(event.UpdateEvent{ObjectOld: &over, ObjectNew: &over}) {
		t.Error("of one that had ended before")
	}
	if !(ended{}).Create(event.CreateEvent{Object: &over}) || (ended{}).Create(event.CreateEvent{Object: &going}) {
		t.Error("a watch that broke shows a run that was made and ended meanwhile as a new one: of those that ended, and of no others")
	}
}
