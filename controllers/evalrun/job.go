package evalrun

import (
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

// Runner says how the pods of runs are made.
type Runner struct {
	// Image holds the program /runner.
	Image string
	// PullPolicy is the pull policy of the image; empty: the cluster's default.
	PullPolicy corev1.PullPolicy
	// CollectorURL is where runners find the collector.
	CollectorURL string
	// CollectorCA returns the certificate of the collector's authority of this moment, as PEM.
	CollectorCA func() []byte
}

const (
	// containerName is the container of a pod that grades.
	containerName = "runner"
	// labelQueue is the label by which Kueue knows that a Job waits for a queue.
	labelQueue = "kueue.x-k8s.io/queue-name"

	tokenVolume  = "collector-token"
	tokenDir     = "/var/run/mcptest" //nolint:gosec // a path, no secret
	tokenFile    = "token"
	tokenSeconds = 3600
	// stopSeconds is how long a runner that is told to stop may finish the calls under way, and hand over what it has.
	stopSeconds = 60
	// nobody is the user of the image.
	nobody = 65532
)

// buildJob makes the Job that grades the rows of a run. The rows are in the order of the run's leaves.
func buildJob(root *v1alpha1.EvalRun, rows []planRow, runner Runner) *batchv1.Job {
	parallelism := ptr.Deref(root.Spec.Parallelism, v1alpha1.DefaultParallelism)
	completions := plan.SliceCount(callsPerRow(rows), parallelism)
	labels := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelRun: root.Name}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       root.Namespace,
			Name:            root.Name,
			Labels:          maps.Clone(labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(root, v1alpha1.GroupVersion.WithKind(kindEvalRun))},
		},
		Spec: batchv1.JobSpec{
			CompletionMode:        ptr.To(batchv1.IndexedCompletion),
			Completions:           ptr.To(completions),
			Parallelism:           ptr.To(min(parallelism, completions)),
			BackoffLimitPerIndex:  ptr.To(ptr.Deref(root.Spec.BackoffLimitPerIndex, v1alpha1.DefaultBackoffLimitPerIndex)),
			ActiveDeadlineSeconds: ptr.To(ptr.Deref(root.Spec.ActiveDeadlineSeconds, int64(v1alpha1.DefaultActiveDeadlineSeconds))),
			PodReplacementPolicy:  ptr.To(batchv1.Failed),
			PodFailurePolicy:      podFailurePolicy(),
			Suspend:               ptr.To(root.Spec.Suspend || root.Spec.QueueName != ""),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       podSpec(secretOfRows(rows), runner),
			},
		},
	}
	if root.Spec.QueueName != "" {
		job.Labels[labelQueue] = root.Spec.QueueName
	}
	if root.Spec.PodTemplate != nil {
		merge(&job.Spec.Template, root.Spec.PodTemplate)
	}
	return job
}

// podFailurePolicy: a pod that was evicted is replaced at no cost; a runner that says that another try is of no use is
// not started again; whatever else happens is tried again (backoffLimitPerIndex).
func podFailurePolicy() *batchv1.PodFailurePolicy {
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
		{
			Action: batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
				{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
			},
		},
		{
			Action: batchv1.PodFailurePolicyActionFailIndex,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				ContainerName: ptr.To(containerName),
				Operator:      batchv1.PodFailurePolicyOnExitCodesOpIn,
				Values:        []int32{wire.ExitUsage, wire.ExitData, wire.ExitConfig},
			},
		},
	}}
}

