// Package schema tests the CustomResourceDefinitions against a real API server, rule by rule: what is accepted, what
// is refused, and that the message of a refusal says what to write instead.
package schema

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// The API server under test.
var (
	config     *rest.Config
	kubeconfig string // for kubectl; empty: the one in the environment
	c          client.Client
	namespace  string // that of all objects of these tests
)

const crdDir = "../../config/crd"

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := withServer(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/schema:", err)
		code = 1
	}
	os.Exit(code)
}

// withServer finds or starts an API server, installs the CRDs with kubectl as the docs say, and runs the tests.
func withServer(m *testing.M) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	existing, err := strconv.ParseBool(os.Getenv("USE_EXISTING_CLUSTER"))
	if err != nil {
		existing = false
	}
	switch {
	case existing:
		if config, err = ctrl.GetConfig(); err != nil {
			return 0, fmt.Errorf("USE_EXISTING_CLUSTER is set, and the current context cannot be used: %w", err)
		}
	case os.Getenv("KUBEBUILDER_ASSETS") != "":
		stop, err := startServer()
		if err != nil {
			return 0, err
		}
		defer stop()
	default:
		return 0, errors.New("these tests need an API server: run make test, or set USE_EXISTING_CLUSTER=true, or KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver and kubectl")
	}
	config.QPS, config.Burst = -1, 0

	if out, err := kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-k", crdDir); err != nil {
		return 0, fmt.Errorf("installing the CRDs: %w\n%s", err, out)
	}
	// A CRD that was made a moment ago has no conditions at all, which kubectl wait takes for an error.
	var out string
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var err error
		out, err = kubectl(ctx, "wait", "--for=condition=Established", "--timeout=10s",
			"crd/rubrics.eval.mcptest.dev", "crd/evals.eval.mcptest.dev", "crd/evalruns.eval.mcptest.dev")
		return err == nil, nil
	})
	if err != nil {
		return 0, fmt.Errorf("waiting for the CRDs: %w\n%s", err, out)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return 0, err
		}
	}
	if c, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return 0, err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "schema-test-"}}
	if err := c.Create(ctx, ns); err != nil {
		return 0, fmt.Errorf("making a namespace: %w", err)
	}
	namespace = ns.Name
	if err := waitForDiscovery(ctx); err != nil {
		return 0, err
	}
	code := m.Run()
	if code == 0 && flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" {
		missed, err := unprovoked(ctx)
		if err != nil {
			return code, err
		}
		for _, rule := range missed {
			fmt.Fprintln(os.Stderr, "test/schema: no test provokes this rule:", rule)
			code = 1
		}
	}
	if err := c.Delete(context.WithoutCancel(ctx), ns); err != nil {
		return code, fmt.Errorf("deleting the namespace: %w", err)
	}
	return code, nil
}

// startServer starts an API server of our own, and returns what stops it.
func startServer() (stop func(), err error) {
	env := &envtest.Environment{}
	if config, err = env.Start(); err != nil {
		return nil, fmt.Errorf("starting an API server from KUBEBUILDER_ASSETS: %w", err)
	}
	dir, err := os.MkdirTemp("", "schema-test-")
	if err != nil {
		return nil, errors.Join(err, env.Stop())
	}
	stop = func() {
		if err := errors.Join(env.Stop(), os.RemoveAll(dir)); err != nil {
			fmt.Fprintln(os.Stderr, "test/schema: stopping the API server:", err)
		}
	}
	kubeconfig = filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, env.KubeConfig, 0o600); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// waitForDiscovery waits until the served kinds and their schemas are those of the CRDs, which happens shortly after
// they are established.
func waitForDiscovery(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, kind := range []string{"rubric", "eval", "evalrun"} {
			if _, err := kubectl(ctx, "explain", kind+".spec"); err != nil {
				return false, nil //nolint:nilerr // not there yet
			}
		}
		return true, nil
	})
}

// kubectl runs the real kubectl against the API server under test.
func kubectl(ctx context.Context, args ...string) (string, error) {
	program := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	if _, err := os.Stat(program); err != nil || os.Getenv("KUBEBUILDER_ASSETS") == "" {
		program = "kubectl"
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = os.Environ()
	if kubeconfig != "" {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+kubeconfig)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
