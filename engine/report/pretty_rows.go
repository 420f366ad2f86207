package report

import (
	"fmt"
	"math"
	"strconv"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// group is a range of rows: the cells of one matrix, or a single row.
type group struct{ from, to int }

func (g group) matrix() bool { return g.to-g.from > 1 }

// groups puts consecutive cells of one eval together.
func groups(rows []v1alpha1.Report) []group {
	var out []group
	for i := range rows {
		if n := len(out); n > 0 && rows[i].Cell != nil && rows[out[n-1].from].Cell != nil && rows[i].Eval == rows[out[n-1].from].Eval {
			out[n-1].to = i + 1
			continue
		}
		out = append(out, group{from: i, to: i + 1})
	}
	return out
}

// columns are the widths of what stands right of a row's name.
type columns struct{ display, score, cost int }

func (c columns) total() int {
	n := c.score + 2
	if c.cost > 0 {
		n += c.cost + 2
	}
	if c.display > 0 {
		n += c.display + 2
	}
	return n
}

// minCostWidth is the width from which on there is room for what each row cost.
const minCostWidth = 60

func columnsOf(rows []v1alpha1.Report, page int) columns {
	var c columns
	for i := range rows {
		c.display = max(c.display, width(display(&rows[i])))
		c.score = max(c.score, width(standing(&rows[i])))
		if page >= minCostWidth {
			c.cost = max(c.cost, width(cost(&rows[i])))
		}
	}
	return c
}

// display is the score in the units of the rubric, when they are others than 0 to 1.
func display(r *v1alpha1.Report) string {
	if r.Score == nil || r.Display == fmt.Sprintf("%.2f", *r.Score) {
		return ""
	}
	return cut(clean(r.Display), 12)
}

// standing is the score of a row beside its threshold, or why it has none.
func standing(r *v1alpha1.Report) string {
	switch {
	case r.Vacuous:
		return "all skipped"
	case r.Score == nil && r.Outcome == v1alpha1.OutcomeError:
		return "error"
	case r.Score == nil && r.Outcome == v1alpha1.OutcomeDeferred:
		return "deferred"
	case r.Score == nil:
		return "not judged"
	}
	return against(*r.Score, r.Threshold)
}

// against is a score beside the threshold: 0.55 < 0.70. It takes more decimals where two would tell a lie.
func against(score float64, threshold *float64) string {
	if threshold == nil {
		return fmt.Sprintf("%.2f", score)
	}
	sign := "≥"
	if score < *threshold-1e-9 {
		sign = "<"
	}
	a, b := fmt.Sprintf("%.2f", score), fmt.Sprintf("%.2f", *threshold)
	if a == b && sign == "<" {
		a, b = strconv.FormatFloat(math.Round(score*1e6)/1e6, 'f', -1, 64), strconv.FormatFloat(*threshold, 'f', -1, 64)
	}
	return a + " " + sign + " " + b
}

func cost(r *v1alpha1.Report) string {
	switch {
	case r.Usage.Calls == 0:
		return "–"
	case r.Usage.CostUSD == 0 && r.Usage.UnpricedCalls > 0:
		return "no price"
	}
	return dollars(r.Usage.CostUSD)
}

// group writes rows: one line each, those that did not pass unfolded; those of a matrix under a heading and a grid.
func (p *page) group(rows []v1alpha1.Report, g group, c columns, u unfolding) {
	if !g.matrix() {
		p.row(&rows[0], clean(rows[0].Name), c, u)
		return
	}
	a := axesOf(rows)
	passed := 0
	for i := range rows {
		if rows[i].Outcome == v1alpha1.OutcomePassed {
			passed++
		}
	}
	tally := fmt.Sprintf("%d of %d cells passed", passed, len(rows))
	name := cut(clean(rows[0].Eval), p.width-4-width(tally))
	p.line("  ", p.paint(bold, name), spaces(p.width-2-width(name)-width(tally)), p.paint(faint, tally))
	p.grid(rows, a)
	for i := range rows {
		p.row(&rows[i], a.label(rows[i].Cell), c, u)
	}
}

// row writes the line of a row, and what it unfolds to.
func (p *page) row(r *v1alpha1.Report, name string, c columns, u unfolding) {
	sign, s := mark(r.Outcome)
	room := p.width - 4 - c.total()
	short := cut(name, room)
	parts := []string{"  ", p.paint(s, sign), " ", pad(short, room)}
	if c.display > 0 {
		parts = append(parts, "  ", p.paint(bold, padLeft(display(r), c.display)))
	}
	parts = append(parts, "  ", p.paint(s, pad(standing(r), c.score)))
	if c.cost > 0 {
		parts = append(parts, "  ", p.paint(faint, padLeft(cost(r), c.cost)))
	}
	p.line(parts...)
	if !u.of(r) {
		return
	}
	if short != name {
		p.paragraph(detailIndent, faint, name)
	}
	p.detail(r, u)
}
