package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// axes are the values of a matrix, in the order of the rows.
type axes struct {
	models  []string
	prompts []string
}

func axesOf(rows []v1alpha1.Report) axes {
	var a axes
	add := func(list []string, value string) []string {
		if slices.Contains(list, value) {
			return list
		}
		return append(list, value)
	}
	for i := range rows {
		a.models = add(a.models, string(rows[i].Cell.Model))
		a.prompts = add(a.prompts, rows[i].Cell.Prompt)
	}
	return a
}

// label names a cell by the coordinates that tell it from others.
func (a axes) label(c *v1alpha1.Cell) string {
	model, prompt := clean(string(c.Model)), a.prompt(slices.Index(a.prompts, c.Prompt))
	switch {
	case c.Prompt == "":
		return model
	case c.Model == "":
		return prompt
	}
	return model + " · " + prompt
}

func (a axes) prompt(n int) string { return fmt.Sprintf("#%d %s", n+1, clean(a.prompts[n])) }

const (
	// gridIndent is the indent of a grid, and minGridPrompt the fewest columns that its prompts get.
	gridIndent    = 4
	minGridPrompt = 12
	// maxGridPrompts is how many prompts a grid shows at most: a longer one is no overview.
	maxGridPrompts = 32
	// maxGridModel is how many columns the name of a model gets at most.
	maxGridModel = 24
)

// grid draws a matrix with two axes: models across, prompts down, the best cells marked. Models that do not fit beside
// each other go into further grids below.
func (p *page) grid(rows []v1alpha1.Report, a axes) {
	if len(a.models) < 2 || len(a.prompts) < 2 || len(a.prompts) > maxGridPrompts {
		return
	}
	cells := make(map[v1alpha1.Cell]*v1alpha1.Report, len(rows))
	for i := range rows {
		cells[*rows[i].Cell] = &rows[i]
	}
	best := bestScore(rows)
	labels := minGridPrompt
	for n := range a.prompts {
		labels = max(labels, width(a.prompt(n)))
	}
	for models := a.models; len(models) > 0; {
		n, used := 0, gridIndent+1+minGridPrompt
		for n < len(models) && (n == 0 || used+columnWidth(models[n])+3 <= p.width) {
			used += columnWidth(models[n]) + 3
			n++
		}
		p.gridOf(models[:n], a, cells, best, min(labels, minGridPrompt+max(p.width-used, 0)))
		models = models[n:]
		p.line()
	}
}

// columnWidth is the width of a model's column: its name, but at least a cell.
func columnWidth(model string) int {
	return max(min(width(clean(model)), maxGridModel), len("✗ 0.00 ★")-4)
}

func (p *page) gridOf(models []string, a axes, cells map[v1alpha1.Cell]*v1alpha1.Report, best *float64, labels int) {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.Options{SeparateColumns: true, SeparateHeader: true}
	t.Style().Format.Header = text.FormatDefault
	head := table.Row{""}
	for _, m := range models {
		head = append(head, cut(clean(m), maxGridModel))
	}
	t.AppendHeader(head)
	for n, prompt := range a.prompts {
		row := table.Row{pad(cut(a.prompt(n), labels), labels)}
		for _, m := range models {
			row = append(row, p.cell(cells[v1alpha1.Cell{Model: v1alpha1.ModelName(m), Prompt: prompt}], best))
		}
		t.AppendRow(row)
	}
	for _, l := range strings.Split(t.Render(), "\n") {
		p.line(spaces(gridIndent-1), l)
	}
}

// cell is a row of the matrix in one glance.
func (p *page) cell(r *v1alpha1.Report, best *float64) string {
	if r == nil {
		return p.paint(faint, "…")
	}
	sign, s := mark(r.Outcome)
	if r.Score == nil {
		return p.paint(s, sign+" "+standing(r))
	}
	score := display(r)
	if score == "" {
		score = fmt.Sprintf("%.2f", *r.Score)
	}
	text := p.paint(s, sign+" "+score)
	if best != nil && *r.Score == *best && !r.Vacuous {
		text += p.paint(yellow, " ★")
	}
	return text
}

// bestScore is the highest score among the cells; nil when no cell stands out.
func bestScore(rows []v1alpha1.Report) *float64 {
	var best *float64
	scored, equal := 0, 0
	for i := range rows {
		score := rows[i].Score
		if score == nil || rows[i].Vacuous {
			continue
		}
		scored++
		switch {
		case best == nil || *score > *best:
			best, equal = score, 1
		case *score == *best:
			equal++
		}
	}
	if equal == scored {
		return nil
	}
	return best
}
