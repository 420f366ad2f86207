package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// jsonFormat is the canonical report itself: indented, fields in the order of the schema, the same for the same report.
var jsonFormat = format{name: "json", render: func(w io.Writer, r *v1alpha1.RunReport, _ Options) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if r.Rows == nil {
		r.Rows = []v1alpha1.Report{}
	}
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("write the report as JSON: %w", err)
	}
	_, err := w.Write(escapeControls(buf.Bytes()))
	return err
}}

// escapeControls escapes the control characters that JSON allows in texts, DEL and U+0080 to U+009F, and those that turn
// the direction of writing: a terminal would obey them.
func escapeControls(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r != '\n' && r != '\t' && unsafe(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, data[:size]...)
		}
		data = data[size:]
	}
	return out
}
