package evalrun

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/condition"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

// phase is what a run needs next.
type phase string

const (
	// phaseDone: it ended; it is deleted when its time is over.
	phaseDone phase = "done"
	// phaseRefused: it claims to be a row of another run, and no run controls it.
	phaseRefused phase = "refused"
	// phaseResolve: what it names is to be found.
	phaseResolve phase = "resolve"
	// phaseExpand: its rows are known to be several, and get a child each.
	phaseExpand phase = "expand"
	// phaseStart: what it grades is frozen, and has no Job.
	phaseStart phase = "start"
	// phaseFollow: its Job is there.
	phaseFollow phase = "follow"
)

// phaseOf tells what a root run needs next.
func phaseOf(root *v1alpha1.EvalRun, job *batchv1.Job) phase {
	switch {
	case runtree.IsComplete(root):
		return phaseDone
	case root.Spec.Row != nil:
		return phaseRefused
	case job != nil:
		return phaseFollow
	case begun(root, job):
		return phaseStart
	case root.Status.Digest != "":
		return phaseExpand
	}
	return phaseResolve
}

// Times after which things are looked at again that no watch tells about.
const (
	recheckMissing = 10 * time.Second
	recheckStale   = 2 * time.Second
)

// advance takes a run one phase on. It changes the status in the scope; persist writes it.
func (r *Reconciler) advance(ctx context.Context, s *scope) error {
	now := phaseOf(s.run, s.job)
	logf.FromContext(ctx).V(1).Info("advancing", "phase", now)
	switch now {
	case phaseDone:
		s.run.Status.ObservedGeneration = s.run.Generation // spec.suspend can still be changed, and means nothing any more
		return r.expire(ctx, s)
	case phaseRefused:
		report(s.run, condition.Invalid("spec.row: the operator sets it on the children of a run; remove it"), r.now())
		return nil
	case phaseResolve:
		return r.resolve(ctx, s)
	case phaseExpand:
		return r.expand(ctx, s)
	case phaseStart:
		return r.start(ctx, s)
	}
	return r.follow(ctx, s)
}

