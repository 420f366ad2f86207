// Package evalcmd is `kubectl mcptest eval`: it grades evals here, without a cluster, with the engine that the operator
// uses.
package evalcmd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/exit"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/money"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/output"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/projection"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/judge/providers"
	"github.com/mcptest/mcptest-operator/engine/manifest"
	"github.com/mcptest/mcptest-operator/engine/plan"
	"github.com/mcptest/mcptest-operator/engine/redact"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

// maxConcurrency is the most judge calls that are made at once.
const maxConcurrency = 256

// Options are those of the verb.
type Options struct {
	genericiooptions.IOStreams
	Output      output.Options
	Files       output.Paths
	Explain     bool
	JudgeModel  string
	Filter      string
	Concurrency int
	OnDeferred  string
	MaxCost     money.Limit
	Prices      money.PriceFile
	// Getenv reads the environment.
	Getenv func(string) string

	filter *regexp.Regexp
}

// New makes the verb.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	return newCommand(&Options{IOStreams: streams, Getenv: os.Getenv})
}

func newCommand(o *Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "eval -f FILE|DIR|-",
		Short: "Grade evals here, without a cluster",
		Long: "Grades the evals in manifests or mcptest YAML on this machine, with the engine that the operator uses, and prints the report. " +
			"An EvalRun among the manifests chooses which evals are graded; without one all are.\n\n" +
			"The judges' keys come from the environment: ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or MISTRAL_API_KEY, each with its ..._BASE_URL; " +
			"MCPTEST_JUDGE_MODEL names the judge of evals that name none. Without a key rows are deferred: they count as passed, " +
			"and the report says that nothing was judged.",
		Example: "  # Grade the evals in a file\n  %[1]s eval -f evals.yaml\n\n  # Show first what that would cost\n  %[1]s eval -f evals.yaml --explain\n\n" +
			"  # For machines, and fail when something could not be judged\n  %[1]s eval -f evals/ -o json --output-file report.json --on-deferred Fail",
		Args: output.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Complete(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	o.Files.AddFlags(flags)
	o.Output.AddFlags(flags)
	flags.BoolVar(&o.Explain, "explain", false, "Print the plan and its projected cost, and ask nobody.")
	flags.StringVar(&o.JudgeModel, "judge-model", "", "Judge with this model instead of the evals' own. A panel, and an axis of models, stay.")
	flags.StringVar(&o.Filter, "filter", "", "Grade only the rows whose name matches this regular expression.")
	flags.IntVar(&o.Concurrency, "concurrency", v1alpha1.DefaultConcurrency, "How many judge calls are made at once.")
	o.MaxCost.AddFlag(flags, "The most that the judge calls may cost, in US dollars: when the next call would pass it no further call is made. Default: the maxCost of an EvalRun in the files.")
	o.Prices.AddFlag(flags)
	flags.StringVar(&o.OnDeferred, "on-deferred", "", "What a deferred row counts as: Pass or Fail. Default: what the eval says.")
	return cmd
}

// Complete checks the flags.
func (o *Options) Complete() error {
	if len(o.Files) == 0 {
		return errors.New("nothing to grade: name a file, a directory or - with -f")
	}
	if o.Concurrency < 1 || o.Concurrency > maxConcurrency {
		return fmt.Errorf("--concurrency %d: write a number from 1 to %d", o.Concurrency, maxConcurrency)
	}
	switch v1alpha1.DeferredPolicy(o.OnDeferred) {
	case "", v1alpha1.DeferredPass, v1alpha1.DeferredFail:
	default:
		return fmt.Errorf("--on-deferred %s: write Pass or Fail", o.OnDeferred)
	}
	var err error
	if o.filter, err = regexp.Compile(o.Filter); err != nil {
		return fmt.Errorf("--filter: %w", err)
	}
	return o.Output.Complete()
}

// Run grades, prints the report and ends with its verdict.
func (o *Options) Run(ctx context.Context) error {
	prices, err := o.Prices.Load()
	if err != nil {
		return err
	}
	p, err := o.plan()
	if err != nil {
		return err
	}
	clients, env := providers.FromEnv(o.Getenv, nil)
	projected := projection.Of(&p.Plan, env, prices)
	if err := priced(p.maxCost, projected); err != nil {
		return err
	}
	if o.Explain {
		return projection.Write(o.Out, projected, projection.KeysLocal)
	}
	if err := o.header(projected, p.maxCost); err != nil {
		return err
	}
	redactor := redact.New(o.secrets()...)
	options := judge.Options{Clients: clients, Concurrency: o.Concurrency, Prices: prices}
	if p.maxCost != nil {
		options.Budget = judge.NewPurse(*p.maxCost)
	}
	grader := &rubric.Grader{Asker: judge.New(options), Env: env, Now: now}
	reports := o.grade(ctx, grader, redactor, p.Rows, projection.Sum(projected).Calls)
	return o.conclude(p.name, reports, redactor)
}

// conclude prints the report and ends with its verdict.
func (o *Options) conclude(name string, reports []*v1alpha1.Report, redactor *redact.Redactor) error {
	run := &v1alpha1.RunReport{SchemaVersion: v1alpha1.ReportSchemaVersion, Run: name, Summary: rubric.Summarize(reports), Rows: []v1alpha1.Report{}}
	for _, r := range reports {
		if r != nil {
			run.Rows = append(run.Rows, *r)
		}
	}
	if err := o.Output.Write(o.IOStreams, run, redactor); err != nil {
		return err
	}
	if unfinished := len(reports) - len(run.Rows); unfinished > 0 {
		return exit.With(exit.NotFinished, fmt.Errorf("stopped: %d of %d rows were not graded; the report holds the others", unfinished, len(reports)))
	}
	if n := exit.OverBudget(run.Rows); n > 0 {
		return exit.With(exit.BudgetExceeded, exit.BudgetError(n, len(run.Rows)))
	}
	switch rubric.RunOutcome(run.Summary) {
	case v1alpha1.OutcomeFailed, v1alpha1.OutcomeError:
		return exit.With(exit.Failed, nil)
	}
	return nil
}

// chosen is what is graded.
type chosen struct {
	plan.Plan
	// name is the name of the run.
	name string
	// maxCost is the budget in US dollars; nil for none.
	maxCost *float64
}

// plan loads the files and plans the rows that the filter leaves.
func (o *Options) plan() (*chosen, error) {
	set, err := manifest.Load(o.Files, o.In)
	if err != nil {
		return nil, err
	}
	p, err := set.Plan(plan.Options{JudgeModel: v1alpha1.ModelName(o.JudgeModel)})
	for _, note := range set.Notes {
		fmt.Fprintln(o.ErrOut, "note:", note)
	}
	if err != nil {
		return nil, err
	}
	if len(p.Rows) == 0 {
		return nil, exit.With(exit.NothingSelected, errors.New("the files hold no Eval; write one, or name other files with -f"))
	}
	kept := &chosen{name: set.Name()}
	if kept.maxCost, err = o.budget(set.Runs); err != nil {
		return nil, err
	}
	for _, row := range p.Rows {
		if !o.filter.MatchString(row.Name) {
			continue
		}
		if o.OnDeferred != "" {
			row.Spec.OnDeferred = v1alpha1.DeferredPolicy(o.OnDeferred)
		}
		kept.Rows = append(kept.Rows, row)
		kept.Calls += row.Calls
	}
	if len(kept.Rows) == 0 {
		return nil, exit.With(exit.NothingSelected, fmt.Errorf("no row matches --filter %q; --explain shows the names of all %d", o.Filter, len(p.Rows)))
	}
	return kept, nil
}

// budget is what may be spent: --max-cost, else what the only EvalRun of the files says; nil for no limit.
func (o *Options) budget(runs []v1alpha1.EvalRun) (*float64, error) {
	switch usd := o.MaxCost.USD(); {
	case usd != nil:
		return usd, nil
	case len(runs) == 1:
		return runs[0].Spec.MaxCost, nil
	case slices.ContainsFunc(runs, func(r v1alpha1.EvalRun) bool { return r.Spec.MaxCost != nil }):
		return nil, errors.New("the files hold several EvalRuns, with a maxCost each: say with --max-cost what all of them may cost together")
	}
	return nil, nil
}

// priced refuses a budget for models whose calls nobody can price (S-42).
func priced(maxCost *float64, rows []projection.Row) error {
	if maxCost == nil {
		return nil
	}
	for _, model := range projection.Sum(rows).Unpriced {
		return &judge.UnpricedError{Model: model}
	}
	return nil
}

// header says what is about to be spent, before the first call. The error is a base URL that is none.
func (o *Options) header(rows []projection.Row, maxCost *float64) error {
	total := projection.Sum(rows)
	fmt.Fprintf(o.ErrOut, "%s\n", total.Sentence())
	if maxCost != nil && total.CostUSD > *maxCost {
		fmt.Fprintf(o.ErrOut, "that is more than the budget of %s: rows that it does not reach end as errors (BudgetExceeded)\n", money.Dollars(*maxCost))
	} else if maxCost != nil {
		fmt.Fprintf(o.ErrOut, "the budget is %s\n", money.Dollars(*maxCost))
	}
	if len(total.Models) > 0 {
		fmt.Fprintf(o.ErrOut, "judged by %s\n", strings.Join(total.Models, ", "))
	}
	for _, p := range judge.Providers() {
		if !asked(rows, p) {
			continue
		}
		base := strings.TrimSpace(o.Getenv(judge.BaseURLVariable(p)))
		if base == "" {
			continue
		}
		at, err := url.Parse(base)
		if err != nil || at.Host == "" || (at.Scheme != "http" && at.Scheme != "https") {
			return fmt.Errorf("%s is no URL of a server: write it as in https://llm.example.com, or unset it", judge.BaseURLVariable(p))
		}
		fmt.Fprintf(o.ErrOut, "%s is asked at %s (%s)\n", p, at.Redacted(), judge.BaseURLVariable(p))
	}
	return nil
}

// asked tells whether a provider is asked for any row.
func asked(rows []projection.Row, p v1alpha1.Provider) bool {
	return slices.ContainsFunc(rows, func(r projection.Row) bool {
		return r.Calls > 0 && slices.ContainsFunc(r.Models, func(m judge.Model) bool { return m.Provider == p })
	})
}

// secrets are the keys that this process was given.
func (o *Options) secrets() []string {
	var keys []string
	for _, p := range judge.Providers() {
		for _, name := range judge.KeyVariables(p) {
			if key := strings.TrimSpace(o.Getenv(name)); key != "" {
				keys = append(keys, key)
			}
		}
	}
	return keys
}
