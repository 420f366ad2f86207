package evalrun

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
)

// scope is what one reconcile knows about a root run.
type scope struct {
	// before is the run as it was read; it is not changed. run is the copy whose status is written at the end.
	before, run *v1alpha1.EvalRun
	// job is the Job of the run; nil when there is none.
	job *batchv1.Job
	// foreignJob: a Job of that name is there, and it is not this run's.
	foreignJob bool
	// pods are those of the Job.
	pods []corev1.Pod
	// children are the children of the run, once it has begun. They are shared with the cache: never change them.
	children []v1alpha1.EvalRun
	// requeue is when to look again; 0: when something changes.
	requeue time.Duration
	// gone: the run was deleted; there is no status to write.
	gone bool
}

// gather reads the facts about a run from the caches; nil for what is not a root, or is being deleted.
func (r *Reconciler) gather(ctx context.Context, key types.NamespacedName) (*scope, error) {
	root := &v1alpha1.EvalRun{}
	if err := r.Client.Get(ctx, key, root); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if runtree.IsChild(root) || root.DeletionTimestamp != nil {
		return nil, nil
	}
	s := &scope{before: root, run: root.DeepCopy()}
	if runtree.IsComplete(root) {
		return s, nil
	}
	if err := r.gatherJob(ctx, r.Client, s); err != nil {
		return nil, err
	}
	if !begun(root, s.job) {
		return s, nil
	}
	children := &v1alpha1.EvalRunList{}
	err := r.Client.List(ctx, children, client.InNamespace(root.Namespace),
		client.MatchingFields{indexOwner: string(root.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the children: %w", err)
	}
	s.children = children.Items
	return s, nil
}

// gatherJob reads the Job of a run and its pods.
func (r *Reconciler) gatherJob(ctx context.Context, from client.Reader, s *scope) error {
	job := &batchv1.Job{}
	err := from.Get(ctx, client.ObjectKeyFromObject(s.run), job)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading the Job: %w", err)
	}
	if !metav1.IsControlledBy(job, s.run) {
		s.foreignJob = true
		return nil
	}
	s.job, s.foreignJob = job, false
	pods := &corev1.PodList{}
	if err := r.Client.List(ctx, pods, client.InNamespace(job.Namespace), client.MatchingLabels{v1alpha1.LabelRun: s.run.Name}); err != nil {
		return fmt.Errorf("listing the pods of the Job: %w", err)
	}
	for _, pod := range pods.Items {
		if metav1.IsControlledBy(&pod, job) {
			s.pods = append(s.pods, pod)
		}
	}
	return nil
}

// begun tells whether what a run grades is frozen: its Job was made, or its only row is in its status.
func begun(root *v1alpha1.EvalRun, job *batchv1.Job) bool {
	return job != nil || root.Status.Job != "" || root.Status.EvalSpec != nil
}
