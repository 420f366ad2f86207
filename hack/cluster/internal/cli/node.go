//go:build unix

package cli

import (
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mcptest/mcptest-operator/hack/cluster/internal/cluster"
	"github.com/mcptest/mcptest-operator/hack/cluster/internal/node"
)

// nodeCommand is the agent of a process node; `up` starts it.
func nodeCommand() *cobra.Command {
	var dir, name string
	cmd := &cobra.Command{
		Use: "node", Short: "Run the agent of a process node", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := cluster.Dir(dir)
			config, err := clientcmd.BuildConfigFromFlags("", d.Path("pki", "node.kubeconfig"))
			if err != nil {
				return err
			}
			return node.Run(cmd.Context(), node.Options{
				ClusterDir: dir, Name: name, Config: config,
				ServingCert: d.Path("pki", "node.crt"), ServingKey: d.Path("pki", "node.key"), ClientCA: d.Path("pki", "ca.crt"),
				Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
			})
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the cluster's folder")
	cmd.Flags().StringVar(&name, "node-name", "", "the name of the Node")
	return cmd
}
