//go:build unix

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	podpatch "k8s.io/kubernetes/pkg/util/pod"

	"github.com/mcptest/mcptest-operator/hack/cluster/internal/proc"
)

// worker runs one pod. One goroutine owns it; others only leave the newest pod with update.
type worker struct {
	agent *Agent
	log   *slog.Logger
	dir   string

	mu      sync.Mutex
	newest  *corev1.Pod
	removed bool
	changed chan struct{} // of size 1: something was left in newest or removed

	pod        *corev1.Pod
	containers []*container
	processes  map[*container]proc.Record
	exits      chan exit
	stopping   *stopping
	volumes    *volumes
	prepared   bool
	// troubleSince is when starting failed first, and tries how often it has failed since.
	troubleSince time.Time
	tries        int
	lastEvent    string
	over         bool
}

// stopping is the end of a pod under way.
type stopping struct {
	// reason and message go to the pod's status when the node itself ended the pod.
	reason, message string
	// killAt is when what still runs is killed.
	killAt    time.Time
	signalled map[*container]bool
	killed    bool
}

// goneGrace is how long the processes of a pod may take whose object was deleted without grace.
const goneGrace = time.Second

func newWorker(a *Agent, pod *corev1.Pod) *worker {
	w := &worker{
		agent: a, pod: pod, newest: pod, dir: podDir(a.podsDir(), pod), changed: make(chan struct{}, 1),
		log:       a.log.With("namespace", pod.Namespace, "pod", pod.Name),
		processes: map[*container]proc.Record{},
	}
	w.containers = restore(pod, time.Now())
	w.exits = make(chan exit, len(w.containers))
	w.volumes = &volumes{agent: a, dir: w.dir}
	return w
}

// restore rebuilds what the pod's status tells about its containers. What ran under an agent that is gone was
// killed when this one started.
func restore(pod *corev1.Pod, now time.Time) []*container {
	var all []*container
	add := func(spec *corev1.Container, k kind, statuses []corev1.ContainerStatus) {
		c := &container{spec: spec, kind: k}
		all = append(all, c)
		for _, s := range statuses {
			if s.Name != spec.Name || s.ContainerID == "" {
				continue
			}
			c.started, c.id, c.restarts, c.crashes = true, s.ContainerID, s.RestartCount, int(s.RestartCount)
			c.before = s.LastTerminationState.Terminated
			if s.State.Running != nil {
				c.ended(&corev1.ContainerStateTerminated{
					ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "the agent of the node was restarted, which ends its containers",
					ContainerID: s.ContainerID, StartedAt: s.State.Running.StartedAt, FinishedAt: metav1.Time{Time: now},
				})
				continue
			}
			if c.last = s.State.Terminated; c.last == nil {
				c.last, c.before = c.before, nil
			}
			if c.last != nil {
				c.crashes++
				c.notBefore = c.last.FinishedAt.Add(backOff(c.crashes))
			}
		}
	}
	for i := range pod.Spec.InitContainers {
		spec, k := &pod.Spec.InitContainers[i], initContainer
		if spec.RestartPolicy != nil && *spec.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			k = sidecar
		}
		add(spec, k, pod.Status.InitContainerStatuses)
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i], mainContainer, pod.Status.ContainerStatuses)
	}
	return all
}

// update leaves a newer version of the pod, or nil when there is no such pod any more.
func (w *worker) update(pod *corev1.Pod) {
	w.mu.Lock()
	if pod == nil {
		w.removed = true
	} else {
		w.newest = newer(w.newest, pod)
	}
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *worker) gone() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pod = w.newest
	return w.removed
}

// run brings the pod to where it should be, again and again, until the pod is gone or ctx ends.
func (w *worker) run(ctx context.Context) {
	for {
		gone := w.gone()
		wake := w.sync(ctx, gone)
		if gone && len(w.processes) == 0 {
			if err := os.RemoveAll(w.dir); err != nil {
				w.log.Error("cannot remove the pod's folder", "err", err)
			}
			return
		}
		var timer <-chan time.Time
		if !wake.IsZero() {
			timer = time.After(time.Until(wake))
		}
		select {
		case <-w.changed:
		case e := <-w.exits:
			w.exited(e)
		case <-timer:
		case <-ctx.Done():
			w.shutdown()
			return
		}
	}
}

