package rubric

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
)

func TestS39ARowThatWasJudgedInPartIsNoPass(t *testing.T) {
	one := 1.0
	kept := func(member int32, question string) v1alpha1.Judgment {
		return v1alpha1.Judgment{QuestionKey: v1alpha1.QuestionKey{Member: member, Question: question}, Model: "gpt-4.1", Score: &one, Reason: "r"}
	}
	for name, tc := range map[string]struct {
		spec *v1alpha1.EvalSpec
		kept []v1alpha1.Judgment
	}{
		"a criterion is missing":                     {evalOf(criteriaOf(criterionOf("a"), criterionOf("b"), criterionOf("c"))), []v1alpha1.Judgment{kept(0, "a"), kept(0, "b")}},
		"a member is missing, and two of three pass": {evalOf(v1alpha1.RubricSpec{Text: "t"}, jury(3, nil), func(s *v1alpha1.EvalSpec) { s.Judge.Model = "gpt-4.1" }), []v1alpha1.Judgment{kept(0, ""), kept(1, "")}},
	} {
		t.Run("S-39 "+name, func(t *testing.T) {
			g := graderOf(t, &scripted{})
			g.Env = judge.Env{} // the key went away
			f, err := g.Grade(t.Context(), tc.spec, tc.kept, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff([]string{"gpt-4.1"}, f.Models); diff != "" {
				t.Errorf("models (-want +got):\n%s", diff)
			}
			r := Score(v1alpha1.Row{Name: "r", Eval: "r"}, tc.spec, f)
			if r.Outcome != v1alpha1.OutcomeError || r.Score != nil || r.Note != f.Error || r.Note == "" {
				t.Errorf("%s, score %v, note %q", r.Outcome, r.Score, r.Note)
			}
		})
	}
}
