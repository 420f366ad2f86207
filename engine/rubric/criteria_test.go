package rubric

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// reported is the report of a criterion that was judged and holds, with some of it changed.
func reported(name string, score float64, change ...func(*v1alpha1.CriterionReport)) v1alpha1.CriterionReport {
	c := v1alpha1.CriterionReport{Name: name, Score: &score, Passed: true, Weight: 1, Reason: "because"}
	for _, f := range change {
		f(&c)
	}
	return c
}

func held(limit float64) func(*v1alpha1.CriterionReport) {
	return func(c *v1alpha1.CriterionReport) { c.Threshold = &limit }
}

func failedGateOf(rule v1alpha1.GateRule) func(*v1alpha1.CriterionReport) {
	return func(c *v1alpha1.CriterionReport) {
		c.Passed, c.Gate = false, &v1alpha1.Gate{Failed: true, Rule: rule}
	}
}

func isRequired(c *v1alpha1.CriterionReport) { c.Required = true }

func isGuard(c *v1alpha1.CriterionReport) { c.Guard = true }

func quotes(span string, verified *bool) func(*v1alpha1.CriterionReport) {
	return func(c *v1alpha1.CriterionReport) { c.Evidence, c.EvidenceVerified = span, verified }
}

func inBand(raw, band int32) func(*v1alpha1.CriterionReport) {
	return func(c *v1alpha1.CriterionReport) { c.Raw, c.Band = &raw, &band }
}

