package rubric

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// trial is a random rubric with criteria, and judgments of all of them.
type trial struct {
	rubric    v1alpha1.RubricSpec
	judgments []v1alpha1.Judgment
}

func newTrial(r *rand.Rand) trial {
	tr := trial{rubric: v1alpha1.RubricSpec{Threshold: ptr(r.Float64())}}
	if r.IntN(3) == 0 {
		tr.rubric.Aggregation = v1alpha1.AggregationMin
	}
	if r.IntN(4) == 0 {
		tr.rubric.RequiredGate = v1alpha1.RequiredGateZero
	}
	for i := range 1 + r.IntN(6) {
		c := criterionOf(fmt.Sprint("c", i), weight(0.1+3*r.Float64()))
		if i > 0 && r.IntN(6) == 0 {
			*c.Weight = 0
		}
		c.Required, c.Guard = r.IntN(4) == 0, r.IntN(4) == 0
		if r.IntN(4) == 0 {
			c.Threshold = ptr(r.Float64())
		}
		tr.rubric.Criteria = append(tr.rubric.Criteria, c)
		tr.judgments = append(tr.judgments, judged(c.Name, math.Round(r.Float64()*100)/100))
	}
	return tr
}

// by are the judgments of a trial, given by each of n members.
func (tr trial) by(n int) []v1alpha1.Judgment {
	var votes []v1alpha1.Judgment
	for m := range n {
		for _, j := range tr.judgments {
			j.Member = int32(m)
			votes = append(votes, j)
		}
	}
	return votes
}

// forTrials runs a property on many random rubrics, the same ones each time.
func forTrials(t *testing.T, property func(t *testing.T, r *rand.Rand, tr trial)) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		tr := newTrial(r)
		property(t, r, tr)
		if t.Failed() {
			t.Logf("rubric %+v, judgments %v", tr.rubric, brief(tr.judgments))
			return
		}
	}
}

// passes counts, over all trials, how many passed: a property of trials that all fail would say nothing.
type passes struct{ passed, failed int }

func (p *passes) count(o v1alpha1.Outcome) {
	if o == v1alpha1.OutcomePassed {
		p.passed++
	} else {
		p.failed++
	}
}

func (p *passes) mustHaveBoth(t *testing.T) {
	t.Helper()
	if !t.Failed() && (p.passed < 100 || p.failed < 100) {
		t.Errorf("%d trials passed and %d failed: too few of one kind to tell anything", p.passed, p.failed)
	}
}

func TestS1EveryScoreIsFrom0To1(t *testing.T) {
	forTrials(t, func(t *testing.T, r *rand.Rand, tr trial) {
		spec, votes := evalOf(tr.rubric), 1
		if r.IntN(2) == 0 {
			votes = 2 + r.IntN(5)
			jury(int32(votes), nil)(spec)
		}
		judgments := tr.by(votes)
		for i := range judgments {
			judgments[i].Score = ptr([]float64{0, 1, r.Float64(), 1 - 1e-17, 5e-324}[r.IntN(5)])
		}
		got := scoreOf(spec, judgments...)
		scores := []*float64{got.Score}
		add := func(criteria []v1alpha1.CriterionReport) {
			for _, c := range criteria {
				scores = append(scores, c.Score)
			}
		}
		for _, rubric := range got.Rubrics {
			scores = append(scores, rubric.Score)
			add(rubric.Criteria)
			for _, m := range rubric.Members {
				scores = append(scores, m.Score)
				add(m.Criteria)
			}
		}
		for _, s := range scores {
			switch {
			case s == nil:
				t.Error("S-1: a score is missing")
			case !(*s >= 0 && *s <= 1):
				t.Errorf("S-1: a score is %v", *s)
			case round6(*s) != *s:
				t.Errorf("S-4: a stored score is %v, with more than 6 decimals", *s)
			}
		}
	})
}

