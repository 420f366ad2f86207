// Package output brings reports to where they are wanted: standard output or a file, in a format, in colour on a terminal.
package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/redact"
	"github.com/mcptest/mcptest-operator/engine/report"
)

// Options say in which format a report is written, and where to.
type Options struct {
	// Format is one of report.Formats.
	Format string
	// File is the path that is written instead of standard output; empty for standard output.
	File string
}

// AddFlags adds -o, --reporter and --output-file.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	usage := fmt.Sprintf("Format of the report: %v.", report.Formats())
	flags.StringVarP(&o.Format, "output", "o", report.DefaultFormat, usage)
	flags.StringVar(&o.Format, "reporter", report.DefaultFormat, "The same as --output.")
	flags.StringVar(&o.File, "output-file", "", "Write the report to this file instead of standard output.")
}

// Complete checks the options before anything is paid for.
func (o *Options) Complete() error {
	if err := report.Check(o.Format); err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	if o.File == "" {
		return nil
	}
	if err := writable(o.File); err != nil {
		return fmt.Errorf("--output-file: %w", err)
	}
	return nil
}

// writable tries whether a file can be written, and leaves everything as it was.
func writable(path string) error {
	_, err := os.Stat(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644) //nolint:gosec // as the shell would make it for >
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if isNew {
		return os.Remove(path)
	}
	return nil
}

// Write renders a report. What a reader should know about it goes to the error stream. A report that its file cannot
// take goes to standard output, because it was paid for.
func (o *Options) Write(streams genericiooptions.IOStreams, r *v1alpha1.RunReport, redactor *redact.Redactor) error {
	for _, warning := range report.Warnings(r) {
		fmt.Fprintln(streams.ErrOut, "warning:", warning)
	}
	options := report.Options{Redactor: redactor}
	if o.File == "" {
		options.Width, options.Color = Page(streams.Out)
	}
	var buf bytes.Buffer
	if err := report.Render(&buf, o.Format, r, options); err != nil {
		return fmt.Errorf("render the report: %w", err)
	}
	if o.File != "" {
		if err := os.WriteFile(o.File, buf.Bytes(), 0o644); err != nil { //nolint:gosec // as the shell would make it for >
			_, _ = streams.Out.Write(buf.Bytes())
			return fmt.Errorf("write the report: %w; it went to standard output", err)
		}
		fmt.Fprintf(streams.ErrOut, "the report was written to %s\n", o.File)
		return nil
	}
	if _, err := streams.Out.Write(buf.Bytes()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// Page is how wide a stream is, and whether it shows colours: on a terminal, unless NO_COLOR or TERM=dumb says no.
// The width is 0 for what is no terminal.
func Page(w io.Writer) (int, report.ColorMode) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, report.ColorNever
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		width = 0
	}
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return width, report.ColorNever
	}
	return width, report.ColorAlways
}

// Paths are file names of a flag that may be given several times, under several names.
type Paths []string

// String implements pflag.Value.
func (p *Paths) String() string { return "" }

// Set implements pflag.Value.
func (p *Paths) Set(path string) error {
	*p = append(*p, path)
	return nil
}

// Type implements pflag.Value.
func (p *Paths) Type() string { return "FILE|DIR|-" }

// AddFlags adds -f, --filename and, because mcptest has it, --config.
func (p *Paths) AddFlags(flags *pflag.FlagSet) {
	flags.VarP(p, "filename", "f", "Manifests or mcptest YAML: a file, a directory, or - for standard input. May be repeated.")
	flags.Var(p, "config", "The same as --filename.")
}

// NoArgs refuses arguments of a verb that reads files, and says how files are named.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no arguments; name files with -f, as in %s -f %s", cmd.Name(), cmd.CommandPath(), strings.Join(args, " -f "))
}
