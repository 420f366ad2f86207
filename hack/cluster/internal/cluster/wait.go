//go:build unix

package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// Client talks to the API server of a cluster as its administrator.
func Client(d Dir) (kubernetes.Interface, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", d.Kubeconfig())
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(cfg)
}

// apiReady asks /readyz, which is ok once the API server serves everything.
func apiReady(c kubernetes.Interface) func(context.Context) error {
	return func(ctx context.Context) error {
		return c.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	}
}

// defaultServiceAccount is there once the controller manager works; without it no pod can be created.
func defaultServiceAccount(c kubernetes.Interface) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	}
}

// nodeReady holds once the node is ready and the scheduler may use it.
func nodeReady(c kubernetes.Interface, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		n, err := c.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, t := range n.Spec.Taints {
			if t.Key == corev1.TaintNodeNotReady {
				return errors.New("the node is still tainted as not ready")
			}
		}
		for _, cond := range n.Status.Conditions {
			if cond.Type == corev1.NodeReady && cond.Status != corev1.ConditionTrue {
				return fmt.Errorf("not ready: %s", cond.Message)
			}
			if cond.Type == corev1.NodeReady {
				return nil
			}
		}
		return errors.New("the node has no Ready condition yet")
	}
}
