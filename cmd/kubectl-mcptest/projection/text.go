package projection

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/money"
	"github.com/mcptest/mcptest-operator/engine/preset"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

// Sentence tells a total in words: "4 rows, 4 judge calls at most, about $0.0123".
func (t Total) Sentence() string {
	text := plural(t.Rows, "row") + ", " + plural(t.Calls, "judge call")
	if t.Calls > 0 {
		text += " at most, about " + money.Dollars(t.CostUSD)
	}
	if len(t.Unpriced) > 0 {
		text += fmt.Sprintf(" (without %s: no known price)", strings.Join(t.Unpriced, ", "))
	}
	if t.Deferred > 0 {
		text += fmt.Sprintf(", %d deferred", t.Deferred)
	}
	return text
}

func plural(n int32, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// judgeUnknown is told of a judge that only the cluster knows.
const judgeUnknown = "the default of the cluster (MCPTEST_JUDGE_MODEL in the Secret, or the first provider with a key there)"

// Keys says whose keys the judges are asked with.
type Keys string

// KeysLocal are those of this process; KeysCluster those of a Secret that is not read.
const (
	KeysLocal   Keys = "local"
	KeysCluster Keys = "cluster"
)

// Write prints the plan: for each row what grades it, who judges and what that takes, then the total.
func Write(w io.Writer, rows []Row, keys Keys) error {
	var b strings.Builder
	for i := range rows {
		rows[i].write(&b, keys)
	}
	total := Sum(rows)
	fmt.Fprintf(&b, "%s\n", total.Sentence())
	if total.WithKeys != nil {
		fmt.Fprintf(&b, "with keys for the deferred rows: %s\n", total.WithKeys.Sentence())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Row) write(b *strings.Builder, keys Keys) {
	fmt.Fprintf(b, "%s\n", printable(r.Name))
	for _, rb := range rubric.Rubrics(&r.Spec) {
		field(b, "rubric", describe(&rb))
		if len(rb.Criteria) > 0 {
			field(b, "", criteria(&rb.RubricSpec))
		}
	}
	field(b, "candidate", candidate(&r.Spec))
	field(b, "judge", r.judge(keys))
	fmt.Fprintf(b, "  calls      %d%s", r.Calls, r.cost())
	if w := r.WithKeys; w != nil {
		fmt.Fprintf(b, " (with a key: %d%s)", w.Calls, w.cost())
	}
	b.WriteString("\n\n")
}

// pageWidth is how wide a plan is, and fieldIndent where the values of its fields begin.
const pageWidth, fieldIndent = 80, 13

// field writes a name and a value; a long value goes on in the next line.
func field(b *strings.Builder, name, value string) {
	fmt.Fprintf(b, "  %-*s", fieldIndent-2, name)
	at := fieldIndent
	for i, word := range strings.Fields(value) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+n > pageWidth:
			b.WriteString("\n" + strings.Repeat(" ", fieldIndent))
			at = fieldIndent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	b.WriteByte('\n')
}

// criteria lists what is judged, with what is special about each.
func criteria(r *v1alpha1.RubricSpec) string {
	var all []string
	for i := range r.Criteria {
		c := &r.Criteria[i]
		var special []string
		switch {
		case c.Guard:
			special = append(special, "guard")
		case c.Required:
			special = append(special, "required")
		}
		if c.Weight != nil && *c.Weight != 1 {
			special = append(special, fmt.Sprintf("weight %g", *c.Weight))
		}
		if c.Threshold != nil {
			special = append(special, fmt.Sprintf("at least %g", *c.Threshold))
		}
		if c.When != nil {
			special = append(special, "on a condition")
		}
		name := printable(c.Name)
		if len(special) > 0 {
			name += " (" + strings.Join(special, ", ") + ")"
		}
		all = append(all, name)
	}
	return strings.Join(all, "; ")
}

func (r *Row) cost() string {
	switch {
	case r.Calls == 0:
		return ""
	case len(r.Unpriced) > 0:
		return ", no known price for " + strings.Join(r.Unpriced, ", ")
	}
	return ", about " + money.Dollars(r.CostUSD)
}

func describe(r *v1alpha1.NamedRubric) string {
	kind := string(rubric.Kind(&r.RubricSpec))
	switch calls := rubric.Calls(&r.RubricSpec); rubric.Kind(&r.RubricSpec) {
	case v1alpha1.RubricKindCriteria:
		kind = fmt.Sprintf("%d criteria, %s", len(r.Criteria), rubric.Aggregation(&r.RubricSpec))
		if len(r.Criteria) == 1 {
			kind = "1 criterion"
		}
	case v1alpha1.RubricKindTree:
		kind = fmt.Sprintf("tree, at most %s", plural(int32(calls), "question"))
	}
	if name, _, ok := strings.Cut(r.Description, ":"); ok {
		if _, err := preset.Find(v1alpha1.PresetName(name)); err == nil {
			kind = "preset " + name + ", " + kind
		}
	}
	if r.Name != "" {
		kind = printable(r.Name) + ": " + kind
	}
	return fmt.Sprintf("%s, passes at %.2f", kind, rubric.Threshold(&r.RubricSpec))
}

func candidate(spec *v1alpha1.EvalSpec) string {
	switch {
	case spec.Response == nil:
		return "none"
	case rubric.Empty(*spec.Response):
		return "an empty response: scores 0, no judge is asked"
	}
	return fmt.Sprintf("a response of %d bytes", len(*spec.Response))
}

func (r *Row) judge(keys Keys) string {
	switch {
	case r.Deferred != "":
		return "deferred: " + r.Deferred
	case r.Problem != "":
		return "error: " + r.Problem
	case len(r.Models) == 0:
		return "none"
	}
	j := r.Spec.Judge
	names := make([]string, len(r.Models))
	for i, m := range r.Models {
		names[i] = m.Name + " (" + string(m.Provider) + ")"
	}
	text := strings.Join(names, ", ")
	if keys == KeysCluster && (j == nil || (j.Model == "" && len(j.Panel) == 0)) {
		text = judgeUnknown
	}
	switch {
	case j == nil:
	case len(j.Panel) > 0:
		text = "panel of " + text
	case j.Jury != nil:
		text = fmt.Sprintf("jury of %d × %s", j.Jury.Size, text)
	}
	return text
}

// printable is a name on one line, without what a terminal would obey.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || (0x7f <= r && r <= 0x9f) || (0x202a <= r && r <= 0x202e) || (0x2066 <= r && r <= 0x2069) {
			return '\uFFFD'
		}
		return r
	}, s)
}
