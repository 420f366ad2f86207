// Package formats lists the formats that files can have beside manifests.
package formats

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mcptest/mcptest-operator/engine/convert"
	"github.com/mcptest/mcptest-operator/engine/convert/mcptest"
	"github.com/mcptest/mcptest-operator/engine/nearest"
)

// All are the formats, in the order in which they are asked whether they recognise a document.
func All() []*convert.Format { return []*convert.Format{mcptest.Format()} }

// Names are the names of the formats.
func Names() []string {
	var names []string
	for _, f := range All() {
		names = append(names, f.Name)
	}
	return names
}

// Find is the format of a name. The error says which there are.
func Find(name string) (*convert.Format, error) {
	for _, f := range All() {
		if f.Name == name {
			return f, nil
		}
	}
	return nil, fmt.Errorf("unknown format %q%s; the formats are %s", convert.Clip(name), nearest.Hint(name, Names()), strings.Join(Names(), ", "))
}

// Recognise is the format of a document; nil for a manifest, and for what is neither.
func Recognise(top *yaml.Node) *convert.Format {
	if convert.Value(top, "apiVersion") != nil || convert.Value(top, "kind") != nil {
		return nil
	}
	for _, f := range All() {
		if f.Recognise(top) {
			return f
		}
	}
	return nil
}
