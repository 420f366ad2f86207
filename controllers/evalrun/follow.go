package evalrun

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/condition"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
)

// follow watches over a run whose Job is there, until every row has its report.
func (r *Reconciler) follow(ctx context.Context, s *scope) error {
	s.run.Status.Job = s.job.Name
	leaves, err := r.leaves(ctx, s)
	if err != nil || leaves == nil {
		return err
	}
	switch {
	case allReported(leaves):
		r.finish(s, leaves)
		return nil
	case ended(s.job):
		return r.endFailed(ctx, s, leaves)
	}
	r.showProgress(s, leaves)
	if err := r.alignSuspension(ctx, s); err != nil {
		return err
	}
	report(s.run, standing(s.run, s.job, s.pods, r.now()), r.now())
	if wait := podsDue(s.job, s.pods, r.now()); wait > 0 && (s.requeue == 0 || wait < s.requeue) {
		s.requeue = wait
	}
	return nil
}

// standing is where a run with a Job stands.
func standing(run *v1alpha1.EvalRun, job *batchv1.Job, pods []corev1.Pod, now time.Time) situation {
	if run.Spec.Suspend {
		return suspended()
	}
	if ptr.Deref(job.Spec.Suspend, false) {
		if run.Spec.QueueName != "" {
			return condition.InProgress(v1alpha1.ReasonPending, fmt.Sprintf("Job %s waits in queue %s", job.Name, run.Spec.QueueName))
		}
		return condition.InProgress(v1alpha1.ReasonPending, fmt.Sprintf("Job %s is being resumed", job.Name))
	}
	if s, blocked := blockedBy(job, pods, now); blocked {
		return s
	}
	for i := range pods {
		if pods[i].Status.Phase == corev1.PodRunning {
			return condition.InProgress(v1alpha1.ReasonRunning, fmt.Sprintf("Job %s is grading the rows", job.Name))
		}
	}
	return condition.InProgress(v1alpha1.ReasonPending, fmt.Sprintf("Job %s waits for its pods", job.Name))
}

// podsDue is when the first pod of a Job should be there; 0 when one is, or when that time is over.
func podsDue(job *batchv1.Job, pods []corev1.Pod, now time.Time) time.Duration {
	if len(pods) > 0 || job.Status.StartTime == nil || ptr.Deref(job.Spec.Suspend, false) {
		return 0
	}
	return max(0, job.Status.StartTime.Add(podGrace).Sub(now))
}

// suspension is what is to be done to a Job because its run was suspended or resumed.
type suspension int

const (
	leaveJob suspension = iota
	suspendJob
	resumeJob
	// deleteJob: Kueue would start a Job again that it admitted; without it the quota is given back. Its successor
	// goes on with what was judged.
	deleteJob
)

func suspensionOf(run *v1alpha1.EvalRun, job *batchv1.Job) suspension {
	held := ptr.Deref(job.Spec.Suspend, false)
	switch {
	case run.Spec.QueueName != "":
		if run.Spec.Suspend {
			return deleteJob
		}
	case run.Spec.Suspend && !held:
		return suspendJob
	case !run.Spec.Suspend && held:
		return resumeJob
	}
	return leaveJob
}

// alignSuspension makes the Job follow the run's suspend.
func (r *Reconciler) alignSuspension(ctx context.Context, s *scope) error {
	todo := suspensionOf(s.run, s.job)
	if todo == leaveJob || s.job.DeletionTimestamp != nil {
		return nil
	}
	log := logf.FromContext(ctx).WithValues("job", s.job.Name)
	if todo == deleteJob {
		log.Info("deleting the Job of a suspended run with a queue")
		// Its pods go first: without their Job the collector would not take what they still post.
		err := r.Client.Delete(ctx, s.job, client.Preconditions{UID: &s.job.UID}, client.PropagationPolicy(metav1.DeletePropagationForeground))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting the Job of a suspended run: %w", err)
		}
		return nil
	}
	log.Info("changing the Job's suspend", "suspend", todo == suspendJob)
	before := s.job.DeepCopy()
	s.job.Spec.Suspend = ptr.To(todo == suspendJob)
	if err := r.Client.Patch(ctx, s.job, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing the suspend of the Job: %w", err)
	}
	return nil
}

// showProgress puts the rows that ended into the status, not too often: every report of a row leads here.
func (r *Reconciler) showProgress(s *scope, leaves []*v1alpha1.EvalRun) {
	if !runtree.IsChild(leaves[0]) {
		return
	}
	key := client.ObjectKeyFromObject(s.run)
	if wait := r.progress.wait(key, r.now()); wait > 0 {
		s.requeue = wait
		return
	}
	summary, rows := summarize(leaves), listed(s.run, rowsOf(leaves))
	summary.Rows += missingRows(s.run, leaves)
	status := &s.run.Status
	if equality.Semantic.DeepEqual(status.Summary, &summary) && equality.Semantic.DeepEqual(status.Rows, rows) {
		return
	}
	r.progress.written(key, r.now())
	status.Summary, status.Rows = &summary, rows
}
