package evalrun

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
)

// Field indexes of EvalRuns.
const (
	// indexOwner finds the children of a run by its UID.
	indexOwner = ".metadata.controller"
	// indexWaiting finds the roots that are not frozen yet: those that a Rubric or an Eval can heal.
	indexWaiting = ".waiting"
)

// maxConcurrentReconciles is how many runs are worked on at once. One run with many children writes 16 of them at once.
const maxConcurrentReconciles = 4

// SetupWithManager adds the indexes and the watches of the reconciler.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	for name, extract := range map[string]client.IndexerFunc{indexOwner: ownerUID, indexWaiting: waitingRoot} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.EvalRun{}, name, extract); err != nil {
			return fmt.Errorf("indexing EvalRuns by %s: %w", name, err)
		}
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("evalrun").
		For(&v1alpha1.EvalRun{}, builder.WithPredicates(predicate.NewPredicateFuncs(isRoot))).
		Watches(&v1alpha1.EvalRun{}, rootsOfChildren(), builder.WithPredicates(childEnded{})).
		Owns(&batchv1.Job{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(runOfPod)).
		Watches(&v1alpha1.Rubric{}, handler.EnqueueRequestsFromMapFunc(r.waitingRuns), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Eval{}, handler.EnqueueRequestsFromMapFunc(r.waitingRuns),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		WithOptions(controller.Options{MaxConcurrentReconciles: maxConcurrentReconciles}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the controller of EvalRuns: %w", err)
	}
	return nil
}

func ownerUID(object client.Object) []string {
	run, ok := object.(*v1alpha1.EvalRun)
	if !ok {
		return nil
	}
	if owner, child := runtree.Parent(run); child {
		return []string{string(owner.UID)}
	}
	return nil
}

func waitingRoot(object client.Object) []string {
	run, ok := object.(*v1alpha1.EvalRun)
	if !ok || runtree.IsChild(run) || runtree.IsComplete(run) || begun(run, nil) {
		return nil
	}
	return []string{"true"}
}

func isRoot(object client.Object) bool {
	run, ok := object.(*v1alpha1.EvalRun)
	return ok && !runtree.IsChild(run)
}

// gatherReports is how long reports of children gather before their root is looked at: each look is at all children.
const gatherReports = 100 * time.Millisecond

// rootsOfChildren makes the reconciler look at the root of a child, but not for each of its children on its own.
func rootsOfChildren() handler.EventHandler {
	later := func(child client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		run, ok := child.(*v1alpha1.EvalRun)
		if !ok {
			return
		}
		if root, ok := runtree.Parent(run); ok {
			key := types.NamespacedName{Namespace: run.Namespace, Name: root.Name}
			queue.AddAfter(reconcile.Request{NamespacedName: key}, gatherReports)
		}
	}
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e ctrlevent.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(e.ObjectNew, queue)
		},
		DeleteFunc: func(_ context.Context, e ctrlevent.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(e.Object, queue)
		},
	}
}

// childEnded lets through what a root must know about its children: that one has its report, or was deleted.
type childEnded struct{ predicate.Funcs }

// Create is told for every child when the operator starts; the root itself is as well.
func (childEnded) Create(ctrlevent.CreateEvent) bool { return false }

// Update tells of a report.
func (childEnded) Update(e ctrlevent.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*v1alpha1.EvalRun)
	after, also := e.ObjectNew.(*v1alpha1.EvalRun)
	return ok && also && before.Status.Report == nil && after.Status.Report != nil
}

// runOfPod is the run that a pod grades for.
func runOfPod(_ context.Context, pod client.Object) []reconcile.Request {
	run := pod.GetLabels()[v1alpha1.LabelRun]
	if run == "" || metav1.GetControllerOf(pod) == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: run}}}
}

// waitingRuns are the runs of a namespace that are not frozen: a Rubric or an Eval that appears or changes may be what
// they wait for.
func (r *Reconciler) waitingRuns(ctx context.Context, object client.Object) []reconcile.Request {
	runs := &v1alpha1.EvalRunList{}
	err := r.Client.List(ctx, runs, client.InNamespace(object.GetNamespace()),
		client.MatchingFields{indexWaiting: "true"}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil
	}
	requests := make([]reconcile.Request, len(runs.Items))
	for i := range runs.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&runs.Items[i])
	}
	return requests
}
