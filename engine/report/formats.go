// Package report renders the canonical report, one file a format. No format has grading logic: all renderers show what
// engine/rubric computed. Renderers redact again (S-48).
package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/nearest"
	"github.com/mcptest/mcptest-operator/engine/redact"
)

// DefaultFormat is the format that people read in a terminal.
const DefaultFormat = "pretty"

// Options say how a report is rendered. Formats that machines read heed the Redactor only.
type Options struct {
	// Width is how many columns there are; 0 means 80. From 40 to 160 are used.
	Width int
	// Color says whether ANSI colours are written.
	Color ColorMode
	// Redactor knows the secrets of this process; nil finds secrets by their form only.
	Redactor *redact.Redactor
}

// ColorMode says whether colours are written.
type ColorMode string

// The colour modes. The zero value writes none.
const (
	ColorNever  ColorMode = ""
	ColorAlways ColorMode = "always"
)

// format is a way to render a report. render may change the report that it is given: it is a copy.
type format struct {
	name   string
	render func(w io.Writer, r *v1alpha1.RunReport, o Options) error
}

// formats are all there are, in the order in which they are told.
var formats = []format{prettyFormat, jsonFormat}

// Formats are the names of the formats.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}

// Check refuses a format that there is not, and says which there are.
func Check(name string) error {
	_, err := find(name)
	return err
}

func find(name string) (format, error) {
	for _, f := range formats {
		if f.name == name {
			return f, nil
		}
	}
	return format{}, fmt.Errorf("unknown format %q; the formats are %s%s", name, strings.Join(Formats(), ", "), nearest.Hint(name, Formats()))
}

// Render writes a report in a format. The report is not changed.
func Render(w io.Writer, name string, r *v1alpha1.RunReport, o Options) error {
	f, err := find(name)
	if err != nil {
		return err
	}
	clean := r.DeepCopy()
	o.Redactor.RunReport(clean)
	return f.render(w, clean, o)
}

// Warnings say what a reader of a report should know before it is rendered: that it was written by a newer version.
func Warnings(r *v1alpha1.RunReport) []string {
	newest := r.SchemaVersion
	for i := range r.Rows {
		if version(r.Rows[i].SchemaVersion) > version(newest) {
			newest = r.Rows[i].SchemaVersion
		}
	}
	if newest == v1alpha1.ReportSchemaVersion {
		return nil
	}
	if version(newest) > version(v1alpha1.ReportSchemaVersion) {
		return []string{fmt.Sprintf("the report has schemaVersion %q, which is newer than %q: what is new in it is not shown; use a newer version of this program", clean(newest), v1alpha1.ReportSchemaVersion)}
	}
	return []string{fmt.Sprintf("the report has the unknown schemaVersion %q (known: %q): it may be shown wrong", clean(newest), v1alpha1.ReportSchemaVersion)}
}

// version is the number in a schemaVersion such as v1; 0 when it has none.
func version(s string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(s, "v"))
	if err != nil {
		return 0
	}
	return n
}
