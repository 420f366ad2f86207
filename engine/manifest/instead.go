package manifest

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/convert"
)

var (
	percent = regexp.MustCompile(`^(\d{1,9}(?:\.\d{1,9})?) ?%$`)
	comma   = regexp.MustCompile(`^\d{1,9},\d{1,9}$`)
)

// instead says what to write for a value that people put where another type is expected; nothing when nobody can tell.
func instead(written string, v any, t reflect.Type) string {
	written = convert.Clip(written)
	text, isText := v.(string)
	quoted := strconv.Quote(convert.Clip(text))
	var write string
	switch {
	case t == reflect.TypeFor[v1alpha1.TreeNode]() && isNumber(v):
		write = fmt.Sprintf("{score: %s}", written)
	case !isText || strings.TrimSpace(text) == "":
	case t == reflect.TypeFor[v1alpha1.When]():
		write = fmt.Sprintf("{contains: %s}", quoted)
	case t == reflect.TypeFor[[]v1alpha1.ModelName]():
		if write = "[" + written + "]"; !strings.Contains(text, ",") {
			write = "[" + written + ", ...]"
		}
	case t == reflect.TypeFor[v1alpha1.JudgeSpec]():
		write = fmt.Sprintf("{model: %s}", written)
	case t == reflect.TypeFor[v1alpha1.Criterion]():
		write = fmt.Sprintf("{name: ..., description: %s}", quoted)
	case t.Kind() == reflect.Float64:
		write = number(text)
	}
	if write == "" {
		return ""
	}
	return "; write " + write
}

// number is the number that a text such as 80% or 0,7 means; empty for other texts.
func number(text string) string {
	if m := percent.FindStringSubmatch(text); m != nil {
		if n, err := strconv.ParseFloat(m[1], 64); err == nil {
			return strconv.FormatFloat(n/100, 'g', 12, 64)
		}
	}
	if comma.MatchString(text) {
		return strings.Replace(text, ",", ".", 1)
	}
	return ""
}
