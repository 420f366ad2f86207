// Package local runs the operator's own binaries as processes beside a local cluster, for stories and measurements.
package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mcptest/mcptest-operator/hack/fakejudge"
)

// RunnerImage is the name under which the cluster knows the binaries that were just built.
const RunnerImage = "ghcr.io/mcptest/mcptest-operator:dev"

// SystemNamespace is where the manager keeps its certificate.
const SystemNamespace = "mcptest-system"

// startTimeout bounds the start of a manager.
const startTimeout = time.Minute

// InstallCRDs puts the CRDs of a checkout into the cluster of the environment, with kubectl, as a user would.
func InstallCRDs(ctx context.Context, repo string) error {
	if err := kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(repo, "config/crd/bases")); err != nil {
		return err
	}
	// A CRD that was made a moment ago has no conditions at all, which kubectl wait takes for an error.
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		return kubectl(ctx, "wait", "--for=condition=Established", "--timeout=10s", "crd", "--all") == nil, nil
	})
}

func kubectl(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, "kubectl", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %v: %w\n%s", args, err, out)
	}
	return nil
}

// Manager is the operator as a process. Its ports stay the same when it is started again: runner pods keep calling the
// collector at the address that they were given.
type Manager struct {
	binary, log, health string
	args                []string
	process             *exec.Cmd
	ended               chan struct{}
}

// NewManager prepares a manager: the binary at repo/bin/manager, its log in dir.
func NewManager(repo, dir string) (*Manager, error) {
	collector, err := freePort()
	if err != nil {
		return nil, err
	}
	health, err := freePort()
	if err != nil {
		return nil, err
	}
	return &Manager{
		binary: filepath.Join(repo, "bin", "manager"),
		log:    filepath.Join(dir, "manager.log"),
		health: fmt.Sprintf("http://127.0.0.1:%d/readyz", health),
		args: []string{
			"--namespace=" + SystemNamespace,
			"--runner-image=" + RunnerImage, "--runner-image-pull-policy=Never",
			fmt.Sprintf("--collector-bind-address=127.0.0.1:%d", collector),
			fmt.Sprintf("--collector-url=https://127.0.0.1:%d", collector),
			"--metrics-bind-address=0",
			fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", health),
		},
	}, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Start starts the manager and waits until it says that it is ready.
func (m *Manager) Start(ctx context.Context) error {
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the manager's log: %w", err)
	}
	defer func() { _ = log.Close() }()
	process := exec.Command(m.binary, m.args...) // it outlives ctx, which only bounds its start
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		return fmt.Errorf("start the manager: %w", err)
	}
	ended := make(chan struct{})
	go func() { _ = process.Wait(); close(ended) }()
	m.process, m.ended = process, ended
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return fmt.Errorf("the manager ended:\n%s", m.Log())
		case <-ctx.Done():
			return fmt.Errorf("the manager is not ready: %w\n%s", ctx.Err(), m.Log())
		case <-tick.C:
			if m.ready(ctx) {
				return nil
			}
		}
	}
}

func (m *Manager) ready(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.health, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// PID is the manager's process id; 0 while it does not run.
func (m *Manager) PID() int {
	if m.process == nil {
		return 0
	}
	return m.process.Process.Pid
}

// Kill ends the manager as a power cut would, and waits until it is gone.
func (m *Manager) Kill() error {
	if m.process == nil {
		return nil
	}
	err := m.process.Process.Kill()
	<-m.ended
	m.process = nil
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Log is all that the manager wrote.
func (m *Manager) Log() string {
	data, err := os.ReadFile(m.log)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// Judge is a stand-in judge that listens on this machine.
type Judge struct {
	*fakejudge.Server
	// URL is its base URL: of Anthropic and Gemini as it is, of OpenAI and Mistral with /v1 behind it.
	URL  string
	http *http.Server
}

// StartJudge starts a stand-in judge.
func StartJudge(o fakejudge.Options) (*Judge, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the stand-in judge: %w", err)
	}
	j := &Judge{Server: fakejudge.New(o), URL: "http://" + listener.Addr().String()}
	j.http = fakejudge.NewHTTPServer(j.Server)
	go func() { _ = j.http.Serve(listener) }() // ends with Stop
	return j, nil
}

// Stop ends the judge and every call that it holds.
func (j *Judge) Stop() {
	j.Close()
	_ = j.http.Close()
}

// Keys are what a Secret holds so that judges are asked here.
func (j *Judge) Keys(key string) map[string]string {
	return map[string]string{
		"ANTHROPIC_API_KEY": key, "ANTHROPIC_BASE_URL": j.URL,
		"OPENAI_API_KEY": key, "OPENAI_BASE_URL": j.URL + "/v1",
		"GEMINI_API_KEY": key, "GEMINI_BASE_URL": j.URL,
		"MISTRAL_API_KEY": key, "MISTRAL_BASE_URL": j.URL + "/v1",
	}
}
