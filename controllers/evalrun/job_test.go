package evalrun

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	psapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files anew")

// everything is a run that chooses all that a run can choose, and tries to take labels that are not its own.
func everything(run *v1alpha1.EvalRun) {
	run.Spec.Parallelism, run.Spec.BackoffLimitPerIndex = ptr.To(int32(2)), ptr.To(int32(0))
	run.Spec.ActiveDeadlineSeconds, run.Spec.QueueName = ptr.To(int64(60)), "team-queue"
	run.Spec.PodTemplate = &v1alpha1.PodTemplate{
		Metadata: &v1alpha1.PodMetadata{
			Labels: map[string]string{
				"team": "a", v1alpha1.LabelRun: "other", v1alpha1.LabelManagedBy: "me", "batch.kubernetes.io/job-completion-index": "7", "job-name": "other",
			},
			Annotations: map[string]string{"note": "b", "batch.kubernetes.io/job-completion-index": "7"},
		},
		Spec: &v1alpha1.PodSpec{
			NodeSelector:      map[string]string{"pool": "evals"},
			Tolerations:       []corev1.Toleration{{Key: "evals", Operator: corev1.TolerationOpExists}},
			PriorityClassName: "low",
			Resources: &corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
			},
			ServiceAccountName: "evals",
			ImagePullSecrets:   []v1alpha1.SecretReference{{Name: "registry"}},
			RuntimeClassName:   ptr.To("gvisor"),
			Affinity:           &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}},
		},
	}
}

func withSecret(rows []planRow) []planRow {
	for i := range rows {
		rows[i].Spec.Judge = &v1alpha1.JudgeSpec{SecretRef: &v1alpha1.SecretReference{Name: "team-keys"}}
	}
	return rows
}

func TestTheJobIsTheGoldenOne(t *testing.T) {
	for name, built := range map[string]*batchv1.Job{
		"defaults":   buildJob(root(), planned(1, 1, 0, 2).Rows, testRunner()),
		"everything": buildJob(root(everything), withSecret(planned(60, 60, 60, 60).Rows), testRunner()),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := yaml.Marshal(built)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "job-"+name+".yaml")
			if *update {
				if err := os.WriteFile(file, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("-want +got; run with -update when this is meant:\n%s", diff)
			}
		})
	}
}

func TestPodsMeetTheRestrictedPodSecurityStandard(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := psapi.LevelVersion{Level: psapi.LevelRestricted, Version: psapi.LatestVersion()}
	for name, run := range map[string]*v1alpha1.EvalRun{"defaults": root(), "everything": root(everything)} {
		t.Run(name, func(t *testing.T) {
			template := buildJob(run, planned(1).Rows, testRunner()).Spec.Template
			for _, result := range evaluator.EvaluatePod(level, &template.ObjectMeta, &template.Spec) {
				if !result.Allowed {
					t.Errorf("%s: %s", result.ForbiddenReason, result.ForbiddenDetail)
				}
			}
		})
	}
}

func TestPodsHoldNoCredentialButTheCollectorsToken(t *testing.T) {
	spec := buildJob(root(everything), planned(1).Rows, testRunner()).Spec.Template.Spec
	if ptr.Deref(spec.AutomountServiceAccountToken, true) {
		t.Error("the token of the service account is mounted")
	}
	if n := len(spec.Volumes); n != 1 || spec.Volumes[0].Projected == nil || spec.Volumes[0].Projected.Sources[0].ServiceAccountToken.Audience == "" {
		t.Errorf("volumes = %+v, want one projected token with an audience", spec.Volumes)
	}
	if p := spec.Containers[0].TerminationMessagePolicy; p != corev1.TerminationMessageReadFile {
		t.Errorf("terminationMessagePolicy = %q: logs would reach a status", p)
	}
}

func TestTheSecretOfTheJudgeIsOptionalOnlyWhenNobodyNamedIt(t *testing.T) {
	for name, tc := range map[string]struct {
		rows []planRow
		want corev1.SecretEnvSource
	}{
		"named": {withSecret(planned(1).Rows), corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "team-keys"}, Optional: ptr.To(false),
		}},
		"not named": {planned(1).Rows, corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: v1alpha1.DefaultJudgeSecret}, Optional: ptr.To(true),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := buildJob(root(), tc.rows, testRunner()).Spec.Template.Spec.Containers[0].EnvFrom[0].SecretRef
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAJobStartsSuspendedWhenTheRunOrAQueueHoldsIt(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.EvalRun)
		want   bool
	}{
		"neither":   {func(*v1alpha1.EvalRun) {}, false},
		"suspended": {func(r *v1alpha1.EvalRun) { r.Spec.Suspend = true }, true},
		"queue":     {func(r *v1alpha1.EvalRun) { r.Spec.QueueName = "q" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			j := buildJob(root(tc.change), planned(1).Rows, testRunner())
			if got := *j.Spec.Suspend; got != tc.want {
				t.Errorf("suspend = %v, want %v", got, tc.want)
			}
		})
	}
}
