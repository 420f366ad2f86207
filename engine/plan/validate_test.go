package plan

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

func deepTree(questions int) *v1alpha1.TreeNode {
	if questions == 0 {
		return &v1alpha1.TreeNode{Score: ptr(1.0)}
	}
	return &v1alpha1.TreeNode{Ask: "on?", IfYes: deepTree(questions - 1), IfNo: &v1alpha1.TreeNode{Score: ptr(0.0)}}
}

// check holds problems against what they must say: nothing at all, or one that holds want.
func check(t *testing.T, problems field.ErrorList, want string) {
	t.Helper()
	if want == "" {
		if len(problems) > 0 {
			t.Errorf("refused: %v", problems)
		}
		return
	}
	for _, p := range problems {
		if strings.Contains(p.Error(), want) {
			return
		}
	}
	t.Errorf("problems %v do not say %q", problems, want)
}

func TestValidateRubric(t *testing.T) {
	rubric := func(change func(*v1alpha1.RubricSpec)) v1alpha1.RubricSpec {
		r := criteria("a", "b")
		change(&r)
		return r
	}
	for name, tc := range map[string]struct {
		rubric v1alpha1.RubricSpec
		want   string
	}{
		"text":                         {v1alpha1.RubricSpec{Text: "good?"}, ""},
		"criteria":                     {criteria("a"), ""},
		"a tree 6 deep":                {v1alpha1.RubricSpec{Tree: deepTree(6)}, ""},
		"a tree 7 deep":                {v1alpha1.RubricSpec{Tree: deepTree(7)}, "at most 6 questions deep"},
		"S-10 nothing":                 {v1alpha1.RubricSpec{}, "exactly one of text"},
		"S-23 text and criteria":       {rubric(func(r *v1alpha1.RubricSpec) { r.Text = "t" }), "exactly one of text"},
		"S-23 criteria and tree":       {rubric(func(r *v1alpha1.RubricSpec) { r.Tree = deepTree(1) }), "exactly one of text"},
		"blank text":                   {v1alpha1.RubricSpec{Text: "  "}, "spec.text: Invalid value: \"  \": text is blank"},
		"S-10 all weights 0":           {rubric(func(r *v1alpha1.RubricSpec) { r.Criteria[0].Weight, r.Criteria[1].Weight = ptr(0.0), ptr(0.0) }), "every weight is 0"},
		"S-10 duplicate names":         {criteria("a", "a"), "spec.criteria[1].name: Duplicate value"},
		"S-10 nobody could pass":       {v1alpha1.RubricSpec{Threshold: ptr(0.8), Tree: &v1alpha1.TreeNode{Ask: "q", IfYes: &v1alpha1.TreeNode{Score: ptr(0.5)}, IfNo: &v1alpha1.TreeNode{Score: ptr(0.0)}}}, "no candidate could pass"},
		"threshold 1.5":                {rubric(func(r *v1alpha1.RubricSpec) { r.Threshold = ptr(1.5) }), "spec.threshold: Invalid value: 1.5: must be from 0 to 1"},
		"an unknown aggregation":       {rubric(func(r *v1alpha1.RubricSpec) { r.Aggregation = "average" }), `supported values: "weighted_average", "min", "worst"`},
		"S-23 aggregation with a tree": {v1alpha1.RubricSpec{Tree: deepTree(1), Aggregation: "min"}, "a tree takes no aggregation"},
		"aggregation with text":        {v1alpha1.RubricSpec{Text: "t", Aggregation: "min"}, "a text rubric takes no aggregation"},
		"S-18 evidence with text":      {v1alpha1.RubricSpec{Text: "t", RequireEvidence: true}, "requireEvidence works with criteria only"},
		"S-18 evidence with a tree":    {v1alpha1.RubricSpec{Tree: deepTree(1), RequireEvidence: true}, "requireEvidence works with criteria only"},
		"two scales": {rubric(func(r *v1alpha1.RubricSpec) {
			r.Scale = &v1alpha1.Scale{Unit: &v1alpha1.UnitScale{}, Letter: &v1alpha1.LetterScale{}}
		}), "exactly one of unit"},
		"likert upside down":      {rubric(func(r *v1alpha1.RubricSpec) { r.Scale = &v1alpha1.Scale{Likert: &v1alpha1.LikertScale{Min: 5, Max: 1}} }), "likert.min must be below likert.max"},
		"S-11 a condition of two": {rubric(func(r *v1alpha1.RubricSpec) { r.Criteria[0].When = &v1alpha1.When{Contains: "a", Regex: "b"} }), "exactly one of contains and regex"},
		"S-11 no RE2":             {rubric(func(r *v1alpha1.RubricSpec) { r.Criteria[0].When = &v1alpha1.When{Regex: "(?=a)"} }), "write an RE2 expression"},
		"S-17 ranges without 0":   {rubric(func(r *v1alpha1.RubricSpec) { r.Criteria[0].ScoreRanges = map[string]v1alpha1.ScoreRange{"5": "ok"} }), `add a key "0"`},
		"S-17 a range above 10": {rubric(func(r *v1alpha1.RubricSpec) {
			r.Criteria[0].ScoreRanges = map[string]v1alpha1.ScoreRange{"0": "no", "11": "ok"}
		}), `from "0" to "10"`},
		"S-17 a range written 05": {rubric(func(r *v1alpha1.RubricSpec) {
			r.Criteria[0].ScoreRanges = map[string]v1alpha1.ScoreRange{"0": "no", "05": "ok"}
		}), `from "0" to "10"`},
		"S-21 a tree that is a leaf":    {v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{Score: ptr(1.0)}}, "a tree starts with a question"},
		"S-21 a question and a leaf":    {v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{Ask: "q", Score: ptr(1.0)}}, "either a question"},
		"S-21 a question with one way":  {v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{Ask: "q", IfYes: &v1alpha1.TreeNode{Score: ptr(1.0)}}}, "needs both ifYes and ifNo"},
		"S-21 a leaf that goes on":      {v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{Ask: "q", IfYes: &v1alpha1.TreeNode{Score: ptr(1.0), IfNo: deepTree(0)}, IfNo: deepTree(0)}}, "a leaf ends the walk"},
		"a criterion without a name":    {criteria(""), "give the criterion a name"},
		"a criterion without substance": {v1alpha1.RubricSpec{Criteria: []v1alpha1.Criterion{{Name: "a"}}}, "say what the judge must look at"},
		"an example above 1":            {rubric(func(r *v1alpha1.RubricSpec) { r.Criteria[0].Examples = []v1alpha1.Example{{Response: "r", Score: 3}} }), "spec.criteria[0].examples[0].score"},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, ValidateRubric(&tc.rubric, field.NewPath("spec")), tc.want)
		})
	}
}

