package report

import (
	"fmt"
	"strings"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

const (
	// detailIndent is where what a row unfolds to begins.
	detailIndent = 6
	// barWidth is how many columns the bar of a score has.
	barWidth = 8
)

// detail writes why a row is what it is.
func (p *page) detail(r *v1alpha1.Report, u unfolding) {
	p.indent, p.said = detailIndent, r.Note
	if r.Note != "" {
		_, s := mark(r.Outcome)
		p.paragraph(p.indent, s, clean(r.Note))
	}
	p.gates(r)
	for i := range r.Rubrics {
		p.rubric(&r.Rubrics[i], len(r.Rubrics) > 1, u)
	}
	p.judges(r.Judge)
	if c := r.Candidate; c != nil && c.Excerpt != "" && r.Outcome != v1alpha1.OutcomeDeferred {
		size := fmt.Sprintf(" (%d bytes)", c.Bytes)
		p.fact("candidate", quote(cut(clean(c.Excerpt), p.width-p.indent-factWidth-width(size)-2))+p.paint(faint, size))
	}
	if t := r.Truncated; t != nil {
		p.paragraph(p.indent, yellow, fmt.Sprintf("the report was cut: it had %d bytes; the longest reasons are shortened", t.OriginalBytes))
	}
}

// factWidth is the width of the words before facts.
const factWidth = len("candidate") + 2

func (p *page) fact(word, text string) {
	p.line(spaces(p.indent), p.paint(faint, pad(word, factWidth)), text)
}

func quote(s string) string { return "“" + s + "”" }

// gates names the gates that failed: they decide whatever the score is (S-14).
func (p *page) gates(r *v1alpha1.Report) {
	var names []string
	for i := range r.Rubrics {
		for j := range r.Rubrics[i].Criteria {
			if c := &r.Rubrics[i].Criteria[j]; c.Gate != nil {
				names = append(names, cut(clean(c.Name), p.width/2)+" ("+gateWord(c.Gate.Rule)+")")
			}
		}
	}
	if len(names) == 0 {
		return
	}
	word := "gate failed: "
	if len(names) > 1 {
		word = "gates failed: "
	}
	p.paragraph(p.indent, red, word+strings.Join(names, ", "))
}

// gateWord says a rule of S-14 and S-20 in words.
func gateWord(rule v1alpha1.GateRule) string {
	switch rule {
	case v1alpha1.GateRequired:
		return "required"
	case v1alpha1.GateRequiredZero:
		return "required, scored 0"
	case v1alpha1.GateGuard:
		return "found, and must not be there"
	case v1alpha1.GateThreshold:
		return "below its own threshold"
	case v1alpha1.GateEvidence:
		return "no evidence in the candidate"
	}
	return clean(string(rule))
}

// rubric writes what one rubric found; one of several under its name.
func (p *page) rubric(r *v1alpha1.RubricReport, several bool, u unfolding) {
	if several {
		sign, s := held(r.Passed)
		score := "error"
		if r.Score != nil {
			score = against(*r.Score, &r.Threshold)
		}
		weight := ""
		if r.Weight != nil && *r.Weight != 1 {
			weight = fmt.Sprintf("  weight %g", *r.Weight)
		}
		p.line(spaces(p.indent), p.paint(s, sign), " ", p.paint(bold, cut(clean(r.Name), p.width/2)), "  ", p.paint(s, score), p.paint(faint, weight))
		p.indent += 2
		defer func() { p.indent -= 2 }()
	}
	if r.Reason != "" && len(r.Members) == 0 {
		p.paragraph(p.indent, plain, clean(r.Reason))
	}
	p.criteria(r, u)
	p.path(r.Path, r.Leaf)
	p.members(r)
}

// criteria writes a line a criterion, with the judge's words where they matter.
func (p *page) criteria(r *v1alpha1.RubricReport, u unfolding) {
	names := 0
	for i := range r.Criteria {
		names = max(names, width(clean(r.Criteria[i].Name)))
	}
	names = min(names, (p.width-p.indent)/2-barWidth)
	for i := range r.Criteria {
		c := &r.Criteria[i]
		sign, s := criterionMark(c, r.Threshold)
		parts := []string{spaces(p.indent), p.paint(s, sign), " ", pad(cut(clean(c.Name), names), names), "  "}
		if c.Score != nil {
			parts = append(parts, p.bar(*c.Score, s), fmt.Sprintf(" %.2f", *c.Score))
		} else {
			parts = append(parts, pad(criterionWord(c), barWidth+5))
		}
		parts = append(parts, "  ", p.paint(faint, cut(tags(c), p.width-p.indent-names-barWidth-11)))
		p.line(parts...)
		if c.Error != "" && !strings.Contains(p.said, c.Error) {
			p.paragraph(p.indent+2, alarm, clean(c.Error))
		}
		if u == unfoldAll || c.Gate != nil || (c.Score != nil && *c.Score < r.Threshold-1e-9) {
			p.words(c)
		}
	}
}

// words are what the judge said about a criterion, and what it rests on.
func (p *page) words(c *v1alpha1.CriterionReport) {
	p.paragraph(p.indent+2, plain, clean(c.Reason))
	if c.Evidence == "" {
		return
	}
	p.paragraph(p.indent+2, cyan, quote(clean(c.Evidence)))
	if c.EvidenceVerified != nil && !*c.EvidenceVerified {
		p.paragraph(p.indent+2, red, "this does not stand in the candidate")
	}
}

func criterionMark(c *v1alpha1.CriterionReport, threshold float64) (string, style) {
	switch {
	case c.Skipped:
		return "–", faint
	case c.Error != "":
		return mark(v1alpha1.OutcomeError)
	case c.Gate != nil:
		return mark(v1alpha1.OutcomeFailed)
	case c.Score != nil && *c.Score < threshold-1e-9:
		return "▾", yellow // low, but no gate: it only weighs on the score
	}
	return mark(v1alpha1.OutcomePassed)
}

func criterionWord(c *v1alpha1.CriterionReport) string {
	if c.Skipped {
		return "skipped"
	}
	return "error"
}

// bar draws a score.
func (p *page) bar(score float64, s style) string {
	full := min(max(int(score*barWidth+1e-9), 0), barWidth) // only a perfect score fills it
	return p.paint(s, strings.Repeat("█", full)) + p.paint(faint, strings.Repeat("░", barWidth-full))
}

// tags say what a criterion is: a gate and its limit, its weight, the judge's whole number.
func tags(c *v1alpha1.CriterionReport) string {
	var out []string
	limit := ""
	if c.Threshold != nil {
		limit = fmt.Sprintf(" ≥ %.2f", *c.Threshold)
		if c.Required && *c.Threshold == 0 {
			limit = " > 0"
		}
	}
	switch {
	case c.Guard:
		out = append(out, "guard"+limit)
	case c.Required:
		out = append(out, "required"+limit)
	case c.Threshold != nil:
		out = append(out, "must be"+limit)
	}
	if c.Weight != 1 {
		out = append(out, fmt.Sprintf("weight %g", c.Weight))
	}
	if c.Raw != nil && c.Band != nil {
		out = append(out, fmt.Sprintf("%d of 10, band %d", *c.Raw, *c.Band))
	}
	return strings.Join(out, ", ")
}

// path draws the walk through a tree: each question, its answer, and the leaf (S-22).
func (p *page) path(steps []v1alpha1.TreeStep, leaf *v1alpha1.TreeLeaf) {
	for i := range steps {
		step := &steps[i]
		answer := fmt.Sprintf("%s (%.2f)", step.Answer, step.Score)
		lines := wrap(clean(step.Ask), p.width-p.indent-4-width(answer))
		for n, l := range lines {
			prefix, suffix := "│ ", ""
			if n == 0 {
				prefix, suffix = "├ ", "  "+p.paint(bold, answer)
			}
			p.line(spaces(p.indent), p.paint(faint, prefix), l, suffix)
		}
		for _, l := range wrap(clean(step.Reason), p.width-p.indent-4) {
			p.line(spaces(p.indent), p.paint(faint, "│   "+l))
		}
	}
	if leaf == nil {
		return
	}
	text := fmt.Sprintf("leaf %.2f", leaf.Score)
	if leaf.Reason != "" {
		text += "  " + clean(leaf.Reason)
	}
	for n, l := range wrap(text, p.width-p.indent-2) {
		prefix := "  "
		if n == 0 {
			prefix = "└ "
		}
		p.line(spaces(p.indent), p.paint(faint, prefix), p.paint(bold, l))
	}
}

// members writes a line a vote, with what the member said.
func (p *page) members(r *v1alpha1.RubricReport) {
	for i := range r.Members {
		m := &r.Members[i]
		sign, s := held(m.Passed)
		score, why := "", clean(m.Reason)
		switch {
		case m.Error != "":
			sign, s = mark(v1alpha1.OutcomeError)
			score, why = "no vote", clean(m.Error)
		case m.Score != nil:
			score = fmt.Sprintf("%.2f", *m.Score)
		}
		if why == "" {
			why = low(m, r.Threshold)
		}
		name := fmt.Sprintf("vote %d", i+1)
		if m.Model != "" {
			name += " " + clean(m.Model)
		}
		p.line(spaces(p.indent), p.paint(s, sign), " ", cut(name, p.width-p.indent-4-width(score)), "  ", p.paint(s, score))
		p.paragraph(p.indent+2, plain, why)
		p.path(m.Path, m.Leaf)
	}
}

// low names the criteria that a member scored below the threshold.
func low(m *v1alpha1.MemberReport, threshold float64) string {
	var names []string
	for i := range m.Criteria {
		if c := &m.Criteria[i]; c.Score != nil && *c.Score < threshold-1e-9 {
			names = append(names, fmt.Sprintf("%s %.2f", clean(c.Name), *c.Score))
		}
	}
	return strings.Join(names, ", ")
}

// judges says who judged, and how the vote went.
func (p *page) judges(j *v1alpha1.JudgeReport) {
	if j == nil {
		return
	}
	models := make([]string, len(j.Models))
	for i, m := range j.Models {
		models[i] = clean(m)
	}
	text := strings.Join(models, ", ")
	switch {
	case j.Jury != nil:
		text += fmt.Sprintf(" · jury: %d of %d passed, consensus %g", j.Jury.Passes, j.Jury.Size, j.Jury.Consensus)
	case j.Panel != nil:
		text += fmt.Sprintf(" · panel: %d of %d passed, decided by %s", j.Panel.Passes, len(j.Models), clean(string(j.Panel.Aggregate)))
	}
	for n, l := range wrap(text, p.width-p.indent-factWidth) {
		word := "judge"
		if n > 0 {
			word = ""
		}
		p.fact(word, l)
	}
}
