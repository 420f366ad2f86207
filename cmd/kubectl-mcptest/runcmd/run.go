// Package runcmd is `kubectl mcptest run`: it makes an EvalRun in the cluster, follows it, prints its report and ends with
// its verdict.
package runcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/cluster"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/exit"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/money"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/output"
	"github.com/mcptest/mcptest-operator/engine/redact"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

// Options are those of the verb.
type Options struct {
	genericiooptions.IOStreams
	Kube        *genericclioptions.ConfigFlags
	Output      output.Options
	Files       output.Paths
	Selector    string
	Watch       bool
	JudgeModel  string
	Parallelism int32
	Concurrency int32
	MaxCost     money.Limit
	Name        string
	Timeout     time.Duration

	eval   string
	labels map[string]v1alpha1.LabelValue
}

// New makes the verb.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams, Kube: genericclioptions.NewConfigFlags(true)}
	cmd := &cobra.Command{
		Use:   "run EVAL | -l SELECTOR | -f FILE",
		Short: "Run evals in the cluster, and wait for the report",
		Long: "Makes an EvalRun, follows it until it ended, prints its report and ends with its verdict. With -f the evals in the files, manifests or mcptest YAML, are run as they are, " +
			"each in an EvalRun of its own; nothing else of the files is applied, and Rubrics that they lack are those of the cluster.\n\n" +
			"Ctrl-C leaves the run alone; it goes on in the cluster.",
		Example: "  # Run an Eval of the cluster\n  %[1]s run release-summary\n\n  # Run all Evals with a label, and do not wait\n  %[1]s run -l team=docs --watch=false\n\n" +
			"  # Run evals from a file, with another judge\n  %[1]s run -f evals.yaml --judge-model claude-haiku-5-5",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(args); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	o.Files.AddFlags(flags)
	o.Output.AddFlags(flags)
	flags.StringVarP(&o.Selector, "selector", "l", "", "Run every Eval with these labels, such as team=docs,tier=gold.")
	flags.BoolVarP(&o.Watch, "watch", "w", true, "Follow the run and print its report.")
	flags.StringVar(&o.JudgeModel, "judge-model", "", "Judge with this model instead of the evals' own.")
	o.MaxCost.AddFlag(flags, "The most that the judge calls of the run may cost, in US dollars.")
	flags.Int32Var(&o.Parallelism, "parallelism", 0, "How many pods may grade at once. Default 4.")
	flags.Int32Var(&o.Concurrency, "concurrency", 0, "How many judge calls one pod makes at once. Default 16.")
	flags.StringVar(&o.Name, "name", "", "The name of the EvalRun. Default: made of the eval's name.")
	flags.DurationVar(&o.Timeout, "timeout", time.Hour, "How long to wait. The run goes on after that.")
	o.Kube.AddFlags(flags)
	return cmd
}

// Complete checks the flags and arguments.
func (o *Options) Complete(args []string) error {
	chosen := 0
	for _, has := range []bool{len(args) == 1, o.Selector != "", len(o.Files) > 0} {
		if has {
			chosen++
		}
	}
	if chosen != 1 || len(args) > 1 {
		return errors.New("say what to run: one Eval of the cluster, Evals by label with -l, or files with -f")
	}
	if len(args) == 1 {
		o.eval = args[0]
	}
	if o.Timeout <= 0 {
		return fmt.Errorf("--timeout %v: write how long to wait, such as 30m", o.Timeout)
	}
	if err := o.parseSelector(); err != nil {
		return err
	}
	return o.Output.Complete()
}

// parseSelector reads key=value pairs: an EvalRun chooses Evals by labels that they have, all of them.
func (o *Options) parseSelector() error {
	if o.Selector == "" {
		return nil
	}
	o.labels = make(map[string]v1alpha1.LabelValue)
	for _, pair := range strings.Split(o.Selector, ",") {
		key, value, ok := strings.Cut(strings.Replace(pair, "==", "=", 1), "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok || key == "" || strings.ContainsAny(key+value, "!= ()") {
			return fmt.Errorf("-l %s: write key=value pairs, such as team=docs,tier=gold", o.Selector)
		}
		o.labels[key] = v1alpha1.LabelValue(value)
	}
	return nil
}

// Run makes the runs and, unless told not to, waits for them.
func (o *Options) Run(ctx context.Context) error {
	client, err := cluster.New(o.Kube)
	if err != nil {
		return err
	}
	wanted, err := o.runs(ctx, client)
	if err != nil {
		return err
	}
	var made []*v1alpha1.EvalRun
	for _, run := range wanted {
		created, err := client.CreateRun(ctx, run)
		if err != nil {
			return err
		}
		fmt.Fprintf(o.ErrOut, "evalrun.%s/%s created\n", v1alpha1.GroupVersion.Group, created.Name)
		made = append(made, created)
	}
	if !o.Watch {
		for _, run := range made {
			fmt.Fprintln(o.Out, run.Name)
		}
		return nil
	}
	ended, err := o.follow(ctx, client, made)
	if err != nil {
		return err
	}
	return o.print(ctx, client, ended)
}

// print prints the report of all runs together and ends with its verdict.
func (o *Options) print(ctx context.Context, client *cluster.Client, ended []*v1alpha1.EvalRun) error {
	var all *v1alpha1.RunReport
	for _, run := range ended {
		found, err := client.Report(ctx, run)
		if err != nil {
			return err
		}
		if all == nil {
			all = found
			continue
		}
		all.Run += ", " + found.Run
		all.Rows = append(all.Rows, found.Rows...)
	}
	if len(ended) > 1 {
		reports := make([]*v1alpha1.Report, len(all.Rows))
		for i := range all.Rows {
			reports[i] = &all.Rows[i]
		}
		all.Summary = rubric.Summarize(reports)
	}
	if err := o.Output.Write(o.IOStreams, all, redact.New()); err != nil {
		return err
	}
	if n := exit.OverBudget(all.Rows); n > 0 {
		return exit.With(exit.BudgetExceeded, exit.BudgetError(n, len(all.Rows)))
	}
	for _, run := range ended {
		passed := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionPassed)
		if passed != nil && passed.Reason == string(v1alpha1.RowBudgetExceeded) { // also when the child that would say so is gone
			return exit.With(exit.BudgetExceeded, fmt.Errorf("run %q: %s", run.Name, passed.Message))
		}
		if out := run.Status.Outcome; out == v1alpha1.OutcomeFailed || out == v1alpha1.OutcomeError {
			return exit.With(exit.Failed, nil)
		}
	}
	return nil
}
