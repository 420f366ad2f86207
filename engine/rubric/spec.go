// Package rubric grades one candidate with the rubrics of one eval.
//
// Grading has two halves. Grader asks judges and collects findings: facts, no verdicts. Score turns a spec and
// findings into the canonical report; it is pure, so that it gives the same answer wherever it runs.
package rubric

import (
	"math"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// DefaultThreshold is the threshold of a rubric that sets none (S-1).
const DefaultThreshold = 0.7

// DefaultConsensus is the share of a jury that must pass when the jury does not say (S-25).
const DefaultConsensus = 0.5

// epsilon forgives the rounding of binary fractions when a score is held against a threshold (S-1).
const epsilon = 1e-9

// reaches is the pass test of S-1.
func reaches(score, threshold float64) bool { return score >= threshold-epsilon }

// round6 rounds a number to the 6 decimals in which scores are stored (S-4).
func round6(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// round9 rounds an amount of US dollars to a billionth: single calls cost millionths.
func round9(x float64) float64 { return math.Round(x*1e9) / 1e9 }

// Kind says which of its three forms a rubric has; empty when it has none.
func Kind(r *v1alpha1.RubricSpec) v1alpha1.RubricKind {
	switch {
	case r.Tree != nil:
		return v1alpha1.RubricKindTree
	case len(r.Criteria) > 0, r.Preset != "":
		return v1alpha1.RubricKindCriteria
	case r.Text != "":
		return v1alpha1.RubricKindText
	}
	return ""
}

// Threshold is the effective threshold of a rubric, 0..1: strict makes it 1 (S-1, S-3).
func Threshold(r *v1alpha1.RubricSpec) float64 {
	switch {
	case r.Strict:
		return 1
	case r.Threshold != nil:
		return *r.Threshold
	}
	return DefaultThreshold
}

// Aggregation is the effective aggregation of a rubric with criteria; `worst` is told as `min` (S-8, S-9).
func Aggregation(r *v1alpha1.RubricSpec) v1alpha1.Aggregation {
	switch r.Aggregation {
	case v1alpha1.AggregationMin, v1alpha1.AggregationWorst:
		return v1alpha1.AggregationMin
	}
	return v1alpha1.AggregationWeightedAverage
}

// Rubrics lists the rubrics of an eval whose references were resolved. The only rubric of an eval has no name.
func Rubrics(spec *v1alpha1.EvalSpec) []v1alpha1.NamedRubric {
	if spec.Rubric != nil {
		return []v1alpha1.NamedRubric{{RubricSource: *spec.Rubric}}
	}
	return spec.Rubrics
}

// Members is how often each rubric of an eval is graded: the size of its jury, the length of its panel, else 1 (S-30).
func Members(j *v1alpha1.JudgeSpec) int {
	switch {
	case j == nil:
		return 1
	case len(j.Panel) > 0:
		return len(j.Panel)
	case j.Jury != nil:
		return int(j.Jury.Size)
	}
	return 1
}

// Calls is how many judge calls one grading of a rubric makes: 1 for a text; the number of criteria, at most,
// where `when` is used; the depth of a tree, at most (S-30).
func Calls(r *v1alpha1.RubricSpec) int {
	switch Kind(r) {
	case v1alpha1.RubricKindTree:
		return depth(r.Tree)
	case v1alpha1.RubricKindCriteria:
		return len(r.Criteria)
	case v1alpha1.RubricKindText:
		return 1
	}
	return 0
}

func depth(n *v1alpha1.TreeNode) int {
	if n == nil || n.Ask == "" {
		return 0
	}
	return 1 + max(depth(n.IfYes), depth(n.IfNo))
}

// BestScore is the highest score that any candidate could get from a rubric, 0..1: 1, but for a tree whose leaves
// are all lower (S-10).
func BestScore(r *v1alpha1.RubricSpec) float64 {
	if r.Tree == nil {
		return 1
	}
	return bestLeaf(r.Tree)
}

func bestLeaf(n *v1alpha1.TreeNode) float64 {
	switch {
	case n == nil:
		return 0
	case n.Ask == "" && n.Score != nil:
		return *n.Score
	}
	return max(bestLeaf(n.IfYes), bestLeaf(n.IfNo))
}

func valueOr(p *float64, otherwise float64) float64 {
	if p == nil {
		return otherwise
	}
	return *p
}
