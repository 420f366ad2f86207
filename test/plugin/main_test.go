// Package plugin tests the verbs of kubectl mcptest that speak to a cluster, against a real API server. No operator runs:
// the tests write the statuses that one would write.
package plugin

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/cli"
)

const patience = 30 * time.Second

var (
	c          client.WithWatch
	kubeconfig string
)

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := withServer(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/plugin:", err)
		code = 1
	}
	os.Exit(code)
}

func withServer(m *testing.M) (code int, err error) {
	existing, err := strconv.ParseBool(os.Getenv("USE_EXISTING_CLUSTER"))
	if err != nil {
		existing = false
	}
	if !existing && os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return 1, fmt.Errorf("no API server: run make test, or set KUBEBUILDER_ASSETS or USE_EXISTING_CLUSTER=1")
	}
	env := &envtest.Environment{UseExistingCluster: &existing, CRDDirectoryPaths: []string{"../../config/crd/bases"}, ErrorIfCRDPathMissing: true}
	config, err := env.Start()
	if err != nil {
		return 1, fmt.Errorf("start an API server: %w", err)
	}
	defer func() {
		if stopErr := env.Stop(); stopErr != nil && err == nil {
			code, err = 1, fmt.Errorf("stop the API server: %w", stopErr)
		}
	}()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return 1, err
		}
	}
	if c, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "mcptest-plugin-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if kubeconfig, err = writeKubeconfig(config, dir); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func writeKubeconfig(config *rest.Config, dir string) (string, error) {
	path := filepath.Join(dir, "kubeconfig")
	return path, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"test": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"test": {
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}},
		CurrentContext: "test",
	}, path)
}

// namespace makes a namespace of its own for a test.
func namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "plugin-"}}
	create(t, ns)
	return ns.Name
}

func create(t *testing.T, o client.Object) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.Create(ctx, o); err != nil {
		t.Fatalf("create %T: %v", o, err)
	}
}

func updateStatus(t *testing.T, run *v1alpha1.EvalRun, change func(*v1alpha1.EvalRunStatus)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.Get(ctx, client.ObjectKeyFromObject(run), run); err != nil {
		t.Fatalf("get %s: %v", run.Name, err)
	}
	change(&run.Status)
	if err := c.Status().Update(ctx, run); err != nil {
		t.Fatalf("write the status of %s: %v", run.Name, err)
	}
}

// result is what a command did.
type result struct {
	code     int
	out, err string
}

// output is a stream that several goroutines may use.
type output struct {
	buf  bytes.Buffer
	lock chan struct{}
}

func newOutput() *output { return &output{lock: make(chan struct{}, 1)} }

func (o *output) Write(p []byte) (int, error) {
	o.lock <- struct{}{}
	defer func() { <-o.lock }()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.lock <- struct{}{}
	defer func() { <-o.lock }()
	return o.buf.String()
}

// started is a command that runs.
type started struct {
	out, err *output
	cancel   context.CancelFunc
	done     chan result
}

func start(t *testing.T, stdin string, args ...string) *started {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &started{out: newOutput(), err: newOutput(), cancel: cancel, done: make(chan result, 1)}
	streams := genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: s.out, ErrOut: s.err}
	go func() {
		code := cli.Run(ctx, "kubectl mcptest", append(args, "--kubeconfig", kubeconfig), streams)
		s.done <- result{code, s.out.String(), s.err.String()}
	}()
	t.Cleanup(cancel)
	return s
}

func (s *started) wait(t *testing.T) result {
	t.Helper()
	select {
	case r := <-s.done:
		return r
	case <-time.After(patience):
		t.Fatalf("the command did not end; stderr so far:\n%s", s.err)
		return result{}
	}
}

// says waits until the command has told something on stderr.
func (s *started) says(t *testing.T, text string) {
	t.Helper()
	eventually(t, func() bool { return strings.Contains(s.err.String(), text) }, func() string {
		return fmt.Sprintf("stderr lacks %q:\n%s", text, s.err)
	})
}

func eventually(t *testing.T, holds func() bool, why func() string) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(why())
		}
	}
}

func command(t *testing.T, args ...string) result {
	t.Helper()
	return start(t, "", args...).wait(t)
}
