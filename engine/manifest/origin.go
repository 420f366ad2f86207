package manifest

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mcptest/mcptest-operator/engine/convert"
	"github.com/mcptest/mcptest-operator/engine/convert/formats"
)

// origin tells what is wrong with an object in the terms of the file that it was made of. Without an origin, nil, the
// object stands in the file as it is.
type origin struct {
	format   *convert.Format
	document *convert.Document
}

// path is a field path as the file has it. Of a field that the file lacks it is where the field would be.
func (o *origin) path(path string) string {
	if o == nil {
		return path
	}
	known := path
	for {
		if source, ok := o.document.Sources[known]; ok {
			return source + o.fields(path[len(known):])
		}
		if known == "" {
			return path
		}
		known = known[:max(strings.LastIndexAny(known, ".["), 0)]
	}
}

// fields are the fields at the end of a path in the names of the file.
func (o *origin) fields(path string) string {
	names := strings.Split(path, ".")
	for i, name := range names {
		field, index, _ := strings.Cut(name, "[")
		names[i] = o.format.Field(field)
		if index != "" {
			names[i] += "[" + index
		}
	}
	return strings.Join(names, ".")
}

// words puts a message about manifests into the words of the file.
func (o *origin) words(message string) string {
	if o == nil {
		return message
	}
	return o.format.Words(message)
}

// incomplete tells whether problems were found while the object was made.
func (o *origin) incomplete() bool { return o != nil && o.document.Incomplete }

// rewrite reads a document of another format.
func (p *parser) rewrite(n *yaml.Node, format *convert.Format) {
	result := format.Rewrite(convert.Source{Suite: convert.Slug(baseName(p.file), "suite"), Top: n})
	for _, problem := range result.Problems {
		at := Position{File: p.file, Line: problem.Line, Column: problem.Column}
		p.problems = append(p.problems, Problem{Position: at, Path: problem.Path, Message: problem.Message})
	}
	for _, note := range result.Notes {
		p.note(note.Line, "%s", note.Message)
	}
	for _, d := range result.Documents {
		p.decode(d.Node, d.Kind, &origin{format: format, document: d})
	}
}

// formatTitles names the formats that are recognised by what stands in a file.
func formatTitles() string {
	var titles []string
	for _, f := range formats.All() {
		titles = append(titles, f.Title)
	}
	return strings.Join(titles, ", ")
}
