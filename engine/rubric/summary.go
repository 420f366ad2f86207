package rubric

import (
	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// Summarize puts the reports of a run's rows into numbers (S-37). The mean score is that of the rows that passed or
// failed and are not vacuous; rows that different judge models graded have no mean together (S-32).
// A nil report is a row that has not ended.
func Summarize(reports []*v1alpha1.Report) v1alpha1.Summary {
	s := v1alpha1.Summary{Rows: int32(len(reports))}
	var sum float64
	var scored int
	judges := make(map[string]bool)
	for _, r := range reports {
		if r == nil {
			continue
		}
		switch r.Outcome {
		case v1alpha1.OutcomePassed:
			s.Passed++
		case v1alpha1.OutcomeFailed:
			s.Failed++
		case v1alpha1.OutcomeDeferred:
			s.Deferred++
		case v1alpha1.OutcomeError:
			s.Errored++
		}
		if judged := r.Outcome == v1alpha1.OutcomePassed || r.Outcome == v1alpha1.OutcomeFailed; judged && r.Score != nil && !r.Vacuous {
			sum, scored = sum+*r.Score, scored+1
			if names := judgesOf(r); names != "" {
				judges[names] = true
			}
		}
		s.Calls += r.Usage.Calls
		s.CostUSD = round9(s.CostUSD + r.Usage.CostUSD)
		s.UnpricedCalls += r.Usage.UnpricedCalls
	}
	if scored > 0 && len(judges) <= 1 {
		mean := round6(sum / float64(scored))
		s.Score = &mean
	}
	return s
}

// judgesOf names the judge models of a row; empty for a row that no judge was asked about.
func judgesOf(r *v1alpha1.Report) string {
	if r.Judge == nil {
		return ""
	}
	var name string
	for _, m := range r.Judge.Models {
		name += m + "\n"
	}
	return name
}

// RunOutcome is how a run whose rows all ended did end (S-41): an error fails it closed, then a failure; it is deferred
// when nothing at all was judged.
func RunOutcome(s v1alpha1.Summary) v1alpha1.Outcome {
	switch {
	case s.Errored > 0:
		return v1alpha1.OutcomeError
	case s.Failed > 0:
		return v1alpha1.OutcomeFailed
	case s.Passed == 0 && s.Deferred > 0:
		return v1alpha1.OutcomeDeferred
	}
	return v1alpha1.OutcomePassed
}