// expire deletes a run whose time after its end is over. Owner references take its children, Job and pods with it.
func (r *Reconciler) expire(ctx context.Context, s *scope) error {
	r.progress.forget(client.ObjectKeyFromObject(s.run))
	left, bounded := timeLeft(s.run, r.now())
	switch {
	case !bounded:
		return nil
	case left > 0:
		s.requeue = left
		return nil
	}
	logf.FromContext(ctx).Info("deleting the run: its time after the end is over")
	s.gone = true
	err := r.Client.Delete(ctx, s.run, client.Preconditions{UID: &s.run.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the run after its time: %w", err)
	}
	return nil
}

// resolve finds what a run names, and freezes it when it is one row.
func (r *Reconciler) resolve(ctx context.Context, s *scope) error {
	p, err := r.plan(ctx, s)
	if err != nil || p == nil {
		return err
	}
	startTime := metav1.NewTime(r.now())
	s.run.Status.StartTime = &startTime
	freeze(s.run, p)
	report(s.run, found(p), r.now())
	return nil
}

// expand makes a child of each row and then the Job: from then on nothing is resolved again. When no row needs a judge
// there is no Job, and the rows are ended here.
func (r *Reconciler) expand(ctx context.Context, s *scope) error {
	// The caches may not show yet what was made a moment ago, or by the leader before.
	if err := r.gatherJob(ctx, r.Live, s); err != nil {
		return err
	}
	if s.job != nil {
		s.run.Status.Job = s.job.Name
		s.requeue = recheckStale
		return nil
	}
	p, err := r.plan(ctx, s)
	if err != nil || p == nil {
		return err
	}
	if p.Digest != s.run.Status.Digest { // something was edited since; the status comes first
		return r.replan(ctx, s, p)
	}
	if held(s.run) {
		report(s.run, suspended(), r.now())
		return nil
	}
	leaves, problem, err := r.ensureChildren(ctx, s.run, p)
	if err != nil {
		return err
	}
	if problem != nil {
		if problem.State == condition.Waiting {
			s.requeue = recheckMissing
		}
		report(s.run, *problem, r.now())
		return nil
	}
	if p.Calls == 0 {
		return r.endWithoutJudge(ctx, s, leaves)
	}
	return r.createJob(ctx, s, leaves, p.Rows)
}

// replan takes over a plan that differs from the one in the status. A run that is one row now must have no children.
func (r *Reconciler) replan(ctx context.Context, s *scope, p *plan.Plan) error {
	if len(p.Rows) == 1 {
		children, err := r.liveChildren(ctx, s.run)
		if err != nil {
			return err
		}
		if err := r.removeChildren(ctx, children); err != nil {
			return err
		}
	}
	freeze(s.run, p)
	report(s.run, found(p), r.now())
	return nil
}

func found(p *plan.Plan) situation {
	return condition.InProgress(v1alpha1.ReasonExpanding, fmt.Sprintf("%s found; the run is being started", count(int32(len(p.Rows)), "row")))
}

// start makes the Job of a run that is frozen: for the first time, or anew when somebody deleted it. What was judged
// is kept in the leaves.
func (r *Reconciler) start(ctx context.Context, s *scope) error {
	leaves, err := r.leaves(ctx, s)
	if err != nil || leaves == nil {
		return err
	}
	rows, err := rowsToGrade(leaves)
	switch {
	case err != nil:
		return err
	case allReported(leaves):
		r.finish(s, leaves)
		return nil
	case held(s.run):
		report(s.run, suspended(), r.now())
		return nil
	case callsOf(rows) == 0:
		return r.endWithoutJudge(ctx, s, leaves)
	}
	return r.createJob(ctx, s, leaves, rows)
}

// leaves are the runs that grade the rows of a run that has begun. They are nil when the cache does not show all of them
// yet, and when all were deleted: then the run is ended.
func (r *Reconciler) leaves(ctx context.Context, s *scope) ([]*v1alpha1.EvalRun, error) {
	leaves := runtree.Leaves(s.run, s.children)
	expected := int32(1)
	if s.run.Status.Summary != nil {
		expected = s.run.Status.Summary.Rows
	}
	if row, _ := runtree.Graded(leaves[0]); row != nil && int32(len(leaves)) >= expected {
		return leaves, nil
	}
	children, err := r.liveChildren(ctx, s.run)
	switch {
	case err != nil:
		return nil, err
	case len(children) == 0:
		r.endOrphaned(s)
		return nil, nil
	case len(children) > len(leaves) || !runtree.IsChild(leaves[0]):
		s.requeue = recheckStale
		return nil, nil
	}
	return leaves, nil // some were deleted; the others go on
}

// createJob makes the Job of a run, that grades the rows of its leaves.
func (r *Reconciler) createJob(ctx context.Context, s *scope, leaves []*v1alpha1.EvalRun, rows []planRow) error {
	if s.foreignJob {
		s.requeue = recheckMissing
		report(s.run, foreign("Job", s.run.Name), r.now())
		return nil
	}
	job := buildJob(s.run, rows, r.Runner)
	runtree.FreezeSlices(job, leaves)
	logf.FromContext(ctx).Info("creating the Job", "job", job.Name, "rows", len(rows), "slices", *job.Spec.Completions)
	err := r.Client.Create(ctx, job)
	switch {
	case apierrors.IsAlreadyExists(err):
		if err := r.gatherJob(ctx, r.Live, s); err != nil {
			return err
		}
		if s.job == nil {
			s.requeue = recheckMissing
			report(s.run, foreign("Job", job.Name), r.now())
			return nil
		}
		job = s.job
	case apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return nil
	case apierrors.IsInvalid(err):
		report(s.run, condition.Invalid(fmt.Sprintf("the Job is refused, look at podTemplate: %v", err)), r.now())
		return nil
	case apierrors.IsForbidden(err):
		s.requeue = recheckMissing
		report(s.run, condition.Missing(v1alpha1.ReasonPodsBlocked, fmt.Sprintf("the Job is refused: %v", err)), r.now())
		return nil
	case err != nil:
		return fmt.Errorf("creating the Job: %w", err)
	case s.run.Status.Job != "": // the status does not show that this is another one
		r.Events.Eventf(s.run, nil, corev1.EventTypeNormal, "JobCreated", "Start", "Job %s was gone; another one goes on with what was judged", job.Name)
	}
	s.run.Status.Job = job.Name
	report(s.run, standing(s.run, job, nil, r.now()), r.now())
	return nil
}

func foreign(kind, name string) situation {
	return condition.Missing(v1alpha1.ReasonPodsBlocked, fmt.Sprintf("%s %q is there already and does not belong to this run; delete it, or make a run of another name", kind, name))
}

// held tells whether a suspended run gets no Job: a Job with a queue is started by Kueue, whatever its suspend says.
func held(run *v1alpha1.EvalRun) bool { return run.Spec.Suspend && run.Spec.QueueName != "" }

func suspended() situation {
	return condition.InProgress(v1alpha1.ReasonSuspended, "the run is suspended; set spec.suspend to false to go on")
}
