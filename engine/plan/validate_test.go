package plan

import (
	"math"
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
		"text":                                   {v1alpha1.RubricSpec{Text: "good?"}, ""},
		"criteria":                               {criteria("a"), ""},
		"a tree 6 deep":                          {v1alpha1.RubricSpec{Tree: deepTree(6)}, ""},
		"a tree 7 deep":                          {v1alpha1.RubricSpec{Tree: deepTree(7)}, "at most 6 questions deep"},
		"S-10 nothing":                           {v1alpha1.RubricSpec{}, "exactly one of text"},
		"S-23 text and criteria":                 {rubric(func(r *v1alpha1.RubricSpec) { r.Text = "t" }), "exactly one of text"},
		"S-23 criteria and tree":                 {rubric(func(r *v1alpha1.RubricSpec) { r.Tree = deepTree(1) }), "exactly one of text"},
		"blank text":                             {v1alpha1.RubricSpec{Text: "  "}, "spec.text: Invalid value: \"  \": text is blank"},
		"S-10 all weights 0":                     {rubric(func(r *v1alpha1.RubricSpec) { r.Criteria[0].Weight, r.Criteria[1].Weight = ptr(0.0), ptr(0.0) }), "every weight is 0"},
		"S-1 a threshold below 0":                {rubric(func(r *v1alpha1.RubricSpec) { r.Threshold = ptr(-0.1) }), "spec.threshold: Invalid value: -0.1: must be from 0 to 1"},
		"S-1 a threshold that is no number":      {rubric(func(r *v1alpha1.RubricSpec) { r.Threshold = ptr(math.NaN()) }), "must be from 0 to 1"},
		"S-1 a threshold of a criterion above 1": {rubric(func(r *v1alpha1.RubricSpec) { r.Criteria[1].Threshold = ptr(1.1) }), "spec.criteria[1].threshold: Invalid value: 1.1: must be from 0 to 1"},
		"S-1 thresholds of 0 and 1":              {rubric(func(r *v1alpha1.RubricSpec) { r.Threshold, r.Criteria[1].Threshold = ptr(1.0), ptr(0.0) }), ""},
		"S-7 a weight below 0":                   {rubric(func(r *v1alpha1.RubricSpec) { r.Criteria[1].Weight = ptr(-1.0) }), "spec.criteria[1].weight: Invalid value: -1: must be from 0"},
		"S-7 a weight that is no number":         {rubric(func(r *v1alpha1.RubricSpec) { r.Criteria[1].Weight = ptr(math.Inf(1)) }), "spec.criteria[1].weight"},
		"S-7 a weight of 0 beside another":       {rubric(func(r *v1alpha1.RubricSpec) { r.Criteria[1].Weight = ptr(0.0) }), ""},
		"S-10 one weight above 0 is enough":      {rubric(func(r *v1alpha1.RubricSpec) { r.Criteria[0].Weight, r.Criteria[1].Weight = ptr(0.0), ptr(0.1) }), ""},
		"S-10 a preset has weights of its own":   {v1alpha1.RubricSpec{Preset: "safety", Criteria: []v1alpha1.Criterion{{Name: "mine", Description: "d", Weight: ptr(0.0)}}}, ""},
		"S-10 an empty list of criteria":         {v1alpha1.RubricSpec{Criteria: []v1alpha1.Criterion{}}, "exactly one of text"},
		"S-14 an unknown requiredGate":           {rubric(func(r *v1alpha1.RubricSpec) { r.RequiredGate = "never" }), `supported values: "threshold", "zero"`},
		"S-14 requiredGate with text":            {v1alpha1.RubricSpec{Text: "t", RequiredGate: "zero"}, "requiredGate works with criteria only"},
		"S-10 duplicate names":                   {criteria("a", "a"), "spec.criteria[1].name: Duplicate value"},
		"S-10 nobody could pass":                 {v1alpha1.RubricSpec{Threshold: ptr(0.8), Tree: &v1alpha1.TreeNode{Ask: "q", IfYes: &v1alpha1.TreeNode{Score: ptr(0.5)}, IfNo: &v1alpha1.TreeNode{Score: ptr(0.0)}}}, "no candidate could pass"},
		"S-1 a threshold above 1":                {rubric(func(r *v1alpha1.RubricSpec) { r.Threshold = ptr(1.5) }), "spec.threshold: Invalid value: 1.5: must be from 0 to 1"},
		"S-8 an unknown aggregation":             {rubric(func(r *v1alpha1.RubricSpec) { r.Aggregation = "average" }), `supported values: "weighted_average", "min", "worst"`},
		"S-23 aggregation with a tree":           {v1alpha1.RubricSpec{Tree: deepTree(1), Aggregation: "min"}, "a tree takes no aggregation"},
		"aggregation with text":                  {v1alpha1.RubricSpec{Text: "t", Aggregation: "min"}, "a text rubric takes no aggregation"},
		"S-18 evidence with text":                {v1alpha1.RubricSpec{Text: "t", RequireEvidence: true}, "requireEvidence works with criteria only"},
		"S-18 evidence with a tree":              {v1alpha1.RubricSpec{Tree: deepTree(1), RequireEvidence: true}, "requireEvidence works with criteria only"},
		"two scales": {rubric(func(r *v1alpha1.RubricSpec) {
			r.Scale = &v1alpha1.Scale{Unit: &v1alpha1.UnitScale{}, Letter: &v1alpha1.LetterScale{}}
		}), "exactly one of unit"},
		"likert upside down":          {rubric(func(r *v1alpha1.RubricSpec) { r.Scale = &v1alpha1.Scale{Likert: &v1alpha1.LikertScale{Min: 5, Max: 1}} }), "likert.min must be below likert.max"},
		"S-11 a condition of two":     {rubric(func(r *v1alpha1.RubricSpec) { r.Criteria[0].When = &v1alpha1.When{Contains: "a", Regex: "b"} }), "exactly one of contains and regex"},
		"S-11 no RE2":                 {rubric(func(r *v1alpha1.RubricSpec) { r.Criteria[0].When = &v1alpha1.When{Regex: "(?=a)"} }), "write an RE2 expression"},
		"S-11 a condition of nothing": {rubric(func(r *v1alpha1.RubricSpec) { r.Criteria[0].When = &v1alpha1.When{} }), "spec.criteria[0].when: Invalid value: \"\": set exactly one of contains and regex"},
		"S-11 a condition of one": {rubric(func(r *v1alpha1.RubricSpec) {
			r.Criteria[0].When, r.Criteria[1].When = &v1alpha1.When{Contains: "a"}, &v1alpha1.When{Regex: "^a+$"}
		}), ""},
		"S-16 indicators of nothing": {rubric(func(r *v1alpha1.RubricSpec) { r.Criteria[0].Indicators = &v1alpha1.Indicators{} }), "describe good or bad work"},
		"S-17 ranges of 0 to 10": {rubric(func(r *v1alpha1.RubricSpec) {
			r.Criteria[0].ScoreRanges = map[string]v1alpha1.ScoreRange{"0": "no", "5": "so so", "10": "yes"}
		}), ""},
		"S-17 a range below 0": {rubric(func(r *v1alpha1.RubricSpec) {
			r.Criteria[0].ScoreRanges = map[string]v1alpha1.ScoreRange{"0": "no", "-1": "worse"}
		}), `from "0" to "10"`},
		"S-17 a range between": {rubric(func(r *v1alpha1.RubricSpec) {
			r.Criteria[0].ScoreRanges = map[string]v1alpha1.ScoreRange{"0": "no", "5.5": "ok"}
		}), `from "0" to "10"`},
		"S-17 no range at all":             {rubric(func(r *v1alpha1.RubricSpec) { r.Criteria[0].ScoreRanges = map[string]v1alpha1.ScoreRange{} }), `add a key "0"`},
		"S-17 a range that says nothing":   {rubric(func(r *v1alpha1.RubricSpec) { r.Criteria[0].ScoreRanges = map[string]v1alpha1.ScoreRange{"0": ""} }), "say what work deserves this score"},
		"S-18 evidence with criteria":      {rubric(func(r *v1alpha1.RubricSpec) { r.RequireEvidence = true }), ""},
		"S-36 a preset with criteria":      {v1alpha1.RubricSpec{Preset: "safety", Criteria: criteria("mine").Criteria}, ""},
		"S-36 a preset and a text":         {v1alpha1.RubricSpec{Preset: "safety", Text: "t"}, "text and preset exclude each other"},
		"S-36 a name that collides":        {v1alpha1.RubricSpec{Preset: "groundedness", Criteria: criteria("mine", "supported").Criteria}, "spec.criteria[1].name: Invalid value: \"supported\": the preset groundedness@1 has a criterion of this name already"},
		"S-36 a version that is not there": {v1alpha1.RubricSpec{Preset: "safety@9"}, "write safety@1"},
		"S-17 ranges without 0":            {rubric(func(r *v1alpha1.RubricSpec) { r.Criteria[0].ScoreRanges = map[string]v1alpha1.ScoreRange{"5": "ok"} }), `add a key "0"`},
		"S-17 a range above 10": {rubric(func(r *v1alpha1.RubricSpec) {
			r.Criteria[0].ScoreRanges = map[string]v1alpha1.ScoreRange{"0": "no", "11": "ok"}
		}), `from "0" to "10"`},
		"S-17 a range written 05": {rubric(func(r *v1alpha1.RubricSpec) {
			r.Criteria[0].ScoreRanges = map[string]v1alpha1.ScoreRange{"0": "no", "05": "ok"}
		}), `from "0" to "10"`},
		"S-21 a tree that is a leaf":         {v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{Score: ptr(1.0)}}, "a tree starts with a question"},
		"S-21 a leaf above 1":                {v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{Ask: "q", IfYes: &v1alpha1.TreeNode{Score: ptr(1.5)}, IfNo: deepTree(0)}}, "spec.tree.ifYes.score: Invalid value: 1.5: must be from 0 to 1"},
		"S-21 neither a question nor a leaf": {v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{Ask: "q", IfYes: &v1alpha1.TreeNode{}, IfNo: deepTree(0)}}, "either a question"},
		"S-21 a question that says why":      {v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{Ask: "q", Reason: "r", IfYes: deepTree(0), IfNo: deepTree(0)}}, "reason belongs to a leaf"},
		"S-21 a question without ifYes":      {v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{Ask: "q", IfNo: deepTree(0)}}, "needs both ifYes and ifNo"},
		"S-23 text and tree":                 {v1alpha1.RubricSpec{Text: "t", Tree: deepTree(1)}, "text and tree exclude each other"},
		"S-23 preset and tree":               {v1alpha1.RubricSpec{Preset: "safety", Tree: deepTree(1)}, "preset and tree exclude each other"},
		"S-21 a question and a leaf":         {v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{Ask: "q", Score: ptr(1.0)}}, "either a question"},
		"S-21 a question with one way":       {v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{Ask: "q", IfYes: &v1alpha1.TreeNode{Score: ptr(1.0)}}}, "needs both ifYes and ifNo"},
		"S-21 a leaf that goes on":           {v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{Ask: "q", IfYes: &v1alpha1.TreeNode{Score: ptr(1.0), IfNo: deepTree(0)}, IfNo: deepTree(0)}}, "a leaf ends the walk"},
		"a criterion without a name":         {criteria(""), "give the criterion a name"},
		"a criterion without substance":      {v1alpha1.RubricSpec{Criteria: []v1alpha1.Criterion{{Name: "a"}}}, "say what the judge must look at"},
		"S-15 an example above 1":            {rubric(func(r *v1alpha1.RubricSpec) { r.Criteria[0].Examples = []v1alpha1.Example{{Response: "r", Score: 3}} }), "spec.criteria[0].examples[0].score"},
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
		"several rubrics of one name": {evalOf(func(s *v1alpha1.EvalSpec) {
			s.Rubric, s.Rubrics = nil, []v1alpha1.NamedRubric{{Name: "a", RubricSource: *text("t")}, {Name: "a", RubricSource: *text("t")}}
		}), "spec.rubrics[1].name: Duplicate"},
		"S-10 several rubrics, all of weight 0": {evalOf(func(s *v1alpha1.EvalSpec) {
			s.Rubric, s.Rubrics = nil, []v1alpha1.NamedRubric{{Name: "a", Weight: ptr(0.0), RubricSource: *text("t")}, {Name: "b", Weight: ptr(0.0), RubricSource: *text("t")}}
		}), "spec.rubrics: Invalid value: \"\": every weight is 0"},
		"S-10 several rubrics, one of weight 0": {evalOf(func(s *v1alpha1.EvalSpec) {
			s.Rubric, s.Rubrics = nil, []v1alpha1.NamedRubric{{Name: "a", Weight: ptr(0.0), RubricSource: *text("t")}, {Name: "b", RubricSource: *text("t")}}
		}), ""},
		"S-25 consensus 1":              {judge(v1alpha1.JudgeSpec{Jury: &v1alpha1.Jury{Size: 3, Consensus: ptr(1.0)}}), ""},
		"S-25 consensus above 1":        {judge(v1alpha1.JudgeSpec{Jury: &v1alpha1.Jury{Size: 3, Consensus: ptr(1.01)}}), "above 0 and at most 1"},
		"S-26 an unknown aggregate":     {judge(v1alpha1.JudgeSpec{Panel: panel, Aggregate: "mode"}), `supported values: "mean", "median", "majority"`},
		"S-26 an unknown tieBreak":      {judge(v1alpha1.JudgeSpec{Panel: panel, TieBreak: "coin"}), `supported values: "fail", "pass"`},
		"S-26 models of two vendors":    {judge(v1alpha1.JudgeSpec{Panel: []v1alpha1.ModelName{"claude-x", "gpt-x"}}), ""},
		"S-29 panel and prompts":        {evalOf(matrix(nil, "p"), func(s *v1alpha1.EvalSpec) { s.Judge = &v1alpha1.JudgeSpec{Panel: panel} }), ""},
		"S-29 panel and provider":       {judge(v1alpha1.JudgeSpec{Panel: panel, Provider: "openai"}), "finds its provider by its name"},
		"S-29 panel and jury":           {judge(v1alpha1.JudgeSpec{Panel: panel, Jury: &v1alpha1.Jury{Size: 3}}), "exclude each other"},
		"S-29 panel and model":          {judge(v1alpha1.JudgeSpec{Panel: panel, Model: "m"}), "panel and model both choose"},
		"S-29 panel and matrix":         {evalOf(matrix(panel), func(s *v1alpha1.EvalSpec) { s.Judge = &v1alpha1.JudgeSpec{Panel: panel} }), "judge.panel and matrix.models"},
		"model and matrix":              {evalOf(matrix(panel), func(s *v1alpha1.EvalSpec) { s.Judge = &v1alpha1.JudgeSpec{Model: "m"} }), "judge.model and matrix.models"},
		"S-26 a panel of one":           {judge(v1alpha1.JudgeSpec{Panel: panel[:1]}), "from 2 to 9 models"},
		"S-26 tieBreak without a panel": {judge(v1alpha1.JudgeSpec{TieBreak: "pass"}), "belong to a panel"},
		"S-25 consensus 0":              {judge(v1alpha1.JudgeSpec{Jury: &v1alpha1.Jury{Size: 3, Consensus: ptr(0.0)}}), "above 0 and at most 1"},
		"S-25 a jury of nobody":         {judge(v1alpha1.JudgeSpec{Jury: &v1alpha1.Jury{}}), "spec.judge.jury.size"},
		"an unknown provider":           {judge(v1alpha1.JudgeSpec{Provider: "acme"}), `supported values: "anthropic", "openai"`},
		"a model that is no name":       {judge(v1alpha1.JudgeSpec{Model: "a model"}), "as its provider names it"},
		"a matrix of nothing":           {evalOf(matrix(nil)), "give the matrix models or prompts"},
		"S-31 a matrix of 1056 cells":   {evalOf(matrix(models, prompts...)), "more than 1024 cells"},
		"S-31 a matrix of 1024 cells":   {evalOf(matrix(models[:32], prompts...)), ""},
		"S-31 the same prompt twice":    {evalOf(matrix(nil, "p", "p")), "spec.matrix.prompts[1]: Duplicate"},
		"S-33 a response twice": {evalOf(func(s *v1alpha1.EvalSpec) {
			s.ResponseFrom = &v1alpha1.ResponseSource{ConfigMapKeyRef: v1alpha1.ConfigMapKey{Name: "n", Key: "k"}}
		}), "response or responseFrom, not both"},
		"S-31 the same model twice":          {evalOf(matrix([]v1alpha1.ModelName{"a", "a"})), "spec.matrix.models[1]: Duplicate"},
		"S-38 what a deferred row counts as": {evalOf(func(s *v1alpha1.EvalSpec) { s.OnDeferred = "Maybe" }), `supported values: "Pass", "Fail"`},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, Validate(&tc.spec), tc.want)
		})
	}
}
