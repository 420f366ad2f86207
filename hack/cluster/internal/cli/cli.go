//go:build unix

// Package cli is the command line of the cluster tool. Results go to standard output, progress and notes to
// standard error.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mcptest/mcptest-operator/hack/cluster/internal/build"
	"github.com/mcptest/mcptest-operator/hack/cluster/internal/cluster"
)

// exitError ends the tool with a code and no message of its own: the command that was run has said what was wrong.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Main runs the tool and returns its exit code: 0, 1 when something failed, or that of the command of `run`.
func Main(goMod []byte, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, err := newRoot(goMod)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "cluster:", err)
		return 1
	}
	root.SetArgs(args)
	err = root.ExecuteContext(ctx)
	var code exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	_, _ = fmt.Fprintln(os.Stderr, "cluster:", err)
	return 1
}

// tool is what all verbs share.
type tool struct {
	versions build.Versions
	// binDir and root are where components and clusters lie; found from the repository when not given.
	binDir, root string
	progress     *build.Progress
}

func newRoot(goMod []byte) (*cobra.Command, error) {
	versions, err := build.ReadVersions(goMod)
	if err != nil {
		return nil, err
	}
	t := &tool{versions: versions, progress: build.NewProgress(os.Stderr)}
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "A real local Kubernetes " + versions.Kubernetes + ", built from the Go module proxy",
		Long: "cluster builds, starts and stops a real local Kubernetes " + versions.Kubernetes + `.
Its components are compiled from the Go module proxy the first time (about five minutes on two cores) and kept.
The default node runs containers as local processes and needs neither root nor a container runtime.`,
		SilenceUsage: true, SilenceErrors: true,
	}
	cmd.PersistentFlags().StringVar(&t.binDir, "bin-dir", os.Getenv("CLUSTER_BIN_DIR"),
		"where the components lie (env CLUSTER_BIN_DIR; default REPOSITORY/bin/k8s/"+versions.Kubernetes+")")
	cmd.PersistentFlags().StringVar(&t.root, "root", os.Getenv("CLUSTER_ROOT"),
		"where the clusters' folders lie (env CLUSTER_ROOT; default REPOSITORY/.cluster)")
	cmd.AddCommand(t.buildCommand(), t.upCommand(), t.downCommand(), t.runCommand(), t.listCommand(), t.logsCommand(),
		t.loadCommand(), imageCommand(),
		nodeCommand(), t.watchdogCommand())
	return cmd, nil
}

// source finds the module that names the versions: beneath the working directory or one above it, or beneath one
// above the tool itself.
func source() (string, error) {
	var starts []string
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	if exe, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(exe))
	}
	for _, dir := range starts {
		for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			module := filepath.Join(dir, "hack", "cluster")
			if _, err := os.Stat(filepath.Join(module, "cmd", "etcd", "main.go")); err == nil {
				return module, nil
			}
		}
	}
	return "", errors.New("run this inside the repository, or say where things are with --bin-dir and --root")
}

// locate fills in the folders that were not given.
func (t *tool) locate() error {
	if t.binDir == "" || t.root == "" {
		module, err := source()
		if err != nil {
			return err
		}
		repo := filepath.Dir(filepath.Dir(module))
		if t.binDir == "" {
			t.binDir = filepath.Join(repo, "bin", "k8s", t.versions.Kubernetes)
		}
		if t.root == "" {
			t.root = filepath.Join(repo, ".cluster")
		}
	}
	var binErr, rootErr error
	t.binDir, binErr = filepath.Abs(t.binDir)
	t.root, rootErr = filepath.Abs(t.root)
	return errors.Join(binErr, rootErr)
}

// build compiles what a cluster with this node needs and does not have yet.
func (t *tool) build(ctx context.Context, node cluster.NodeKind) error {
	b := &build.Builder{BinDir: t.binDir, Versions: t.versions, Progress: t.progress}
	var err error
	if b.Source, err = source(); err != nil {
		return err
	}
	return b.Build(ctx, node.Components())
}

func (t *tool) buildCommand() *cobra.Command {
	var nodeKind string
	cmd := &cobra.Command{
		Use: "build", Short: "Compile the components that are not there yet, and print where they are", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			node, err := cluster.ParseNodeKind(nodeKind)
			if err != nil {
				return err
			}
			if err := t.locate(); err != nil {
				return err
			}
			if err := t.build(cmd.Context(), node); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), t.binDir)
			return err
		},
	}
	nodeFlag(cmd, &nodeKind)
	return cmd
}

func nodeFlag(cmd *cobra.Command, kind *string) {
	cmd.Flags().StringVar(kind, "node", string(cluster.ProcessNode),
		"what runs the pods: process (needs only Go), containerd (root, Linux: kubelet and containerd) or none")
}
