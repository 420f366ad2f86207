package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// prettyFormat is for people at a terminal: one line a row, failures unfolded, a grid for each matrix, totals.
var prettyFormat = format{name: DefaultFormat, render: func(w io.Writer, r *v1alpha1.RunReport, o Options) error {
	return writePretty(w, *r, o)
}}

// Pretty renders a report for people at a terminal.
func Pretty(w io.Writer, r v1alpha1.RunReport, o Options) error {
	return Render(w, DefaultFormat, &r, o)
}

// page is what is being written.
type page struct {
	b     strings.Builder
	width int
	color ColorMode
	// indent is where the detail of a row stands, and said what its note told already.
	indent int
	said   string
}

const (
	defaultWidth = 80
	minWidth     = 40
	maxWidth     = 160
)

func newPage(o Options) *page {
	columns := o.Width
	if columns == 0 {
		columns = defaultWidth
	}
	return &page{width: min(max(columns, minWidth), maxWidth), color: o.Color}
}

// line writes parts one after the other, without white space at the end.
func (p *page) line(parts ...string) {
	p.b.WriteString(strings.TrimRight(strings.Join(parts, ""), " "))
	p.b.WriteByte('\n')
}

// paragraph writes a text in lines at an indent, each in a style.
func (p *page) paragraph(indent int, s style, text string) {
	for _, l := range wrap(text, p.width-indent) {
		p.line(spaces(indent), p.paint(s, l))
	}
}

func writePretty(w io.Writer, r v1alpha1.RunReport, o Options) error {
	p := newPage(o)
	p.head(&r)
	columns := columnsOf(r.Rows, p.width)
	unfold := unfoldFailures
	if len(r.Rows) == 1 {
		unfold = unfoldAll
	}
	if len(r.Rows) == 0 && r.Summary.Rows > 0 {
		p.paragraph(2, faint, "No row has a report yet.")
	}
	for i, g := range groups(r.Rows) {
		if i > 0 && (g.matrix() || unfolded(r.Rows, g.from-1, unfold)) {
			p.line()
		}
		p.group(r.Rows[g.from:g.to], g, columns, unfold)
	}
	p.totals(&r)
	_, err := io.WriteString(w, p.b.String())
	return err
}

// unfolding says which rows show more than their line.
type unfolding string

const (
	unfoldFailures unfolding = "failures"
	unfoldAll      unfolding = "all"
)

func (u unfolding) of(r *v1alpha1.Report) bool {
	return u == unfoldAll || r.Outcome != v1alpha1.OutcomePassed
}

func unfolded(rows []v1alpha1.Report, i int, u unfolding) bool { return i >= 0 && u.of(&rows[i]) }

// head names the run and its verdict.
func (p *page) head(r *v1alpha1.RunReport) {
	sign, s := mark(verdict(r))
	word := string(verdict(r))
	if word == "" {
		word = "Not finished"
	}
	name := cut(clean(r.Run), p.width-4-width(word))
	p.line(p.paint(s, sign), " ", p.paint(bold, name), spaces(p.width-2-width(name)-width(word)), p.paint(s, word))
	p.line(p.paint(faint, strings.Repeat("─", p.width)))
}

// verdict is how the run ended as its summary has it (S-41); empty while rows have not ended.
func verdict(r *v1alpha1.RunReport) v1alpha1.Outcome {
	s := r.Summary
	switch {
	case s.Passed+s.Failed+s.Deferred+s.Errored < s.Rows:
		return ""
	case s.Errored > 0:
		return v1alpha1.OutcomeError
	case s.Failed > 0:
		return v1alpha1.OutcomeFailed
	case s.Passed == 0 && s.Deferred > 0:
		return v1alpha1.OutcomeDeferred
	}
	return v1alpha1.OutcomePassed
}

// totals puts the run into numbers. The deferred count is always there (S-38).
func (p *page) totals(r *v1alpha1.RunReport) {
	s := r.Summary
	p.line(p.paint(faint, strings.Repeat("─", p.width)))
	counts := []string{count(s.Rows, "row")}
	for _, c := range []struct {
		n       int32
		word    string
		outcome v1alpha1.Outcome
	}{
		{s.Passed, "passed", v1alpha1.OutcomePassed}, {s.Failed, "failed", v1alpha1.OutcomeFailed},
		{s.Deferred, "deferred", v1alpha1.OutcomeDeferred}, {s.Errored, "errored", v1alpha1.OutcomeError},
	} {
		_, style := mark(c.outcome)
		if c.n == 0 {
			style = faint
		}
		counts = append(counts, p.paint(style, fmt.Sprintf("%d %s", c.n, c.word)))
	}
	if rest := s.Rows - s.Passed - s.Failed - s.Deferred - s.Errored; rest > 0 {
		counts = append(counts, fmt.Sprintf("%d not finished", rest))
	}
	p.flow(counts)
	facts := []string{count(s.Calls, "judge call"), dollars(s.CostUSD)}
	if s.Score != nil {
		facts = append([]string{fmt.Sprintf("mean score %.2f", *s.Score)}, facts...)
	}
	if s.UnpricedCalls > 0 {
		facts = append(facts, fmt.Sprintf("%s of models without a known price", count(s.UnpricedCalls, "call")))
	}
	if d := duration(r.Rows); d > 0 {
		facts = append(facts, elapsed(d))
	}
	p.flow(facts)
	if s.Rows > 0 && s.Deferred == s.Rows {
		p.paragraph(0, yellow, "Nothing was judged: every row was deferred. The notes above say what is missing.")
	}
}

// flow writes parts with dots between them, on as many lines as it takes.
func (p *page) flow(parts []string) {
	line := ""
	for _, part := range parts {
		if line != "" && width(line)+3+width(part) > p.width {
			p.line(line)
			line = ""
		}
		if line != "" {
			line += p.paint(faint, " · ")
		}
		line += part
	}
	p.line(line)
}

// count is a number with its noun: 1 row, 2 rows.
func count(n int32, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// dollars is an amount as short as it can be said without saying that something costs nothing.
func dollars(usd float64) string {
	switch {
	case usd == 0:
		return "$0"
	case usd < 0.0001:
		return "<$0.0001"
	case usd < 1:
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// duration is from when the first row began to when the last one ended.
func duration(rows []v1alpha1.Report) time.Duration {
	var from, to time.Time
	for i := range rows {
		if at := rows[i].StartedAt; at != nil && (from.IsZero() || at.Time.Before(from)) {
			from = at.Time
		}
		if at := rows[i].FinishedAt; at != nil && at.Time.After(to) {
			to = at.Time
		}
	}
	if from.IsZero() || to.IsZero() {
		return 0
	}
	return to.Sub(from)
}

// elapsed is a duration in whole seconds, as exact as the times of reports are.
func elapsed(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
