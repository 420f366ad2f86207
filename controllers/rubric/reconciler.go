// Package rubric tells of each Rubric whether it is valid, what identifies it, and what it costs.
package rubric

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/condition"
	"github.com/mcptest/mcptest-operator/engine/plan"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

// Reconciler writes the statuses of Rubrics.
type Reconciler struct {
	Client client.Client
	// Clock is the time.
	Clock clock.PassiveClock
}

// +kubebuilder:rbac:groups=eval.mcptest.dev,resources=rubrics,verbs=get;list;watch
// +kubebuilder:rbac:groups=eval.mcptest.dev,resources=rubrics/status,verbs=patch

// conflictDelay is how long the cache is given to catch up after a write met a newer object, which the watch may not tell of.
const conflictDelay = 100 * time.Millisecond

// Reconcile looks at one Rubric.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	before := &v1alpha1.Rubric{}
	if err := r.Client.Get(ctx, req.NamespacedName, before); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	after := before.DeepCopy()
	assess(after, r.Clock.Now())
	if before.DeletionTimestamp != nil || equality.Semantic.DeepEqual(before.Status, after.Status) {
		return ctrl.Result{}, nil
	}
	err := r.Client.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	case client.IgnoreNotFound(err) != nil:
		return ctrl.Result{}, fmt.Errorf("writing the status: %w", err)
	}
	return ctrl.Result{}, nil
}

// assess writes into the status what is known about a rubric by looking at it.
func assess(r *v1alpha1.Rubric, now time.Time) {
	s := &r.Status
	s.ObservedGeneration = r.Generation
	if problems := plan.ValidateRubric(&r.Spec, field.NewPath("spec")); len(problems) > 0 {
		s.Digest, s.Kind, s.JudgeCalls = "", "", 0
		err := &plan.InvalidError{Problems: problems}
		condition.Apply(&s.Conditions, r.Generation, condition.Invalid(err.Error()), now)
		return
	}
	s.Digest = plan.RubricDigest(&r.Spec)
	s.Kind = rubric.Kind(&r.Spec)
	resolved := plan.ResolveRubric(r.Spec)
	s.JudgeCalls = int32(rubric.Calls(&resolved))
	condition.Apply(&s.Conditions, r.Generation, condition.Valid("the rubric can be used"), now)
}

// SetupWithManager adds the watch of the reconciler.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("rubric").
		For(&v1alpha1.Rubric{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the controller of Rubrics: %w", err)
	}
	return nil
}
