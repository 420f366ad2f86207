// Package evalrun runs EvalRuns: it resolves what a run names, makes a child run for each row and one Job for all of
// them, and puts the run to its end when every row has its report.
//
// A reconcile gathers facts, decides with pure functions, acts, and writes the status once, at its end; events are sent
// only after that write succeeded. Children of a run are not reconciled: their root is.
package evalrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/condition"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
	"github.com/mcptest/mcptest-operator/engine/judge"
)

// Reconciler runs EvalRuns.
type Reconciler struct {
	// Client reads from the caches and writes. Its caches must hold Rubrics, Evals, EvalRuns, and the Jobs and pods with
	// the label managed-by.
	Client client.Client
	// Live reads from the API server: ConfigMaps, and what must not be stale.
	Live client.Reader
	// Events takes the events of runs.
	Events events.EventRecorder
	// Clock is the time.
	Clock clock.PassiveClock
	// Runner says how the pods of runs are made.
	Runner Runner
	// DefaultJudgeModel judges evals that name no model; empty: the runner's keys decide (S-24).
	DefaultJudgeModel v1alpha1.ModelName
	// Prices are what models cost. A run with maxCost whose rows name a model without a price is refused (S-42).
	Prices judge.Prices

	progress throttle
}

// +kubebuilder:rbac:groups=eval.mcptest.dev,resources=evalruns,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=eval.mcptest.dev,resources=evalruns/status,verbs=patch
// +kubebuilder:rbac:groups=eval.mcptest.dev,resources=evals;rubrics,verbs=get;list;watch
// +kubebuilder:rbac:groups=eval.mcptest.dev,resources=evalruns/finalizers,verbs=update
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch;update
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch;update

// Reconcile takes a root run one step on.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.gather(ctx, req.NamespacedName)
	if err != nil || s == nil {
		if s == nil && err == nil {
			r.progress.forget(req.NamespacedName)
		}
		return ctrl.Result{}, err
	}
	acted := r.advance(ctx, s)
	written := r.persist(ctx, s)
	if err := errors.Join(acted, written); err != nil {
		if onlyConflicts(acted, written) { // somebody else wrote meanwhile: look again
			return ctrl.Result{RequeueAfter: conflictDelay}, nil
		}
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: s.requeue}, nil
}

// conflictDelay is how long a cache is given to catch up after a write met a newer object.
const conflictDelay = 100 * time.Millisecond

func onlyConflicts(errs ...error) bool {
	for _, err := range errs {
		if err != nil && !apierrors.IsConflict(err) {
			return false
		}
	}
	return true
}

// persist writes the status when it changed, and tells then what happened. It runs after errors as well: what is known
// by then is worth seeing.
func (r *Reconciler) persist(ctx context.Context, s *scope) error {
	if s.gone || equality.Semantic.DeepEqual(s.before.Status, s.run.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(s.before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, s.run, patch); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		if refusedForSize(err) {
			return r.persistTooBig(ctx, s)
		}
		return fmt.Errorf("writing the status: %w", err)
	}
	r.announce(s.before, s.run)
	return nil
}

// persistTooBig ends the waiting of a run whose status the API server does not take.
func (r *Reconciler) persistTooBig(ctx context.Context, s *scope) error {
	run := s.before.DeepCopy()
	if runtree.IsComplete(s.run) && s.run.Status.EvalSpec != nil {
		run = s.run
		run.Status.EvalSpec = nil
		note := runtree.Sentence(*run.Status.Summary) + "; status.evalSpec was left out, because the report does not fit beside it"
		runtree.Conclude(run, runtree.Ending{Summary: *run.Status.Summary, Note: note}, r.now())
	} else {
		report(run, condition.Invalid("the run does not fit into the API server; make the prompt, the response or the context shorter"), r.now())
	}
	patch := client.MergeFromWithOptions(s.before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, run, patch); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	r.announce(s.before, run)
	return nil
}

func (r *Reconciler) now() time.Time { return r.Clock.Now() }
