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
	// passedBy tells of each member whether it passed; one without a vote did not.
	passedBy []bool
	votes    []grading // the gradings of the members that have a vote
	err      string    // why there is no verdict
}

// decide counts the votes (S-25 to S-28).
func decide(judge *v1alpha1.JudgeSpec, threshold float64, members []grading) verdict {
	var v verdict
	var firstErr string
	for _, m := range members {
		v.passedBy = append(v.passedBy, m.err == "" && m.passed)
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
		v.passed = carries(judge, v.passes, len(v.votes))
	default:
		v.passed = v.passes == len(v.votes)
	}
	return v
}

// carries tells whether as many votes as count, of n, carry what is voted on: the passes of the members, or the gates that
// held. A jury holds their share, rounded to 2 decimals, against its consensus (S-25); a panel asks for more than
// half, and an exact half goes to its tie break (S-26, S-27).
func carries(judge *v1alpha1.JudgeSpec, count, n int) bool {
	if len(judge.Panel) == 0 {
		share := math.Round(100*float64(count)/float64(n)) / 100
		return reaches(share, valueOr(judge.Jury.Consensus, DefaultConsensus))
	}
	if count*2 == n {
		return judge.TieBreak == v1alpha1.TieBreakPass
	}
	return count*2 > n
}

// panelPasses decides for a panel. Under majority a member's pass already includes its gates; under mean and median
// the gates are voted on for themselves (S-26, S-27).
func panelPasses(j *v1alpha1.JudgeSpec, threshold float64, v verdict) bool {
	score := v.score
	switch j.Aggregate {
	case v1alpha1.PanelMajority:
		return carries(j, v.passes, len(v.votes))
	case v1alpha1.PanelMedian:
		score = median(v.votes)
	}
	return reaches(score, threshold) && v.gatesHold(j)
}

// gatesHold tells whether the members whose gates all held are enough of them.
func (v verdict) gatesHold(j *v1alpha1.JudgeSpec) bool {
	held := 0
	for _, m := range v.votes {
		if !m.gateFailed {
			held++
		}
	}
	return carries(j, held, len(v.votes))
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

// meanCriteria reports each criterion with the mean score of the votes and the words of the vote nearest to the mean. A
// gate is reported as failed when it failed for so many members that it fails the rubric. Where several gates fail it
// only together, each for other members, all of them are (S-14).
func (v verdict) meanCriteria(judge *v1alpha1.JudgeSpec) []v1alpha1.CriterionReport {
	out := slices.Clone(v.nearest().criteria)
	failed := make([]*v1alpha1.Gate, len(out))
	decided := false
	for i := range out {
		var sum float64
		var scored, gates int
		for _, m := range v.votes {
			c := m.criteria[i]
			if c.Score != nil {
				sum, scored = sum+*c.Score, scored+1
			}
			if c.Gate != nil {
				failed[i], gates = c.Gate, gates+1
			}
		}
		if scored > 0 {
			mean := round6(sum / float64(scored))
			out[i].Score = &mean
		}
		out[i].Raw, out[i].Band = nil, nil
		out[i].Gate, out[i].Passed = nil, true
		if gates > 0 && !carries(judge, len(v.votes)-gates, len(v.votes)) {
			out[i].Gate, out[i].Passed = failed[i], false
			decided = true
		}
	}
	if decided || v.gatesHold(judge) {
		return out
	}
	for i := range out {
		out[i].Gate, out[i].Passed = failed[i], failed[i] == nil
	}
	return out
}