// sync takes the next step and reports it. It returns when to look again even if nothing happens before; zero for never.
func (w *worker) sync(ctx context.Context, gone bool) (wake time.Time) {
	now := time.Now()
	soonest := func(t time.Time) {
		if !t.IsZero() && (wake.IsZero() || t.Before(wake)) {
			wake = t
		}
	}
	if w.pod.Status.Phase == corev1.PodSucceeded || w.pod.Status.Phase == corev1.PodFailed {
		w.over = true
	}
	if !w.over {
		soonest(w.checkStop(gone, now))
		if w.stopping == nil {
			soonest(w.advance(ctx, now))
		}
		if w.stopping != nil {
			soonest(w.stop(now))
			w.over = len(w.processes) == 0
		}
	}
	if gone {
		return wake
	}
	if w.over {
		w.volumes.remove()
	} else {
		w.limitLogs()
		if len(w.processes) > 0 {
			soonest(now.Add(logCheck))
		}
	}
	if err := w.report(ctx); err != nil {
		w.log.Error("cannot report the pod's status, trying again", "err", err)
		soonest(now.Add(time.Second))
		return wake
	}
	if w.over && w.pod.DeletionTimestamp != nil {
		if err := w.agent.confirmDeletion(ctx, w.pod); err != nil {
			w.log.Error("cannot confirm the pod's deletion, trying again", "err", err)
			soonest(now.Add(time.Second))
		}
	}
	return wake
}

// checkStop begins or hastens the end of a pod that was deleted or ran too long.
func (w *worker) checkStop(gone bool, now time.Time) (wake time.Time) {
	if gone {
		w.beginStop("", "", now.Add(goneGrace))
		return
	}
	if w.pod.DeletionTimestamp != nil {
		grace := terminationGrace(w.pod)
		if w.pod.DeletionGracePeriodSeconds != nil {
			grace = time.Duration(*w.pod.DeletionGracePeriodSeconds) * time.Second
		}
		if w.stopping == nil {
			w.event(corev1.EventTypeNormal, "Killing", "Stopping the pod's containers")
		}
		w.beginStop("", "", now.Add(grace))
		return
	}
	if limit := w.pod.Spec.ActiveDeadlineSeconds; limit != nil && w.pod.Status.StartTime != nil {
		deadline := w.pod.Status.StartTime.Add(time.Duration(*limit) * time.Second)
		if now.Before(deadline) {
			return deadline
		}
		const message = "Pod was active on the node longer than the specified deadline"
		if w.stopping == nil {
			w.event(corev1.EventTypeNormal, "DeadlineExceeded", message)
		}
		w.beginStop("DeadlineExceeded", message, now.Add(terminationGrace(w.pod)))
	}
	return
}

