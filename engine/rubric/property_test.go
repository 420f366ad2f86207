package rubric

import (
	"fmt"
	"math"
	"math/rand/v2"
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
	for i := range 1 + r.IntN(6) {
		c := criterionOf(fmt.Sprint("c", i), weight(0.1+3*r.Float64()))
		c.Required, c.Guard = r.IntN(4) == 0, r.IntN(4) == 0
		if r.IntN(4) == 0 {
			c.Threshold = ptr(r.Float64())
		}
		tr.rubric.Criteria = append(tr.rubric.Criteria, c)
		tr.judgments = append(tr.judgments, judged(c.Name, math.Round(r.Float64()*100)/100))
	}
	return tr
}

// forTrials runs a property on many random rubrics, the same ones each time.
func forTrials(t *testing.T, property func(t *testing.T, r *rand.Rand, tr trial)) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		property(t, r, newTrial(r))
		if t.Failed() {
			return
		}
	}
}

func TestScaledWeightsLeaveTheScore(t *testing.T) {
	forTrials(t, func(t *testing.T, r *rand.Rand, tr trial) {
		before := outcomeOf(scoreOf(evalOf(tr.rubric), tr.judgments...))
		factor := 0.5 + 9*r.Float64()
		scaled := *tr.rubric.DeepCopy()
		for i := range scaled.Criteria {
			*scaled.Criteria[i].Weight *= factor
		}
		after := outcomeOf(scoreOf(evalOf(scaled), tr.judgments...))
		if math.Abs(before.Score-after.Score) > 1.1e-6 {
			t.Errorf("score %v became %v when all weights were multiplied by %v", before.Score, after.Score, factor)
		}
	})
}

func TestASkippedCriterionChangesNothing(t *testing.T) {
	forTrials(t, func(t *testing.T, _ *rand.Rand, tr trial) {
		before := outcomeOf(scoreOf(evalOf(tr.rubric), tr.judgments...))
		more := *tr.rubric.DeepCopy()
		more.Criteria = append(more.Criteria, criterionOf("skipped", weight(50), required, when(v1alpha1.When{Contains: "not in there"})))
		if diff := cmp.Diff(before, outcomeOf(scoreOf(evalOf(more), tr.judgments...))); diff != "" {
			t.Errorf("a skipped criterion changed the outcome:\n%s", diff)
		}
	})
}

func TestAGateNeverTurnsAFailIntoAPass(t *testing.T) {
	forTrials(t, func(t *testing.T, r *rand.Rand, tr trial) {
		before := scoreOf(evalOf(tr.rubric), tr.judgments...)
		gated := *tr.rubric.DeepCopy()
		c := &gated.Criteria[r.IntN(len(gated.Criteria))]
		c.Required = true
		after := scoreOf(evalOf(gated), tr.judgments...)
		if before.Outcome == v1alpha1.OutcomeFailed && after.Outcome == v1alpha1.OutcomePassed {
			t.Errorf("making %s required turned a fail into a pass", c.Name)
		}
	})
}

func TestAJuryOfIdenticalVotesEqualsOneVote(t *testing.T) {
	forTrials(t, func(t *testing.T, r *rand.Rand, tr trial) {
		one := outcomeOf(scoreOf(evalOf(tr.rubric), tr.judgments...))
		size := int32(2 + r.IntN(4))
		var votes []v1alpha1.Judgment
		for m := range size {
			for _, j := range tr.judgments {
				j.Member = m
				votes = append(votes, j)
			}
		}
		many := outcomeOf(scoreOf(evalOf(tr.rubric, jury(size, ptr(1.0))), votes...))
		if one.Outcome != many.Outcome || math.Abs(one.Score-many.Score) > 1.1e-6 {
			t.Errorf("one vote: %v %v, %d identical votes: %v %v", one.Outcome, one.Score, size, many.Outcome, many.Score)
		}
	})
}

func TestTheOrderOfJudgmentsDoesNotMatter(t *testing.T) {
	forTrials(t, func(t *testing.T, r *rand.Rand, tr trial) {
		before := scoreOf(evalOf(tr.rubric), tr.judgments...)
		r.Shuffle(len(tr.judgments), func(i, j int) { tr.judgments[i], tr.judgments[j] = tr.judgments[j], tr.judgments[i] })
		if diff := cmp.Diff(before, scoreOf(evalOf(tr.rubric), tr.judgments...)); diff != "" {
			t.Errorf("another order made another report:\n%s", diff)
		}
	})
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
