package rubric

import (
	"context"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
)

// askerFunc is a judge made of a function.
type askerFunc func(judge.Question) (judge.Verdict, v1alpha1.Usage, error)

func (f askerFunc) Ask(_ context.Context, _ judge.Model, q judge.Question) (judge.Verdict, v1alpha1.Usage, error) {
	return f(q)
}

func TestARowThatTheBudgetDidNotReachFor(t *testing.T) {
	exceeded := fmt.Errorf("asking gpt-4.1: %w", judge.ErrBudgetExceeded)
	one := v1alpha1.Usage{Calls: 1, CostUSD: 0.001}
	for name, tc := range map[string]struct {
		spec *v1alpha1.EvalSpec
		// paid is what the question took that met the end of the budget.
		paid      v1alpha1.Usage
		judgments []string
		note      string
		usage     v1alpha1.Usage
	}{
		"S-42 nothing of it was judged": {
			spec: evalOf(criteriaOf(criterionOf("too dear"))),
			note: "BudgetExceeded: maxCost was used up before this row was judged",
		},
		"S-42 what was judged is kept": {
			spec:      evalOf(criteriaOf(criterionOf("a"), criterionOf("too dear"))),
			judgments: []string{"/0/a 1"},
			note:      "BudgetExceeded: maxCost was used up before this row was judged to its end; judgments that were made are kept (1)",
			usage:     one,
		},
		"S-42 what was paid for before the end counts": {
			spec:      evalOf(criteriaOf(criterionOf("a"), criterionOf("too dear"))),
			paid:      one,
			judgments: []string{"/0/a 1", "/0/too dear error " + exceeded.Error()},
			note:      "judgments that were made are kept (1)",
			usage:     v1alpha1.Usage{Calls: 2, CostUSD: 0.002},
		},
		"S-42 a part of it passes nothing, though it would": {
			spec:      evalOf(criteriaOf(criterionOf("a"), criterionOf("too dear", weight(0)))),
			judgments: []string{"/0/a 1"},
			note:      "judged to its end",
			usage:     one,
		},
	} {
		t.Run(name, func(t *testing.T) {
			asker := askerFunc(func(q judge.Question) (judge.Verdict, v1alpha1.Usage, error) {
				if q.Name == "too dear" {
					return judge.Verdict{}, tc.paid, exceeded
				}
				return judge.Verdict{Score: 1, Reason: "so"}, one, nil
			})
			f, err := graderOf(t, asker).Grade(t.Context(), tc.spec, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(tc.judgments, brief(f.Judgments)); diff != "" {
				t.Errorf("judgments (-want +got):\n%s", diff)
			}
			got := Score(v1alpha1.Row{Name: "r", Eval: "r"}, tc.spec, f)
			if got.Outcome != v1alpha1.OutcomeError || got.Reason != v1alpha1.RowBudgetExceeded || got.Score != nil || !strings.Contains(got.Note, tc.note) {
				t.Errorf("%s, reason %q, score %v, note %q; want an error without a score, and a note with %q", got.Outcome, got.Reason, got.Score, got.Note, tc.note)
			}
			if diff := gocmp.Diff(tc.usage, got.Usage); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
		})
	}
}

// Two of three votes would carry a jury; the third was not asked for because the budget was used up.
func TestS42AJuryThatTheBudgetCutShortDecidesNothing(t *testing.T) {
	f := findings(judgedBy(0, "", 1), judgedBy(1, "", 1))
	f.Reason, f.Error = v1alpha1.RowBudgetExceeded, "BudgetExceeded: maxCost was used up"
	got := Score(v1alpha1.Row{Name: "r", Eval: "r"}, evalOf(v1alpha1.RubricSpec{Text: "t"}, jury(3, nil)), f)
	if diff := gocmp.Diff(errored, outcomeOf(got)); diff != "" || got.Reason != v1alpha1.RowBudgetExceeded {
		t.Errorf("reason %q, outcome (-want +got):\n%s", got.Reason, diff)
	}
	if len(got.Rubrics) != 1 || len(got.Rubrics[0].Members) != 3 {
		t.Errorf("what was judged is not in the report: %+v", got.Rubrics)
	}
}
