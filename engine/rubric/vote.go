package rubric

import (
	"fmt"
	"math"
	"slices"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// verdict is what the members of a jury or panel decide together about one rubric; without either it is the verdict
// of the only member.
type verdict struct {
	score  float64 // the mean of the votes, not rounded
	passed bool
	passes int
	votes  []grading // the gradings of the members that have a vote
	err    string    // why there is no verdict
}

// decide counts the votes (S-25 to S-28).
func decide(judge *v1alpha1.JudgeSpec, threshold float64, members []grading) verdict {
	var v verdict
	var firstErr string
	for _, m := range members {
		if m.err == "" {
			v.votes = append(v.votes, m)
			v.score += m.score
			if m.passed {
				v.passes++
			}
		} else if firstErr == "" {
			firstErr = m.err
		}
	}
	if len(v.votes)*2 < len(members) || len(v.votes) == 0 {
		v.err = firstErr
		if len(members) > 1 {
			v.err = fmt.Sprintf("only %d of %d members could judge: %s", len(v.votes), len(members), firstErr)
		}
		return v
	}
	v.score /= float64(len(v.votes))
	switch {
	case judge != nil && len(judge.Panel) > 0:
		v.passed = panelPasses(judge, threshold, v)
	case judge != nil && judge.Jury != nil:
		v.passed = juryPasses(judge.Jury, v)
	default:
		v.passed = v.passes == len(v.votes)
	}
	return v
}

// juryPasses holds the share of passes, rounded to 2 decimals, against the consensus (S-25).
func juryPasses(j *v1alpha1.Jury, v verdict) bool {
	share := math.Round(100*float64(v.passes)/float64(len(v.votes))) / 100
	return reaches(share, valueOr(j.Consensus, DefaultConsensus))
}

// panelPasses decides for a panel. Under majority a member's pass already includes its gates; under mean and median
// the gates are voted on for themselves (S-26, S-27).
func panelPasses(j *v1alpha1.JudgeSpec, threshold float64, v verdict) bool {
	tie := j.TieBreak == v1alpha1.TieBreakPass
	n := len(v.votes)
	if j.Aggregate == v1alpha1.PanelMajority {
		return more(v.passes, n, tie)
	}
	score := v.score
	if j.Aggregate == v1alpha1.PanelMedian {
		score = median(v.votes)
	}
	held := 0
	for _, m := range v.votes {
		if !m.gateFailed {
			held++
		}
	}
	return reaches(score, threshold) && more(held, n, tie)
}

// more tells whether more than half of n are for it; an exact half goes to tie.
func more(count, n int, tie bool) bool {
	if count*2 == n {
		return tie
	}
	return count*2 > n
}

func median(votes []grading) float64 {
	scores := make([]float64, len(votes))
	for i, m := range votes {
		scores[i] = m.score
	}
	slices.Sort(scores)
	mid := len(scores) / 2
	if len(scores)%2 == 1 {
		return scores[mid]
	}
	return (scores[mid-1] + scores[mid]) / 2
}

// nearest is the vote whose score is nearest to the mean, the first of equals: its words stand for the members'.
func (v verdict) nearest() *grading {
	best := &v.votes[0]
	for i := range v.votes {
		if math.Abs(v.votes[i].score-v.score) < math.Abs(best.score-v.score)-epsilon {
			best = &v.votes[i]
		}
	}
	return best
}

// meanCriteria reports each criterion with the mean score of the votes. A gate is reported when more than half of the
// votes have it failed; the words are those of the vote nearest to the mean.
func (v verdict) meanCriteria() []v1alpha1.CriterionReport {
	if len(v.votes) == 0 {
		return nil
	}
	out := slices.Clone(v.nearest().criteria)
	for i := range out {
		var sum float64
		var scored, gates int
		var gate *v1alpha1.Gate
		for _, m := range v.votes {
			c := m.criteria[i]
			if c.Score != nil {
				sum, scored = sum+*c.Score, scored+1
			}
			if c.Gate != nil {
				gate, gates = c.Gate, gates+1
			}
		}
		if scored > 0 {
			mean := round6(sum / float64(scored))
			out[i].Score = &mean
		}
		out[i].Raw, out[i].Band = nil, nil
		out[i].Gate, out[i].Passed = nil, true
		if gates*2 > len(v.votes) {
			out[i].Gate, out[i].Passed = gate, false
		}
	}
	return out
}
