package rubric

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

func TestWhatIsReportedOfATree(t *testing.T) {
	leaf := func(score float64, reason string) *v1alpha1.TreeNode {
		return &v1alpha1.TreeNode{Score: &score, Reason: reason}
	}
	weather := v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{
		Ask:   "tool called?",
		IfYes: &v1alpha1.TreeNode{Ask: "temperature stated?", IfYes: leaf(1, "all there"), IfNo: leaf(0.4, "half an answer")},
		IfNo:  leaf(0.123456789, ""),
	}}
	step := func(ask string, answer v1alpha1.TreeAnswer, score float64) v1alpha1.TreeStep {
		return v1alpha1.TreeStep{Ask: ask, Answer: answer, Score: score, Reason: "because"}
	}
	for name, tc := range map[string]struct {
		candidate string
		judgments []v1alpha1.Judgment
		want      outcome
		path      []v1alpha1.TreeStep
		leaf      *v1alpha1.TreeLeaf
	}{
		"S-21 yes is a judge's score of 0.5": {
			judgments: []v1alpha1.Judgment{judged("", 0.5), judged("y", 1)},
			want:      passed(1),
			path:      []v1alpha1.TreeStep{step("tool called?", v1alpha1.TreeYes, 0.5), step("temperature stated?", v1alpha1.TreeYes, 1)},
			leaf:      &v1alpha1.TreeLeaf{Score: 1, Reason: "all there"},
		},
		"S-21 what is under 0.5 before rounding is no": {
			judgments: []v1alpha1.Judgment{judged("", 1), judged("y", 0.4999999)},
			want:      failed(0.4),
			path:      []v1alpha1.TreeStep{step("tool called?", v1alpha1.TreeYes, 1), step("temperature stated?", v1alpha1.TreeNo, 0.5)},
			leaf:      &v1alpha1.TreeLeaf{Score: 0.4, Reason: "half an answer"},
		},
		"S-22 the score is the leaf's, not the judge's": {
			judgments: []v1alpha1.Judgment{judged("", 0.3), judged("y", 1)},
			want:      failed(0.123457),
			path:      []v1alpha1.TreeStep{step("tool called?", v1alpha1.TreeNo, 0.3)},
			leaf:      &v1alpha1.TreeLeaf{Score: 0.123457},
		},
		"S-22 a walk that broke off reports how far it came": {
			judgments: []v1alpha1.Judgment{judged("", 1), failedBy(0, "y")},
			want:      errored,
			path:      []v1alpha1.TreeStep{step("tool called?", v1alpha1.TreeYes, 1)},
		},
		"S-34 every question about an empty candidate is answered no": {
			candidate: "\n",
			want:      failed(0.123457),
			path:      []v1alpha1.TreeStep{{Ask: "tool called?", Answer: v1alpha1.TreeNo, Reason: "empty candidate"}},
			leaf:      &v1alpha1.TreeLeaf{Score: 0.123457},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := scoreOf(evalOf(weather, func(s *v1alpha1.EvalSpec) {
				if tc.candidate != "" {
					s.Response = &tc.candidate
				}
			}), tc.judgments...)
			if diff := cmp.Diff(tc.want, outcomeOf(got)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.path, got.Rubrics[0].Path); diff != "" {
				t.Errorf("path (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.leaf, got.Rubrics[0].Leaf); diff != "" {
				t.Errorf("leaf (-want +got):\n%s", diff)
			}
		})
	}
}
