package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

func ptr[T any](v T) *T { return &v }

func text(question string) *v1alpha1.RubricSource {
	return &v1alpha1.RubricSource{RubricSpec: v1alpha1.RubricSpec{Text: question}}
}

func criteria(names ...string) v1alpha1.RubricSpec {
	var r v1alpha1.RubricSpec
	for _, n := range names {
		r.Criteria = append(r.Criteria, v1alpha1.Criterion{Name: n, Description: "is " + n})
	}
	return r
}

func evalOf(change ...func(*v1alpha1.EvalSpec)) v1alpha1.EvalSpec {
	spec := v1alpha1.EvalSpec{Prompt: "What is new?", Response: ptr("All of it."), Rubric: text("Is it true?")}
	for _, f := range change {
		f(&spec)
	}
	return spec
}

func matrix(models []v1alpha1.ModelName, prompts ...string) func(*v1alpha1.EvalSpec) {
	return func(s *v1alpha1.EvalSpec) { s.Matrix = &v1alpha1.Matrix{Models: models, Prompts: prompts} }
}

func rowNames(p *Plan) []string {
	var names []string
	for _, r := range p.Rows {
		judge := ""
		if r.Spec.Judge != nil {
			judge = string(r.Spec.Judge.Model)
		}
		names = append(names, fmt.Sprintf("%s | %s | %s | %d", r.Name, judge, r.Spec.Prompt, r.Calls))
	}
	return names
}

