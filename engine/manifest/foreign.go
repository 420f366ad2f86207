package manifest

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mcptest/mcptest-operator/engine/convert"
	"github.com/mcptest/mcptest-operator/engine/nearest"
)

// foreign tells of a document that is neither a manifest nor of a known format. In a file that somebody named it is a
// problem; one that was found in a directory is skipped with a note, unless it looks like one of ours, misspelled.
func (p *parser) foreign(n *yaml.Node, path, message string) {
	report := isReport(n)
	if report {
		path, message = "", "is a report of a run; render it with report -f"
	}
	key, ours := likeOurs(n)
	switch {
	case ours != "" && key.Value != ours:
		p.say(key, convert.Clip(key.Value), "unknown field; did you mean %q?", ours)
	case ours != "", !p.found:
		p.say(n, path, "%s", message)
	case report:
		p.note(n.Line, "%s: skipped", message)
	default:
		p.note(n.Line, "holds no manifest and no evals: skipped")
	}
}

// isReport tells whether a document is a report that -o json printed.
func isReport(n *yaml.Node) bool {
	for _, field := range []string{"schemaVersion", "run", "summary", "rows"} {
		if convert.Value(n, field) == nil {
			return false
		}
	}
	return true
}

// likeOurs finds a key at the top that is, or may have been meant to be, one by which documents are recognised. Typing
// errors hardly ever hit the first letter: asking for it keeps vars from being evals.
func likeOurs(n *yaml.Node) (key *yaml.Node, ours string) {
	known := []string{"apiVersion", "kind", "evals", "rubrics"}
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		key = n.Content[i]
		if slices.Contains(known, key.Value) {
			return key, key.Value
		}
		if near := nearest.Name(key.Value, known); near != "" && strings.EqualFold(key.Value[:1], near[:1]) {
			return key, near
		}
	}
	return nil, ""
}
