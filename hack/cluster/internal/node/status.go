//go:build unix

package node

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// facts are what a pod's status is computed from.
type facts struct {
	pod        *corev1.Pod
	containers []*container
	// prepared says that the volumes are there.
	prepared bool
	// over says that nothing runs and nothing will be started.
	over bool
	// reason and message explain a pod that the node stopped, such as DeadlineExceeded. Such a pod has failed.
	reason, message string
	now             time.Time
}

// podStatus is the status that a kubelet would report. Conditions that are not the node's are kept.
func podStatus(f facts) corev1.PodStatus {
	s := *f.pod.Status.DeepCopy()
	s.ObservedGeneration = f.pod.Generation
	s.Phase = phase(f)
	s.Reason, s.Message = f.reason, f.message
	s.HostIP, s.HostIPs = nodeAddress, []corev1.HostIP{{IP: nodeAddress}}
	s.PodIP, s.PodIPs = nodeAddress, []corev1.PodIP{{IP: nodeAddress}}
	if s.StartTime == nil {
		s.StartTime = &metav1.Time{Time: f.now}
	}
	s.InitContainerStatuses, s.ContainerStatuses = nil, nil
	for _, c := range f.containers {
		if c.kind == mainContainer {
			s.ContainerStatuses = append(s.ContainerStatuses, containerStatus(c, f))
		} else {
			s.InitContainerStatuses = append(s.InitContainerStatuses, containerStatus(c, f))
		}
	}
	for _, c := range conditions(f, s.Phase) {
		setCondition(&s, c, f.now)
	}
	return s
}

// phase follows the kubelet: Pending until every main container was started once, Running until all have ended for good.
func phase(f facts) corev1.PodPhase {
	if f.over {
		for _, c := range f.containers {
			if c.kind == mainContainer && (c.last == nil || c.last.ExitCode != 0) {
				return corev1.PodFailed
			}
		}
		if f.reason != "" {
			return corev1.PodFailed
		}
		return corev1.PodSucceeded
	}
	for _, c := range f.containers {
		if c.kind == mainContainer && !c.started {
			return corev1.PodPending
		}
	}
	return corev1.PodRunning
}

func containerStatus(c *container, f facts) corev1.ContainerStatus {
	up := c.running != nil
	s := corev1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image, ContainerID: c.id, RestartCount: c.restarts,
		Ready: up, Started: &up,
	}
	if c.started {
		s.ImageID = c.spec.Image
	}
	if c.kind == initContainer {
		s.Ready = c.last != nil && c.last.ExitCode == 0
	}
	ended := c.last
	switch {
	case up:
		s.State.Running = c.running
	case c.waiting != nil && !f.over:
		s.State.Waiting = c.waiting
	case c.last == nil:
		s.State.Waiting = notYet(c, f)
	case !f.over && c.notBefore.After(f.now) && restarts(c, f.pod.Spec.RestartPolicy) && f.pod.DeletionTimestamp == nil:
		s.State.Waiting = &corev1.ContainerStateWaiting{
			Reason: "CrashLoopBackOff",
			Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
				backOff(c.crashes), c.spec.Name, f.pod.Name, f.pod.Namespace, f.pod.UID),
		}
	default:
		s.State.Terminated = c.last
		ended = c.before
	}
	s.LastTerminationState.Terminated = ended
	return s
}

// notYet says why a container that nothing keeps from running has not been started.
func notYet(c *container, f facts) *corev1.ContainerStateWaiting {
	if c.kind == mainContainer && f.prepared && len(incomplete(f.containers)) > 0 {
		return &corev1.ContainerStateWaiting{Reason: "PodInitializing"}
	}
	if c.kind != mainContainer && f.prepared {
		return &corev1.ContainerStateWaiting{Reason: "PodInitializing"}
	}
	return &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
}

// conditions are those that a node is responsible for.
func conditions(f facts, phase corev1.PodPhase) []corev1.PodCondition {
	cond := func(t corev1.PodConditionType, bad []string, reason, message string) corev1.PodCondition {
		if len(bad) == 0 {
			return corev1.PodCondition{Type: t, Status: corev1.ConditionTrue}
		}
		return corev1.PodCondition{
			Type: t, Status: corev1.ConditionFalse, Reason: reason,
			Message: fmt.Sprintf("%s: [%s]", message, strings.Join(bad, " ")),
		}
	}
	started := corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}
	if f.prepared && !f.over {
		started.Status = corev1.ConditionTrue
	}
	initialized := cond(corev1.PodInitialized, incomplete(f.containers), "ContainersNotInitialized", "containers with incomplete status")
	containersReady := cond(corev1.ContainersReady, unready(f.containers), "ContainersNotReady", "containers with unready status")
	switch phase {
	case corev1.PodSucceeded:
		initialized = corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, Reason: "PodCompleted"}
		containersReady = corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "PodCompleted"}
	case corev1.PodFailed:
		containersReady = corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "PodFailed"}
	}
	ready := containersReady
	ready.Type = corev1.PodReady
	if gates := closedGates(f.pod); ready.Status == corev1.ConditionTrue && len(gates) > 0 {
		ready = cond(corev1.PodReady, gates, "ReadinessGatesNotReady", "corresponding condition of pod readiness gates is not True")
	}
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}
	return []corev1.PodCondition{started, initialized, ready, containersReady, scheduled}
}

// incomplete names the init containers that main containers still wait for.
func incomplete(containers []*container) []string {
	if mainsStarted(containers) {
		return nil
	}
	var names []string
	for _, c := range containers {
		done := c.last != nil && c.last.ExitCode == 0
		if c.kind == sidecar {
			done = c.running != nil
		}
		if c.kind != mainContainer && !done {
			names = append(names, c.spec.Name)
		}
	}
	return names
}

// unready names the containers whose running makes a pod ready and that do not run.
func unready(containers []*container) []string {
	var names []string
	for _, c := range containers {
		if c.kind != initContainer && c.running == nil {
			names = append(names, c.spec.Name)
		}
	}
	return names
}

// closedGates names the readiness gates whose condition somebody else has not set to True.
func closedGates(pod *corev1.Pod) []string {
	var closed []string
	for _, g := range pod.Spec.ReadinessGates {
		if c := findCondition(&pod.Status, g.ConditionType); c == nil || c.Status != corev1.ConditionTrue {
			closed = append(closed, string(g.ConditionType))
		}
	}
	return closed
}

// setCondition replaces a condition and keeps the time of its last change when its status stays the same.
func setCondition(s *corev1.PodStatus, c corev1.PodCondition, now time.Time) {
	c.ObservedGeneration = s.ObservedGeneration
	c.LastTransitionTime = metav1.Time{Time: now}
	old := findCondition(s, c.Type)
	if old == nil {
		s.Conditions = append(s.Conditions, c)
		return
	}
	if old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	*old = c
}

func findCondition(s *corev1.PodStatus, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}
