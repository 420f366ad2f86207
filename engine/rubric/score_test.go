package rubric

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// outcome is the part of a report that the rules below speak of.
type outcome struct {
	Outcome v1alpha1.Outcome
	Score   float64 // -1: no score
	Gates   map[string]v1alpha1.GateRule
	Vacuous bool
}

func outcomeOf(r v1alpha1.Report) outcome {
	o := outcome{Outcome: r.Outcome, Score: -1, Vacuous: r.Vacuous}
	if r.Score != nil {
		o.Score = *r.Score
	}
	for _, rubric := range r.Rubrics {
		for _, c := range rubric.Criteria {
			if c.Gate != nil {
				if o.Gates == nil {
					o.Gates = map[string]v1alpha1.GateRule{}
				}
				o.Gates[c.Name] = c.Gate.Rule
			}
		}
	}
	return o
}

func passed(score float64) outcome { return outcome{Outcome: v1alpha1.OutcomePassed, Score: score} }
func failed(score float64) outcome { return outcome{Outcome: v1alpha1.OutcomeFailed, Score: score} }
func gated(score float64, name string, rule v1alpha1.GateRule) outcome {
	return outcome{Outcome: v1alpha1.OutcomeFailed, Score: score, Gates: map[string]v1alpha1.GateRule{name: rule}}
}

var errored = outcome{Outcome: v1alpha1.OutcomeError, Score: -1}

