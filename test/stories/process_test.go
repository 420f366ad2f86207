package stories

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// result is how a command ended.
type result struct {
	command        string
	code           int
	stdout, stderr string
}

func run(ctx context.Context, stdin io.Reader, name string, args ...string) result {
	GinkgoHelper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	err := cmd.Run()
	r := result{command: name + " " + strings.Join(args, " "), stdout: stdout.String(), stderr: stderr.String()}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		r.code = exit.ExitCode()
	default:
		Expect(err).NotTo(HaveOccurred(), r.command)
	}
	return r
}

func kubectl(ctx context.Context, args ...string) result {
	GinkgoHelper()
	return run(ctx, nil, "kubectl", args...)
}

func kubectlWith(ctx context.Context, stdin io.Reader, args ...string) result {
	GinkgoHelper()
	return run(ctx, stdin, "kubectl", args...)
}

// plugin runs kubectl-mcptest as it was just built.
func plugin(ctx context.Context, args ...string) result {
	GinkgoHelper()
	return run(ctx, nil, filepath.Join(repo, "bin/kubectl-mcptest"), args...)
}

// runnerProcesses are the processes of the runner containers in a namespace.
func runnerProcesses(namespace string) []int {
	files, _ := filepath.Glob(filepath.Join(clusterDir, "pods", namespace+"_*", "runner", "pid"))
	var pids []int
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && syscall.Kill(pid, 0) == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
