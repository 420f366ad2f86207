//go:build unix

package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// The stories run against a real control plane and its process node:
//
//	cluster run -- go test ./internal/node -run Story

const (
	probeImage = "example.com/probe:1"
	// soon bounds every wait: far more than is needed on a busy machine.
	soon = 60 * time.Second
)

// story is a namespace of a running cluster.
type story struct {
	*testing.T
	client     kubernetes.Interface
	ns         string
	clusterDir string
}

func newStory(t *testing.T) *story {
	t.Helper()
	dir := os.Getenv("CLUSTER_DIR")
	if dir == "" {
		t.Skip("not under `cluster run`")
	}
	if _, err := os.Stat(filepath.Join(dir, "pki", "node.crt")); err != nil {
		t.Skip("the cluster has no process node")
	}
	rootfs := filepath.Join(dir, "probe-rootfs")
	build := exec.Command("go", "build", "-o", filepath.Join(rootfs, "probe"), "./testdata/probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the probe: %v\n%s", err, out)
	}
	if err := AddImages(dir, map[string]Image{probeImage: {Rootfs: rootfs, Entrypoint: "/probe"}}); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "story-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := &story{T: t, client: client, ns: ns.Name, clusterDir: dir}
	t.Cleanup(func() {
		_ = client.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{})
	})
	s.eventually("the default service account", func(ctx context.Context) (bool, string) {
		_, err := client.CoreV1().ServiceAccounts(s.ns).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
	return s
}

// eventually polls until done, and fails with the last state it was told.
func (s *story) eventually(what string, done func(context.Context) (bool, string)) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), soon)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, state := done(ctx)
		if ok {
			return
		}
		select {
		case <-ctx.Done():
			s.Fatalf("no %s within %s; last seen: %s", what, soon, state)
		case <-tick.C:
		}
	}
}

func (s *story) create(pod *corev1.Pod) *corev1.Pod {
	s.Helper()
	pod.Namespace = s.ns
	created, err := s.client.CoreV1().Pods(s.ns).Create(s.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return created
}

// until waits for a pod to be as it should.
func (s *story) until(name, what string, done func(*corev1.Pod) bool) *corev1.Pod {
	s.Helper()
	var pod *corev1.Pod
	s.eventually(what, func(ctx context.Context) (bool, string) {
		var err error
		if pod, err = s.client.CoreV1().Pods(s.ns).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return false, err.Error()
		}
		return done(pod), fmt.Sprintf("%+v", pod.Status)
	})
	return pod
}

func (s *story) logs(pod string) string {
	s.Helper()
	out, err := s.client.CoreV1().Pods(s.ns).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return string(out)
}

func probe(name string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "c", Image: probeImage, Args: args}},
		},
	}
}

func inPhase(p corev1.PodPhase) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod.Status.Phase == p }
}

func ended(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	if len(pod.Status.ContainerStatuses) == 0 {
		return nil
	}
	return pod.Status.ContainerStatuses[0].State.Terminated
}

