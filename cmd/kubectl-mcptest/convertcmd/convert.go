// Package convertcmd is `kubectl mcptest convert`: it prints files of other formats as manifests.
package convertcmd

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/exit"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/output"
	"github.com/mcptest/mcptest-operator/engine/convert/formats"
	"github.com/mcptest/mcptest-operator/engine/manifest"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

// Options are those of the verb.
type Options struct {
	genericiooptions.IOStreams
	Files     output.Paths
	From      string
	Namespace string

	load manifest.LoadOptions
}

// New makes the verb.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "convert -f FILE|DIR|-",
		Short: "Print files of other formats as manifests",
		Long: "Checks files and prints what is in them as Rubric and Eval manifests, which grade alike. Files of another format are recognised " +
			"by what stands in them; manifests are printed as they are, in a common form. Comments are not kept.\n\n" +
			"What a file of another format becomes has the label eval.mcptest.dev/suite with the name of the file, so that one run takes all of it.",
		Example: "  # Turn a file of evals into manifests\n  %[1]s convert -f rubric-eval.yml > evals.yaml\n\n" +
			"  # Apply it to a cluster, and run all of it\n  %[1]s convert -f rubric-eval.yml -n team | kubectl apply -f -\n  %[1]s run -l eval.mcptest.dev/suite=rubric-eval -n team",
		Args: output.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := o.Complete(); err != nil {
				return err
			}
			return o.Run()
		},
	}
	flags := cmd.Flags()
	o.Files.AddFlags(flags)
	flags.StringVar(&o.From, "from", "", fmt.Sprintf("The format of the files: %s. Default: as they are recognised.", strings.Join(formats.Names(), ", ")))
	flags.StringVarP(&o.Namespace, "namespace", "n", "", "Write this namespace into the manifests.")
	return cmd
}

// Complete checks the flags.
func (o *Options) Complete() error {
	if len(o.Files) == 0 {
		return errors.New("nothing to convert: name a file, a directory or - with -f")
	}
	if o.Namespace != "" && len(validation.IsDNS1123Label(o.Namespace)) > 0 {
		return fmt.Errorf("-n %s: the name of a namespace has lower-case letters, digits and dashes", o.Namespace)
	}
	if o.From == "" {
		return nil
	}
	format, err := formats.Find(o.From)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	o.load.Format = format
	return nil
}

// Run prints the manifests, once they are known to be right.
func (o *Options) Run() error {
	set, err := o.load.Load(o.Files, o.In)
	if err != nil {
		return err
	}
	for _, note := range set.Notes {
		fmt.Fprintln(o.ErrOut, "note:", note)
	}
	if err := set.Check(); err != nil {
		return err
	}
	if _, err := set.Plan(plan.Options{}); err != nil {
		return err
	}
	var manifests bytes.Buffer
	if err := set.Write(&manifests, manifest.WriteOptions{Namespace: o.Namespace}); err != nil {
		return err
	}
	if manifests.Len() == 0 {
		return exit.With(exit.NothingSelected, errors.New("the files hold nothing to convert"))
	}
	_, err = o.Out.Write(manifests.Bytes())
	return err
}
