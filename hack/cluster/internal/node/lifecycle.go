//go:build unix

package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// kind is a container's role in its pod.
type kind int

const (
	initContainer kind = iota
	// sidecar is an init container with restartPolicy Always: it is started in order, and runs beside the rest.
	sidecar
	mainContainer
)

// container is what is known about one container of a pod.
type container struct {
	spec *corev1.Container
	kind kind
	// restarts counts the runs after the first; started says that there was a first.
	restarts int32
	started  bool
	// running is nil when no process runs.
	running *corev1.ContainerStateRunning
	// last is how the latest run ended, and before how the one before it did.
	last, before *corev1.ContainerStateTerminated
	// waiting says why the container cannot be started; it is cleared by a start.
	waiting *corev1.ContainerStateWaiting
	// crashes counts the runs that ended without a long run between them, and notBefore is when the next may start.
	crashes   int
	notBefore time.Time
	id        string
}

const (
	firstBackOff = 10 * time.Second
	maxBackOff   = 5 * time.Minute
	// forgiven is how long a container has to run for its crashes to be forgotten.
	forgiven = 10 * time.Minute
)

// backOff is how long a kubelet waits before it starts a container again: not at all after the first end, then 10 s,
// doubled each time up to five minutes.
func backOff(crashes int) time.Duration {
	if crashes <= 1 {
		return 0
	}
	d := firstBackOff
	for range crashes - 2 {
		if d *= 2; d >= maxBackOff {
			return maxBackOff
		}
	}
	return d
}

// ended notes the end of the current run.
func (c *container) ended(t *corev1.ContainerStateTerminated) {
	if c.last != nil {
		c.before = c.last
	}
	c.last, c.running = t, nil
	if t.FinishedAt.Sub(t.StartedAt.Time) >= forgiven {
		c.crashes = 0
	}
	c.crashes++
	c.notBefore = t.FinishedAt.Add(backOff(c.crashes))
}

// restarts reports whether a container whose latest run ended is to be started again under the pod's policy. A
// container may have a policy of its own.
func restarts(c *container, policy corev1.RestartPolicy) bool {
	if c.kind == sidecar {
		return true
	}
	if p := c.spec.RestartPolicy; p != nil {
		policy = corev1.RestartPolicy(*p)
	}
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return c.last.ExitCode != 0
	}
	// An init container is done once it succeeded, whatever the policy.
	return c.kind == mainContainer || c.last.ExitCode != 0
}

// step is what a pod needs next.
type step struct {
	// start are the containers to start now.
	start []*container
	// wake is when there will be something to start; zero when only an end of a container can bring that about.
	wake time.Time
	// finished says that nothing will be started any more: what still runs are sidecars to be stopped.
	finished bool
}

// next decides what a pod that is not being stopped needs. Containers come in the order of the specification, init
// containers first.
func next(policy corev1.RestartPolicy, containers []*container, now time.Time) step {
	var s step
	begin := func(c *container) {
		if c.notBefore.After(now) {
			if s.wake.IsZero() || c.notBefore.Before(s.wake) {
				s.wake = c.notBefore
			}
			return
		}
		s.start = append(s.start, c)
	}
	if mainsFinished(policy, containers) {
		return step{finished: true}
	}
	initialized := mainsStarted(containers)
	for _, c := range containers {
		switch {
		case c.kind == mainContainer || c.running != nil && c.kind == sidecar:
		case c.kind == sidecar:
			begin(c)
			if !initialized {
				return s
			}
		case initialized || c.last != nil && c.last.ExitCode == 0:
		case c.running != nil:
			return s
		case c.last != nil && !restarts(c, policy):
			return step{finished: true}
		default:
			begin(c)
			return s
		}
	}
	for _, c := range containers {
		if c.kind == mainContainer && c.running == nil && (c.last == nil || restarts(c, policy)) {
			begin(c)
		}
	}
	return s
}

// mainsFinished reports whether every main container has ended for good.
func mainsFinished(policy corev1.RestartPolicy, containers []*container) bool {
	for _, c := range containers {
		if c.kind == mainContainer && (c.running != nil || c.last == nil || restarts(c, policy)) {
			return false
		}
	}
	return true
}

// mainsStarted reports whether initialisation is over.
func mainsStarted(containers []*container) bool {
	for _, c := range containers {
		if c.kind == mainContainer && c.started {
			return true
		}
	}
	return false
}

// toStop returns which of the running containers of a pod that is being stopped to signal now: first all that are no
// sidecars, then the sidecars one by one, the last first.
func toStop(containers []*container) []*container {
	var now []*container
	var lastSidecar *container
	for _, c := range containers {
		switch {
		case c.running == nil:
		case c.kind == sidecar:
			lastSidecar = c
		default:
			now = append(now, c)
		}
	}
	if len(now) == 0 && lastSidecar != nil {
		return []*container{lastSidecar}
	}
	return now
}
