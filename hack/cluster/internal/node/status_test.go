//go:build unix

package node

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPhaseAndStatesAreThoseOfAKubelet(t *testing.T) {
	config := con("a", mainContainer)
	config.waiting = &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: `secret "x" not found`}
	for name, tc := range map[string]struct {
		policy     corev1.RestartPolicy
		containers []*container
		over       bool
		reason     string
		phase      corev1.PodPhase
		state      string // of the last container
		ready      corev1.ConditionStatus
	}{
		"nothing started":                        {containers: []*container{con("a", mainContainer)}, phase: corev1.PodPending, state: "waiting ContainerCreating", ready: corev1.ConditionFalse},
		"initialising":                           {containers: []*container{con("i", initContainer).up(), con("a", mainContainer)}, phase: corev1.PodPending, state: "waiting PodInitializing", ready: corev1.ConditionFalse},
		"a secret is missing":                    {containers: []*container{config}, phase: corev1.PodPending, state: "waiting CreateContainerConfigError", ready: corev1.ConditionFalse},
		"running":                                {containers: []*container{con("i", initContainer).exit(0), con("a", mainContainer).up()}, phase: corev1.PodRunning, state: "running", ready: corev1.ConditionTrue},
		"one of two not started yet":             {containers: []*container{con("a", mainContainer).up(), config}, phase: corev1.PodPending, state: "waiting CreateContainerConfigError", ready: corev1.ConditionFalse},
		"crashing":                               {policy: corev1.RestartPolicyAlways, containers: []*container{con("a", mainContainer).exit(1).exit(1)}, phase: corev1.PodRunning, state: "waiting CrashLoopBackOff", ready: corev1.ConditionFalse},
		"ended while a sidecar still runs":       {policy: corev1.RestartPolicyNever, containers: []*container{con("s", sidecar).up(), con("a", mainContainer).exit(0)}, phase: corev1.PodRunning, state: "terminated 0", ready: corev1.ConditionFalse},
		"succeeded":                              {policy: corev1.RestartPolicyNever, containers: []*container{con("a", mainContainer).exit(0)}, over: true, phase: corev1.PodSucceeded, state: "terminated 0", ready: corev1.ConditionFalse},
		"a killed sidecar does not fail the pod": {policy: corev1.RestartPolicyNever, containers: []*container{con("s", sidecar).exit(137), con("a", mainContainer).exit(0)}, over: true, phase: corev1.PodSucceeded, state: "terminated 0", ready: corev1.ConditionFalse},
		"failed":                                 {policy: corev1.RestartPolicyNever, containers: []*container{con("a", mainContainer).exit(137)}, over: true, phase: corev1.PodFailed, state: "terminated 137", ready: corev1.ConditionFalse},
		"a failed init container fails the pod":  {policy: corev1.RestartPolicyNever, containers: []*container{con("i", initContainer).exit(3), con("a", mainContainer)}, over: true, phase: corev1.PodFailed, state: "waiting PodInitializing", ready: corev1.ConditionFalse},
		"past its deadline, however it ended":    {policy: corev1.RestartPolicyNever, containers: []*container{con("a", mainContainer).exit(0)}, over: true, reason: "DeadlineExceeded", phase: corev1.PodFailed, state: "terminated 0", ready: corev1.ConditionFalse},
		"deleted while its containers restart":   {policy: corev1.RestartPolicyAlways, containers: []*container{con("a", mainContainer).exit(143).exit(143)}, over: true, phase: corev1.PodFailed, state: "terminated 143", ready: corev1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"}, Spec: corev1.PodSpec{RestartPolicy: tc.policy}}
			s := podStatus(facts{pod: pod, containers: tc.containers, prepared: name != "nothing started", over: tc.over, reason: tc.reason, now: noon})
			if s.Phase != tc.phase {
				t.Errorf("phase = %s, want %s", s.Phase, tc.phase)
			}
			last := s.ContainerStatuses[len(s.ContainerStatuses)-1]
			if got := describe(last.State); got != tc.state {
				t.Errorf("state = %s, want %s", got, tc.state)
			}
			if c := findCondition(&s, corev1.PodReady); c.Status != tc.ready {
				t.Errorf("Ready = %s, want %s", c.Status, tc.ready)
			}
		})
	}
}

func describe(s corev1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Waiting != nil:
		return "waiting " + s.Waiting.Reason
	case s.Terminated != nil:
		return "terminated " + itoa(s.Terminated.ExitCode)
	}
	return "none"
}

func TestConditionsOfOthersAreKeptAndTimesMoveOnlyWithTheStatus(t *testing.T) {
	early := metav1.Time{Time: noon.Add(-time.Hour)}
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: early},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: early},
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: early},
	}}}
	s := podStatus(facts{pod: pod, containers: []*container{con("a", mainContainer).up()}, prepared: true, now: noon})
	got := map[corev1.PodConditionType]time.Time{}
	for _, c := range s.Conditions {
		got[c.Type] = c.LastTransitionTime.Time
	}
	want := map[corev1.PodConditionType]time.Time{
		corev1.DisruptionTarget: early.Time, corev1.PodInitialized: early.Time, corev1.PodReady: noon,
		corev1.ContainersReady: noon, corev1.PodReadyToStartContainers: noon, corev1.PodScheduled: noon,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("times of last change (-want +got):\n%s", diff)
	}
}

func TestAReadinessGateHoldsAPodBack(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}}}
	f := facts{pod: pod, containers: []*container{con("a", mainContainer).up()}, prepared: true, now: noon}
	s := podStatus(f)
	if c := findCondition(&s, corev1.PodReady); c.Status != corev1.ConditionFalse || c.Reason != "ReadinessGatesNotReady" {
		t.Errorf("closed gate: %+v", c)
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: "example.com/gate", Status: corev1.ConditionTrue}}
	s = podStatus(f)
	if c := findCondition(&s, corev1.PodReady); c.Status != corev1.ConditionTrue {
		t.Errorf("open gate: %+v", c)
	}
}

func TestARestartedAgentCountsOldContainersAsKilled(t *testing.T) {
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a"}, {Name: "b"}, {Name: "c"}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: "a", ContainerID: "process://1", RestartCount: 2, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			{Name: "b", ContainerID: "process://2", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 0}}},
		}},
	}
	var got []string
	for _, c := range restore(pod, noon) {
		switch {
		case !c.started:
			got = append(got, c.spec.Name+" not started")
		default:
			got = append(got, c.spec.Name+" "+itoa(c.last.ExitCode)+" after "+itoa(c.restarts))
		}
	}
	if diff := cmp.Diff([]string{"a 137 after 2", "b 0 after 0", "c not started"}, got); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }
