// Package reportcmd is `kubectl mcptest report`: it renders the report of a run, or one that was stored.
package reportcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/cluster"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/output"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
	"github.com/mcptest/mcptest-operator/engine/redact"
)

// maxReportBytes bounds a stored report.
const maxReportBytes = 256 << 20

// Options are those of the verb.
type Options struct {
	genericiooptions.IOStreams
	Kube   *genericclioptions.ConfigFlags
	Output output.Options
	// File is a stored report; "-" is standard input.
	File string

	run string
}

// New makes the verb.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams, Kube: genericclioptions.NewConfigFlags(true)}
	cmd := &cobra.Command{
		Use:   "report RUN | -f report.json",
		Short: "Render the report of a run",
		Long: "Renders the report of an EvalRun of the cluster, or one that was stored with -o json. Of a run that goes on, what is there so far. " +
			"The exit code says whether there is a report, not what its verdict is: `run` and `eval` end with the verdict.",
		Example: "  %[1]s report demo\n\n  # Keep a report, and render it later\n  %[1]s report demo -o json --output-file demo.json\n  %[1]s report -f demo.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(args); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.File, "filename", "f", "", "A stored report in JSON, or - for standard input, instead of a run of the cluster.")
	o.Output.AddFlags(flags)
	o.Kube.AddFlags(flags)
	return cmd
}

// Complete checks the flags and arguments.
func (o *Options) Complete(args []string) error {
	switch {
	case len(args) > 1 || (len(args) == 1) == (o.File != ""):
		return errors.New("name one EvalRun of the cluster, or a stored report with -f; kubectl get evalruns lists the runs")
	case len(args) == 1:
		o.run = args[0]
	}
	return o.Output.Complete()
}

// Run renders the report.
func (o *Options) Run(ctx context.Context) error {
	// Reports were redacted by who wrote them; what looks like a secret is redacted again.
	redactor := redact.New()
	if o.File != "" {
		stored, err := o.stored()
		if err != nil {
			return err
		}
		return o.Output.Write(o.IOStreams, stored, redactor)
	}
	client, err := cluster.New(o.Kube)
	if err != nil {
		return err
	}
	run, err := client.Run(ctx, o.run)
	if err != nil {
		return err
	}
	found, err := client.Report(ctx, run)
	if err != nil {
		return err
	}
	if err := o.Output.Write(o.IOStreams, found, redactor); err != nil {
		return err
	}
	if !runtree.IsComplete(run) {
		fmt.Fprintf(o.ErrOut, "note: %s\n", unfinished(run, found))
	}
	return nil
}

// unfinished says how far a run is that has not ended, and what it waits for.
func unfinished(run *v1alpha1.EvalRun, found *v1alpha1.RunReport) string {
	if cluster.Stalled(run) != nil {
		return "the run cannot go on: " + cluster.Waiting(run)
	}
	text := fmt.Sprintf("the run goes on: %d of %d rows are there", len(found.Rows), found.Summary.Rows)
	if waiting := cluster.Waiting(run); waiting != "" {
		text += "; it waits: " + waiting
	}
	return text
}

// stored reads a report from a file.
func (o *Options) stored() (*v1alpha1.RunReport, error) {
	in := o.In
	if o.File != "-" {
		f, err := os.Open(o.File)
		if err != nil {
			return nil, fmt.Errorf("read the report: %w", err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxReportBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	if len(data) > maxReportBytes {
		return nil, fmt.Errorf("%s is larger than 256 MiB: it is no report", o.File)
	}
	// Fields that this version does not know are let pass: a newer schemaVersion is a warning, no error.
	var doc struct {
		v1alpha1.RunReport
		Kind    string           `json:"kind"`
		Outcome v1alpha1.Outcome `json:"outcome"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%s is no report in JSON: %w; store one with report RUN -o json", o.File, err)
	}
	if doc.SchemaVersion == "" || doc.Kind != "" || doc.Outcome != "" {
		return nil, fmt.Errorf("%s is no report of a run (it has no schemaVersion, run and rows); store one with report RUN -o json", o.File)
	}
	return &doc.RunReport, nil
}