func TestScaledWeightsLeaveTheScore(t *testing.T) {
	var seen passes
	forTrials(t, func(t *testing.T, r *rand.Rand, tr trial) {
		before := outcomeOf(scoreOf(evalOf(tr.rubric), tr.judgments...))
		seen.count(before.Outcome)
		factor := 0.5 + 9*r.Float64()
		scaled := *tr.rubric.DeepCopy()
		for i := range scaled.Criteria {
			*scaled.Criteria[i].Weight *= factor
		}
		after := outcomeOf(scoreOf(evalOf(scaled), tr.judgments...))
		if math.Abs(before.Score-after.Score) > 1.1e-6 {
			t.Errorf("score %v became %v when all weights were multiplied by %v", before.Score, after.Score, factor)
		}
		before.Score, after.Score = 0, 0
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("the outcome changed when all weights were multiplied by %v:\n%s", factor, diff)
		}
	})
	seen.mustHaveBoth(t)
}

func TestASkippedCriterionChangesNothing(t *testing.T) {
	var seen passes
	forTrials(t, func(t *testing.T, r *rand.Rand, tr trial) {
		before := outcomeOf(scoreOf(evalOf(tr.rubric), tr.judgments...))
		seen.count(before.Outcome)
		skipped := criterionOf("skipped", weight(50*r.Float64()), when(v1alpha1.When{Contains: "not in there"}))
		skipped.Required, skipped.Guard = r.IntN(2) == 0, r.IntN(2) == 0
		if r.IntN(2) == 0 {
			skipped.Threshold = ptr(r.Float64())
		}
		more := *tr.rubric.DeepCopy()
		more.Criteria = slices.Insert(more.Criteria, r.IntN(len(more.Criteria)+1), skipped)
		judgments := tr.judgments
		if r.IntN(2) == 0 { // also when somebody judged it all the same
			judgments = append(slices.Clone(judgments), judged("skipped", r.Float64()))
		}
		if diff := cmp.Diff(before, outcomeOf(scoreOf(evalOf(more), judgments...))); diff != "" {
			t.Errorf("a skipped criterion changed the outcome:\n%s", diff)
		}
	})
	seen.mustHaveBoth(t)
}

func TestAGateNeverTurnsAFailIntoAPass(t *testing.T) {
	var seen passes
	forTrials(t, func(t *testing.T, r *rand.Rand, tr trial) {
		free := *tr.rubric.DeepCopy()
		c := &free.Criteria[r.IntN(len(free.Criteria))]
		c.Required, c.Guard, c.Threshold = false, false, nil
		before := outcomeOf(scoreOf(evalOf(free), tr.judgments...))
		gated := *free.DeepCopy()
		for i := range gated.Criteria {
			if gated.Criteria[i].Name != c.Name {
				continue
			}
			if r.IntN(2) == 0 {
				gated.Criteria[i].Required = true
			} else {
				gated.Criteria[i].Threshold = ptr(r.Float64())
			}
		}
		after := outcomeOf(scoreOf(evalOf(gated), tr.judgments...))
		if before.Outcome == v1alpha1.OutcomePassed { // the gate alone decides then
			seen.count(after.Outcome)
		}
		if before.Outcome == v1alpha1.OutcomeFailed && after.Outcome == v1alpha1.OutcomePassed {
			t.Errorf("a gate on %s turned a fail into a pass", c.Name)
		}
		if _, failed := after.Gates[c.Name]; before.Outcome == v1alpha1.OutcomePassed && failed != (after.Outcome == v1alpha1.OutcomeFailed) {
			t.Errorf("the gate on %s failed: %v, and the outcome is %s", c.Name, failed, after.Outcome)
		}
		if before.Score != after.Score {
			t.Errorf("a gate on %s moved the score from %v to %v", c.Name, before.Score, after.Score)
		}
	})
	seen.mustHaveBoth(t)
}

