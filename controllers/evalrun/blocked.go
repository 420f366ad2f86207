package evalrun

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/condition"
)

// podGrace is how long a Job may be without a pod before that is told.
const podGrace = 30 * time.Second

// blockedBy says why the pods of a Job cannot start; false when nothing holds them, as far as their statuses tell.
func blockedBy(job *batchv1.Job, pods []corev1.Pod, now time.Time) (situation, bool) {
	alive := false
	for i := range pods {
		pod := &pods[i]
		if terminal(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		alive = true
		if s, ok := podBlocked(pod); ok {
			return s, true
		}
	}
	if !alive && len(pods) == 0 && job.Status.StartTime != nil && now.Sub(job.Status.StartTime.Time) >= podGrace {
		return condition.Missing(v1alpha1.ReasonPodsBlocked, fmt.Sprintf(
			"Job %s has made no pod for %s; `kubectl describe job %s` says why (a quota, a LimitRange or pod security)", job.Name, podGrace, job.Name)), true
	}
	return situation{}, false
}

// podBlocked says why one pod cannot start, in the words of the scheduler or the kubelet.
func podBlocked(pod *corev1.Pod) (situation, bool) {
	for _, c := range pod.Status.ContainerStatuses {
		w := c.State.Waiting
		if w == nil {
			continue
		}
		switch w.Reason {
		case "CreateContainerConfigError":
			reason := v1alpha1.ReasonPodsBlocked
			if strings.HasPrefix(strings.ToLower(w.Message), "secret ") && strings.Contains(w.Message, "not found") {
				reason = v1alpha1.ReasonSecretNotFound
			}
			return condition.Missing(reason, fmt.Sprintf("pod %s: %s", pod.Name, w.Message)), true
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "CreateContainerError", "RunContainerError":
			return condition.Missing(v1alpha1.ReasonPodsBlocked, fmt.Sprintf("pod %s: %s: %s", pod.Name, w.Reason, w.Message)), true
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return condition.Missing(v1alpha1.ReasonPodsBlocked, fmt.Sprintf("pod %s cannot be scheduled: %s", pod.Name, c.Message)), true
		}
	}
	return situation{}, false
}

func terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
