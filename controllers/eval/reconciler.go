// Package eval tells of each Eval whether it can be run, what a run would cost, and how the newest run ended.
package eval

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/condition"
	"github.com/mcptest/mcptest-operator/controllers/lookup"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

// Reconciler writes the statuses of Evals.
type Reconciler struct {
	// Client reads Rubrics, Evals and EvalRuns from the caches.
	Client client.Client
	// Live reads ConfigMaps.
	Live client.Reader
	// Clock is the time.
	Clock clock.PassiveClock
	// DefaultJudgeModel judges evals that name no model (S-24): it is part of their digest.
	DefaultJudgeModel v1alpha1.ModelName
}

// ConfigMaps are not watched: they are looked at again after these times.
const (
	recheckMissing = 10 * time.Second
	recheckPresent = 5 * time.Minute
)

// conflictDelay is how long the cache is given to catch up after a write met a newer object, which the watch may not tell of.
const conflictDelay = 100 * time.Millisecond

// +kubebuilder:rbac:groups=eval.mcptest.dev,resources=evals;evalruns;rubrics,verbs=get;list;watch
// +kubebuilder:rbac:groups=eval.mcptest.dev,resources=evals/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get

// Reconcile looks at one Eval.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	before := &v1alpha1.Eval{}
	if err := r.Client.Get(ctx, req.NamespacedName, before); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if before.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	named := []plan.NamedEval{{Name: before.Name, Spec: before.Spec}}
	catalog, err := lookup.Catalog(ctx, r.Client, r.Live, req.Namespace, named)
	if err != nil {
		return ctrl.Result{}, err
	}
	runs := &v1alpha1.EvalRunList{}
	err = r.Client.List(ctx, runs, client.InNamespace(req.Namespace), client.MatchingFields{indexEvalRef: req.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the runs of the eval: %w", err)
	}
	after := before.DeepCopy()
	planned, err := plan.Make(named, catalog, plan.Options{DefaultJudgeModel: r.DefaultJudgeModel})
	assess(after, planned, err, r.Clock.Now())
	takeOver(after, newest(runs.Items), r.Clock.Now())
	result := ctrl.Result{RequeueAfter: recheck(named, err)}
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return result, nil
	}
	err = r.Client.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	case client.IgnoreNotFound(err) != nil:
		return ctrl.Result{}, fmt.Errorf("writing the status: %w", err)
	}
	return result, nil
}

// recheck is when to look again without being told to; 0: never.
func recheck(evals []plan.NamedEval, err error) time.Duration {
	switch {
	case !lookup.NeedsConfigMap(evals):
		return 0
	case err != nil:
		return recheckMissing
	}
	return recheckPresent
}

// assess writes into the status what is known about an eval by planning a run of it.
func assess(e *v1alpha1.Eval, p *plan.Plan, err error, now time.Time) {
	s := &e.Status
	s.ObservedGeneration = e.Generation
	s.Digest, s.Rows, s.JudgeCalls = "", 0, 0
	var notFound *plan.NotFoundError
	var situation condition.Situation
	switch {
	case errors.As(err, &notFound):
		reason := v1alpha1.ReasonConfigMapNotFound
		if notFound.Kind == plan.KindRubric {
			reason = v1alpha1.ReasonRubricNotFound
		}
		situation = condition.Missing(reason, notFound.Error())
	case err != nil:
		situation = condition.Invalid(err.Error())
	default:
		s.Digest, s.Rows, s.JudgeCalls = p.Digest, int32(len(p.Rows)), p.Calls
		situation = condition.Valid("the eval can be run")
	}
	condition.Apply(&s.Conditions, e.Generation, situation, now)
}