func TestIdenticalVotesEqualOneVote(t *testing.T) {
	var seen passes
	forTrials(t, func(t *testing.T, r *rand.Rand, tr trial) {
		one := outcomeOf(scoreOf(evalOf(tr.rubric), tr.judgments...))
		seen.count(one.Outcome)
		size := 2 + r.IntN(4)
		models := []v1alpha1.ModelName{"a", "b", "c", "d", "e"}[:size]
		tie := []v1alpha1.TieBreak{"", v1alpha1.TieBreakFail, v1alpha1.TieBreakPass}[r.IntN(3)]
		for name, judge := range map[string]func(*v1alpha1.EvalSpec){
			"a jury":              jury(int32(size), ptr(1-r.Float64())),
			"a panel, mean":       panel(v1alpha1.PanelMean, tie, models...),
			"a panel, median":     panel(v1alpha1.PanelMedian, tie, models...),
			"a panel, a majority": panel(v1alpha1.PanelMajority, tie, models...),
		} {
			many := outcomeOf(scoreOf(evalOf(tr.rubric, judge), tr.by(size)...))
			if math.Abs(one.Score-many.Score) > 1.1e-6 {
				t.Errorf("%s: one vote scores %v, %d identical votes score %v", name, one.Score, size, many.Score)
			}
			many.Score = one.Score
			if diff := cmp.Diff(one, many); diff != "" {
				t.Errorf("%s: %d identical votes differ from one:\n%s", name, size, diff)
			}
		}
	})
	seen.mustHaveBoth(t)
}

func TestTheOrderOfJudgmentsDoesNotMatter(t *testing.T) {
	forTrials(t, func(t *testing.T, r *rand.Rand, tr trial) {
		spec, judgments := evalOf(tr.rubric), tr.judgments
		if r.IntN(2) == 0 {
			jury(3, nil)(spec)
			judgments = tr.by(3)
			for i := range judgments {
				judgments[i].Score, judgments[i].Reason = ptr(r.Float64()), fmt.Sprint("reason ", i)
			}
		}
		before := scoreOf(spec, judgments...)
		r.Shuffle(len(judgments), func(i, j int) { judgments[i], judgments[j] = judgments[j], judgments[i] })
		if diff := cmp.Diff(before, scoreOf(spec, judgments...)); diff != "" {
			t.Errorf("another order made another report:\n%s", diff)
		}
	})
}

// A better answer passes what a worse one passed: of a guard, one in which less is found.
func TestABetterAnswerNeverFailsWhatAWorseOnePassed(t *testing.T) {
	var seen passes
	forTrials(t, func(t *testing.T, r *rand.Rand, tr trial) {
		before := outcomeOf(scoreOf(evalOf(tr.rubric), tr.judgments...))
		seen.count(before.Outcome)
		better := slices.Clone(tr.judgments)
		for i := range better {
			s := *better[i].Score
			if tr.rubric.Criteria[i].Guard {
				better[i].Score = ptr(s * r.Float64())
			} else {
				better[i].Score = ptr(s + (1-s)*r.Float64())
			}
		}
		after := outcomeOf(scoreOf(evalOf(tr.rubric), better...))
		if before.Outcome == v1alpha1.OutcomePassed && after.Outcome != v1alpha1.OutcomePassed || after.Score < before.Score {
			t.Errorf("%s with %v became %s with %v by better answers %v", before.Outcome, before.Score, after.Outcome, after.Score, brief(better))
		}
	})
	seen.mustHaveBoth(t)
}

func BenchmarkScore(b *testing.B) {
	spec := evalOf(criteriaOf(criterionOf("a"), criterionOf("b", required), criterionOf("c", guard), criterionOf("d", weight(3)), criterionOf("e")))
	f := findings(judged("a", 0.9), judged("b", 0.8), judged("c", 0), judged("d", 0.7), judged("e", 1))
	row := v1alpha1.Row{Name: "row", Eval: "row"}
	b.ReportAllocs()
	for b.Loop() {
		Score(row, spec, f)
	}
}