func TestScore(t *testing.T) {
	text := v1alpha1.RubricSpec{Text: "Is it good?"}
	textAt := func(threshold float64) v1alpha1.RubricSpec {
		return v1alpha1.RubricSpec{Text: "Is it good?", Threshold: &threshold}
	}
	weather := v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{
		Ask: "tool called?",
		IfYes: &v1alpha1.TreeNode{
			Ask:   "temperature stated?",
			IfYes: &v1alpha1.TreeNode{Score: ptr(1.0), Reason: "all there"},
			IfNo:  &v1alpha1.TreeNode{Score: ptr(0.4)},
		},
		IfNo: &v1alpha1.TreeNode{Score: ptr(0.0)},
	}}
	for name, tc := range map[string]struct {
		spec      *v1alpha1.EvalSpec
		judgments []v1alpha1.Judgment
		want      outcome
	}{
		"S-1 the threshold defaults to 0.7":                        {evalOf(text), []v1alpha1.Judgment{judged("", 0.7)}, passed(0.7)},
		"S-1 a score under the threshold fails":                    {evalOf(text), []v1alpha1.Judgment{judged("", 0.699999)}, failed(0.699999)},
		"S-1 the pass test forgives a billionth":                   {evalOf(textAt(0.3)), []v1alpha1.Judgment{judged("", 0.3-5e-10)}, passed(0.3)},
		"S-1 the pass test forgives no more":                       {evalOf(textAt(0.3)), []v1alpha1.Judgment{judged("", 0.3-5e-9)}, failed(0.3)},
		"S-1 threshold 0 passes everything":                        {evalOf(textAt(0)), []v1alpha1.Judgment{judged("", 0)}, passed(0)},
		"S-1 a gate forgives a billionth too":                      {evalOf(criteriaOf(criterionOf("a", required, threshold(0.9)))), []v1alpha1.Judgment{judged("a", 0.9-5e-10)}, passed(0.9)},
		"S-1 a gate forgives no more":                              {evalOf(criteriaOf(criterionOf("a", required, threshold(0.9)))), []v1alpha1.Judgment{judged("a", 0.9-5e-9)}, gated(0.9, "a", v1alpha1.GateRequired)},
		"S-3 strict asks for 1":                                    {evalOf(v1alpha1.RubricSpec{Text: "t", Strict: true, Threshold: ptr(0.2)}), []v1alpha1.Judgment{judged("", 0.99)}, failed(0.99)},
		"S-3 strict is met by 1":                                   {evalOf(v1alpha1.RubricSpec{Text: "t", Strict: true}), []v1alpha1.Judgment{judged("", 1)}, passed(1)},
		"S-3 strict leaves a criterion's own threshold":            {evalOf(v1alpha1.RubricSpec{Strict: true, Criteria: []v1alpha1.Criterion{criterionOf("a", threshold(0.5), weight(0)), criterionOf("b")}}), []v1alpha1.Judgment{judged("a", 0.6), judged("b", 1)}, passed(1)},
		"S-3 strict is the threshold of a gate without its own":    {evalOf(v1alpha1.RubricSpec{Strict: true, Threshold: ptr(0.5), Criteria: []v1alpha1.Criterion{criterionOf("a", required, weight(0)), criterionOf("b")}}), []v1alpha1.Judgment{judged("a", 0.95), judged("b", 1)}, gated(1, "a", v1alpha1.GateRequired)},
		"S-3 strict asks for 1 of an average":                      {evalOf(v1alpha1.RubricSpec{Strict: true, Criteria: []v1alpha1.Criterion{criterionOf("a"), criterionOf("b")}}), []v1alpha1.Judgment{judged("a", 1), judged("b", 0.999998)}, failed(0.999999)},
		"S-4 the stored score has 6 decimals":                      {evalOf(criteriaOf(criterionOf("a"), criterionOf("b"), criterionOf("c"))), []v1alpha1.Judgment{judged("a", 1), judged("b", 1), judged("c", 0.5)}, passed(0.833333)},
		"S-4 and is compared before rounding":                      {evalOf(textAt(0.7)), []v1alpha1.Judgment{judged("", 0.6999996)}, failed(0.7)},
		"S-4 an average is compared before rounding":               {evalOf(criteriaOf(criterionOf("a"), criterionOf("b"))), []v1alpha1.Judgment{judged("a", 0.6999999), judged("b", 0.6999999)}, failed(0.7)},
		"S-6 the judge's score is the eval's":                      {evalOf(text), []v1alpha1.Judgment{judged("", 0.83)}, passed(0.83)},
		"S-7 weight 0 does not count":                              {evalOf(criteriaOf(criterionOf("a"), criterionOf("b", weight(0)))), []v1alpha1.Judgment{judged("a", 0.9), judged("b", 0)}, passed(0.9)},
		"S-7 the weight defaults to 1":                             {evalOf(criteriaOf(criterionOf("a"), criterionOf("b", weight(3)))), []v1alpha1.Judgment{judged("a", 0.6), judged("b", 1)}, passed(0.9)},
		"S-8 worked figure 4.9/6":                                  {evalOf(criteriaOf(criterionOf("accuracy", weight(3)), criterionOf("clarity", weight(1)), criterionOf("completeness", weight(2)))), []v1alpha1.Judgment{judged("accuracy", 0.9), judged("clarity", 0.8), judged("completeness", 0.7)}, passed(0.816667)},
		"S-8 weighted_average may be said":                         {evalOf(v1alpha1.RubricSpec{Aggregation: "weighted_average", Criteria: []v1alpha1.Criterion{criterionOf("a"), criterionOf("b")}}), []v1alpha1.Judgment{judged("a", 1), judged("b", 0.5)}, passed(0.75)},
		"S-8 over the criteria that apply":                         {evalOf(criteriaOf(criterionOf("a"), criterionOf("b"), criterionOf("c", weight(9), when(v1alpha1.When{Contains: "error"})))), []v1alpha1.Judgment{judged("a", 1), judged("b", 0.5)}, passed(0.75)},
		"S-9 min is the lowest":                                    {evalOf(v1alpha1.RubricSpec{Aggregation: "min", Criteria: []v1alpha1.Criterion{criterionOf("a", weight(9)), criterionOf("b")}}), []v1alpha1.Judgment{judged("a", 1), judged("b", 0.6)}, failed(0.6)},
		"S-9 worst is min":                                         {evalOf(v1alpha1.RubricSpec{Aggregation: "worst", Criteria: []v1alpha1.Criterion{criterionOf("a"), criterionOf("b")}}), []v1alpha1.Judgment{judged("a", 0.8), judged("b", 0.9)}, passed(0.8)},
		"S-9 min leaves out weight 0":                              {evalOf(v1alpha1.RubricSpec{Aggregation: "min", Criteria: []v1alpha1.Criterion{criterionOf("a"), criterionOf("b", weight(0))}}), []v1alpha1.Judgment{judged("a", 0.8), judged("b", 0.1)}, passed(0.8)},
		"S-9 min leaves out what was skipped":                      {evalOf(v1alpha1.RubricSpec{Aggregation: "min", Criteria: []v1alpha1.Criterion{criterionOf("a"), criterionOf("b", when(v1alpha1.When{Contains: "error"}))}}), []v1alpha1.Judgment{judged("a", 0.8), judged("b", 0)}, passed(0.8)},
		"S-9 min takes a guard as 1 - p":                           {evalOf(v1alpha1.RubricSpec{Aggregation: "worst", Criteria: []v1alpha1.Criterion{criterionOf("a"), criterionOf("leak", guard)}}), []v1alpha1.Judgment{judged("a", 0.9), judged("leak", 0.2)}, passed(0.8)},
		"S-9 min of perfect scores is 1":                           {evalOf(v1alpha1.RubricSpec{Aggregation: "min", Criteria: []v1alpha1.Criterion{criterionOf("a"), criterionOf("b", weight(0.5))}}), []v1alpha1.Judgment{judged("a", 1), judged("b", 1)}, passed(1)},
		"S-11 a criterion that does not apply is skipped":          {evalOf(criteriaOf(criterionOf("a"), criterionOf("b", when(v1alpha1.When{Contains: "error"}), required))), []v1alpha1.Judgment{judged("a", 0.9)}, passed(0.9)},
		"S-11 a skipped criterion is no gate, whatever was judged": {evalOf(criteriaOf(criterionOf("a"), criterionOf("b", when(v1alpha1.When{Contains: "error"}), guard))), []v1alpha1.Judgment{judged("a", 0.9), judged("b", 1)}, passed(0.9)},
		"S-11 contains tells upper and lower case apart":           {evalOf(criteriaOf(criterionOf("a"), criterionOf("b", when(v1alpha1.When{Contains: "Fine"})))), []v1alpha1.Judgment{judged("a", 0.9)}, passed(0.9)},
		"S-11 regex applies":                                       {evalOf(criteriaOf(criterionOf("a"), criterionOf("b", when(v1alpha1.When{Regex: "f[aeiou]ne"})))), []v1alpha1.Judgment{judged("a", 1), judged("b", 0.5)}, passed(0.75)},
		"S-12 all skipped is a vacuous pass":                       {evalOf(criteriaOf(criterionOf("a", when(v1alpha1.When{Contains: "error"})))), nil, outcome{Outcome: v1alpha1.OutcomePassed, Score: 1, Vacuous: true}},
		"S-12 what is judged beside is not vacuous":                {evalOf(criteriaOf(criterionOf("a", when(v1alpha1.When{Contains: "error"})), criterionOf("b"))), []v1alpha1.Judgment{judged("b", 0.8)}, passed(0.8)},
		"S-12 what does not count is no score":                     {evalOf(criteriaOf(criterionOf("a", when(v1alpha1.When{Contains: "error"})), criterionOf("b", weight(0)))), []v1alpha1.Judgment{judged("b", 0.8)}, outcome{Outcome: v1alpha1.OutcomePassed, Score: 1, Vacuous: true}},
		"S-12 and a gate of it still fails":                        {evalOf(criteriaOf(criterionOf("a", when(v1alpha1.When{Contains: "error"})), criterionOf("b", weight(0), required))), []v1alpha1.Judgment{judged("b", 0.5)}, outcome{Outcome: v1alpha1.OutcomeFailed, Score: 1, Vacuous: true, Gates: map[string]v1alpha1.GateRule{"b": v1alpha1.GateRequired}}},
		"S-13 a guard's score is 1 - p":                            {evalOf(criteriaOf(criterionOf("leak", guard))), []v1alpha1.Judgment{judged("leak", 0.1)}, passed(0.9)},
		"S-13 a guard found present fails":                         {evalOf(criteriaOf(criterionOf("a", weight(99)), criterionOf("leak", guard))), []v1alpha1.Judgment{judged("a", 1), judged("leak", 0.9)}, gated(0.991, "leak", v1alpha1.GateGuard)},
		"S-13 a guard at its threshold holds":                      {evalOf(criteriaOf(criterionOf("leak", guard))), []v1alpha1.Judgment{judged("leak", 0.3)}, passed(0.7)},
		"S-13 a guard under its threshold fails":                   {evalOf(criteriaOf(criterionOf("a", weight(9)), criterionOf("leak", guard))), []v1alpha1.Judgment{judged("a", 1), judged("leak", 0.31)}, gated(0.969, "leak", v1alpha1.GateGuard)},
		"S-13 a guard of weight 0 is still a gate":                 {evalOf(criteriaOf(criterionOf("a"), criterionOf("leak", guard, weight(0)))), []v1alpha1.Judgment{judged("a", 1), judged("leak", 1)}, gated(1, "leak", v1alpha1.GateGuard)},
		"S-14 required below the rubric's threshold fails":         {evalOf(criteriaOf(criterionOf("a", weight(9)), criterionOf("b", required))), []v1alpha1.Judgment{judged("a", 1), judged("b", 0.6)}, gated(0.96, "b", v1alpha1.GateRequired)},
		"S-14 required at the threshold holds":                     {evalOf(criteriaOf(criterionOf("a"), criterionOf("b", required))), []v1alpha1.Judgment{judged("a", 1), judged("b", 0.7)}, passed(0.85)},
		"S-14 required with a threshold of its own":                {evalOf(criteriaOf(criterionOf("a"), criterionOf("b", required, threshold(0.9)))), []v1alpha1.Judgment{judged("a", 1), judged("b", 0.8)}, gated(0.9, "b", v1alpha1.GateRequired)},
		"S-14 an own threshold may be lower":                       {evalOf(criteriaOf(criterionOf("a", weight(9)), criterionOf("b", required, threshold(0.2)))), []v1alpha1.Judgment{judged("a", 1), judged("b", 0.3)}, passed(0.93)},
		"S-14 a guard with a threshold of its own":                 {evalOf(criteriaOf(criterionOf("a", weight(9)), criterionOf("leak", guard, threshold(0.5)))), []v1alpha1.Judgment{judged("a", 1), judged("leak", 0.5)}, passed(0.95)},
		"S-14 and under it":                                        {evalOf(criteriaOf(criterionOf("a", weight(9)), criterionOf("leak", guard, threshold(0.5)))), []v1alpha1.Judgment{judged("a", 1), judged("leak", 0.6)}, gated(0.94, "leak", v1alpha1.GateGuard)},
		"S-14 the rubric's threshold, where it is set":             {evalOf(v1alpha1.RubricSpec{Threshold: ptr(0.4), Criteria: []v1alpha1.Criterion{criterionOf("a"), criterionOf("b", required)}}), []v1alpha1.Judgment{judged("a", 1), judged("b", 0.5)}, passed(0.75)},
		"S-14 neither required nor guard is no gate":               {evalOf(criteriaOf(criterionOf("a", weight(9)), criterionOf("b"))), []v1alpha1.Judgment{judged("a", 1), judged("b", 0)}, passed(0.9)},
		"S-14 gates cannot save an average":                        {evalOf(criteriaOf(criterionOf("a", required, threshold(0.1)), criterionOf("b"))), []v1alpha1.Judgment{judged("a", 0.5), judged("b", 0.5)}, failed(0.5)},
		"S-14 a gate under min":                                    {evalOf(v1alpha1.RubricSpec{Aggregation: "min", Criteria: []v1alpha1.Criterion{criterionOf("a"), criterionOf("b", threshold(0.95))}}), []v1alpha1.Judgment{judged("a", 1), judged("b", 0.9)}, gated(0.9, "b", v1alpha1.GateThreshold)},
		"S-14 requiredGate threshold is the default":               {evalOf(v1alpha1.RubricSpec{RequiredGate: "threshold", Criteria: []v1alpha1.Criterion{criterionOf("a", weight(9)), criterionOf("b", required)}}), []v1alpha1.Judgment{judged("a", 1), judged("b", 0.6)}, gated(0.96, "b", v1alpha1.GateRequired)},
		"S-14 requiredGate zero gates required only":               {evalOf(v1alpha1.RubricSpec{RequiredGate: "zero", Criteria: []v1alpha1.Criterion{criterionOf("a", weight(9)), criterionOf("b")}}), []v1alpha1.Judgment{judged("a", 1), judged("b", 0)}, passed(0.9)},
		"S-14 requiredGate zero fails at 0 only":                   {evalOf(v1alpha1.RubricSpec{RequiredGate: "zero", Criteria: []v1alpha1.Criterion{criterionOf("a", weight(9)), criterionOf("b", required)}}), []v1alpha1.Judgment{judged("a", 1), judged("b", 0.01)}, passed(0.901)},
		"S-14 requiredGate zero fails at 0":                        {evalOf(v1alpha1.RubricSpec{RequiredGate: "zero", Criteria: []v1alpha1.Criterion{criterionOf("a", weight(9)), criterionOf("b", required)}}), []v1alpha1.Judgment{judged("a", 1), judged("b", 0)}, gated(0.9, "b", v1alpha1.GateRequiredZero)},
		"S-14 requiredGate zero leaves an own threshold":           {evalOf(v1alpha1.RubricSpec{RequiredGate: "zero", Criteria: []v1alpha1.Criterion{criterionOf("a", weight(9)), criterionOf("b", required, threshold(0.5))}}), []v1alpha1.Judgment{judged("a", 1), judged("b", 0.4)}, gated(0.94, "b", v1alpha1.GateRequired)},
		"S-14 requiredGate zero leaves guards":                     {evalOf(v1alpha1.RubricSpec{RequiredGate: "zero", Criteria: []v1alpha1.Criterion{criterionOf("a", weight(9)), criterionOf("b", guard)}}), []v1alpha1.Judgment{judged("a", 1), judged("b", 0.5)}, gated(0.95, "b", v1alpha1.GateGuard)},
		"S-14 an own threshold is a gate by itself":                {evalOf(criteriaOf(criterionOf("a", weight(9)), criterionOf("b", threshold(0.5)))), []v1alpha1.Judgment{judged("a", 1), judged("b", 0.4)}, gated(0.94, "b", v1alpha1.GateThreshold)},
		"S-14 a gate holds whatever the weight":                    {evalOf(criteriaOf(criterionOf("a"), criterionOf("b", required, weight(0)))), []v1alpha1.Judgment{judged("a", 1), judged("b", 0)}, gated(1, "b", v1alpha1.GateRequired)},
		"S-17 raw 5 scores 0.5":                                    {evalOf(criteriaOf(criterionOf("a", ranges("0", "5", "10")))), []v1alpha1.Judgment{judgedRaw("a", 5)}, failed(0.5)},
		"S-17 raw is divided by 10 exactly":                        {evalOf(criteriaOf(criterionOf("a", ranges("0"), threshold(0.7)))), []v1alpha1.Judgment{judgedRaw("a", 7)}, passed(0.7)},
		"S-18 verified evidence counts":                            {evalOf(v1alpha1.RubricSpec{RequireEvidence: true, Criteria: []v1alpha1.Criterion{criterionOf("a")}}), []v1alpha1.Judgment{quoted(judged("a", 0.9), "fine", true)}, passed(0.9)},
		"S-20 no evidence scores 0 and gates":                      {evalOf(v1alpha1.RubricSpec{RequireEvidence: true, Threshold: ptr(0.2), Criteria: []v1alpha1.Criterion{criterionOf("a"), criterionOf("b")}}), []v1alpha1.Judgment{quoted(judged("a", 0.9), "fine", true), judged("b", 0.9)}, gated(0.45, "b", v1alpha1.GateEvidence)},
		"S-20 unverified evidence is none":                         {evalOf(v1alpha1.RubricSpec{RequireEvidence: true, Criteria: []v1alpha1.Criterion{criterionOf("a")}}), []v1alpha1.Judgment{quoted(judged("a", 0.9), "made up", false)}, gated(0, "a", v1alpha1.GateEvidence)},
		"S-20 a clean guard needs no evidence":                     {evalOf(v1alpha1.RubricSpec{RequireEvidence: true, Criteria: []v1alpha1.Criterion{criterionOf("a", guard)}}), []v1alpha1.Judgment{judged("a", 0)}, passed(1)},
		"S-20 a guard without evidence stays present":              {evalOf(v1alpha1.RubricSpec{RequireEvidence: true, Criteria: []v1alpha1.Criterion{criterionOf("a", guard)}}), []v1alpha1.Judgment{quoted(judged("a", 1), "made up", false)}, gated(0, "a", v1alpha1.GateGuard)},
		"S-21 yes is 0.5 and more":                                 {evalOf(weather), []v1alpha1.Judgment{judged("", 0.5), judged("y", 0.5)}, passed(1)},
		"S-21 no is less":                                          {evalOf(weather), []v1alpha1.Judgment{judged("", 0.9), judged("y", 0.49)}, failed(0.4)},
		"S-22 only the path is judged":                             {evalOf(weather), []v1alpha1.Judgment{judged("", 0.1)}, failed(0)},
		"S-22 a question without a verdict is an error":            {evalOf(weather), []v1alpha1.Judgment{judged("", 1)}, errored},
		"S-34 an empty candidate scores 0":                         {evalOf(text, func(s *v1alpha1.EvalSpec) { s.Response = ptr(" \n") }), nil, failed(0)},
		"S-34 each member of a jury scores 0":                      {evalOf(text, jury(3, nil), func(s *v1alpha1.EvalSpec) { s.Response = ptr("?") }), nil, failed(0)},
		"S-34 a judgment of it does not count":                     {evalOf(text, func(s *v1alpha1.EvalSpec) { s.Response = ptr("?") }), []v1alpha1.Judgment{judged("", 1)}, failed(0)},
		"S-34 a letterless candidate is empty":                     {evalOf(text, func(s *v1alpha1.EvalSpec) { s.Response = ptr("...!") }), nil, failed(0)},
		"S-34 a guard is absent from it":                           {evalOf(criteriaOf(criterionOf("leak", guard)), func(s *v1alpha1.EvalSpec) { s.Response = ptr("") }), nil, passed(1)},
		"S-34 a tree answers no":                                   {evalOf(weather, func(s *v1alpha1.EvalSpec) { s.Response = ptr("") }), nil, failed(0)},
		"S-34 evidence cannot be asked of it":                      {evalOf(v1alpha1.RubricSpec{RequireEvidence: true, Criteria: []v1alpha1.Criterion{criterionOf("a")}}, func(s *v1alpha1.EvalSpec) { s.Response = ptr("") }), nil, failed(0)},
		"S-39 a judge that cannot be had is an error":              {evalOf(criteriaOf(criterionOf("a"), criterionOf("b"))), []v1alpha1.Judgment{judged("a", 1), failedBy(0, "b")}, errored},
		"S-39 a question that was not asked is an error":           {evalOf(text), nil, errored},
	} {
		t.Run(name, func(t *testing.T) {
			got := outcomeOf(scoreOf(tc.spec, tc.judgments...))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSeveralRubricsAllPassAndScoreTheirWeightedMean(t *testing.T) {
	spec := &v1alpha1.EvalSpec{Response: ptr("an answer"), Rubrics: []v1alpha1.NamedRubric{
		{Name: "tone", Weight: ptr(3.0), RubricSource: v1alpha1.RubricSource{RubricSpec: v1alpha1.RubricSpec{Text: "kind?"}}},
		{Name: "facts", RubricSource: v1alpha1.RubricSource{RubricSpec: v1alpha1.RubricSpec{Text: "true?"}}},
	}}
	of := func(tone, facts float64) v1alpha1.Findings {
		a, b := judged("", tone), judged("", facts)
		a.Rubric, b.Rubric = "tone", "facts"
		return findings(a, b)
	}
	for name, tc := range map[string]struct {
		tone, facts float64
		want        outcome
	}{
		"all pass":                  {1, 0.8, passed(0.95)},
		"the last fails, all fail":  {1, 0.6, failed(0.9)},
		"the first fails, all fail": {0.6, 1, failed(0.7)},
	} {
		t.Run(name, func(t *testing.T) {
			got := outcomeOf(Score(v1alpha1.Row{Name: "r", Eval: "r"}, spec, of(tc.tone, tc.facts)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestS38DeferredRows(t *testing.T) {
	spec := evalOf(v1alpha1.RubricSpec{Text: "t"})
	f := v1alpha1.Findings{Deferred: "no key: set OPENAI_API_KEY"}
	got := Score(v1alpha1.Row{Name: "r", Eval: "r"}, spec, f)
	if got.Outcome != v1alpha1.OutcomeDeferred || got.Note != f.Deferred || got.Score != nil {
		t.Errorf("S-38: got %s, note %q, score %v", got.Outcome, got.Note, got.Score)
	}
	spec.OnDeferred = v1alpha1.DeferredFail
	got = Score(v1alpha1.Row{Name: "r", Eval: "r"}, spec, f)
	if got.Outcome != v1alpha1.OutcomeFailed || !strings.Contains(got.Note, f.Deferred) {
		t.Errorf("S-38 onDeferred: Fail: got %s, note %q", got.Outcome, got.Note)
	}
}

func TestReportKeepsWhatTheJudgeSaid(t *testing.T) {
	spec := evalOf(v1alpha1.RubricSpec{
		Scale:    &v1alpha1.Scale{Likert: &v1alpha1.LikertScale{Min: 1, Max: 5}},
		Criteria: []v1alpha1.Criterion{criterionOf("a", ranges("0", "4", "8")), criterionOf("b", when(v1alpha1.When{Contains: "zzz"}), required)},
	})
	raw := judgedRaw("a", 7)
	raw.Usage = v1alpha1.Usage{Calls: 2, Retries: 1, InputTokens: 10, OutputTokens: 5, CostUSD: 0.0000015}
	got := scoreOf(spec, raw)
	want := v1alpha1.Report{
		SchemaVersion: "v1", Name: "row", Eval: "row",
		Outcome: v1alpha1.OutcomePassed, Score: ptr(0.7), Threshold: ptr(0.7), Display: "3.8/5",
		Candidate: &v1alpha1.Candidate{
			Source: "response", Bytes: 13, Excerpt: "a fine answer",
			Digest: "sha256:0c4ac9b5e4b5e1a0a8c9b1d1e9b1c7d1",
		},
		Rubrics: []v1alpha1.RubricReport{{
			Kind: "criteria", Score: ptr(0.7), Threshold: 0.7, Display: "3.8/5", Passed: true, Aggregation: "weighted_average",
			Criteria: []v1alpha1.CriterionReport{
				{Name: "a", Score: ptr(0.7), Passed: true, Weight: 1, Reason: "because", Raw: ptr(int32(7)), Band: ptr(int32(4))},
				{Name: "b", Passed: true, Weight: 1, Required: true, Skipped: true, Threshold: ptr(0.7)},
			},
		}},
		Judge: &v1alpha1.JudgeReport{Models: []string{"m"}, Provider: "openai"},
		Usage: raw.Usage,
	}
	if !strings.HasPrefix(got.Candidate.Digest, "sha256:") || len(got.Candidate.Digest) != 71 {
		t.Errorf("digest %q is not sha256:hex", got.Candidate.Digest)
	}
	want.Candidate.Digest = got.Candidate.Digest
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestS28MembersAreReportedOneByOne(t *testing.T) {
	spec := evalOf(criteriaOf(criterionOf("a")), panel(v1alpha1.PanelMean, "", "x", "y", "z"))
	got := scoreOf(spec, judgedBy(0, "a", 1), judgedBy(1, "a", 0.6), failedBy(2, "a"))
	var members []string
	for _, m := range got.Rubrics[0].Members {
		switch {
		case m.Error != "":
			members = append(members, m.Model+": "+m.Error)
		case m.Passed:
			members = append(members, m.Model+" passes")
		default:
			members = append(members, m.Model+" fails")
		}
	}
	want := []string{"x passes", "y fails", `z: criterion "a": the judge is down`}
	if diff := cmp.Diff(want, members); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if got.Judge.Panel == nil || got.Judge.Panel.Passes != 1 {
		t.Errorf("panel = %+v, want 1 pass", got.Judge.Panel)
	}
	if c := got.Rubrics[0].Criteria[0]; c.Score == nil || *c.Score != 0.8 {
		t.Errorf("the criterion's score = %v, want the mean of the votes, 0.8", c.Score)
	}
}

func TestS48TheExcerptIsRedactedBeforeItIsCut(t *testing.T) {
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	spec := evalOf(v1alpha1.RubricSpec{Text: "t"}, func(s *v1alpha1.EvalSpec) {
		s.Response = ptr(strings.Repeat("a ", maxExcerpt/2-5) + secret + strings.Repeat(" b", maxExcerpt))
	})
	got := scoreOf(spec, judged("", 1)).Candidate.Excerpt
	if strings.Contains(got, secret[:10]) {
		t.Errorf("S-48: the excerpt ends with %q", got[len(got)-40:])
	}
	if len(got) > maxExcerpt+len("…") || !strings.HasSuffix(got, "…") {
		t.Errorf("the excerpt has %d bytes and ends with %q", len(got), got[len(got)-10:])
	}
}

func TestS12TheNoteSaysWhatWasJudged(t *testing.T) {
	skipped := criterionOf("a", when(v1alpha1.When{Contains: "error"}))
	for name, tc := range map[string]struct {
		rubric    v1alpha1.RubricSpec
		judgments []v1alpha1.Judgment
		want      string
	}{
		"S-12 nothing":                    {criteriaOf(skipped), nil, "every criterion was skipped: nothing was judged"},
		"S-12 what does not count":        {criteriaOf(skipped, criterionOf("b", weight(0))), []v1alpha1.Judgment{judged("b", 0.1)}, "every criterion with a weight was skipped: the score says nothing"},
		"S-12 all of it: it says nothing": {criteriaOf(criterionOf("b")), []v1alpha1.Judgment{judged("b", 0.1)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := scoreOf(evalOf(tc.rubric), tc.judgments...).Note; got != tc.want {
				t.Errorf("note %q, want %q", got, tc.want)
			}
		})
	}
}

func TestS33TheReportIsOfTheResponse(t *testing.T) {
	const response = " all of it,\n to the last space "
	got := scoreOf(evalOf(v1alpha1.RubricSpec{Text: "t"}, func(s *v1alpha1.EvalSpec) { s.Response, s.Server = ptr(response), "weather" }), judged("", 1)).Candidate
	want := &v1alpha1.Candidate{
		Source: v1alpha1.CandidateResponse, Bytes: int64(len(response)), Excerpt: response,
		Digest: "sha256:c7eff85d708e9a5915f68edfcc909ee549703a960f4b875ff5c8a4f4821da2a2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("candidate (-want +got):\n%s", diff)
	}
}
