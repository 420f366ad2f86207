package rubric

import (
	"fmt"
	"strconv"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// letters are the grades of a letter scale with the least score of each, best first.
var letters = []struct {
	from  float64
	grade string
}{{0.9, "A"}, {0.8, "B"}, {0.7, "C"}, {0.6, "D"}}

// Display is a score, 0..1, in the units in which a rubric shows it to people. The score itself stays as it is.
func Display(scale *v1alpha1.Scale, score float64, passed bool) string {
	switch {
	case scale == nil || scale.Unit != nil:
	case scale.Likert != nil:
		lo, hi := float64(scale.Likert.Min), float64(scale.Likert.Max)
		return fmt.Sprintf("%.1f/%d", lo+score*(hi-lo), scale.Likert.Max)
	case scale.Boolean != nil:
		if passed {
			return "pass"
		}
		return "fail"
	case scale.Letter != nil:
		for _, l := range letters {
			if reaches(score, l.from) {
				return l.grade
			}
		}
		return "F"
	}
	return strconv.FormatFloat(score, 'f', 2, 64)
}
