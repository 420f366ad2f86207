package rubric

import (
	"fmt"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// gradeCriteria judges every criterion that applies, makes one score of them and holds the gates (S-7 to S-14).
func gradeCriteria(r *v1alpha1.RubricSpec, s subject) grading {
	g := grading{vacuous: true, score: 1}
	var total, weights, lowest float64 = 0, 0, 1
	for i := range r.Criteria {
		c := &r.Criteria[i]
		report, score := gradeCriterion(r, c, s)
		g.criteria = append(g.criteria, report)
		switch {
		case report.Skipped:
			continue
		case report.Error != "":
			if g.err == "" {
				g.err = fmt.Sprintf("criterion %q: %s", c.Name, report.Error)
			}
			continue
		}
		g.gateFailed = g.gateFailed || report.Gate != nil
		if weight := valueOr(c.Weight, 1); weight > 0 {
			g.vacuous = false
			total, weights, lowest = total+score*weight, weights+weight, min(lowest, score)
		}
	}
	if g.err != "" {
		g.vacuous, g.score = false, 0
		return g
	}
	if !g.vacuous {
		g.score = total / weights
		if Aggregation(r) == v1alpha1.AggregationMin {
			g.score = lowest
		}
	}
	g.passed = reaches(g.score, Threshold(r)) && !g.gateFailed
	return g
}

// gradeCriterion scores one criterion. The score beside the report is the one before rounding.
func gradeCriterion(r *v1alpha1.RubricSpec, c *v1alpha1.Criterion, s subject) (v1alpha1.CriterionReport, float64) {
	report := v1alpha1.CriterionReport{Name: c.Name, Weight: valueOr(c.Weight, 1), Required: c.Required, Guard: c.Guard}
	if limit, gated := gateThreshold(r, c); gated {
		report.Threshold = &limit
	}
	applies, err := Applies(c.When, s.candidate)
	if err != nil {
		report.Error = err.Error()
		return report, 0
	}
	if !applies {
		report.Skipped, report.Passed = true, true
		return report, 0
	}
	j := s.answer(c.Name)
	if j.Score == nil {
		report.Error = j.Error
		return report, 0
	}
	report.Reason, report.Evidence, report.EvidenceVerified = j.Reason, j.Evidence, j.EvidenceVerified
	if j.Raw != nil {
		raw, band := *j.Raw, scoreBand(c.ScoreRanges, *j.Raw)
		report.Raw, report.Band = &raw, &band
	}
	score := *j.Score
	if c.Guard {
		score = 1 - score // S-13
	}
	gate := failedGate(r, c, score)
	if r.RequireEvidence && !s.empty && !verified(j) { // S-20
		switch {
		case !c.Guard:
			score, gate = 0, v1alpha1.GateEvidence
		case *j.Score > 0: // found present, with a quote that does not occur or with none
			unverified := false
			report.EvidenceVerified = &unverified
		}
	}
	if gate != "" {
		report.Gate = &v1alpha1.Gate{Failed: true, Rule: gate}
	}
	report.Passed = gate == ""
	stored := round6(score)
	report.Score = &stored
	return report, score
}

func verified(j v1alpha1.Judgment) bool { return j.EvidenceVerified != nil && *j.EvidenceVerified }

// gateThreshold is the score that a criterion must reach itself; false when it is no gate (S-14).
func gateThreshold(r *v1alpha1.RubricSpec, c *v1alpha1.Criterion) (float64, bool) {
	switch {
	case c.Threshold != nil:
		return *c.Threshold, true
	case c.Required && !c.Guard && r.RequiredGate == v1alpha1.RequiredGateZero:
		return 0, true
	case c.Required, c.Guard:
		return Threshold(r), true
	}
	return 0, false
}

// failedGate names the rule by which a criterion fails the eval at a score; empty when it does not (S-14).
func failedGate(r *v1alpha1.RubricSpec, c *v1alpha1.Criterion, score float64) v1alpha1.GateRule {
	limit, gated := gateThreshold(r, c)
	switch {
	case !gated:
		return ""
	case c.Required && !c.Guard && c.Threshold == nil && r.RequiredGate == v1alpha1.RequiredGateZero:
		if score <= epsilon {
			return v1alpha1.GateRequiredZero
		}
		return ""
	case reaches(score, limit):
		return ""
	case c.Guard:
		return v1alpha1.GateGuard
	case c.Required:
		return v1alpha1.GateRequired
	}
	return v1alpha1.GateThreshold
}

// scoreBand is the greatest key of the score ranges that is not above raw (S-17).
func scoreBand(ranges map[string]v1alpha1.ScoreRange, raw int32) int32 {
	for band := raw; band > 0; band-- {
		if _, ok := ranges[fmt.Sprint(band)]; ok {
			return band
		}
	}
	return 0
}