func terminationGrace(pod *corev1.Pod) time.Duration {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// beginStop begins the end of the pod; when it has begun already, the earlier of the two deadlines holds.
func (w *worker) beginStop(reason, message string, killAt time.Time) {
	if w.stopping == nil {
		w.stopping = &stopping{reason: reason, message: message, killAt: killAt, signalled: map[*container]bool{}}
	} else if killAt.Before(w.stopping.killAt) {
		w.stopping.killAt = killAt
	}
}

// stop signals what is to end now, and kills everything once the time is over.
func (w *worker) stop(now time.Time) (wake time.Time) {
	s := w.stopping
	if !now.Before(s.killAt) {
		for _, r := range w.processes {
			r.KillGroup()
		}
		s.killed = true
		return
	}
	for _, c := range toStop(w.containers) {
		if r, ok := w.processes[c]; ok && !s.signalled[c] {
			s.signalled[c] = true
			if err := r.Signal(syscall.SIGTERM); err != nil {
				w.log.Error("cannot signal a container", "container", c.spec.Name, "err", err)
			}
		}
	}
	return s.killAt
}

const (
	// passingTrouble is how long a problem that should go away by itself is kept from the status.
	passingTrouble = 3 * time.Second
	// retryFirst and retryMax are the bounds of the pause between two attempts to start.
	retryFirst, retryMax = 50 * time.Millisecond, 2 * time.Second
)

// advance prepares the pod and starts what can be started.
func (w *worker) advance(ctx context.Context, now time.Time) (wake time.Time) {
	if p, refresh := w.volumes.prepare(ctx, w.pod, now); p != nil {
		if !w.prepared {
			return w.trouble(p, nil, now)
		}
		// Files that were there stay as they are until they can be renewed.
		w.log.Error("cannot renew a volume, trying again", "err", p.message)
		wake = now.Add(retryMax)
	} else {
		wake = refresh
	}
	w.prepared = true
	for range len(w.containers) + 1 { // a container that ends at once may let the next one start
		s := next(w.pod.Spec.RestartPolicy, w.containers, time.Now())
		if s.finished {
			w.beginStop("", "", now.Add(terminationGrace(w.pod)))
			return
		}
		if !s.wake.IsZero() && (wake.IsZero() || s.wake.Before(wake)) {
			wake = s.wake
		}
		if len(s.start) == 0 {
			w.announceBackOff()
			return
		}
		for _, c := range s.start {
			if p := w.start(ctx, c); p != nil {
				if at := w.trouble(p, c, now); wake.IsZero() || at.Before(wake) {
					wake = at
				}
				continue
			}
			w.tries, w.troubleSince = 0, time.Time{}
		}
		if w.tries > 0 {
			return
		}
	}
	return
}

// announceBackOff records which containers wait for their next start.
func (w *worker) announceBackOff() {
	for _, c := range w.containers {
		if c.running == nil && c.crashes > 1 && c.notBefore.After(time.Now()) && restarts(c, w.pod.Spec.RestartPolicy) {
			w.event(corev1.EventTypeWarning, "BackOff", "Back-off restarting failed container %s in pod %s_%s(%s)",
				c.spec.Name, w.pod.Name, w.pod.Namespace, w.pod.UID)
		}
	}
}

// trouble notes why something cannot be started, and returns when to try again.
func (w *worker) trouble(p *problem, c *container, now time.Time) time.Time {
	if w.tries++; w.troubleSince.IsZero() {
		w.troubleSince = now
	}
	if !p.passing || now.Sub(w.troubleSince) > passingTrouble {
		if c != nil {
			c.waiting = &corev1.ContainerStateWaiting{Reason: p.reason, Message: p.message}
		}
		w.event(corev1.EventTypeWarning, eventReason(p.reason), "Error: %s", p.message)
	}
	return now.Add(min(retryMax, retryFirst<<min(w.tries-1, 10)))
}

func eventReason(waiting string) string {
	if waiting == "FailedMount" {
		return waiting
	}
	return "Failed"
}

// event records something about the pod, unless it is the same as the last time.
func (w *worker) event(kind, reason, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if key := reason + message; key != w.lastEvent || reason == "Started" {
		w.lastEvent = key
		w.agent.events.Event(w.pod, kind, reason, message)
	}
}

// report patches the pod's status when it has changed.
func (w *worker) report(ctx context.Context) error {
	if w.over && (w.pod.Status.Phase == corev1.PodSucceeded || w.pod.Status.Phase == corev1.PodFailed) {
		return nil // the last word was said
	}
	f := facts{pod: w.pod, containers: w.containers, prepared: w.prepared, over: w.over, now: time.Now()}
	if w.stopping != nil {
		f.reason, f.message = w.stopping.reason, w.stopping.message
	}
	status := podStatus(f)
	updated, _, unchanged, err := podpatch.PatchPodStatus(ctx, w.agent.client, w.pod.Namespace, w.pod.Name, w.pod.UID, w.pod.Status, status)
	if err != nil {
		if cause := errors.Unwrap(err); apierrors.IsNotFound(err) || apierrors.IsNotFound(cause) || apierrors.IsConflict(err) {
			return nil // another pod, or none, has the name: the watch tells soon
		}
		return err
	}
	if unchanged {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.newest = newer(w.newest, updated)
	w.pod = updated
	return nil
}

// newer returns the newer of two versions of one pod: a watch may be behind the answer to a patch.
func newer(a, b *corev1.Pod) *corev1.Pod {
	if order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion); err == nil && order > 0 {
		return a
	}
	return b
}

const (
	// logCheck is how often the sizes of logs are looked at, and maxLog the size past which a log starts again.
	logCheck = 10 * time.Second
	maxLog   = 64 << 20
)

// limitLogs empties the logs that have become too big.
func (w *worker) limitLogs() {
	for c := range w.processes {
		path := containerFiles(filepath.Join(w.dir, c.spec.Name)).log()
		if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
			_ = os.Truncate(path, 0)
		}
	}
}

// shutdown ends the pod's processes because the agent ends.
func (w *worker) shutdown() {
	var wg sync.WaitGroup
	for _, r := range w.processes {
		wg.Go(func() { _ = r.Stop(context.Background(), goneGrace) })
	}
	wg.Wait()
}
