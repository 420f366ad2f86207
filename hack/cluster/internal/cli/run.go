//go:build unix

package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mcptest/mcptest-operator/hack/cluster/internal/cluster"
	"github.com/mcptest/mcptest-operator/hack/cluster/internal/proc"
)

// commandGrace is how long the command may take to end after a signal.
const commandGrace = 30 * time.Second

func (t *tool) runCommand() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use: "run [flags] -- COMMAND [ARG...]", Short: "Run a command against a cluster that lives as long as the command",
		Long: `Start a cluster, run a command against it, pass on the command's exit code, and stop everything, however it ends.

The command's environment holds KUBECONFIG, USE_EXISTING_CLUSTER=true, KUBEBUILDER_ASSETS, CLUSTER_DIR (the cluster's
folder) and a PATH that begins with the folder of kubectl. A cluster of that name that runs already is used and left running.
With USE_EXISTING_CLUSTER=true in the environment no cluster is started: the command runs against the current context.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if existing, err := strconv.ParseBool(os.Getenv("USE_EXISTING_CLUSTER")); err == nil && existing {
				t.progress.Note("USE_EXISTING_CLUSTER is set: using the current context, starting no cluster")
				return runChild(cmd.Context(), args, os.Environ(), "")
			}
			if f.name == "" {
				f.name = "run-" + strings.ToLower(rand.Text()[:8])
			}
			return t.run(cmd.Context(), f, args)
		},
	}
	f.register(cmd, "", "the cluster's name (default a random one)")
	return cmd
}

// run wraps a command in a cluster.
func (t *tool) run(ctx context.Context, f upFlags, args []string) (err error) {
	if err := t.locate(); err != nil {
		return err
	}
	d := cluster.In(t.root, f.name)
	if len(d.Running()) == 0 {
		guard, err := t.startWatchdog(f.name)
		if err != nil {
			return err
		}
		defer guard()
		defer func() {
			// The signal that ended the command has ended ctx too; stopping has to go on.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			if downErr := cluster.Down(ctx, d, cluster.RemoveFolder, t.progress); downErr != nil {
				t.progress.Note("cluster: %v", downErr)
			}
		}()
	}
	if _, err := t.up(ctx, f); err != nil {
		return err
	}
	env := append(os.Environ(), "KUBECONFIG="+d.Kubeconfig(), "USE_EXISTING_CLUSTER=true", "KUBEBUILDER_ASSETS="+t.binDir,
		"CLUSTER_DIR="+string(d), "PATH="+t.binDir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return runChild(ctx, args, env, d.Path("run", cluster.CommandRecord+".json"))
}

// runChild runs the command and returns its exit code as an exitError. When ctx ends, the command is asked to end and
// killed after a while. record is where the process is recorded, for the watchdog; empty for nowhere.
func runChild(ctx context.Context, args, env []string, record string) error {
	path, err := lookPath(args[0], env)
	if err != nil {
		return err
	}
	cmd := exec.Command(path, args[1:]...)
	cmd.Args[0] = args[0]
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	// On a terminal the command stays in the foreground group, so that it may read and gets Ctrl-C by itself.
	// Elsewhere it leads a group of its own, so that all of it can be ended.
	group := !term.IsTerminal(int(os.Stdin.Fd()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: group}
	// A signal between here and the end of the command is passed on by the loop below, not taken for the end of the tool.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", args[0], err)
	}
	r := proc.Describe(cluster.CommandRecord, cmd.Process.Pid, path)
	if record != "" {
		if err := r.Write(record); err != nil {
			_ = cmd.Process.Kill()
			return errors.Join(err, cmd.Wait())
		}
		defer func() { _ = os.Remove(record) }()
	}
	send := func(sig syscall.Signal) {
		if group {
			_ = syscall.Kill(-cmd.Process.Pid, sig)
			return
		}
		_ = cmd.Process.Signal(sig)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var kill <-chan time.Time
	stop, received := ctx.Done(), 0
	for {
		select {
		case err := <-ended:
			if group {
				send(syscall.SIGKILL) // what the command left behind would use a cluster that goes away
			}
			return commandError(args[0], cmd.ProcessState, err)
		case <-stop:
			stop, kill = nil, time.After(commandGrace)
			send(syscall.SIGTERM)
		case sig := <-signals:
			if received++; received > 1 {
				kill = time.After(3 * time.Second) // asked again: less patience
			}
			if s, ok := sig.(syscall.Signal); ok && group {
				send(s)
			}
		case <-kill:
			send(syscall.SIGKILL)
		}
	}
}

// commandError turns the end of the command into the tool's exit code, as a shell does.
func commandError(name string, state *os.ProcessState, err error) error {
	if err == nil {
		return nil
	}
	if state == nil {
		return fmt.Errorf("run %s: %w", name, err)
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return exitError(128 + int(ws.Signal()))
	}
	return exitError(state.ExitCode())
}

// lookPath finds a program on the PATH of env.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := ""
	for _, e := range env { // the last one counts
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			path = v
		}
	}
	for _, dir := range filepath.SplitList(path) {
		p := filepath.Join(dir, name)
		if info, err := os.Stat(p); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return filepath.Abs(p)
		}
	}
	return "", fmt.Errorf("%s: no such program on PATH", name)
}

// startWatchdog starts a process that stops the cluster when this one ends without having done so itself, even by
// SIGKILL: it waits for the end of a pipe that only this process holds. The function it returns ends the watch.
func (t *tool) startWatchdog(name string) (stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "watchdog", "--root", t.root, "--bin-dir", t.binDir, "--name", name)
	cmd.Stdin = reader
	r, err := proc.Start("watchdog", cmd)
	_ = reader.Close()
	if err != nil {
		_ = writer.Close()
		return nil, err
	}
	return func() {
		r.KillGroup()
		_ = cmd.Wait()
		_ = writer.Close()
	}, nil
}

// watchdogCommand stops a cluster once its standard input has ended; `run` starts it.
func (t *tool) watchdogCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "watchdog", Short: "Stop a cluster when standard input ends", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			if err := errors.Join(t.locate(), cluster.CheckName(name)); err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
				return err
			}
			return cluster.Down(context.WithoutCancel(cmd.Context()), cluster.In(t.root, name), cluster.RemoveFolder, nil)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the cluster's name")
	return cmd
}
