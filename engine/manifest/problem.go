package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mcptest/mcptest-operator/engine/convert"
)

// Position is a place in a file. Line and Column count from 1; 0 means the file as a whole.
type Position struct {
	File         string
	Line, Column int
}

// String is file:line, as editors and CI systems read it.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Problem is one thing that is wrong in a file.
type Problem struct {
	Position
	// Path is the field, such as spec.rubric.criteria[0].name; empty when it is not about a field.
	Path string
	// Message says what is wrong, and what to write instead.
	Message string
}

// Error is the problem on one line: file:line: field: message.
func (p Problem) Error() string {
	parts := []string{p.Position.String(), p.Path, p.Message}
	if p.Path == "" {
		parts = []string{p.Position.String(), p.Message}
	}
	return strings.Join(strings.Fields(strings.Join(parts, ": ")), " ")
}

// Problems are all the problems of some files.
type Problems []Problem

// Error has one line a problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives errors.As each problem.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// orNil is nil without problems, so that a nil error stays one; else the problems in the order of files and lines.
func (ps Problems) orNil() error {
	if len(ps) == 0 {
		return nil
	}
	return ps.sorted()
}

// sorted are the problems in the order of files and lines.
func (ps Problems) sorted() Problems {
	sorted := slices.Clone(ps)
	slices.SortStableFunc(sorted, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return sorted
}

// fieldMessage puts a problem of engine/plan into words.
func fieldMessage(e *field.Error) string {
	switch e.Type {
	case field.ErrorTypeRequired:
		return "missing: " + e.Detail
	case field.ErrorTypeDuplicate:
		return fmt.Sprintf("%s is there twice; every name is used once", shown(e.BadValue))
	case field.ErrorTypeForbidden:
		return e.Detail
	case field.ErrorTypeTooMany, field.ErrorTypeTooLong:
		return e.ErrorBody()
	}
	if e.Detail == "" {
		return e.ErrorBody()
	}
	v := shown(e.BadValue)
	if v == "" || v == `""` || says(e.Detail, v) {
		return e.Detail
	}
	return v + ": " + e.Detail
}

// says tells whether a message names a value itself, so that it need not stand in front.
func says(message, value string) bool {
	bare := strings.Trim(value, `"`)
	return strings.Contains(message, strconv.Quote(bare)) || strings.Contains(message, " is "+bare+",")
}

// shown is a value as a message shows it.
func shown(v any) string {
	var text string
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		text = fmt.Sprintf("%q", convert.Clip(v))
	default:
		text = convert.Clip(fmt.Sprint(v))
		if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "&") {
			return ""
		}
	}
	return text
}
