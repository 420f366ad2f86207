package plan

import (
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// validator gathers problems. Its checks mirror the bounds of the schema, for specs that no API server has seen.
type validator struct {
	problems field.ErrorList
}

func (v *validator) add(e *field.Error) { v.problems = append(v.problems, e) }

func (v *validator) invalid(path *field.Path, value any, detail string) {
	v.add(field.Invalid(path, value, detail))
}

func (v *validator) forbidden(path *field.Path, detail string) { v.add(field.Forbidden(path, detail)) }

func (v *validator) required(path *field.Path, value, detail string) {
	if value == "" {
		v.add(field.Required(path, detail))
	}
}

func (v *validator) maxLength(path *field.Path, value string, limit int) {
	if n := utf8.RuneCountInString(value); n > limit {
		v.add(field.Invalid(path, fmt.Sprintf("%d characters", n), fmt.Sprintf("may have at most %d characters", limit)))
	}
}

func (v *validator) maxItems(path *field.Path, n, limit int) {
	if n > limit {
		v.add(field.TooMany(path, n, limit))
	}
}

func (v *validator) fraction(path *field.Path, value *float64) {
	if value != nil && !(*value >= 0 && *value <= 1) {
		v.invalid(path, *value, "must be from 0 to 1, such as 0.7")
	}
}

func (v *validator) weight(path *field.Path, value *float64) {
	if value != nil && !(*value >= 0 && *value <= 1e6) {
		v.invalid(path, *value, "must be from 0 to 1000000; the default is 1")
	}
}

func (v *validator) unique(path *field.Path, seen map[string]bool, value string) {
	if seen[value] {
		v.add(field.Duplicate(path, value))
	}
	seen[value] = true
}

var modelPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$`)

func (v *validator) model(path *field.Path, m v1alpha1.ModelName) {
	v.maxLength(path, string(m), 128)
	if m != "" && !modelPattern.MatchString(string(m)) {
		v.invalid(path, m, "write the model as its provider names it, such as claude-sonnet-5-5")
	}
}

var objectNamePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// objectName checks the name of an object that may be empty.
func (v *validator) objectName(path *field.Path, name string) {
	v.maxLength(path, name, 253)
	if name != "" && !objectNamePattern.MatchString(name) {
		v.invalid(path, name, "is the name of an object: lower-case letters, digits and dashes, as in my-server")
	}
}

// oneOf checks a value that may be empty.
func (v *validator) oneOf(path *field.Path, value string, allowed ...any) {
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = fmt.Sprint(a)
	}
	if value != "" && !slices.Contains(names, value) {
		v.add(field.NotSupported(path, value, names))
	}
}
