package rubric

import (
	"fmt"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// emptyReason is the reason of every question about a candidate that says nothing (S-34).
const emptyReason = "empty candidate"

// notJudged is the error of a question that has no judgment.
const notJudged = "not judged"

// grading is what one member found with one rubric. Scores are not rounded here (S-4).
type grading struct {
	score      float64
	passed     bool
	gateFailed bool
	vacuous    bool
	err        string // why the member has no vote; empty when it has one
	reason     string
	criteria   []v1alpha1.CriterionReport
	path       []v1alpha1.TreeStep
	leaf       *v1alpha1.TreeLeaf
}

// subject is what a rubric is held against: the candidate, and the answers of one member about it.
type subject struct {
	candidate string
	empty     bool
	rubric    string
	member    int32
	answers   index
}

// answer is the judgment of a question. About an empty candidate nobody is asked: the answer is 0.
func (s subject) answer(question string) v1alpha1.Judgment {
	key := v1alpha1.QuestionKey{Rubric: s.rubric, Member: s.member, Question: question}
	if s.empty {
		zero := 0.0
		return v1alpha1.Judgment{QuestionKey: key, Score: &zero, Reason: emptyReason}
	}
	j := s.answers[key]
	switch {
	case j == nil:
		return v1alpha1.Judgment{QuestionKey: key, Error: notJudged}
	case j.Score == nil && j.Error == "":
		return v1alpha1.Judgment{QuestionKey: key, Error: notJudged}
	}
	return *j
}

// grade scores one member's answers to one rubric.
func grade(r *v1alpha1.RubricSpec, s subject) grading {
	switch Kind(r) {
	case v1alpha1.RubricKindTree:
		return gradeTree(r, s)
	case v1alpha1.RubricKindCriteria:
		return gradeCriteria(r, s)
	}
	return gradeText(r, s)
}

// gradeText: the judge's score is the score (S-6).
func gradeText(r *v1alpha1.RubricSpec, s subject) grading {
	j := s.answer("")
	if j.Score == nil {
		return grading{err: j.Error}
	}
	return grading{score: *j.Score, passed: reaches(*j.Score, Threshold(r)), reason: j.Reason}
}

// gradeTree walks from the root along the answers; the leaf is the score (S-22).
func gradeTree(r *v1alpha1.RubricSpec, s subject) grading {
	var g grading
	n, walk := r.Tree, ""
	for n != nil && n.Ask != "" {
		j := s.answer(walk)
		if j.Score == nil {
			g.err = fmt.Sprintf("question %q: %s", n.Ask, j.Error)
			return g
		}
		yes := isYes(*j.Score)
		answer := v1alpha1.TreeNo
		if yes {
			answer = v1alpha1.TreeYes
		}
		g.path = append(g.path, v1alpha1.TreeStep{Ask: n.Ask, Answer: answer, Score: round6(*j.Score), Reason: j.Reason})
		next, step := descend(n, yes)
		n, walk = next, walk+step
	}
	if n == nil || n.Score == nil {
		g.err = "the tree has no leaf there"
		return g
	}
	g.score = *n.Score
	g.leaf = &v1alpha1.TreeLeaf{Score: round6(*n.Score), Reason: n.Reason}
	g.passed = reaches(g.score, Threshold(r))
	return g
}
