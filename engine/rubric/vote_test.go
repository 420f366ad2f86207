package rubric

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

func TestVotes(t *testing.T) {
	text := v1alpha1.RubricSpec{Text: "Is it good?"}
	gate := criteriaOf(criterionOf("a", weight(9)), criterionOf("b", required))
	by := func(scores ...float64) []v1alpha1.Judgment {
		var out []v1alpha1.Judgment
		for m, s := range scores {
			if s < 0 {
				out = append(out, failedBy(int32(m), ""))
				continue
			}
			out = append(out, judgedBy(int32(m), "", s))
		}
		return out
	}
	gates := func(required ...float64) []v1alpha1.Judgment {
		var out []v1alpha1.Judgment
		for m, s := range required {
			out = append(out, judgedBy(int32(m), "a", 1), judgedBy(int32(m), "b", s))
		}
		return out
	}
	mean, med, maj := v1alpha1.PanelMean, v1alpha1.PanelMedian, v1alpha1.PanelMajority
	for name, tc := range map[string]struct {
		spec      *v1alpha1.EvalSpec
		judgments []v1alpha1.Judgment
		want      outcome
	}{
		"S-25 2 of 3 meets 0.66":                          {evalOf(text, jury(3, ptr(0.66))), by(0.9, 0.9, 0.3), passed(0.7)},
		"S-25 2 of 3 meets 0.67":                          {evalOf(text, jury(3, ptr(0.67))), by(0.9, 0.9, 0.3), passed(0.7)},
		"S-25 2 of 3 misses 0.68":                         {evalOf(text, jury(3, ptr(0.68))), by(0.9, 0.9, 0.3), failed(0.7)},
		"S-25 1 of 3 meets 0.33":                          {evalOf(text, jury(3, ptr(0.33))), by(0.9, 0.1, 0.1), passed(0.366667)},
		"S-25 1 of 3 misses 0.34":                         {evalOf(text, jury(3, ptr(0.34))), by(0.9, 0.1, 0.1), failed(0.366667)},
		"S-25 consensus 1 asks for all":                   {evalOf(text, jury(3, ptr(1.0))), by(0.9, 0.9, 0.6), failed(0.8)},
		"S-25 a pass is a member's own":                   {evalOf(text, jury(3, nil)), by(1, 0.69, 0.69), failed(0.793333)},
		"S-25 consensus defaults to 0.5":                  {evalOf(text, jury(2, nil)), by(0.9, 0.1), passed(0.5)},
		"S-25 and 2 of 5 miss it":                         {evalOf(text, jury(5, nil)), by(0.9, 0.9, 0.1, 0.1, 0.1), failed(0.42)},
		"S-25 the score is the mean, also when it passes": {evalOf(text, jury(3, nil)), by(0.7, 0.7, 0), passed(0.466667)},
		"S-26 a panel's mean against the threshold":       {evalOf(text, panel(mean, "", "a", "b", "c")), by(1, 1, 0), failed(0.666667)},
		"S-26 a panel defaults to the mean":               {evalOf(text, panel("", "", "a", "b", "c")), by(1, 1, 0), failed(0.666667)},
		"S-26 the median decides, the mean is reported":   {evalOf(text, panel(med, "", "a", "b", "c")), by(0.9, 0.8, 0), passed(0.566667)},
		"S-26 the median of an even number":               {evalOf(text, panel(med, "", "a", "b")), by(0.9, 0.4), failed(0.65)},
		"S-26 the middle of four, in any order":           {evalOf(text, panel(med, "", "a", "b", "c", "d")), by(1, 0, 0.8, 0.6), passed(0.6)},
		"S-26 the median of votes, not of passes":         {evalOf(text, panel(med, "", "a", "b", "c")), by(1, 0.69, 0.69), failed(0.793333)},
		"S-26 a majority passes":                          {evalOf(text, panel(maj, "", "a", "b", "c")), by(0.7, 0.7, 0), passed(0.466667)},
		"S-26 a majority fails whatever the mean":         {evalOf(text, panel(maj, "", "a", "b", "c")), by(1, 0.69, 0.69), failed(0.793333)},
		"S-26 the tie break is for even splits":           {evalOf(text, panel(maj, "pass", "a", "b", "c")), by(1, 0, 0), failed(0.333333)},
		"S-26 and leaves the mean alone":                  {evalOf(text, panel(mean, "pass", "a", "b")), by(0.9, 0.4), failed(0.65)},
		"S-26 fail may be said":                           {evalOf(text, panel(maj, "fail", "a", "b")), by(0.9, 0.1), failed(0.5)},
		"S-26 an even split fails":                        {evalOf(text, panel(maj, "", "a", "b")), by(0.9, 0.1), failed(0.5)},
		"S-26 unless the tie break is pass":               {evalOf(text, panel(maj, "pass", "a", "b")), by(0.9, 0.1), passed(0.5)},
		"S-27 more than half of the gates failed":         {evalOf(gate, panel(mean, "", "a", "b", "c")), gates(0.6, 0.6, 1), gated(0.973333, "b", v1alpha1.GateRequired)},
		"S-27 fewer than half of the gates failed":        {evalOf(gate, panel(mean, "", "a", "b", "c")), gates(0.6, 1, 1), passed(0.986667)},
		"S-27 half of the gates failed":                   {evalOf(gate, panel(mean, "", "a", "b")), gates(0.6, 1), gated(0.98, "b", v1alpha1.GateRequired)},
		"S-27 half of the gates failed, tie break pass":   {evalOf(gate, panel(mean, "pass", "a", "b")), gates(0.6, 1), passed(0.98)},
		"S-27 in a jury a member's pass has its gates":    {evalOf(gate, jury(3, ptr(0.6))), gates(0.6, 0.6, 1), gated(0.973333, "b", v1alpha1.GateRequired)},
		"S-28 a member that errored does not vote":        {evalOf(text, jury(3, ptr(1.0))), by(0.9, -1, 0.9), passed(0.9)},
		"S-28 an errored member is not in the mean":       {evalOf(text, panel(mean, "", "a", "b", "c")), by(0.9, -1, 0.7), passed(0.8)},
		"S-28 nor in the median":                          {evalOf(text, panel(med, "", "a", "b", "c")), by(0.9, -1, 0.7), passed(0.8)},
		"S-28 nor in the majority":                        {evalOf(text, panel(maj, "", "a", "b", "c")), by(0.9, -1, 0.1), failed(0.5)},
		"S-28 whose rest may be an even split":            {evalOf(text, panel(maj, "pass", "a", "b", "c")), by(0.9, -1, 0.1), passed(0.5)},
		"S-28 two of four are enough":                     {evalOf(text, jury(4, nil)), by(0.9, -1, -1, 0.9), passed(0.9)},
		"S-28 two of five are an error":                   {evalOf(text, jury(5, nil)), by(0.9, -1, -1, 0.9, -1), errored},
		"S-28 exactly half of the members are enough":     {evalOf(text, jury(2, nil)), by(0.9, -1), passed(0.9)},
		"S-28 fewer than half are an error":               {evalOf(text, jury(3, nil)), by(0.9, -1, -1), errored},
		"S-28 a panel without a vote is an error":         {evalOf(text, panel(mean, "", "a", "b")), by(-1, -1), errored},
	} {
		t.Run(name, func(t *testing.T) {
			got := outcomeOf(scoreOf(tc.spec, tc.judgments...))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

// gatesOf are the gates that a report names, by criterion.
func gatesOf(names ...string) map[string]v1alpha1.GateRule {
	gates := map[string]v1alpha1.GateRule{}
	for _, n := range names {
		gates[n] = v1alpha1.GateRequired
	}
	return gates
}

func TestGatesOfSeveralMembers(t *testing.T) {
	// Each member scores a and b, both required, at the default threshold of 0.7; c carries the score.
	rubric := criteriaOf(criterionOf("a", required), criterionOf("b", required), criterionOf("c", weight(98)))
	by := func(members ...[2]float64) []v1alpha1.Judgment {
		var out []v1alpha1.Judgment
		for m, s := range members {
			out = append(out, judgedBy(int32(m), "a", s[0]), judgedBy(int32(m), "b", s[1]), judgedBy(int32(m), "c", 1))
		}
		return out
	}
	holds, failsA, failsB := [2]float64{1, 1}, [2]float64{0, 1}, [2]float64{1, 0}
	mean, med, maj := v1alpha1.PanelMean, v1alpha1.PanelMedian, v1alpha1.PanelMajority
	for name, tc := range map[string]struct {
		judge     func(*v1alpha1.EvalSpec)
		judgments []v1alpha1.Judgment
		want      v1alpha1.Outcome
		gates     map[string]v1alpha1.GateRule
	}{
		"S-27 one of three under the mean":                   {panel(mean, "", "x", "y", "z"), by(failsA, holds, holds), v1alpha1.OutcomePassed, nil},
		"S-27 two of three under the mean":                   {panel(mean, "", "x", "y", "z"), by(failsA, failsA, holds), v1alpha1.OutcomeFailed, gatesOf("a")},
		"S-27 two of three, each another gate":               {panel(mean, "", "x", "y", "z"), by(failsA, failsB, holds), v1alpha1.OutcomeFailed, gatesOf("a", "b")},
		"S-27 half under the mean":                           {panel(mean, "", "x", "y"), by(failsA, holds), v1alpha1.OutcomeFailed, gatesOf("a")},
		"S-27 half, tie break pass":                          {panel(mean, "pass", "x", "y"), by(failsA, holds), v1alpha1.OutcomePassed, nil},
		"S-27 all, tie break pass":                           {panel(mean, "pass", "x", "y"), by(failsA, failsA), v1alpha1.OutcomeFailed, gatesOf("a")},
		"S-27 one of three under the median":                 {panel(med, "", "x", "y", "z"), by(failsA, holds, holds), v1alpha1.OutcomePassed, nil},
		"S-27 two of three under the median":                 {panel(med, "", "x", "y", "z"), by(failsA, failsA, holds), v1alpha1.OutcomeFailed, gatesOf("a")},
		"S-27 one of three under the majority":               {panel(maj, "", "x", "y", "z"), by(failsB, holds, holds), v1alpha1.OutcomePassed, nil},
		"S-27 two of three under the majority":               {panel(maj, "", "x", "y", "z"), by(failsA, failsB, holds), v1alpha1.OutcomeFailed, gatesOf("a", "b")},
		"S-27 half under the majority":                       {panel(maj, "", "x", "y"), by(failsA, holds), v1alpha1.OutcomeFailed, gatesOf("a")},
		"S-27 in a jury that asks for all, one is enough":    {jury(3, ptr(1.0)), by(failsA, holds, holds), v1alpha1.OutcomeFailed, gatesOf("a")},
		"S-27 in a jury that asks for a third, two are not":  {jury(3, ptr(0.33)), by(failsA, failsA, holds), v1alpha1.OutcomePassed, nil},
		"S-27 in a jury that asks for half, half is not":     {jury(2, nil), by(failsA, holds), v1alpha1.OutcomePassed, nil},
		"S-28 a member that errored has no gate either":      {panel(mean, "", "x", "y", "z"), append(by(failsA, holds), failedBy(2, "a")), v1alpha1.OutcomeFailed, gatesOf("a")},
		"S-28 so that what remains may be an even split":     {panel(mean, "pass", "x", "y", "z"), append(by(failsA, holds), failedBy(2, "a")), v1alpha1.OutcomePassed, nil},
		"S-28 a member that errored in part does not vote":   {panel(maj, "", "x", "y", "z"), append(by(holds, holds), judgedBy(2, "a", 0), judgedBy(2, "b", 0), failedBy(2, "c")), v1alpha1.OutcomePassed, nil},
		"S-28 a jury is counted without those that errored":  {jury(4, ptr(0.67)), append(by(failsA, holds, holds), failedBy(3, "a")), v1alpha1.OutcomePassed, nil},
		"S-28 and its gates are counted in the same way too": {jury(4, ptr(0.68)), append(by(failsA, holds, holds), failedBy(3, "a")), v1alpha1.OutcomeFailed, gatesOf("a")},
	} {
		t.Run(name, func(t *testing.T) {
			got := outcomeOf(scoreOf(evalOf(rubric, tc.judge), tc.judgments...))
			if got.Outcome != tc.want {
				t.Errorf("outcome %s, want %s", got.Outcome, tc.want)
			}
			if diff := cmp.Diff(tc.gates, got.Gates); diff != "" {
				t.Errorf("S-14: gates (-want +got):\n%s", diff)
			}
		})
	}
}

func TestS12AJuryThatSkipsEverythingIsVacuous(t *testing.T) {
	skipped := criteriaOf(criterionOf("a", when(v1alpha1.When{Contains: "error"})))
	want := outcome{Outcome: v1alpha1.OutcomePassed, Score: 1, Vacuous: true}
	for name, judge := range map[string]func(*v1alpha1.EvalSpec){
		"S-12 jury": jury(3, ptr(1.0)), "S-12 panel": panel(v1alpha1.PanelMajority, "", "x", "y"),
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, outcomeOf(scoreOf(evalOf(skipped, judge)))); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestS25TheCostIsTheSum(t *testing.T) {
	paid := func(j v1alpha1.Judgment, cost float64) v1alpha1.Judgment {
		j.Usage = v1alpha1.Usage{Calls: 2, Retries: 1, InputTokens: 10, CachedInputTokens: 4, OutputTokens: 3, CostUSD: cost, UnpricedCalls: 1}
		return j
	}
	got := scoreOf(evalOf(v1alpha1.RubricSpec{Text: "t"}, jury(3, nil)),
		paid(judgedBy(0, "", 1), 0.001), paid(judgedBy(1, "", 1), 0.002), paid(failedBy(2, ""), 0.004)) // a call that failed was paid for too
	want := v1alpha1.Usage{Calls: 6, Retries: 3, InputTokens: 30, CachedInputTokens: 12, OutputTokens: 9, CostUSD: 0.007, UnpricedCalls: 3}
	if diff := cmp.Diff(want, got.Usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

func TestPassesOfSeveralRubrics(t *testing.T) {
	text := v1alpha1.RubricSource{RubricSpec: v1alpha1.RubricSpec{Text: "t"}}
	of := func(rubric string, scores ...float64) []v1alpha1.Judgment {
		var out []v1alpha1.Judgment
		for m, s := range scores {
			j := judgedBy(int32(m), "", s)
			if s < 0 {
				j = failedBy(int32(m), "")
			}
			j.Rubric = rubric
			out = append(out, j)
		}
		return out
	}
	for name, tc := range map[string]struct {
		tone, facts []v1alpha1.Judgment
		want        int32
	}{
		"S-25 a member passes when it passes every rubric": {of("tone", 1, 1, 0), of("facts", 1, 1, 0), 2},
		"S-25 members that pass one each pass none":        {of("tone", 1, 0, 0), of("facts", 0, 1, 0), 0},
		"S-28 a member that errored in one does not pass":  {of("tone", 1, 1, 1), of("facts", 1, 1, -1), 2},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &v1alpha1.EvalSpec{Response: ptr("an answer"), Rubrics: []v1alpha1.NamedRubric{
				{Name: "tone", RubricSource: text}, {Name: "facts", RubricSource: text},
			}}
			jury(3, nil)(spec)
			got := scoreOf(spec, append(tc.tone, tc.facts...)...)
			if got.Judge == nil || got.Judge.Jury == nil || got.Judge.Jury.Passes != tc.want {
				t.Errorf("judge %+v, want %d passes", got.Judge, tc.want)
			}
		})
	}
}
