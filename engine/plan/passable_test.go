package plan

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

// answered is the outcome of a rubric whose judge answers each question as answer says.
func answered(r v1alpha1.RubricSpec, questions []string, answer func(question string) float64) v1alpha1.Outcome {
	spec := evalOf(func(s *v1alpha1.EvalSpec) { s.Rubric = &v1alpha1.RubricSource{RubricSpec: r} })
	var f v1alpha1.Findings
	for _, q := range questions {
		j := v1alpha1.Judgment{QuestionKey: v1alpha1.QuestionKey{Question: q}, Score: ptr(answer(q)), Reason: "so"}
		if r.RequireEvidence {
			j.Evidence, j.EvidenceVerified = "All of it.", ptr(true)
		}
		f.Judgments = append(f.Judgments, j)
	}
	return rubric.Score(v1alpha1.Row{Name: "r", Eval: "r"}, &spec, f).Outcome
}

// randomTree is a tree of at most depth questions, whose leaves score tenths, low ones more often.
func randomTree(r *rand.Rand, depth int) *v1alpha1.TreeNode {
	if depth == 0 || (depth < 3 && r.IntN(3) == 0) {
		return &v1alpha1.TreeNode{Score: ptr(float64(min(r.IntN(11), r.IntN(11))) / 10)}
	}
	return &v1alpha1.TreeNode{Ask: "q", IfYes: randomTree(r, depth-1), IfNo: randomTree(r, depth-1)}
}

// walks lists the questions of a tree by the answers that lead to them.
func walks(n *v1alpha1.TreeNode, walk string) []string {
	if n.Ask == "" {
		return nil
	}
	return append(append([]string{walk}, walks(n.IfYes, walk+"y")...), walks(n.IfNo, walk+"n")...)
}

// A tree is refused exactly when no way through it passes: every way of it is tried.
func TestS10ATreeIsRefusedWhenNoWayThroughItPasses(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	refused, taken := 0, 0
	for range 1000 {
		spec := v1alpha1.RubricSpec{Tree: randomTree(r, 1+r.IntN(3))}
		if spec.Tree.Ask == "" {
			continue
		}
		switch r.IntN(5) {
		case 0:
			spec.Strict = true
		default:
			spec.Threshold = ptr(float64(r.IntN(11)) / 10)
		}
		questions := walks(spec.Tree, "")
		passable := false
		for answers := range 1 << len(questions) {
			outcome := answered(spec, questions, func(q string) float64 {
				for i := range questions {
					if questions[i] == q {
						return float64(answers >> i & 1)
					}
				}
				return 0
			})
			passable = passable || outcome == v1alpha1.OutcomePassed
		}
		problems := ValidateRubric(&spec, field.NewPath("spec"))
		if passable != (len(problems) == 0) {
			t.Fatalf("some way passes: %v; problems: %v (threshold %v, strict %v, best leaf %v)", passable, problems, spec.Threshold, spec.Strict, rubric.BestScore(&spec))
		}
		if passable {
			taken++
		} else {
			refused++
			check(t, problems, "no candidate could pass")
		}
	}
	if refused < 50 || taken < 50 {
		t.Errorf("%d trees were refused and %d taken: too few of one kind to tell anything", refused, taken)
	}
}

// Only a tree can be one that no candidate could pass: any other rubric that is valid passes the candidate that meets
// every criterion, and in which no guard finds anything.
func TestS10EveryOtherRubricCanBePassed(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	fraction := func() *float64 {
		if r.IntN(2) == 0 {
			return nil
		}
		return ptr([]float64{0, 1, r.Float64()}[r.IntN(3)])
	}
	for range 1000 {
		spec := v1alpha1.RubricSpec{
			Threshold: fraction(), Strict: r.IntN(3) == 0, RequireEvidence: r.IntN(3) == 0,
			Aggregation:  []v1alpha1.Aggregation{"", "weighted_average", "min", "worst"}[r.IntN(4)],
			RequiredGate: []v1alpha1.RequiredGate{"", "threshold", "zero"}[r.IntN(3)],
		}
		var questions []string
		guards := map[string]bool{}
		for i := range 1 + r.IntN(5) {
			c := v1alpha1.Criterion{Name: fmt.Sprint("c", i), Description: "d", Weight: fraction(), Threshold: fraction(), Required: r.IntN(2) == 0, Guard: r.IntN(3) == 0}
			if r.IntN(4) == 0 {
				c.When = &v1alpha1.When{Contains: []string{"All", "none"}[r.IntN(2)]}
			}
			spec.Criteria = append(spec.Criteria, c)
			if c.When == nil || c.When.Contains == "All" {
				questions, guards[c.Name] = append(questions, c.Name), c.Guard
			}
		}
		if problems := ValidateRubric(&spec, field.NewPath("spec")); len(problems) > 0 {
			check(t, problems, "every weight is 0")
			continue
		}
		got := answered(spec, questions, func(q string) float64 {
			if guards[q] {
				return 0
			}
			return 1
		})
		if got != v1alpha1.OutcomePassed {
			t.Fatalf("%+v cannot be passed: %s", spec, got)
		}
	}
}

// What stands beside ref counts too: the rubric and its threshold meet when the eval is planned.
func TestMakeRefusesWhatCannotBeGraded(t *testing.T) {
	half := &v1alpha1.TreeNode{Ask: "q", IfYes: &v1alpha1.TreeNode{Score: ptr(0.8)}, IfNo: &v1alpha1.TreeNode{Score: ptr(0.0)}}
	catalog := Catalog{Rubrics: map[string]v1alpha1.RubricSpec{
		"half": {Tree: half}, "slip": {Preset: "safetey"}, "twice": criteria("a", "a"),
		"collides": {Preset: "groundedness", Criteria: criteria("supported").Criteria},
	}}
	for name, tc := range map[string]struct {
		source v1alpha1.RubricSource
		want   string
	}{
		"S-10 a tree as it is can be passed":         {v1alpha1.RubricSource{Ref: "half"}, ""},
		"S-10 not with a higher threshold beside it": {v1alpha1.RubricSource{Ref: "half", RubricSpec: v1alpha1.RubricSpec{Threshold: ptr(0.81)}}, "spec.rubric.tree: Invalid value: 0.8: no candidate could pass: the best leaf scores 0.8 and the threshold is 0.81"},
		"S-10 nor when it is strict":                 {v1alpha1.RubricSource{Ref: "half", RubricSpec: v1alpha1.RubricSpec{Strict: true}}, "no candidate could pass: the best leaf scores 0.8 and the threshold is 1"},
		"S-10 nor when it is written out":            {v1alpha1.RubricSource{RubricSpec: v1alpha1.RubricSpec{Tree: half, Strict: true}}, "no candidate could pass"},
		"S-10 duplicate names":                       {v1alpha1.RubricSource{Ref: "twice"}, `spec.rubric.criteria[1].name: Duplicate value: "a"`},
		"S-36 a preset that is not there":            {v1alpha1.RubricSource{Ref: "slip"}, `did you mean "safety"?`},
		"S-36 a name that collides":                  {v1alpha1.RubricSource{Ref: "collides"}, `spec.rubric.criteria[0].name: Invalid value: "supported": the preset groundedness@1 has a criterion of this name already`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Make([]NamedEval{{"e", evalOf(func(s *v1alpha1.EvalSpec) { s.Rubric = &tc.source })}}, catalog, Options{})
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), `eval "e"`)):
				t.Errorf("error %v does not say %q", err, tc.want)
			}
		})
	}
}
