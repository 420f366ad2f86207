// Package convert is the door for files of other tools. A Format rewrites the YAML of such a file into manifests, node by
// node, so that lines are kept; engine/manifest then checks these manifests as any other. What only the source format
// knows, such as its keys, is checked while rewriting (S-52).
package convert

import (
	"go.yaml.in/yaml/v3"
)

// LabelSuite is set on what a file of another format became: the name of the file, without its extension, as a Slug.
const LabelSuite = "eval.mcptest.dev/suite"

// Format is a format of files that can be rewritten.
type Format struct {
	// Name is what --from takes, such as mcptest; Title what messages call files of it.
	Name, Title string
	// Recognise tells whether a document is of this format. Documents with apiVersion or kind are never asked about.
	Recognise func(top *yaml.Node) bool
	// Rewrite makes manifests of a document.
	Rewrite func(Source) Result
	// Field is how the format writes a field of a manifest: requireEvidence becomes require_evidence.
	Field func(name string) string
	// Words puts a message about manifests into the words of the format.
	Words func(message string) string
}

// Source is a document of a file.
type Source struct {
	// Suite names the file in LabelSuite.
	Suite string
	// Top is the document's value: any node.
	Top *yaml.Node
}

// Result is what a document became.
type Result struct {
	Documents []*Document
	// Problems are told with the paths and words of the source.
	Problems []Problem
	Notes    []Note
}

// Document is one manifest.
type Document struct {
	// Kind is Rubric or Eval.
	Kind string
	// Node is the manifest. Its nodes have the lines and columns of what they were made of.
	Node *yaml.Node
	// Sources are the paths in the source, by the path in the manifest: spec.title may come from evals[0].name.
	Sources map[string]string
	// Incomplete is set when problems were found in it: something is missing, and only the rest can be checked.
	Incomplete bool
}

// Problem is one thing that is wrong in a document. Line and Column count from 1.
type Problem struct {
	Line, Column  int
	Path, Message string
}

// Note is something that is good to know about a line.
type Note struct {
	Line    int
	Message string
}
