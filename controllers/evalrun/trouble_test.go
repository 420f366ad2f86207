package evalrun

import (
	"context"
	"errors"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/condition"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
)

// reconciler works on an API server that is played, and that answers as the functions say.
func reconciler(t *testing.T, answers interceptor.Funcs, objects ...client.Object) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.EvalRun{}).
		WithIndex(&v1alpha1.EvalRun{}, indexOwner, ownerUID).WithInterceptorFuncs(answers).Build()
	return &Reconciler{
		Client: c, Live: c, Events: events.NewFakeRecorder(100), Runner: testRunner(),
		Clock: clocktesting.NewFakePassiveClock(epoch),
	}
}

// step reconciles a run once, and returns it as it is then.
func step(t *testing.T, r *Reconciler, run *v1alpha1.EvalRun) *v1alpha1.EvalRun {
	t.Helper()
	key := client.ObjectKeyFromObject(run)
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	after := &v1alpha1.EvalRun{}
	if err := r.Live.Get(t.Context(), key, after); err != nil {
		t.Fatal(err)
	}
	return after
}

// kstatus takes an object whose observedGeneration is behind for one that is in progress: Flux would wait for it for ever.
func TestARunThatEndedStillObservesItsGeneration(t *testing.T) {
	run := root(func(r *v1alpha1.EvalRun) { conclude(r, v1alpha1.Summary{Rows: 1, Passed: 1}) })
	run.Generation, run.Spec.Suspend = 2, true
	after := step(t, reconciler(t, interceptor.Funcs{}, run), run)
	if after.Status.ObservedGeneration != 2 || after.Status.Outcome != v1alpha1.OutcomePassed {
		t.Errorf("observedGeneration = %d, outcome = %s; want 2, Passed", after.Status.ObservedGeneration, after.Status.Outcome)
	}
}

func TestARunEndsAlthoughItsReportDoesNotFitIntoTheAPIServer(t *testing.T) {
	run := root(func(r *v1alpha1.EvalRun) { freeze(r, planned(1)) })
	run.Status.EvalSpec.Context = []string{strings.Repeat("x", 100<<10)}
	failed := job(withCondition(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded, "late"))
	refuse := interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		if patched, ok := obj.(*v1alpha1.EvalRun); ok && patched.Status.EvalSpec != nil && patched.Status.Report != nil {
			return errors.New("etcdserver: request is too large")
		}
		return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
	}}
	after := step(t, reconciler(t, refuse, run, failed), run)
	if !runtree.IsComplete(after) || after.Status.Outcome != v1alpha1.OutcomeError || after.Status.Report == nil {
		t.Fatalf("status = %+v, want the run ended as Error, with its report", after.Status)
	}
	if c := ready(after); !strings.Contains(c.Message, "evalSpec") {
		t.Errorf("the message %q does not say what was left out", c.Message)
	}
}

func TestARunIsRefusedWhoseReportWouldNotFitBesideItsInlineEval(t *testing.T) {
	for name, tc := range map[string]struct {
		bytes  int
		inline bool
		want   bool
	}{
		"a long eval of an Eval":          {700 << 10, false, true},
		"a long eval of the run itself":   {500 << 10, true, true},
		"it is there twice, and a report": {700 << 10, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := planned(1)
			p.Rows[0].Spec.Context = []string{strings.Repeat("x", tc.bytes)}
			run := root()
			if tc.inline {
				run.Spec.EvalRef, run.Spec.Eval = nil, p.Rows[0].Spec.DeepCopy()
			}
			if got := tooBig(run, p); (got == "") != tc.want {
				t.Errorf("problem = %q, want one: %v", got, !tc.want)
			}
		})
	}
}

// Somebody who may have only so many EvalRuns must be told so: no watch tells when there is room again.
func TestAQuotaOfEvalRunsIsToldAndWaitedFor(t *testing.T) {
	refuse := interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "evalruns"}, "nightly-0", errors.New("exceeded quota: runs, requested: 1, used: 10, limited: 10"))
	}}
	problem, err := reconciler(t, refuse).createChild(t.Context(), root(), kids("", "")[0])
	if err != nil || problem == nil || problem.State != condition.Waiting || !strings.Contains(problem.Message, "exceeded quota") {
		t.Errorf("problem = %+v, %v; want one that waits and names the quota", problem, err)
	}
}

// In the background the Job would be gone before its pods, and the collector would refuse what they post while they stop.
func TestTheJobOfASuspendedRunWithAQueueStaysUntilItsPodsHavePosted(t *testing.T) {
	var policy *metav1.DeletionPropagation
	spy := interceptor.Funcs{Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteOption) error {
		policy = (&client.DeleteOptions{}).ApplyOptions(opts).PropagationPolicy
		return nil
	}}
	run := root(func(r *v1alpha1.EvalRun) { r.Spec.QueueName, r.Spec.Suspend = "q", true })
	if err := reconciler(t, spy).alignSuspension(t.Context(), &scope{run: run, job: job()}); err != nil {
		t.Fatal(err)
	}
	if got := ptr.Deref(policy, "none"); got != metav1.DeletePropagationForeground {
		t.Errorf("propagation = %s, want Foreground", got)
	}
}

func TestProgressThatIsNotDueIsLookedAtAgain(t *testing.T) {
	r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(epoch)}
	s := &scope{run: root()}
	r.showProgress(s, kids("Passed", ""))
	first := s.run.Status.Summary
	if first == nil || first.Passed != 1 {
		t.Fatalf("summary = %+v, want one row passed", first)
	}
	r.showProgress(s, kids("Passed", "Passed"))
	if s.run.Status.Summary != first || s.requeue != progressInterval {
		t.Errorf("summary = %+v, requeue %s; want it unchanged, and looked at again after %s", s.run.Status.Summary, s.requeue, progressInterval)
	}
}