func TestValidateEval(t *testing.T) {
	judge := func(j v1alpha1.JudgeSpec) v1alpha1.EvalSpec {
		return evalOf(func(s *v1alpha1.EvalSpec) { s.Judge = &j })
	}
	panel := []v1alpha1.ModelName{"a", "b"}
	models := make([]v1alpha1.ModelName, 33)
	for i := range models {
		models[i] = v1alpha1.ModelName(strings.Repeat("m", i+1))
	}
	prompts := make([]string, 32)
	for i := range prompts {
		prompts[i] = strings.Repeat("p", i+1)
	}
	for name, tc := range map[string]struct {
		spec v1alpha1.EvalSpec
		want string
	}{
		"a text rubric":      {evalOf(), ""},
		"no rubric":          {evalOf(func(s *v1alpha1.EvalSpec) { s.Rubric = nil }), "exactly one of rubric"},
		"rubric and rubrics": {evalOf(func(s *v1alpha1.EvalSpec) { s.Rubrics = []v1alpha1.NamedRubric{{Name: "a", RubricSource: *text("t")}} }), "exactly one of rubric"},
		"ref and text":       {evalOf(func(s *v1alpha1.EvalSpec) { s.Rubric.Ref = "r" }), "exactly one of ref"},
		"ref and aggregation": {evalOf(func(s *v1alpha1.EvalSpec) {
			s.Rubric = &v1alpha1.RubricSource{Ref: "r", RubricSpec: v1alpha1.RubricSpec{Aggregation: "min"}}
		}), "only threshold and strict"},
		"response twice": {evalOf(func(s *v1alpha1.EvalSpec) {
			s.ResponseFrom = &v1alpha1.ResponseSource{ConfigMapKeyRef: v1alpha1.ConfigMapKey{Name: "n", Key: "k"}}
		}), "response or responseFrom, not both"},
		"several rubrics of one name": {evalOf(func(s *v1alpha1.EvalSpec) {
			s.Rubric, s.Rubrics = nil, []v1alpha1.NamedRubric{{Name: "a", RubricSource: *text("t")}, {Name: "a", RubricSource: *text("t")}}
		}), "spec.rubrics[1].name: Duplicate"},
		"S-29 panel and jury":           {judge(v1alpha1.JudgeSpec{Panel: panel, Jury: &v1alpha1.Jury{Size: 3}}), "exclude each other"},
		"S-29 panel and model":          {judge(v1alpha1.JudgeSpec{Panel: panel, Model: "m"}), "panel and model both choose"},
		"S-29 panel and matrix":         {evalOf(matrix(panel), func(s *v1alpha1.EvalSpec) { s.Judge = &v1alpha1.JudgeSpec{Panel: panel} }), "judge.panel and matrix.models"},
		"model and matrix":              {evalOf(matrix(panel), func(s *v1alpha1.EvalSpec) { s.Judge = &v1alpha1.JudgeSpec{Model: "m"} }), "judge.model and matrix.models"},
		"a panel of one":                {judge(v1alpha1.JudgeSpec{Panel: panel[:1]}), "from 2 to 9 models"},
		"tieBreak without a panel":      {judge(v1alpha1.JudgeSpec{TieBreak: "pass"}), "belong to a panel"},
		"S-25 consensus 0":              {judge(v1alpha1.JudgeSpec{Jury: &v1alpha1.Jury{Size: 3, Consensus: ptr(0.0)}}), "above 0 and at most 1"},
		"S-25 a jury of nobody":         {judge(v1alpha1.JudgeSpec{Jury: &v1alpha1.Jury{}}), "spec.judge.jury.size"},
		"an unknown provider":           {judge(v1alpha1.JudgeSpec{Provider: "acme"}), `supported values: "anthropic", "openai"`},
		"a model that is no name":       {judge(v1alpha1.JudgeSpec{Model: "a model"}), "as its provider names it"},
		"a matrix of nothing":           {evalOf(matrix(nil)), "give the matrix models or prompts"},
		"S-31 a matrix of 1056 cells":   {evalOf(matrix(models, prompts...)), "more than 1024 cells"},
		"S-31 a matrix of 1024 cells":   {evalOf(matrix(models[:32], prompts...)), ""},
		"S-31 the same model twice":     {evalOf(matrix([]v1alpha1.ModelName{"a", "a"})), "spec.matrix.models[1]: Duplicate"},
		"what a deferred row counts as": {evalOf(func(s *v1alpha1.EvalSpec) { s.OnDeferred = "Maybe" }), `supported values: "Pass", "Fail"`},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, Validate(&tc.spec), tc.want)
		})
	}
}
