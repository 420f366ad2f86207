//go:build unix

package node

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// stored is what the API server holds, by name.
type stored struct {
	secrets    map[string]map[string]string
	configMaps map[string]map[string]string
}

func (s stored) Secret(_ context.Context, _, name string) (*corev1.Secret, error) {
	data, ok := s.secrets[name]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
	}
	out := &corev1.Secret{Data: map[string][]byte{}}
	for k, v := range data {
		out.Data[k] = []byte(v)
	}
	return out, nil
}

func (s stored) ConfigMap(_ context.Context, _, name string) (*corev1.ConfigMap, error) {
	data, ok := s.configMaps[name]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
	}
	return &corev1.ConfigMap{Data: data}, nil
}

var envObjects = stored{
	secrets:    map[string]map[string]string{"keys": {"API_KEY": "s3cret"}},
	configMaps: map[string]map[string]string{"settings": {"MODE": "fast", "LEVEL": "2"}},
}

func envPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Namespace: "ns", UID: "u-1",
			Labels: map[string]string{"app": "x"}, Annotations: map[string]string{"batch.kubernetes.io/job-completion-index": "3"},
		},
		Spec: corev1.PodSpec{NodeName: "n", ServiceAccountName: "sa"},
	}
}

func ref(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

func field(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
}

func secretKey(name, key string, optional *bool) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref(name), Key: key, Optional: optional}}
}

func configKey(name, key string, optional *bool) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref(name), Key: key, Optional: optional}}
}

func TestEnvironmentIsWhatTheSpecificationGives(t *testing.T) {
	yes := true
	for name, tc := range map[string]struct {
		container corev1.Container
		want      []string
	}{
		"values refer to earlier ones, not to later ones": {
			container: corev1.Container{Env: []corev1.EnvVar{
				{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)-$(C)-$$(A)"}, {Name: "C", Value: "2"},
			}},
			want: []string{"A=1", "B=1-$(C)-$(A)", "C=2"},
		},
		"fields of the pod": {
			container: corev1.Container{Env: []corev1.EnvVar{
				{Name: "NAME", ValueFrom: field("metadata.name")}, {Name: "NS", ValueFrom: field("metadata.namespace")},
				{Name: "UID", ValueFrom: field("metadata.uid")}, {Name: "APP", ValueFrom: field("metadata.labels['app']")},
				{Name: "INDEX", ValueFrom: field("metadata.annotations['batch.kubernetes.io/job-completion-index']")},
				{Name: "IP", ValueFrom: field("status.podIP")}, {Name: "NODE", ValueFrom: field("spec.nodeName")},
			}},
			want: []string{"NAME=p", "NS=ns", "UID=u-1", "APP=x", "INDEX=3", "IP=127.0.0.1", "NODE=n"},
		},
		"envFrom comes first, with its prefix, and env overrides it": {
			container: corev1.Container{
				EnvFrom: []corev1.EnvFromSource{
					{Prefix: "CFG_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("settings")}},
					{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref("keys")}},
				},
				Env: []corev1.EnvVar{{Name: "CFG_MODE", Value: "slow"}, {Name: "BOTH", Value: "$(CFG_MODE)$(CFG_LEVEL)"}},
			},
			want: []string{"CFG_LEVEL=2", "CFG_MODE=slow", "API_KEY=s3cret", "BOTH=slow2"},
		},
		"what is optional and missing is left out": {
			container: corev1.Container{
				EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref("none"), Optional: &yes}}},
				Env: []corev1.EnvVar{
					{Name: "S", ValueFrom: secretKey("none", "k", &yes)}, {Name: "K", ValueFrom: secretKey("keys", "none", &yes)},
					{Name: "M", ValueFrom: configKey("none", "k", &yes)}, {Name: "HERE", ValueFrom: configKey("settings", "MODE", nil)},
				},
			},
			want: []string{"HERE=fast"},
		},
		"limits in units of the divisor, rounded up": {
			container: corev1.Container{
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
					corev1.ResourceMemory: resource.MustParse("100Mi"), corev1.ResourceCPU: resource.MustParse("1500m"),
				}},
				Env: []corev1.EnvVar{
					{Name: "MEM", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory", Divisor: resource.MustParse("1Mi")}}},
					{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}},
				},
			},
			want: []string{"MEM=100", "CPU=2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := containerVariables(t.Context(), envPod(), &tc.container, envObjects)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, v.environ(nil)); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsMissingIsNamedAsAKubeletNamesIt(t *testing.T) {
	for want, from := range map[string]*corev1.EnvVarSource{
		`secret "none" not found`:                         secretKey("none", "k", nil),
		`configmap "none" not found`:                      configKey("none", "k", nil),
		`couldn't find key none in Secret ns/keys`:        secretKey("keys", "none", nil),
		`couldn't find key none in ConfigMap ns/settings`: configKey("settings", "none", nil),
	} {
		c := &corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: from}}}
		_, err := containerVariables(t.Context(), envPod(), c, envObjects)
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
