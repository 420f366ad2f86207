package evalrun

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/condition"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
	"github.com/mcptest/mcptest-operator/engine/redact"
)

// maxTermination is how many bytes of a runner's termination message are shown.
const maxTermination = 1024

// ended tells whether a Job ended: no pod of it runs, and none will.
func ended(job *batchv1.Job) bool {
	return jobCondition(job, batchv1.JobComplete) != nil || jobCondition(job, batchv1.JobFailed) != nil
}

func jobCondition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// causes says for each leaf why it has no report although the Job ended: what became of the Job, and what the last pod of
// the leaf's slice left behind.
func causes(job *batchv1.Job, pods []corev1.Pod, leaves []*v1alpha1.EvalRun) []string {
	out := make([]string, len(leaves))
	of, last := jobCause(job), lastWords(pods)
	for index, slice := range runtree.Slices(job, leaves) {
		for row := slice.From; row < slice.To; row++ {
			out[row] = of
			if words := last[index]; words != "" {
				out[row] += "; " + words
			}
		}
	}
	return out
}

// jobCause says how a Job ended.
func jobCause(job *batchv1.Job) string {
	c := jobCondition(job, batchv1.JobFailed)
	switch {
	case c == nil:
		return v1alpha1.ReasonRunnerFailed + ": the pods ended without a report of this row"
	case c.Reason == batchv1.JobReasonDeadlineExceeded:
		return fmt.Sprintf("%s: the run was stopped before this row was graded; activeDeadlineSeconds is %d",
			v1alpha1.ReasonDeadlineExceeded, valueOf(job.Spec.ActiveDeadlineSeconds))
	}
	return fmt.Sprintf("%s: the Job failed: %s", v1alpha1.ReasonRunnerFailed, cmp.Or(c.Message, c.Reason))
}

// lastWords tells by the index of a slice how the newest of its pods that ended did end.
func lastWords(pods []corev1.Pod) map[int]string {
	words := make(map[int]string)
	newest := make(map[int]*corev1.ContainerStateTerminated)
	for i := range pods {
		pod := &pods[i]
		index, err := strconv.Atoi(cmp.Or(pod.Labels[batchv1.JobCompletionIndexAnnotation], pod.Annotations[batchv1.JobCompletionIndexAnnotation]))
		if err != nil {
			continue
		}
		for _, c := range pod.Status.ContainerStatuses {
			t := c.State.Terminated
			if c.Name != containerName || t == nil || t.ExitCode == 0 {
				continue
			}
			if before := newest[index]; before != nil && !before.FinishedAt.Before(&t.FinishedAt) {
				continue
			}
			newest[index] = t
			words[index] = fmt.Sprintf("pod %s: exit code %d", pod.Name, t.ExitCode)
			if t.Reason != "" && t.Reason != "Error" {
				words[index] += " (" + t.Reason + ")"
			}
			if message := strings.TrimSpace(redact.New().String(t.Message)); message != "" {
				words[index] += ": " + condition.Clip(message, maxTermination)
			}
		}
	}
	return words
}

func valueOf(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}
