// Package validatecmd is `kubectl mcptest validate`: it reads files of evals and says what is wrong with them.
package validatecmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/exit"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/output"
	"github.com/mcptest/mcptest-operator/engine/manifest"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

// Options are those of the verb.
type Options struct {
	genericiooptions.IOStreams
	Files output.Paths
}

// New makes the verb.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "validate -f FILE|DIR|-",
		Short: "Check files without running them",
		Long: "Loads Rubric, Eval, EvalRun and ConfigMap manifests, or mcptest YAML, follows their references and checks everything that a cluster " +
			"would check, and more. Prints one line a problem: the file and line, what is wrong, and what to write instead.",
		Example: "  # Check a file\n  %[1]s validate -f evals.yaml\n\n  # Check all manifests in a directory and below it\n  %[1]s validate -f evals/\n\n" +
			"  # Check what a template prints\n  helm template . | %[1]s validate -f -",
		Args: output.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := o.Complete(); err != nil {
				return err
			}
			return o.Run()
		},
	}
	o.Files.AddFlags(cmd.Flags())
	return cmd
}

// Complete checks the flags.
func (o *Options) Complete() error {
	if len(o.Files) == 0 {
		return errors.New("nothing to validate: name a file, a directory or - with -f")
	}
	return nil
}

// Run prints the problems, and fails when there are any.
func (o *Options) Run() error {
	set, err := manifest.Load(o.Files, o.In)
	if err == nil {
		for _, note := range set.Notes {
			fmt.Fprintln(o.ErrOut, "note:", note)
		}
		if err = set.Check(); err == nil {
			_, err = set.Plan(plan.Options{})
		}
	}
	var problems manifest.Problems
	switch {
	case errors.As(err, &problems):
		for _, p := range problems {
			fmt.Fprintln(o.Out, p.Error())
		}
		return exit.With(exit.BadInput, fmt.Errorf("%s", count(len(problems), "problem")))
	case err != nil:
		return err
	}
	fmt.Fprintf(o.Out, "%s, %s, %s: valid\n", count(len(set.Files), "file"), count(len(set.Evals), "eval"), count(len(set.Rubrics), "rubric"))
	return nil
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
