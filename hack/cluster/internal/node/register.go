//go:build unix

package node

import (
	"context"
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/utils/clock"
)

const (
	// leaseSeconds is how long the node counts as alive after its last sign of life, as with a kubelet.
	leaseSeconds  = 40
	leaseRenewal  = leaseSeconds / 4 * time.Second
	statusRenewal = 5 * time.Minute
)

// capacity is what the node says that it has. Processes reserve nothing, so it is the same on small and on large
// machines: what can be scheduled must not depend on where a test runs.
func capacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("32"),
		corev1.ResourceMemory:           resource.MustParse("64Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		corev1.ResourcePods:             resource.MustParse("250"),
	}
}

// object is the Node that the agent registers.
func (a *Agent) object(port int32, now time.Time) *corev1.Node {
	version := "v0.0.0"
	if info, err := a.client.Discovery().ServerVersion(); err == nil {
		version = info.GitVersion
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: a.opts.Name,
			Labels: map[string]string{
				corev1.LabelHostname: a.opts.Name, corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH,
				corev1.LabelInstanceTypeStable: "process",
			},
		},
		Status: corev1.NodeStatus{
			Capacity: capacity(), Allocatable: capacity(),
			Conditions:      nodeConditions(now),
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeAddress}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: port}},
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH, KubeletVersion: version,
				OSImage: runtime.GOOS, ContainerRuntimeVersion: "process://1",
			},
		},
	}
}

func nodeConditions(now time.Time) []corev1.NodeCondition {
	at := metav1.Time{Time: now}
	cond := func(t corev1.NodeConditionType, s corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: t, Status: s, Reason: reason, Message: message, LastHeartbeatTime: at, LastTransitionTime: at}
	}
	return []corev1.NodeCondition{
		cond(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "the node does not watch memory"),
		cond(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "the node does not watch the disk"),
		cond(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "the node does not watch process ids"),
		cond(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "the agent runs containers as processes"),
	}
}

// register creates the Node, or takes over the one that is there.
func (a *Agent) register(ctx context.Context, port int32) error {
	want := a.object(port, time.Now())
	nodes := a.client.CoreV1().Nodes()
	have, err := nodes.Create(ctx, want, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		have, err = nodes.Get(ctx, a.opts.Name, metav1.GetOptions{})
	}
	if err != nil {
		return fmt.Errorf("register node %s: %w", a.opts.Name, err)
	}
	have.Status = want.Status
	if _, err := nodes.UpdateStatus(ctx, have, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("report the status of node %s: %w", a.opts.Name, err)
	}
	return nil
}

// heartbeat shows that the node is alive: a Lease every ten seconds, the status every five minutes.
func (a *Agent) heartbeat(ctx context.Context) {
	leases := lease.NewController(clock.RealClock{}, a.client, a.opts.Name, leaseSeconds, nil, leaseRenewal,
		a.opts.Name, corev1.NamespaceNodeLease, nil)
	go leases.Run(ctx)
	tick := time.NewTicker(statusRenewal)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := a.renewStatus(ctx); err != nil {
				a.log.Error("cannot renew the node's status, trying again later", "err", err)
			}
		}
	}
}

func (a *Agent) renewStatus(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	node, err := a.client.CoreV1().Nodes().Get(ctx, a.opts.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	at := metav1.Now()
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].LastHeartbeatTime = at
	}
	// A node that was silent for a while was declared unknown by the controller manager; it is not.
	for _, fresh := range nodeConditions(at.Time) {
		for i := range node.Status.Conditions {
			if c := &node.Status.Conditions[i]; c.Type == fresh.Type && c.Status != fresh.Status {
				*c = fresh
			}
		}
	}
	_, err = a.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}
