package report

import "github.com/mcptest/mcptest-operator/api/v1alpha1"

// style is a set of ANSI attributes. Only the colours of the terminal's own palette are used, and faint instead of grey:
// they read well on light and on dark.
type style string

const (
	plain  style = ""
	bold   style = "1"
	faint  style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
	alarm  style = "1;31"
)

// paint gives a text a style, when colours are written.
func (p *page) paint(s style, text string) string {
	if p.color != ColorAlways || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// mark is the sign of an outcome, and its style.
func mark(o v1alpha1.Outcome) (string, style) {
	switch o {
	case v1alpha1.OutcomePassed:
		return "✓", green
	case v1alpha1.OutcomeFailed:
		return "✗", red
	case v1alpha1.OutcomeDeferred:
		return "○", yellow
	case v1alpha1.OutcomeError:
		return "!", alarm
	}
	return "…", faint
}

// held is the sign of something that passes or does not.
func held(passed bool) (string, style) {
	if passed {
		return mark(v1alpha1.OutcomePassed)
	}
	return mark(v1alpha1.OutcomeFailed)
}
