// Package versioncmd is `kubectl mcptest version`.
package versioncmd

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/cluster"
)

// version is set by the build (-ldflags -X).
var version = ""

// clusterTimeout bounds the look into the cluster.
const clusterTimeout = 3 * time.Second

// Client is the version of this program: set by the build, else that of the module.
func Client() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Info is what is printed.
type Info struct {
	Client   string   `json:"client"`
	Go       string   `json:"go"`
	Platform string   `json:"platform"`
	Operator []string `json:"operatorImages,omitempty"`
	// Note says why nothing is known about an operator.
	Note string `json:"note,omitempty"`
}

// Options are those of the verb.
type Options struct {
	genericiooptions.IOStreams
	Kube       *genericclioptions.ConfigFlags
	Format     string
	ClientOnly bool
}

// New makes the verb.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams, Kube: genericclioptions.NewConfigFlags(true)}
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Show the version of this program and of the operator",
		Example: "  %[1]s version\n\n  # For machines, without asking the cluster\n  %[1]s version --client -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Complete(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&o.Format, "output", "o", "", "Format: json; without it, text.")
	cmd.Flags().BoolVar(&o.ClientOnly, "client", false, "Do not ask the cluster.")
	o.Kube.AddFlags(cmd.Flags())
	return cmd
}

// Complete checks the flags.
func (o *Options) Complete() error {
	if o.Format != "" && o.Format != "json" {
		return fmt.Errorf("-o %s is not known here; write json, or leave it out", o.Format)
	}
	return nil
}

// Run prints the versions. A cluster that cannot be reached is no error.
func (o *Options) Run(ctx context.Context) error {
	info := Info{Client: Client(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if !o.ClientOnly {
		o.operator(ctx, &info)
	}
	if o.Format == "json" {
		enc := json.NewEncoder(o.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(info)
	}
	fmt.Fprintf(o.Out, "client    %s (%s, %s)\n", info.Client, info.Go, info.Platform)
	if len(info.Operator) > 0 {
		fmt.Fprintf(o.Out, "operator  %s\n", strings.Join(info.Operator, ", "))
	}
	if info.Note != "" {
		fmt.Fprintf(o.ErrOut, "note: %s\n", info.Note)
	}
	return nil
}

func (o *Options) operator(ctx context.Context, info *Info) {
	client, err := cluster.New(o.Kube)
	if err != nil {
		info.Note = "no cluster is configured"
		return
	}
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	images, err := client.OperatorImages(ctx)
	switch {
	case err != nil:
		info.Note = "the operator's version is not known: " + err.Error()
	case len(images) == 0:
		info.Note = "no operator is in this cluster, or it is not named app.kubernetes.io/name=mcptest-operator"
	default:
		info.Operator = images
	}
}
