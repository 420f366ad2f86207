// Package mcptest rewrites mcptest YAML into manifests (S-53): the blocks evals, rubrics, servers and variables of a test
// file, with their keys in snake_case.
package mcptest

import (
	_ "embed" // the schema
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/mcptest/mcptest-operator/engine/convert"
)

// schema is written by hack/schemagen.
//
//go:embed schema.json
var schema []byte

// Schema is the JSON Schema (draft-07) of these files, for editors.
func Schema() []byte { return slices.Clone(schema) }

// The blocks of a file that are read.
const (
	BlockEvals     = "evals"
	BlockRubrics   = "rubrics"
	BlockServers   = "servers"
	BlockVariables = "variables"
)

// OtherBlocks are the blocks of a test file that have nothing to do with evals. They are noted and left alone.
func OtherBlocks() []string {
	return []string{
		"version", "name", "description", "config", "defaults", "env", "settings", "tests", "agents", "tools", "suites",
		"resources", "prompts", "compliance", "reporters", "setup", "teardown", "tags", "include",
	}
}

// Format is mcptest YAML. It keeps the anchors, aliases and merge keys of YAML, and means by scalars what YAML 1.2 means.
func Format() *convert.Format {
	return &convert.Format{
		Name: "mcptest", Title: "mcptest YAML",
		Recognise: recognise, Rewrite: rewrite, Field: Key, Words: words,
	}
}

// telling are the blocks by which a file is recognised that has nothing to read; other files have the rest of
// OtherBlocks too.
var telling = []string{"tests", "agents", "tools", "suites", "compliance", "reporters"}

func recognise(top *yaml.Node) bool {
	return hasEvals(top) || slices.ContainsFunc(telling, func(block string) bool { return convert.Value(top, block) != nil })
}

// hasEvals tells whether a document has a block that is read.
func hasEvals(top *yaml.Node) bool {
	return slices.ContainsFunc([]string{BlockEvals, BlockRubrics, BlockServers}, func(block string) bool {
		return convert.Value(top, block) != nil
	})
}
