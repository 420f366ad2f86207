// Package cli puts the verbs together.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/convertcmd"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/evalcmd"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/exit"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/explaincmd"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/reportcmd"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/runcmd"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/schemacmd"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/validatecmd"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/versioncmd"
	"github.com/mcptest/mcptest-operator/engine/manifest"
	"github.com/mcptest/mcptest-operator/engine/nearest"
)

// secondSignal is how long after a first Ctrl-C another one counts: a shell and a wrapper such as timeout send the same
// one twice.
const secondSignal = 500 * time.Millisecond

// Main runs the program and returns its exit code. A first Ctrl-C ends what is being done in order, a second at once.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { time.AfterFunc(secondSignal, stop) })
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	return Run(ctx, DisplayName(os.Args[0]), os.Args[1:], streams)
}

// DisplayName is how the program is called in its help: as kubectl's plugins are, unless it has another name.
func DisplayName(program string) string {
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	if rest, ok := strings.CutPrefix(name, "kubectl-"); ok {
		return "kubectl " + rest
	}
	return name
}

// Run runs one command and returns its exit code. Results go to streams.Out, all else to streams.ErrOut.
func Run(ctx context.Context, name string, args []string, streams genericiooptions.IOStreams) int {
	root := newRoot(name, streams) //nolint:contextcheck // commands get ctx from ExecuteContext
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var problems manifest.Problems
	switch {
	case errors.As(err, &problems): // one line each, as compilers have it
		for _, p := range problems {
			fmt.Fprintln(streams.ErrOut, p.Error())
		}
		fmt.Fprintf(streams.ErrOut, "error: nothing was run: the files have problems (%d)\n", len(problems))
	case err != nil && err.Error() != "":
		fmt.Fprintf(streams.ErrOut, "error: %s\n", strings.TrimSpace(err.Error()))
	}
	return exit.Code(err)
}

func newRoot(name string, streams genericiooptions.IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-mcptest",
		Short: "Grade LLM answers with rubrics, here or in a cluster",
		Long: "Grades LLM answers with rubrics, here (eval) or in a cluster with mcptest-operator (run), and renders the reports. " +
			"Files are Rubric and Eval manifests or mcptest YAML; convert makes manifests of the latter.\n\n" +
			"Exit codes: 0 every row passed or was deferred; 1 a row failed or ended as an error; 2 bad input, nothing was run; " +
			"3 not finished; 5 the budget ran out; 7 nothing was selected.",
		Annotations:                map[string]string{cobra.CommandDisplayNameAnnotation: name},
		Version:                    versioncmd.Client(),
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		evalcmd.New(streams), validatecmd.New(streams), explaincmd.New(streams),
		runcmd.New(streams), reportcmd.New(streams),
		convertcmd.New(streams), schemacmd.New(streams), versioncmd.New(streams),
	)
	for _, cmd := range root.Commands() {
		if strings.Contains(cmd.Example, "%[1]s") {
			cmd.Example = fmt.Sprintf(cmd.Example, name)
		}
		cmd.DisableFlagsInUseLine = true
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	return root
}

// flagError adds to the error of an unknown flag the one that may have been meant.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := nearest.Name(unknown.GetSpecifiedName(), names); near != "" {
		return fmt.Errorf("%w; did you mean --%s?", err, near)
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}