func TestWhatIsReportedOfEachCriterion(t *testing.T) {
	evidence := func(criteria ...v1alpha1.Criterion) v1alpha1.RubricSpec {
		return v1alpha1.RubricSpec{RequireEvidence: true, Criteria: criteria}
	}
	for name, tc := range map[string]struct {
		rubric    v1alpha1.RubricSpec
		candidate string // "a fine answer" when empty
		judgments []v1alpha1.Judgment
		want      []v1alpha1.CriterionReport
	}{
		"S-4 a gate is held against the score before rounding": {
			rubric:    criteriaOf(criterionOf("a", required)),
			judgments: []v1alpha1.Judgment{judged("a", 0.6999996)},
			want:      []v1alpha1.CriterionReport{reported("a", 0.7, isRequired, held(0.7), failedGateOf(v1alpha1.GateRequired))},
		},
		"S-7 weight 0 is judged and reported": {
			rubric:    criteriaOf(criterionOf("a"), criterionOf("b", weight(0))),
			judgments: []v1alpha1.Judgment{judged("a", 0.9), judged("b", 0.2)},
			want:      []v1alpha1.CriterionReport{reported("a", 0.9), reported("b", 0.2, func(c *v1alpha1.CriterionReport) { c.Weight = 0 })},
		},
		"S-11 a skipped criterion is shown as skipped": {
			rubric:    criteriaOf(criterionOf("a"), criterionOf("b", when(v1alpha1.When{Contains: "error"}), required, threshold(0.9))),
			judgments: []v1alpha1.Judgment{judged("a", 0.9)},
			want: []v1alpha1.CriterionReport{
				reported("a", 0.9),
				{Name: "b", Passed: true, Weight: 1, Required: true, Skipped: true, Threshold: ptr(0.9)},
			},
		},
		"S-13 a guard's score is 1 - p": {
			rubric:    criteriaOf(criterionOf("leak", guard)),
			judgments: []v1alpha1.Judgment{judged("leak", 0.25)},
			want:      []v1alpha1.CriterionReport{reported("leak", 0.75, isGuard, held(0.7))},
		},
		"S-14 each gate that failed is named, with the rule that made it fail": {
			rubric: v1alpha1.RubricSpec{RequiredGate: v1alpha1.RequiredGateZero, Criteria: []v1alpha1.Criterion{
				criterionOf("zero", required), criterionOf("own", required, threshold(0.5)), criterionOf("leak", guard),
				criterionOf("bar", threshold(0.5)), criterionOf("both", guard, required), criterionOf("free"),
			}},
			judgments: []v1alpha1.Judgment{judged("zero", 0), judged("own", 0.4), judged("leak", 0.5), judged("bar", 0.4), judged("both", 0.5), judged("free", 0)},
			want: []v1alpha1.CriterionReport{
				reported("zero", 0, isRequired, held(0), failedGateOf(v1alpha1.GateRequiredZero)),
				reported("own", 0.4, isRequired, held(0.5), failedGateOf(v1alpha1.GateRequired)),
				reported("leak", 0.5, isGuard, held(0.7), failedGateOf(v1alpha1.GateGuard)),
				reported("bar", 0.4, held(0.5), failedGateOf(v1alpha1.GateThreshold)),
				reported("both", 0.5, isGuard, isRequired, held(0.7), failedGateOf(v1alpha1.GateGuard)),
				reported("free", 0),
			},
		},
		"S-17 the band is the greatest key that is not above raw": {
			rubric: criteriaOf(criterionOf("below", ranges("0", "5", "8")), criterionOf("at", ranges("0", "5", "8")),
				criterionOf("between", ranges("0", "5", "8")), criterionOf("above", ranges("0", "5", "8")), criterionOf("ten", ranges("0", "10"))),
			judgments: []v1alpha1.Judgment{judgedRaw("below", 4), judgedRaw("at", 5), judgedRaw("between", 7), judgedRaw("above", 9), judgedRaw("ten", 10)},
			want: []v1alpha1.CriterionReport{
				reported("below", 0.4, inBand(4, 0)), reported("at", 0.5, inBand(5, 5)), reported("between", 0.7, inBand(7, 5)),
				reported("above", 0.9, inBand(9, 8)), reported("ten", 1, inBand(10, 10)),
			},
		},
		"S-17 raw of a guard is how far it is present": {
			rubric:    criteriaOf(criterionOf("leak", guard, ranges("0", "5"))),
			judgments: []v1alpha1.Judgment{judgedRaw("leak", 2)},
			want:      []v1alpha1.CriterionReport{reported("leak", 0.8, isGuard, held(0.7), inBand(2, 0))},
		},
		"S-20 a criterion without a quote scores 0 and gates": {
			rubric:    evidence(criterionOf("a")),
			judgments: []v1alpha1.Judgment{judged("a", 0.9)},
			want:      []v1alpha1.CriterionReport{reported("a", 0, failedGateOf(v1alpha1.GateEvidence))},
		},
		"S-20 also where its own gate would hold": {
			rubric:    evidence(criterionOf("a", required, threshold(0))),
			judgments: []v1alpha1.Judgment{quoted(judged("a", 0.9), "made up", false)},
			want:      []v1alpha1.CriterionReport{reported("a", 0, isRequired, held(0), quotes("made up", ptr(false)), failedGateOf(v1alpha1.GateEvidence))},
		},
		"S-20 a clean guard has nothing to quote": {
			rubric:    evidence(criterionOf("leak", guard)),
			judgments: []v1alpha1.Judgment{judged("leak", 0)},
			want:      []v1alpha1.CriterionReport{reported("leak", 1, isGuard, held(0.7))},
		},
		"S-20 a guard found present without a quote is marked": {
			rubric:    evidence(criterionOf("leak", guard)),
			judgments: []v1alpha1.Judgment{judged("leak", 0.9)},
			want:      []v1alpha1.CriterionReport{reported("leak", 0.1, isGuard, held(0.7), quotes("", ptr(false)), failedGateOf(v1alpha1.GateGuard))},
		},
		"S-20 a guard found present with a quote that does not occur is marked": {
			rubric:    evidence(criterionOf("leak", guard)),
			judgments: []v1alpha1.Judgment{quoted(judged("leak", 0.2), "made up", false)},
			want:      []v1alpha1.CriterionReport{reported("leak", 0.8, isGuard, held(0.7), quotes("made up", ptr(false)))},
		},
		"S-20 a guard found present with a verified quote is not": {
			rubric:    evidence(criterionOf("leak", guard)),
			judgments: []v1alpha1.Judgment{quoted(judged("leak", 1), "fine", true)},
			want:      []v1alpha1.CriterionReport{reported("leak", 0, isGuard, held(0.7), quotes("fine", ptr(true)), failedGateOf(v1alpha1.GateGuard))},
		},
		"S-34 of an empty candidate nothing is there, and no evidence is asked for": {
			rubric:    evidence(criterionOf("a"), criterionOf("b", required), criterionOf("leak", guard)),
			candidate: " ?! ",
			want: []v1alpha1.CriterionReport{
				reported("a", 0, because("empty candidate")),
				reported("b", 0, because("empty candidate"), isRequired, held(0.7), failedGateOf(v1alpha1.GateRequired)),
				reported("leak", 1, because("empty candidate"), isGuard, held(0.7)),
			},
		},
		"S-39 a judge that could not be had is not a score of 0": {
			rubric:    criteriaOf(criterionOf("a", required)),
			judgments: []v1alpha1.Judgment{failedBy(0, "a")},
			want:      []v1alpha1.CriterionReport{{Name: "a", Weight: 1, Required: true, Threshold: ptr(0.7), Error: "the judge is down"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := scoreOf(evalOf(tc.rubric, func(s *v1alpha1.EvalSpec) {
				if tc.candidate != "" {
					s.Response = &tc.candidate
				}
			}), tc.judgments...)
			if diff := cmp.Diff(tc.want, got.Rubrics[0].Criteria); diff != "" {
				t.Errorf("criteria (-want +got):\n%s", diff)
			}
		})
	}
}

func because(reason string) func(*v1alpha1.CriterionReport) {
	return func(c *v1alpha1.CriterionReport) { c.Reason = reason }
}

func TestS2AJudgeNeverSuppliesATotal(t *testing.T) {
	spec := evalOf(criteriaOf(criterionOf("a"), criterionOf("b")))
	total := judged("", 1) // what a judge would say of the whole
	if diff := cmp.Diff(failed(0.5), outcomeOf(scoreOf(spec, judged("a", 0.4), judged("b", 0.6), total))); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	if err := CheckJudgments(spec, []v1alpha1.Judgment{total}); err == nil {
		t.Error("a judgment of the whole rubric was accepted beside those of its criteria")
	}
}

func TestS11AConditionThatCannotBeReadIsAnError(t *testing.T) {
	spec := evalOf(criteriaOf(criterionOf("a"), criterionOf("b", when(v1alpha1.When{Regex: "(?=x)"}))))
	got := scoreOf(spec, judged("a", 1), judged("b", 1))
	if diff := cmp.Diff(errored, outcomeOf(got)); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	if c := got.Rubrics[0].Criteria[1]; c.Error == "" || c.Score != nil || c.Skipped {
		t.Errorf("criterion %+v, want an error and neither a score nor a skip", c)
	}
}