func TestMakeExpandsRows(t *testing.T) {
	long := "Summarize the whole release in one sentence, please."
	for name, tc := range map[string]struct {
		evals   []NamedEval
		options Options
		want    []string
	}{
		"an eval without a matrix is one row": {
			evals: []NamedEval{{"e", evalOf()}},
			want:  []string{"e |  | What is new? | 1"},
		},
		"the title names the row": {
			evals: []NamedEval{{"e", evalOf(func(s *v1alpha1.EvalSpec) { s.Title = "news are true" })}},
			want:  []string{"news are true |  | What is new? | 1"},
		},
		"S-31 the cells are the product of the axes": {
			evals: []NamedEval{{"e", evalOf(matrix([]v1alpha1.ModelName{"a", "b"}, "p", "q"))}},
			want: []string{
				"e [model=a, prompt=p] | a | p | 1", "e [model=a, prompt=q] | a | q | 1",
				"e [model=b, prompt=p] | b | p | 1", "e [model=b, prompt=q] | b | q | 1",
			},
		},
		"S-31 models only": {
			evals: []NamedEval{{"e", evalOf(matrix([]v1alpha1.ModelName{"a", "b"}))}},
			want:  []string{"e [model=a] | a | What is new? | 1", "e [model=b] | b | What is new? | 1"},
		},
		"S-31 a long prompt is cut to 40 characters and numbered": {
			evals: []NamedEval{{"e", evalOf(matrix(nil, "short", long))}},
			want:  []string{"e [prompt=short] |  | short | 1", "e [prompt=Summarize the whole release in one sente… #2] |  | " + long + " | 1"},
		},
		"S-31 without axes there are no cells": {
			evals: []NamedEval{{"e", evalOf()}, {"f", evalOf(matrix(nil, "p"))}},
			want:  []string{"e |  | What is new? | 1", "f [prompt=p] |  | p | 1"},
		},
		"S-24 the override replaces judge.model": {
			evals:   []NamedEval{{"e", evalOf(func(s *v1alpha1.EvalSpec) { s.Judge = &v1alpha1.JudgeSpec{Model: "a"} })}},
			options: Options{JudgeModel: "z", DefaultJudgeModel: "d"},
			want:    []string{"e | z | What is new? | 1"},
		},
		"S-24 the cell's model stays": {
			evals:   []NamedEval{{"e", evalOf(matrix([]v1alpha1.ModelName{"a"}))}},
			options: Options{JudgeModel: "z"},
			want:    []string{"e [model=a] | a | What is new? | 1"},
		},
		"S-24 the default is for evals that name no model": {
			evals:   []NamedEval{{"e", evalOf()}, {"f", evalOf(func(s *v1alpha1.EvalSpec) { s.Judge = &v1alpha1.JudgeSpec{Model: "a"} })}},
			options: Options{DefaultJudgeModel: "d"},
			want:    []string{"e | d | What is new? | 1", "f | a | What is new? | 1"},
		},
		"S-29 a panel stays": {
			evals:   []NamedEval{{"e", evalOf(func(s *v1alpha1.EvalSpec) { s.Judge = &v1alpha1.JudgeSpec{Panel: []v1alpha1.ModelName{"a", "b"}} })}},
			options: Options{JudgeModel: "z"},
			want:    []string{"e |  | What is new? | 2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Make(tc.evals, Catalog{}, tc.options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, rowNames(p)); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCalls(t *testing.T) {
	tree := v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{
		Ask:   "a?",
		IfYes: &v1alpha1.TreeNode{Ask: "b?", IfYes: &v1alpha1.TreeNode{Score: ptr(1.0)}, IfNo: &v1alpha1.TreeNode{Score: ptr(0.0)}},
		IfNo:  &v1alpha1.TreeNode{Score: ptr(0.0)},
	}}
	with := func(r v1alpha1.RubricSpec, judge *v1alpha1.JudgeSpec) v1alpha1.EvalSpec {
		return evalOf(func(s *v1alpha1.EvalSpec) { s.Rubric, s.Judge = &v1alpha1.RubricSource{RubricSpec: r}, judge })
	}
	for name, tc := range map[string]struct {
		spec v1alpha1.EvalSpec
		want int32
	}{
		"S-30 a text is 1":               {evalOf(), 1},
		"S-30 criteria are their number": {with(criteria("a", "b", "c"), nil), 3},
		"S-30 a tree is its depth":       {with(tree, nil), 2},
		"S-30 with conditions, at most their number": {with(func() v1alpha1.RubricSpec {
			r := criteria("a", "b")
			r.Criteria[0].When = &v1alpha1.When{Contains: "not in there"}
			return r
		}(), nil), 2},
		"S-30 a tree is as deep as its deepest way": {with(v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{Ask: "z?", IfYes: &v1alpha1.TreeNode{Score: ptr(1.0)}, IfNo: tree.Tree}}, nil), 3},
		"S-30 times both rubrics and members": {evalOf(func(s *v1alpha1.EvalSpec) {
			s.Rubric, s.Rubrics = nil, []v1alpha1.NamedRubric{{Name: "a", RubricSource: *text("t")}, {Name: "b", RubricSource: v1alpha1.RubricSource{RubricSpec: tree}}}
			s.Judge = &v1alpha1.JudgeSpec{Jury: &v1alpha1.Jury{Size: 3}}
		}), 9},
		"S-30 times the size of a jury":      {with(criteria("a", "b"), &v1alpha1.JudgeSpec{Jury: &v1alpha1.Jury{Size: 3}}), 6},
		"S-30 times the models of a panel":   {with(criteria("a", "b"), &v1alpha1.JudgeSpec{Panel: []v1alpha1.ModelName{"x", "y"}}), 4},
		"S-34 an empty candidate is no call": {evalOf(func(s *v1alpha1.EvalSpec) { s.Response = ptr("…") }), 0},
		"S-38 without a candidate, no call":  {evalOf(func(s *v1alpha1.EvalSpec) { s.Response = nil }), 0},
		"S-30 several rubrics are summed": {evalOf(func(s *v1alpha1.EvalSpec) {
			s.Rubric, s.Rubrics = nil, []v1alpha1.NamedRubric{{Name: "a", RubricSource: *text("t")}, {Name: "b", RubricSource: v1alpha1.RubricSource{RubricSpec: tree}}}
		}), 3},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Calls(&tc.spec); got != tc.want {
				t.Errorf("Calls = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestMakeRefusesRowsOfTheSameName(t *testing.T) {
	same := evalOf(func(s *v1alpha1.EvalSpec) { s.Title = "same" })
	_, err := Make([]NamedEval{{"a", same}, {"b", same}}, Catalog{}, Options{})
	if err == nil || !strings.Contains(err.Error(), `"same"`) || !strings.Contains(err.Error(), "titles") {
		t.Errorf("error %v does not say what to change", err)
	}
}

func TestResolve(t *testing.T) {
	catalog := Catalog{
		Rubrics:    map[string]v1alpha1.RubricSpec{"helpful": {Threshold: ptr(0.6), Text: "Is it helpful?"}},
		ConfigMaps: map[string]map[string]string{"answers": {"weather": "18C and clear"}},
	}
	ref := func(r v1alpha1.RubricSource) v1alpha1.EvalSpec {
		return evalOf(func(s *v1alpha1.EvalSpec) { s.Rubric = &r })
	}
	from := func(name, key string) v1alpha1.EvalSpec {
		return evalOf(func(s *v1alpha1.EvalSpec) {
			s.Response = nil
			s.ResponseFrom = &v1alpha1.ResponseSource{ConfigMapKeyRef: v1alpha1.ConfigMapKey{Name: name, Key: key}}
		})
	}
	for name, tc := range map[string]struct {
		spec    v1alpha1.EvalSpec
		want    func(v1alpha1.EvalSpec) bool
		wantErr string
	}{
		"a rubric is put in its place": {ref(v1alpha1.RubricSource{Ref: "helpful"}), func(s v1alpha1.EvalSpec) bool {
			return s.Rubric.Ref == "" && s.Rubric.Text == "Is it helpful?" && *s.Rubric.Threshold == 0.6
		}, ""},
		"a threshold beside ref wins":      {ref(v1alpha1.RubricSource{Ref: "helpful", RubricSpec: v1alpha1.RubricSpec{Threshold: ptr(0.9)}}), func(s v1alpha1.EvalSpec) bool { return *s.Rubric.Threshold == 0.9 }, ""},
		"strict beside ref wins":           {ref(v1alpha1.RubricSource{Ref: "helpful", RubricSpec: v1alpha1.RubricSpec{Strict: true}}), func(s v1alpha1.EvalSpec) bool { return s.Rubric.Strict }, ""},
		"an unknown rubric, the nearest":   {ref(v1alpha1.RubricSource{Ref: "helpfull"}), nil, `Rubric "helpfull" not found; did you mean "helpful"?`},
		"an unknown rubric, nothing near":  {ref(v1alpha1.RubricSource{Ref: "xyz"}), nil, `Rubric "xyz" not found`},
		"S-33 a response from a ConfigMap": {from("answers", "weather"), func(s v1alpha1.EvalSpec) bool { return s.ResponseFrom == nil && *s.Response == "18C and clear" }, ""},
		"an unknown ConfigMap":             {from("answer", "weather"), nil, `ConfigMap "answer" not found; did you mean "answers"?`},
		"an unknown key of a ConfigMap":    {from("answers", "whether"), nil, `ConfigMap "answers" has no key "whether"; did you mean "weather"?`},
	} {
		t.Run(name, func(t *testing.T) {
			before := *tc.spec.DeepCopy()
			got, err := Resolve(tc.spec, catalog)
			if diff := cmp.Diff(before, tc.spec); diff != "" {
				t.Errorf("the spec was changed:\n%s", diff)
			}
			if tc.wantErr != "" {
				var missing *NotFoundError
				if !errors.As(err, &missing) || err.Error() != tc.wantErr {
					t.Errorf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil || !tc.want(got) {
				t.Errorf("resolved to %+v, error %v", got.Rubric, err)
			}
		})
	}
}

func TestDigest(t *testing.T) {
	base := evalOf()
	for name, tc := range map[string]struct {
		other v1alpha1.EvalSpec
		same  bool
	}{
		"the same eval": {evalOf(), true},
		"another title": {evalOf(func(s *v1alpha1.EvalSpec) { s.Title = "t" }), true},
		"another Secret": {evalOf(func(s *v1alpha1.EvalSpec) {
			s.Judge = &v1alpha1.JudgeSpec{SecretRef: &v1alpha1.SecretReference{Name: "x"}}
		}), true},
		"what deferring means":      {evalOf(func(s *v1alpha1.EvalSpec) { s.OnDeferred = v1alpha1.DeferredFail }), true},
		"another description":       {evalOf(func(s *v1alpha1.EvalSpec) { s.Rubric.Description = "d" }), true},
		"another response":          {evalOf(func(s *v1alpha1.EvalSpec) { s.Response = ptr("Some of it.") }), false},
		"another prompt":            {evalOf(func(s *v1alpha1.EvalSpec) { s.Prompt = "Why?" }), false},
		"another question":          {evalOf(func(s *v1alpha1.EvalSpec) { s.Rubric = text("Is it new?") }), false},
		"another threshold":         {evalOf(func(s *v1alpha1.EvalSpec) { s.Rubric.Threshold = ptr(0.9) }), false},
		"another judge":             {evalOf(func(s *v1alpha1.EvalSpec) { s.Judge = &v1alpha1.JudgeSpec{Model: "m"} }), false},
		"a document it may rest on": {evalOf(func(s *v1alpha1.EvalSpec) { s.Context = []string{"c"} }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if same := Digest(&base) == Digest(&tc.other); same != tc.same {
				t.Errorf("same digest: %v, want %v", same, tc.same)
			}
		})
	}
}

// A digest that changes with a release would make every eval look new, and cost a run of each.
func TestDigestStaysTheSameOverReleases(t *testing.T) {
	spec := evalOf()
	const want = "sha256:7aaa6735978d72f5de8c9ff4d4ef4996a12eda2264a350feb66f4a733b344a94"
	if got := Digest(&spec); got != want {
		t.Errorf("digest %s, want %s: what was graded before would look new", got, want)
	}
}

func TestPlanDigestFollowsTheRows(t *testing.T) {
	a, _ := Make([]NamedEval{{"a", evalOf()}, {"b", evalOf()}}, Catalog{}, Options{})
	b, _ := Make([]NamedEval{{"b", evalOf()}, {"a", evalOf()}}, Catalog{}, Options{})
	if a.Digest == b.Digest {
		t.Error("plans with another order of rows have the same digest")
	}
	deferring := evalOf(func(s *v1alpha1.EvalSpec) { s.OnDeferred = v1alpha1.DeferredFail })
	c, _ := Make([]NamedEval{{"a", deferring}, {"b", evalOf()}}, Catalog{}, Options{})
	if a.Digest != c.Digest || a.Revision == c.Revision {
		t.Error("what deferring means changes no grade: the digest stays, and the revision does not")
	}
	if len(ShortDigest(a.Digest)) != 10 {
		t.Errorf("short digest %q has not 10 digits", ShortDigest(a.Digest))
	}
}
