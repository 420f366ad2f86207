package rubric

import (
	"errors"
	"fmt"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// The answers of a walk through a tree, as the key of a question tells them.
const (
	stepYes = "y"
	stepNo  = "n"
)

// isYes is the answer that a judge's score means (S-21).
func isYes(score float64) bool { return score >= 0.5 }

// descend is the branch that an answer leads to.
func descend(n *v1alpha1.TreeNode, yes bool) (*v1alpha1.TreeNode, string) {
	if yes {
		return n.IfYes, stepYes
	}
	return n.IfNo, stepNo
}

// nodeAt is the node that a walk ends at; nil when the tree has no such walk.
func nodeAt(root *v1alpha1.TreeNode, walk string) *v1alpha1.TreeNode {
	n := root
	for _, step := range walk {
		if n == nil || n.Ask == "" || (step != 'y' && step != 'n') {
			return nil
		}
		n, _ = descend(n, step == 'y')
	}
	return n
}

// index finds the judgment of a question.
type index map[v1alpha1.QuestionKey]*v1alpha1.Judgment

func indexOf(judgments []v1alpha1.Judgment) index {
	ix := make(index, len(judgments))
	for i := range judgments {
		ix[judgments[i].QuestionKey] = &judgments[i]
	}
	return ix
}

// CheckJudgments refuses judgments that cannot be answers to the questions of a spec: of a rubric, member, criterion
// or node that it does not have, given twice, or with a score that was not asked for (S-5). The spec is a resolved one.
func CheckJudgments(spec *v1alpha1.EvalSpec, judgments []v1alpha1.Judgment) error {
	rubrics := make(map[string]*v1alpha1.RubricSpec)
	for _, r := range Rubrics(spec) {
		rubrics[r.Name] = &r.RubricSpec
	}
	members := Members(spec.Judge)
	seen := make(map[v1alpha1.QuestionKey]bool, len(judgments))
	for _, j := range judgments {
		r, known := rubrics[j.Rubric]
		switch {
		case !known:
			return fmt.Errorf("judgment of rubric %q: the eval has no such rubric", j.Rubric)
		case j.Member < 0 || int(j.Member) >= members:
			return fmt.Errorf("judgment of member %d: the eval has %d", j.Member, members)
		case seen[j.QuestionKey]:
			return fmt.Errorf("question %q of rubric %q was judged twice by member %d", j.Question, j.Rubric, j.Member)
		}
		seen[j.QuestionKey] = true
		if err := checkAnswer(r, j); err != nil {
			return fmt.Errorf("judgment of question %q of rubric %q: %w", j.Question, j.Rubric, err)
		}
	}
	return nil
}

func checkAnswer(r *v1alpha1.RubricSpec, j v1alpha1.Judgment) error {
	if (j.Score == nil) == (j.Error == "") {
		return errors.New("it must have either a score or an error")
	}
	if j.Score != nil && !(*j.Score >= 0 && *j.Score <= 1) {
		return fmt.Errorf("score %v is outside 0..1", *j.Score)
	}
	var ranges bool
	switch Kind(r) {
	case v1alpha1.RubricKindText:
		if j.Question != "" {
			return errors.New("a text rubric has one question, without a name")
		}
	case v1alpha1.RubricKindTree:
		if n := nodeAt(r.Tree, j.Question); n == nil || n.Ask == "" {
			return errors.New("the tree has no such question")
		}
	case v1alpha1.RubricKindCriteria:
		c := criterion(r, j.Question)
		if c == nil {
			return errors.New("the rubric has no such criterion")
		}
		ranges = len(c.ScoreRanges) > 0
	}
	if j.Score == nil {
		return nil
	}
	if ranges != (j.Raw != nil) {
		return errors.New("raw belongs to a criterion with scoreRanges, and only there")
	}
	if j.Raw != nil && (*j.Raw < 0 || *j.Raw > 10 || *j.Score != float64(*j.Raw)/10) {
		return fmt.Errorf("raw %d does not make score %v", *j.Raw, *j.Score)
	}
	return nil
}

func criterion(r *v1alpha1.RubricSpec, name string) *v1alpha1.Criterion {
	for i := range r.Criteria {
		if r.Criteria[i].Name == name {
			return &r.Criteria[i]
		}
	}
	return nil
}
