package eval

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

// Field indexes.
const (
	// indexEvalRef finds the root runs of an Eval by its name.
	indexEvalRef = ".spec.evalRef.name"
	// indexRubricRef finds the Evals that refer to a Rubric by its name.
	indexRubricRef = ".spec.rubricRefs"
)

// SetupWithManager adds the indexes and the watches of the reconciler.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	indexer := mgr.GetFieldIndexer()
	if err := indexer.IndexField(ctx, &v1alpha1.EvalRun{}, indexEvalRef, evalRef); err != nil {
		return fmt.Errorf("indexing EvalRuns by eval: %w", err)
	}
	if err := indexer.IndexField(ctx, &v1alpha1.Eval{}, indexRubricRef, rubricRefs); err != nil {
		return fmt.Errorf("indexing Evals by rubric: %w", err)
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("eval").
		For(&v1alpha1.Eval{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Rubric{}, handler.EnqueueRequestsFromMapFunc(r.evalsOfRubric), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.EvalRun{}, handler.EnqueueRequestsFromMapFunc(evalOfRun), builder.WithPredicates(ended{})).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the controller of Evals: %w", err)
	}
	return nil
}

func evalRef(object client.Object) []string {
	run, ok := object.(*v1alpha1.EvalRun)
	if !ok || run.Spec.EvalRef == nil {
		return nil
	}
	return []string{run.Spec.EvalRef.Name}
}

func rubricRefs(object client.Object) []string {
	e, ok := object.(*v1alpha1.Eval)
	if !ok {
		return nil
	}
	return plan.ReferencesOf(&e.Spec).Rubrics
}

// evalsOfRubric are the Evals that refer to a Rubric.
func (r *Reconciler) evalsOfRubric(ctx context.Context, rubric client.Object) []reconcile.Request {
	evals := &v1alpha1.EvalList{}
	err := r.Client.List(ctx, evals, client.InNamespace(rubric.GetNamespace()),
		client.MatchingFields{indexRubricRef: rubric.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil
	}
	requests := make([]reconcile.Request, len(evals.Items))
	for i := range evals.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&evals.Items[i])
	}
	return requests
}

// evalOfRun is the Eval that a run names.
func evalOfRun(_ context.Context, object client.Object) []reconcile.Request {
	names := evalRef(object)
	if len(names) == 0 {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: names[0]}}}
}

// ended lets a run through when it ended.
type ended struct{}

// Create tells of a run that was made and ended while the watch was broken.
func (ended) Create(e event.CreateEvent) bool {
	run, ok := e.Object.(*v1alpha1.EvalRun)
	return ok && runtree.IsComplete(run)
}

func (ended) Delete(event.DeleteEvent) bool   { return false }
func (ended) Generic(event.GenericEvent) bool { return false }

// Update tells of an end.
func (ended) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*v1alpha1.EvalRun)
	after, also := e.ObjectNew.(*v1alpha1.EvalRun)
	return ok && also && !runtree.IsComplete(before) && runtree.IsComplete(after)
}
