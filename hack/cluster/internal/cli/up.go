//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcptest/mcptest-operator/hack/cluster/internal/cluster"
	"github.com/mcptest/mcptest-operator/hack/cluster/internal/node"
)

// upFlags are what `up` and `run` take.
type upFlags struct {
	name, node string
	images     []string
	timeout    time.Duration
}

func (f *upFlags) register(cmd *cobra.Command, defaultName, nameHelp string) {
	cmd.Flags().StringVar(&f.name, "name", defaultName, nameHelp)
	nodeFlag(cmd, &f.node)
	cmd.Flags().StringArrayVar(&f.images, "image", nil,
		"an image of the process node, as REF=ROOTFS_DIR[,entrypoint=/program]: a container's command /x runs ROOTFS_DIR/x (may be repeated)")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 2*time.Minute, "how long the start may take, without building")
}

// up builds what is missing and starts the cluster.
func (t *tool) up(ctx context.Context, f upFlags) (cluster.Dir, error) {
	kind, err := cluster.ParseNodeKind(f.node)
	if err != nil {
		return "", err
	}
	if err := cluster.CheckName(f.name); err != nil {
		return "", err
	}
	images := map[string]node.Image{}
	for _, s := range f.images {
		ref, image, err := node.ParseImage(s)
		if err != nil {
			return "", err
		}
		images[ref] = image
	}
	if len(images) > 0 && kind != cluster.ProcessNode {
		return "", fmt.Errorf("--image is for the process node; give a %s node archives with `cluster load`", kind)
	}
	if err := t.locate(); err != nil {
		return "", err
	}
	if err := t.build(ctx, kind); err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return cluster.Up(ctx, cluster.Options{
		Root: t.root, Name: f.name, Node: kind, BinDir: t.binDir, Version: t.versions.Kubernetes,
		Images: images, Self: self, Timeout: f.timeout, Progress: t.progress,
	})
}

func (t *tool) upCommand() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use: "up", Short: "Start a cluster, or what is missing of it, and print the line that selects it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := t.up(cmd.Context(), f)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "export KUBECONFIG=%s\n", d.Kubeconfig())
			return err
		},
	}
	f.register(cmd, "dev", "the cluster's name")
	return cmd
}

func (t *tool) downCommand() *cobra.Command {
	var name string
	var all, keep bool
	cmd := &cobra.Command{
		Use: "down", Short: "Stop a cluster with everything that runs in it, and remove its folder", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := t.locate(); err != nil {
				return err
			}
			dirs := []cluster.Dir{cluster.In(t.root, name)}
			if err := cluster.CheckName(name); err != nil && !all {
				return err
			}
			if all {
				var err error
				if dirs, err = cluster.List(t.root); err != nil {
					return err
				}
			}
			after := cluster.RemoveFolder
			if keep {
				after = cluster.KeepFolder
			}
			var errs []error
			for _, d := range dirs {
				done := t.progress.Begin("stopping cluster " + d.Name())
				err := cluster.Down(cmd.Context(), d, after, t.progress)
				done(err)
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().StringVar(&name, "name", "dev", "the cluster's name")
	cmd.Flags().BoolVar(&all, "all", false, "stop all clusters")
	cmd.Flags().BoolVar(&keep, "keep", false, "keep data and logs: the next up starts the same cluster again")
	cmd.MarkFlagsMutuallyExclusive("name", "all")
	return cmd
}

func (t *tool) listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the clusters", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := t.locate(); err != nil {
				return err
			}
			dirs, err := cluster.List(t.root)
			if err != nil {
				return err
			}
			var b strings.Builder
			_, _ = fmt.Fprintf(&b, "%-20s %-11s %-9s %-9s %s\n", "NAME", "NODE", "VERSION", "RUNNING", "KUBECONFIG")
			for _, d := range dirs {
				s, err := d.ReadState()
				if err != nil {
					s = cluster.State{Node: "?", Version: "?"}
				}
				_, _ = fmt.Fprintf(&b, "%-20s %-11s %-9s %-9d %s\n", d.Name(), s.Node, s.Version, len(d.Running()), d.Kubeconfig())
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), b.String())
			return err
		},
	}
}

func (t *tool) logsCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "logs COMPONENT", Short: "Print a component's log", Args: cobra.ExactArgs(1),
		Long: "Print the log of etcd, kube-apiserver, kube-controller-manager, kube-scheduler or node\n" +
			"(containerd node: containerd, kubelet, kube-proxy, dns).",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(t.locate(), cluster.CheckName(name), cluster.CheckName(args[0])); err != nil {
				return err
			}
			f, err := os.Open(cluster.In(t.root, name).Log(args[0]))
			if err != nil {
				return fmt.Errorf("cluster %s has no log of %s: %w", name, args[0], err)
			}
			defer func() { _ = f.Close() }()
			_, err = f.WriteTo(cmd.OutOrStdout())
			return err
		},
	}
	cmd.Flags().StringVar(&name, "name", "dev", "the cluster's name")
	return cmd
}
