package rubric

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// Empty tells whether a candidate says nothing: it has no letter and no digit in any script. Such a candidate never
// reaches a judge (S-34). A bare number is an answer.
func Empty(candidate string) bool {
	return !strings.ContainsFunc(candidate, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
}

// Applies decides, without a judge, whether a criterion is asked about a candidate (S-11).
// The error is that of a regular expression that does not compile.
func Applies(w *v1alpha1.When, candidate string) (bool, error) {
	switch {
	case w == nil:
		return true, nil
	case w.Regex != "":
		re, err := regexp.Compile(w.Regex)
		if err != nil {
			return false, fmt.Errorf("when.regex: %w", err)
		}
		return re.MatchString(candidate), nil
	}
	return strings.Contains(candidate, w.Contains), nil
}
