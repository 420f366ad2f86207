// Package schemacmd is `kubectl mcptest schema`: it prints the JSON Schema of mcptest YAML, for editors.
package schemacmd

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/mcptest/mcptest-operator/engine/convert/mcptest"
)

// New makes the verb.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of mcptest YAML, for editors",
		Long: "Prints the JSON Schema (draft-07) of mcptest YAML files. With it editors complete keys, show what they mean, and mark what is wrong. " +
			"VS Code's YAML extension and others find it by a first line of the file: # yaml-language-server: $schema=mcptest.schema.json",
		Example: "  # Write it beside the files\n  %[1]s schema > mcptest.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := streams.Out.Write(mcptest.Schema())
			return err
		},
	}
}
