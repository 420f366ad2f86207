//go:build unix

package node

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// con makes a container that was not started yet.
func con(name string, k kind) *container {
	return &container{spec: &corev1.Container{Name: name, Image: "img"}, kind: k}
}

func (c *container) up() *container {
	c.started, c.running, c.id = true, &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: noon}}, "process://1"
	return c
}

func (c *container) exit(code int32) *container {
	c.started, c.id = true, "process://1"
	c.ended(&corev1.ContainerStateTerminated{
		ExitCode: code, StartedAt: metav1.Time{Time: noon.Add(-time.Second)}, FinishedAt: metav1.Time{Time: noon},
	})
	return c
}

func names(cs []*container) []string {
	var out []string
	for _, c := range cs {
		out = append(out, c.spec.Name)
	}
	return out
}

func TestContainersStartInTheOrderOfAKubelet(t *testing.T) {
	const always, onFailure, never = corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever
	for name, tc := range map[string]struct {
		policy     corev1.RestartPolicy
		containers []*container
		start      []string
		finished   bool
		wake       time.Duration
	}{
		"main containers start together": {policy: never, containers: []*container{con("a", mainContainer), con("b", mainContainer)}, start: []string{"a", "b"}},
		"an init container goes first":   {policy: never, containers: []*container{con("i", initContainer), con("a", mainContainer)}, start: []string{"i"}},
		"while it runs nothing starts":   {policy: never, containers: []*container{con("i", initContainer).up(), con("a", mainContainer)}},
		"when it is done the next starts": {policy: always,
			containers: []*container{con("i", initContainer).exit(0), con("j", initContainer), con("a", mainContainer)}, start: []string{"j"}},
		"a failed one ends a pod that never restarts": {policy: never,
			containers: []*container{con("i", initContainer).exit(1), con("a", mainContainer)}, finished: true},
		"a failed one is tried again otherwise": {policy: onFailure,
			containers: []*container{con("i", initContainer).exit(1), con("a", mainContainer)}, start: []string{"i"}},
		"a sidecar starts and blocks nothing once it runs": {policy: never,
			containers: []*container{con("s", sidecar).up(), con("i", initContainer), con("a", mainContainer)}, start: []string{"i"}},
		"a sidecar that does not run yet blocks what follows": {policy: never,
			containers: []*container{con("s", sidecar), con("i", initContainer), con("a", mainContainer)}, start: []string{"s"}},
		"a sidecar is restarted beside running containers, whatever the policy": {policy: never,
			containers: []*container{con("s", sidecar).exit(0), con("a", mainContainer).up()}, start: []string{"s"}},
		"a pod is finished when its main containers are, though a sidecar runs": {policy: never,
			containers: []*container{con("s", sidecar).up(), con("a", mainContainer).exit(1)}, finished: true},
		"Never restarts nothing":           {policy: never, containers: []*container{con("a", mainContainer).exit(1)}, finished: true},
		"OnFailure restarts what failed":   {policy: onFailure, containers: []*container{con("a", mainContainer).exit(1)}, start: []string{"a"}},
		"OnFailure leaves what succeeded":  {policy: onFailure, containers: []*container{con("a", mainContainer).exit(0)}, finished: true},
		"Always restarts what succeeded":   {policy: always, containers: []*container{con("a", mainContainer).exit(0)}, start: []string{"a"}},
		"the second restart waits":         {policy: always, containers: []*container{con("a", mainContainer).exit(1).exit(1)}, wake: 10 * time.Second},
		"the third restart waits for more": {policy: always, containers: []*container{con("a", mainContainer).exit(1).exit(1).exit(1)}, wake: 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := next(tc.policy, tc.containers, noon)
			if diff := cmp.Diff(tc.start, names(s.start)); diff != "" {
				t.Errorf("start (-want +got):\n%s", diff)
			}
			if s.finished != tc.finished {
				t.Errorf("finished = %v, want %v", s.finished, tc.finished)
			}
			if tc.wake != 0 && !s.wake.Equal(noon.Add(tc.wake)) {
				t.Errorf("wake = %v, want noon + %v", s.wake, tc.wake)
			}
		})
	}
}

func TestBackOffDoublesUpToFiveMinutes(t *testing.T) {
	var got []time.Duration
	for crashes := range 9 {
		got = append(got, backOff(crashes))
	}
	want := []time.Duration{0, 0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute, 5 * time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("back-off (-want +got):\n%s", diff)
	}
}

func TestALongRunForgivesEarlierCrashes(t *testing.T) {
	c := con("a", mainContainer).exit(1).exit(1).exit(1)
	c.ended(&corev1.ContainerStateTerminated{
		ExitCode: 1, StartedAt: metav1.Time{Time: noon}, FinishedAt: metav1.Time{Time: noon.Add(forgiven)},
	})
	if want := noon.Add(forgiven); !c.notBefore.Equal(want) {
		t.Errorf("may start at %v, want at once, at %v", c.notBefore, want)
	}
}

func TestSidecarsStopAfterTheRestAndInReverse(t *testing.T) {
	s1, s2, a, b := con("s1", sidecar).up(), con("s2", sidecar).up(), con("a", mainContainer).up(), con("b", mainContainer).up()
	all := []*container{s1, s2, a, b}
	var order [][]string
	for now := toStop(all); len(now) > 0; now = toStop(all) {
		order = append(order, names(now))
		for _, c := range now {
			c.exit(143)
		}
	}
	if diff := cmp.Diff([][]string{{"a", "b"}, {"s2"}, {"s1"}}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