func TestStoryAJobReadsItsFilesAndProvesWhoItIs(t *testing.T) {
	s := newStory(t)
	if _, err := s.client.CoreV1().ConfigMaps(s.ns).Create(s.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"greeting": "hello"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	hour, automount := int64(3600), false
	if _, err := s.client.BatchV1().Jobs(s.ns).Create(s.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &automount,
			Volumes: []corev1.Volume{
				{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref("settings")}}},
				{Name: "identity", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "collector", ExpirationSeconds: &hour, Path: "token"}},
				}}}},
			},
			Containers: []corev1.Container{{
				Name: "c", Image: probeImage, Command: []string{"/probe"},
				Args: []string{"cat", "/dev/termination-log", "/etc/settings/greeting", "/var/run/identity/token"},
				VolumeMounts: []corev1.VolumeMount{
					{Name: "settings", MountPath: "/etc/settings"}, {Name: "identity", MountPath: "/var/run/identity"},
				},
			}},
		}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.eventually("completion of the Job", func(ctx context.Context) (bool, string) {
		job, err := s.client.BatchV1().Jobs(s.ns).Get(ctx, "job", metav1.GetOptions{})
		return err == nil && job.Status.Succeeded == 1 && job.Status.CompletionTime != nil, fmt.Sprintf("%+v, %v", job, err)
	})
	pods, err := s.client.CoreV1().Pods(s.ns).List(s.Context(), metav1.ListOptions{LabelSelector: "job-name=job"})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("pods of the Job: %v, %v", pods, err)
	}
	pod := &pods.Items[0]
	lines := strings.Fields(ended(pod).Message)
	if len(lines) != 2 || lines[0] != "hello" {
		t.Fatalf("termination message has %d words, want the greeting and a token", len(lines))
	}
	if got := s.logs(pod.Name); !strings.Contains(got, "hello") {
		t.Errorf("log = %q", got)
	}
	review, err := s.client.AuthenticationV1().TokenReviews().Create(s.Context(), &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: lines[1], Audiences: []string{"collector"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !review.Status.Authenticated {
		t.Fatalf("the token is not accepted: %s", review.Status.Error)
	}
	got := map[string]string{"user": review.Status.User.Username}
	for _, k := range []string{"authentication.kubernetes.io/pod-name", "authentication.kubernetes.io/pod-uid"} {
		got[k] = strings.Join(review.Status.User.Extra[k], ",")
	}
	want := map[string]string{
		"user":                                  "system:serviceaccount:" + s.ns + ":default",
		"authentication.kubernetes.io/pod-name": pod.Name, "authentication.kubernetes.io/pod-uid": string(pod.UID),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("who the token says it is (-want +got):\n%s", diff)
	}
}

func TestStoryDeletionLeavesTheGraceAndNoMore(t *testing.T) {
	s := newStory(t)
	for name, tc := range map[string]struct {
		args  []string
		grace int64
		code  int32
	}{
		"a pod that obeys ends by itself":    {args: []string{"wait", "5"}, grace: 60, code: 5},
		"a pod that does not obey is killed": {args: []string{"ignore"}, grace: 1, code: 137},
	} {
		t.Run(name, func(t *testing.T) {
			s := &story{T: t, client: s.client, ns: s.ns, clusterDir: s.clusterDir}
			pod := probe("pod-"+tc.args[0], tc.args...)
			pod.Finalizers = []string{"example.com/hold"} // so that its last status can be read
			s.create(pod)
			s.eventually("first words of the pod", func(ctx context.Context) (bool, string) {
				out, err := s.client.CoreV1().Pods(s.ns).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
				return err == nil && len(out) > 0, fmt.Sprint(err)
			})
			if err := s.client.CoreV1().Pods(s.ns).Delete(s.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &tc.grace}); err != nil {
				t.Fatal(err)
			}
			last := s.until(pod.Name, "end of the pod", func(p *corev1.Pod) bool { return ended(p) != nil })
			if got := ended(last); got.ExitCode != tc.code || last.Status.Phase != corev1.PodFailed {
				t.Errorf("exit code %d in phase %s, want %d in Failed", got.ExitCode, last.Status.Phase, tc.code)
			}
			patch := []byte(`{"metadata":{"finalizers":null}}`)
			if _, err := s.client.CoreV1().Pods(s.ns).Patch(s.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			s.eventually("disappearance of the pod and its folder", func(ctx context.Context) (bool, string) {
				_, err := s.client.CoreV1().Pods(s.ns).Get(ctx, pod.Name, metav1.GetOptions{})
				_, statErr := os.Stat(podDir(filepath.Join(s.clusterDir, "pods"), last))
				return apierrors.IsNotFound(err) && os.IsNotExist(statErr), fmt.Sprint(err, statErr)
			})
		})
	}
}

func TestStoryAFailureIsReportedWithItsCodeAndLastWords(t *testing.T) {
	s := newStory(t)
	pod := probe("fails", "exit", "42")
	pod.Spec.Containers[0].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	s.create(pod)
	got := ended(s.until("fails", "failure", inPhase(corev1.PodFailed)))
	if got.ExitCode != 42 || got.Reason != "Error" || got.Message != "leaving with 42\n" {
		t.Errorf("got %+v", got)
	}
}

func TestStoryAProcessKilledByItsPidIsAContainerThatEndedWith137(t *testing.T) {
	s := newStory(t)
	s.create(probe("victim", "ignore"))
	pod := s.until("victim", "running pod", inPhase(corev1.PodRunning))
	data, err := os.ReadFile(filepath.Join(s.clusterDir, "pods", s.ns+"_victim_"+string(pod.UID), "c", "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := ended(s.until("victim", "failure", inPhase(corev1.PodFailed))); got.ExitCode != 137 {
		t.Errorf("exit code %d, want 137", got.ExitCode)
	}
}

func TestStoryAMissingSecretHealsWhenItAppears(t *testing.T) {
	s := newStory(t)
	pod := probe("needs-secret", "env", "KEY")
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "KEY", ValueFrom: secretKey("keys", "key", nil)}}
	s.create(pod)
	s.until("needs-secret", "complaint about the Secret", func(p *corev1.Pod) bool {
		if len(p.Status.ContainerStatuses) == 0 || p.Status.ContainerStatuses[0].State.Waiting == nil {
			return false
		}
		w := p.Status.ContainerStatuses[0].State.Waiting
		return w.Reason == "CreateContainerConfigError" && w.Message == `secret "keys" not found`
	})
	if _, err := s.client.CoreV1().Secrets(s.ns).Create(s.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "keys"}, StringData: map[string]string{"key": "open"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.until("needs-secret", "success", inPhase(corev1.PodSucceeded))
	if got := s.logs("needs-secret"); got != "KEY=open\n" {
		t.Errorf("log = %q", got)
	}
}

func TestStoryInitContainersAndSidecarsShareAVolumeInOrder(t *testing.T) {
	s := newStory(t)
	always := corev1.ContainerRestartPolicyAlways
	shared := []corev1.VolumeMount{{Name: "shared", MountPath: "/shared"}}
	pod := probe("ordered", "cat", "/dev/termination-log", "/shared/second")
	pod.Spec.Volumes = []corev1.Volume{{Name: "shared", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = shared
	pod.Spec.InitContainers = []corev1.Container{
		{Name: "sidecar", Image: probeImage, Args: []string{"wait", "0"}, RestartPolicy: &always},
		{Name: "first", Image: probeImage, Args: []string{"cat", "/shared/first"}, VolumeMounts: shared},
		{Name: "second", Image: probeImage, Args: []string{"cat", "/shared/second", "/shared/first"}, VolumeMounts: shared},
	}
	s.create(pod)
	got := s.until("ordered", "success", inPhase(corev1.PodSucceeded))
	if code := got.Status.InitContainerStatuses[0].State.Terminated; code == nil {
		t.Errorf("the sidecar did not end with its pod: %+v", got.Status.InitContainerStatuses[0])
	}
}

func TestStoryADeadlineEndsAPod(t *testing.T) {
	s := newStory(t)
	one := int64(1)
	pod := probe("late", "wait", "0")
	pod.Spec.ActiveDeadlineSeconds = &one
	s.create(pod)
	if got := s.until("late", "failure", inPhase(corev1.PodFailed)); got.Status.Reason != "DeadlineExceeded" {
		t.Errorf("reason %q, want DeadlineExceeded", got.Status.Reason)
	}
}
