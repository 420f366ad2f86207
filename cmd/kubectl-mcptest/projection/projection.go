// Package projection says what grading a plan would take, without asking anybody: which judges, how many calls, and
// about what cost (S-30).
package projection

import (
	"errors"
	"slices"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/plan"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

// Row is what one row would take.
type Row struct {
	plan.Row
	// Models judge: each of a panel, or the one that a jury is made of. None when the row is deferred or wrong.
	Models []judge.Model
	// Deferred says why nothing would be judged; Problem why the judge cannot be chosen.
	Deferred, Problem string
	// Calls is how many calls there would be, at most; 0 when nothing is judged.
	Calls int32
	// CostUSD is about what they would cost, in US dollars, as far as the models have a price.
	CostUSD float64
	// Unpriced are the models without a price.
	Unpriced []string
	// WithKeys is what a row that is deferred for want of a key would take with it; nil for other rows.
	WithKeys *Row
}

// Total is what all rows would take.
type Total struct {
	Rows, Calls, Deferred int32
	CostUSD               float64
	Unpriced, Models      []string
	// WithKeys is what the rows that lack a key would take with it; nil when none does.
	WithKeys *Total
}

// Of projects each row of a plan.
func Of(p *plan.Plan, env judge.Env, prices judge.Prices) []Row {
	rows := make([]Row, len(p.Rows))
	for i := range p.Rows {
		rows[i] = of(p.Rows[i], env, prices)
	}
	return rows
}

func of(r plan.Row, env judge.Env, prices judge.Prices) Row {
	out := Row{Row: r}
	if r.Spec.Response == nil {
		out.Deferred = "the eval has no response; set response or responseFrom"
		return out
	}
	if rubric.Empty(*r.Spec.Response) {
		return out
	}
	models, err := judge.ResolveModel(r.Spec.Judge, "", "", env)
	var missing *judge.DeferredError
	switch {
	case errors.As(err, &missing):
		out.Deferred = missing.Error()
		if all := judge.EveryKey(); len(env.Keys) < len(all.Keys) {
			all.Model = env.Model
			with := of(r, all, prices)
			out.WithKeys = &with
		}
		return out
	case err != nil:
		out.Problem = err.Error()
		return out
	}
	out.Models, out.Calls = models, r.Calls
	estimator := judge.NewEstimator(judge.Question{Prompt: r.Spec.Prompt, Context: r.Spec.Context, Candidate: *r.Spec.Response})
	for member := range rubric.Members(r.Spec.Judge) {
		m := models[min(member, len(models)-1)]
		cost, priced := costOf(&r.Spec, estimator, m.Name, prices)
		out.CostUSD += cost
		if !priced && !slices.Contains(out.Unpriced, m.Name) {
			out.Unpriced = append(out.Unpriced, m.Name)
		}
	}
	return out
}

// costOf is what one member would cost, and whether its model has a price.
func costOf(spec *v1alpha1.EvalSpec, estimator judge.Estimator, model string, prices judge.Prices) (usd float64, priced bool) {
	ask := func(q judge.Question) float64 {
		input, output := estimator.Tokens(q)
		cost, ok := prices.Estimate(model, input, output)
		priced = ok
		return cost
	}
	for _, r := range rubric.Rubrics(spec) {
		switch rubric.Kind(&r.RubricSpec) {
		case v1alpha1.RubricKindTree:
			usd += walk(r.Tree, ask)
		case v1alpha1.RubricKindCriteria:
			for i := range r.Criteria {
				usd += ask(criterion(&r.Criteria[i], r.RequireEvidence))
			}
		default:
			usd += ask(judge.Question{Kind: judge.KindText, Ask: r.Text})
		}
	}
	return usd, priced
}

// walk is what the dearest walk through a tree would cost.
func walk(n *v1alpha1.TreeNode, ask func(judge.Question) float64) float64 {
	if n == nil || n.Ask == "" {
		return 0
	}
	return ask(judge.Question{Kind: judge.KindYesNo, Ask: n.Ask}) + max(walk(n.IfYes, ask), walk(n.IfNo, ask))
}

func criterion(c *v1alpha1.Criterion, evidence bool) judge.Question {
	q := judge.Question{
		Kind: judge.KindCriterion, Name: c.Name, Ask: c.Description, Examples: c.Examples,
		Indicators: c.Indicators, ScoreRanges: c.ScoreRanges, RequireEvidence: evidence,
	}
	if c.Guard {
		q.Kind = judge.KindGuard
	}
	return q
}

// Sum adds rows up.
func Sum(rows []Row) Total {
	t := Total{Rows: int32(len(rows))}
	var lacking []Row
	for i := range rows {
		r := &rows[i]
		t.Calls += r.Calls
		t.CostUSD += r.CostUSD
		if r.Deferred != "" {
			t.Deferred++
		}
		if r.WithKeys != nil {
			lacking = append(lacking, *r.WithKeys)
		}
		for _, m := range r.Models {
			if !slices.Contains(t.Models, m.Name) {
				t.Models = append(t.Models, m.Name)
			}
		}
		for _, m := range r.Unpriced {
			if !slices.Contains(t.Unpriced, m) {
				t.Unpriced = append(t.Unpriced, m)
			}
		}
	}
	if len(lacking) > 0 {
		with := Sum(lacking)
		t.WithKeys = &with
	}
	return t
}
