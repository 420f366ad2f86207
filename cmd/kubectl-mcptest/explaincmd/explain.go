// Package explaincmd is `kubectl mcptest explain`: it prints what a run would do, and asks nobody.
package explaincmd

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/cluster"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/exit"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/money"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/output"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/projection"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/judge/providers"
	"github.com/mcptest/mcptest-operator/engine/manifest"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

// Options are those of the verb.
type Options struct {
	genericiooptions.IOStreams
	Kube       *genericclioptions.ConfigFlags
	Files      output.Paths
	JudgeModel string
	Prices     money.PriceFile

	eval string
}

// New makes the verb.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams, Kube: genericclioptions.NewConfigFlags(true)}
	cmd := &cobra.Command{
		Use:   "explain EVAL | -f FILE",
		Short: "Show what a run would do and about what it would cost",
		Long: "Prints the plan of a run: for each row the rubric and its threshold, where the candidate comes from, which judge is asked, " +
			"how often, and about what that costs. No judge is asked, and no key is needed.",
		Example: "  # An Eval of the cluster\n  %[1]s explain release-summary\n\n  # Evals in a file\n  %[1]s explain -f evals.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(args); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.Files.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.JudgeModel, "judge-model", "", "Judge with this model instead of the evals' own.")
	o.Prices.AddFlag(cmd.Flags())
	o.Kube.AddFlags(cmd.Flags())
	return cmd
}

// Complete checks the flags and arguments.
func (o *Options) Complete(args []string) error {
	switch {
	case len(args) > 1 || (len(args) == 1) == (len(o.Files) > 0):
		return errors.New("name one Eval of the cluster, or files with -f")
	case len(args) == 1:
		o.eval = args[0]
	}
	return nil
}

// Run prints the plan.
func (o *Options) Run(ctx context.Context) error {
	prices, err := o.Prices.Load()
	if err != nil {
		return err
	}
	options := plan.Options{JudgeModel: v1alpha1.ModelName(o.JudgeModel)}
	if o.eval != "" {
		return o.fromCluster(ctx, options, prices)
	}
	set, err := manifest.Load(o.Files, o.In)
	if err != nil {
		return err
	}
	p, err := set.Plan(options)
	for _, note := range set.Notes {
		fmt.Fprintln(o.ErrOut, "note:", note)
	}
	if err != nil {
		return err
	}
	if len(p.Rows) == 0 {
		return exit.With(exit.NothingSelected, errors.New("the files hold no Eval"))
	}
	_, env := providers.FromEnv(os.Getenv, nil)
	return projection.Write(o.Out, projection.Of(p, env, prices), projection.KeysLocal)
}

// fromCluster plans an Eval of the cluster, whose keys are in a Secret that is not read.
func (o *Options) fromCluster(ctx context.Context, options plan.Options, prices judge.Prices) error {
	client, err := cluster.New(o.Kube)
	if err != nil {
		return err
	}
	eval, err := client.Eval(ctx, o.eval)
	if err != nil {
		return err
	}
	catalog, err := client.Catalog(ctx, &eval.Spec)
	if err != nil {
		return err
	}
	p, err := plan.Make([]plan.NamedEval{{Name: eval.Name, Spec: eval.Spec}}, catalog, options)
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	return projection.Write(o.Out, projection.Of(p, judge.EveryKey(), prices), projection.KeysCluster)
}
