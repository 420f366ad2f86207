//go:build unix

// Package node is a Kubernetes node that runs containers as local processes. It is to the API server what a kubelet
// is: it registers a Node, watches the Pods bound to it, runs them, and reports what became of them in a kubelet's
// words. It isolates nothing: a container is a process of the user who started the cluster, on that user's network.
//
// Decisions are pure functions (next, podStatus, mounts.rewrite, containerVariables); a worker per pod gathers the
// facts, asks them, acts, and reports once.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

// nodeAddress is the address of the node and of every pod on it.
const nodeAddress = "127.0.0.1"

// Options say where a node belongs.
type Options struct {
	// ClusterDir is the folder of the cluster; pods live in its folder pods.
	ClusterDir string
	// Name is the name of the Node object.
	Name string
	// Config is the access of the user system:node:NAME.
	Config *rest.Config
	// ServingCert, ServingKey and ClientCA are files: what the node serves logs with, and who signed its clients.
	ServingCert, ServingKey, ClientCA string
	Log                               *slog.Logger
}

// Agent is the node's agent.
type Agent struct {
	opts   Options
	log    *slog.Logger
	client kubernetes.Interface
	events record.EventRecorder

	mu      sync.Mutex
	workers map[types.UID]*worker
	wg      sync.WaitGroup
}

// Run runs a node until ctx ends. Then it ends the pods' processes and returns nil.
func Run(ctx context.Context, opts Options) error {
	config := rest.CopyConfig(opts.Config)
	config.QPS, config.Burst = 100, 200
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	a := &Agent{opts: opts, log: opts.Log, client: client, workers: map[types.UID]*worker{}}
	KillLeftovers(a.podsDir())
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	a.events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: opts.Name})
	port, stopServing, err := a.serve()
	if err != nil {
		return err
	}
	defer stopServing()
	if err := a.register(ctx, port); err != nil {
		return err
	}
	go a.heartbeat(ctx)
	defer a.wg.Wait()
	return a.watch(ctx)
}

func (a *Agent) podsDir() string { return filepath.Join(a.opts.ClusterDir, "pods") }

// watch runs a worker for each pod that is bound to this node.
func (a *Agent) watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(a.client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", a.opts.Name).String()
	}))
	informer := factory.Core().V1().Pods().Informer()
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { a.seen(ctx, o) },
		UpdateFunc: func(_, o any) { a.seen(ctx, o) },
		DeleteFunc: func(o any) {
			if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			if pod, ok := o.(*corev1.Pod); ok {
				a.removed(pod.UID)
			}
		},
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		a.removeStale()
		a.log.Info("the node is up", "node", a.opts.Name)
		<-ctx.Done()
	}
	return nil
}

// seen hands a pod to its worker, which it starts the first time.
func (a *Agent) seen(ctx context.Context, o any) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if w, ok := a.workers[pod.UID]; ok {
		w.update(pod)
		return
	}
	w := newWorker(a, pod)
	a.workers[pod.UID] = w
	a.wg.Go(func() {
		w.run(ctx)
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.workers, pod.UID)
	})
}

func (a *Agent) removed(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w, ok := a.workers[uid]; ok {
		w.update(nil)
	}
}

// removeStale removes the folders of pods that went while no agent ran.
func (a *Agent) removeStale() {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := map[string]bool{}
	for _, w := range a.workers {
		known[w.dir] = true
	}
	dirs, err := filepath.Glob(filepath.Join(a.podsDir(), "*"))
	if err != nil {
		return
	}
	for _, d := range dirs {
		if !known[d] {
			_ = os.RemoveAll(d)
		}
	}
}

// confirmDeletion removes the object of a pod whose processes have ended.
func (a *Agent) confirmDeletion(ctx context.Context, pod *corev1.Pod) error {
	now := int64(0)
	err := a.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// callTimeout bounds a request to the API server.
const callTimeout = 15 * time.Second

// Secret reads a Secret that a pod of this node uses; the API server allows no other.
func (a *Agent) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return a.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
}

// ConfigMap reads a ConfigMap that a pod of this node uses.
func (a *Agent) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return a.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (a *Agent) requestToken(ctx context.Context, namespace, account string, r *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return a.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, r, metav1.CreateOptions{})
}

var errNotFound = errors.New("not found")

// logFile finds the log of a container.
func (a *Agent) logFile(namespace, name, containerName string, run logOf) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.workers {
		w.mu.Lock()
		pod := w.newest
		w.mu.Unlock()
		if pod.Namespace != namespace || pod.Name != name {
			continue
		}
		for _, c := range w.containers {
			if c.spec.Name != containerName {
				continue
			}
			files := containerFiles(filepath.Join(w.dir, containerName))
			if run == previousRun {
				return files.previousLog(), nil
			}
			return files.log(), nil
		}
	}
	return "", fmt.Errorf("container %q of pod %s/%s: %w", containerName, namespace, name, errNotFound)
}