// podSpec is a pod that meets the restricted Pod Security standard and holds no credential but a token for the collector.
func podSpec(secret string, runner Runner) corev1.PodSpec {
	keys := corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Optional: ptr.To(false)}
	if secret == "" {
		keys = corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: v1alpha1.DefaultJudgeSecret}, Optional: ptr.To(true)}
	}
	return corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		AutomountServiceAccountToken:  ptr.To(false),
		EnableServiceLinks:            ptr.To(false),
		TerminationGracePeriodSeconds: ptr.To(int64(stopSeconds)),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   ptr.To(true),
			RunAsUser:      ptr.To(int64(nobody)),
			RunAsGroup:     ptr.To(int64(nobody)),
			FSGroup:        ptr.To(int64(nobody)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name:            containerName,
			Image:           runner.Image,
			ImagePullPolicy: runner.PullPolicy,
			Command:         []string{"/runner"},
			EnvFrom:         []corev1.EnvFromSource{{SecretRef: &keys}},
			// After envFrom, so that no key of the Secret can redirect the runner.
			Env: []corev1.EnvVar{
				{Name: wire.EnvURL, Value: runner.CollectorURL},
				{Name: wire.EnvCA, Value: string(runner.CollectorCA())},
				{Name: wire.EnvTokenFile, Value: tokenDir + "/" + tokenFile},
				{Name: wire.EnvTerminationLog, Value: corev1.TerminationMessagePathDefault},
			},
			Resources:    defaultResources(),
			VolumeMounts: []corev1.VolumeMount{{Name: tokenVolume, MountPath: tokenDir, ReadOnly: true}},
			// Never the logs: they could hold anything.
			TerminationMessagePath:   corev1.TerminationMessagePathDefault,
			TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false),
				ReadOnlyRootFilesystem:   ptr.To(true),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
		Volumes: []corev1.Volume{{
			Name: tokenVolume,
			VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				DefaultMode: ptr.To(int32(0o440)),
				Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
					Audience: wire.Audience, ExpirationSeconds: ptr.To(int64(tokenSeconds)), Path: tokenFile,
				}}},
			}},
		}},
	}
}

func defaultResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("50m"),
			corev1.ResourceMemory: resource.MustParse("64Mi"),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
	}
}

// merge puts what a run chooses into the template of its pods. The labels of the operator and of the Job controller win.
func merge(pod *corev1.PodTemplateSpec, chosen *v1alpha1.PodTemplate) {
	if m := chosen.Metadata; m != nil {
		for key, value := range m.Labels {
			if _, ours := pod.Labels[key]; !ours && !reserved(key) {
				pod.Labels[key] = value
			}
		}
		for key, value := range m.Annotations {
			if reserved(key) {
				continue
			}
			if pod.Annotations == nil {
				pod.Annotations = make(map[string]string)
			}
			pod.Annotations[key] = value
		}
	}
	c := chosen.Spec
	if c == nil {
		return
	}
	to := &pod.Spec
	to.NodeSelector, to.Tolerations, to.Affinity = c.NodeSelector, c.Tolerations, c.Affinity
	to.PriorityClassName, to.ServiceAccountName, to.RuntimeClassName = c.PriorityClassName, c.ServiceAccountName, c.RuntimeClassName
	for _, ref := range c.ImagePullSecrets {
		to.ImagePullSecrets = append(to.ImagePullSecrets, corev1.LocalObjectReference{Name: ref.Name})
	}
	if c.Resources != nil {
		to.Containers[0].Resources = *c.Resources.DeepCopy()
	}
}

// reserved tells whether a label or annotation is the operator's or the Job controller's: the collector trusts those.
func reserved(key string) bool {
	prefix, _, found := strings.Cut(key, "/")
	return found && (prefix == v1alpha1.GroupVersion.Group || prefix == "batch.kubernetes.io") || key == "job-name" || key == "controller-uid"
}

// secretOfRows names the Secret that the rows share; empty for the default one, which may be missing as long as no row
// that needs a judge names it outright.
func secretOfRows(rows []planRow) string {
	for i := range rows {
		if name := secretOf(&rows[i]); name != "" && rows[i].Calls > 0 {
			return name
		}
	}
	return ""
}

func callsPerRow(rows []planRow) []int32 {
	calls := make([]int32, len(rows))
	for i := range rows {
		calls[i] = rows[i].Calls
	}
	return calls
}

// callsOf are the projected calls of all rows.
func callsOf(rows []planRow) int64 {
	var total int64
	for i := range rows {
		total += int64(rows[i].Calls)
	}
	return total
}
