package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

func TestNamesOfCells(t *testing.T) {
	forty := strings.Repeat("é", 40)
	for name, tc := range map[string]struct {
		cell   v1alpha1.Cell
		number int
		want   string
	}{
		"S-31 both axes":                              {v1alpha1.Cell{Model: "m", Prompt: "p"}, 1, "model=m, prompt=p"},
		"S-31 a model alone":                          {v1alpha1.Cell{Model: "m"}, 1, "model=m"},
		"S-31 a prompt alone":                         {v1alpha1.Cell{Prompt: "p"}, 1, "prompt=p"},
		"S-31 40 characters stay":                     {v1alpha1.Cell{Prompt: forty}, 3, "prompt=" + forty},
		"S-31 41 are cut to 40 and numbered":          {v1alpha1.Cell{Prompt: forty + "e"}, 3, "prompt=" + forty + "… #3"},
		"S-31 a prompt of several lines is one":       {v1alpha1.Cell{Prompt: "  what\n\tis   new? "}, 1, "prompt=what is new?"},
		"S-31 no space is left where a prompt is cut": {v1alpha1.Cell{Prompt: strings.Repeat("e", 39) + " and so on"}, 12, "prompt=" + strings.Repeat("e", 39) + "… #12"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := coordinates(tc.cell, tc.number); got != tc.want {
				t.Errorf("coordinates = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestS32CellsDifferInTheirCoordinatesOnly(t *testing.T) {
	spec := evalOf(matrix([]v1alpha1.ModelName{"a", "b"}, "p", "q"), func(s *v1alpha1.EvalSpec) {
		s.Rubric = &v1alpha1.RubricSource{Ref: "r", RubricSpec: v1alpha1.RubricSpec{Threshold: ptr(0.9)}}
		s.Context, s.OnDeferred = []string{"a document"}, v1alpha1.DeferredFail
		s.Judge = &v1alpha1.JudgeSpec{Temperature: ptr(0.5), Jury: &v1alpha1.Jury{Size: 3, Consensus: ptr(0.6)}}
	})
	p, err := Make([]NamedEval{{"e", spec}}, Catalog{Rubrics: map[string]v1alpha1.RubricSpec{"r": criteria("x", "y")}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Rows) != 4 {
		t.Fatalf("rows %v, want 4", rowNames(p))
	}
	rubric := criteria("x", "y")
	rubric.Threshold = ptr(0.9)
	digests := map[string]bool{}
	for _, row := range p.Rows {
		want := spec
		want.Matrix, want.Prompt = nil, row.Cell.Prompt
		want.Rubric = &v1alpha1.RubricSource{RubricSpec: rubric}
		want.Judge = &v1alpha1.JudgeSpec{Model: row.Cell.Model, Temperature: ptr(0.5), Jury: &v1alpha1.Jury{Size: 3, Consensus: ptr(0.6)}}
		if diff := cmp.Diff(want, row.Spec); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.Name, diff)
		}
		if row.Eval != "e" {
			t.Errorf("%s is a row of %q", row.Name, row.Eval)
		}
		digests[row.Digest] = true
	}
	if len(digests) != 4 {
		t.Errorf("%d digests for 4 cells", len(digests))
	}
	p.Rows[0].Spec.Rubric.Criteria[0].Name = "changed"
	if p.Rows[1].Spec.Rubric.Criteria[0].Name == "changed" {
		t.Error("two cells share one rubric in memory")
	}
}

func TestS30TheProjectionOfARunIsTheSumOverItsCells(t *testing.T) {
	jury := func(s *v1alpha1.EvalSpec) { s.Judge = &v1alpha1.JudgeSpec{Jury: &v1alpha1.Jury{Size: 5}} }
	p, err := Make([]NamedEval{
		{"one", evalOf()},
		{"cells", evalOf(matrix([]v1alpha1.ModelName{"a", "b"}, "p", "q", "r"), jury)},
		{"deferred", evalOf(func(s *v1alpha1.EvalSpec) { s.Response = nil })},
	}, Catalog{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Calls != 1+6*5 {
		t.Errorf("%d calls, want 1 and 6 cells of 5", p.Calls)
	}
}

func TestResolveFillsInPresets(t *testing.T) {
	const without = "No supporting material was given"
	documents := func(s *v1alpha1.EvalSpec) { s.Context = []string{"It is 18C."} }
	source := func(r v1alpha1.RubricSource) func(*v1alpha1.EvalSpec) {
		return func(s *v1alpha1.EvalSpec) { s.Rubric = &r }
	}
	groundedness := v1alpha1.RubricSpec{Preset: "groundedness"}
	catalog := Catalog{Rubrics: map[string]v1alpha1.RubricSpec{"grounded": groundedness}}
	last := func(r *v1alpha1.RubricSource) string { return r.Criteria[len(r.Criteria)-1].Name }
	for name, tc := range map[string]struct {
		spec v1alpha1.EvalSpec
		want func(r *v1alpha1.RubricSource) bool
	}{
		"S-35 without context the judge is told so": {evalOf(source(v1alpha1.RubricSource{RubricSpec: groundedness})), func(r *v1alpha1.RubricSource) bool { return strings.Contains(r.Criteria[0].Description, without) }},
		"S-35 with context it is not":               {evalOf(source(v1alpha1.RubricSource{RubricSpec: groundedness}), documents), func(r *v1alpha1.RubricSource) bool { return !strings.Contains(r.Criteria[0].Description, without) }},
		"S-35 by reference too":                     {evalOf(source(v1alpha1.RubricSource{Ref: "grounded"})), func(r *v1alpha1.RubricSource) bool { return strings.Contains(r.Criteria[0].Description, without) }},
		"S-35 by reference, with context":           {evalOf(source(v1alpha1.RubricSource{Ref: "grounded"}), documents), func(r *v1alpha1.RubricSource) bool { return !strings.Contains(r.Criteria[0].Description, without) }},
		"S-36 a threshold overrides":                {evalOf(source(v1alpha1.RubricSource{RubricSpec: v1alpha1.RubricSpec{Preset: "safety", Threshold: ptr(0.95)}})), func(r *v1alpha1.RubricSource) bool { return *r.Threshold == 0.95 && !r.Strict }},
		"S-36 so does one beside a reference":       {evalOf(source(v1alpha1.RubricSource{Ref: "grounded", RubricSpec: v1alpha1.RubricSpec{Threshold: ptr(0.95)}})), func(r *v1alpha1.RubricSource) bool { return *r.Threshold == 0.95 }},
		"S-36 strict overrides":                     {evalOf(source(v1alpha1.RubricSource{RubricSpec: v1alpha1.RubricSpec{Preset: "safety", Strict: true}})), func(r *v1alpha1.RubricSource) bool { return r.Strict }},
		"S-36 so does strict beside a reference":    {evalOf(source(v1alpha1.RubricSource{Ref: "grounded", RubricSpec: v1alpha1.RubricSpec{Strict: true}})), func(r *v1alpha1.RubricSource) bool { return r.Strict }},
		"S-36 own criteria come after the preset's": {evalOf(source(v1alpha1.RubricSource{RubricSpec: v1alpha1.RubricSpec{Preset: "safety", Criteria: criteria("mine").Criteria}})), func(r *v1alpha1.RubricSource) bool { return len(r.Criteria) > 1 && last(r) == "mine" }},
		"S-36 nothing of the preset's name is left": {evalOf(source(v1alpha1.RubricSource{RubricSpec: v1alpha1.RubricSpec{Preset: "safety@1"}})), func(r *v1alpha1.RubricSource) bool { return r.Preset == "" && len(r.Criteria) > 0 }},
		"S-36 the bare name means what the newest does": {evalOf(source(v1alpha1.RubricSource{RubricSpec: v1alpha1.RubricSpec{Preset: "safety"}})), func(r *v1alpha1.RubricSource) bool {
			pinned := evalOf(source(v1alpha1.RubricSource{RubricSpec: v1alpha1.RubricSpec{Preset: "safety@1"}}))
			resolved, err := Resolve(pinned, catalog)
			return err == nil && cmp.Equal(resolved.Rubric, r)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Resolve(tc.spec, catalog)
			if err != nil || len(got.Rubric.Criteria) == 0 || !tc.want(got.Rubric) {
				t.Errorf("error %v, resolved to %+v", err, got.Rubric)
			}
			if problems := Validate(&got); len(problems) > 0 {
				t.Errorf("it is not valid: %v", problems)
			}
		})
	}
	several := evalOf(func(s *v1alpha1.EvalSpec) {
		s.Rubric, s.Rubrics = nil, []v1alpha1.NamedRubric{{Name: "a", RubricSource: v1alpha1.RubricSource{Ref: "grounded"}}, {Name: "b", RubricSource: *text("t")}}
	})
	got, err := Resolve(several, catalog)
	if err != nil || len(got.Rubrics[0].Criteria) == 0 || got.Rubrics[1].Text != "t" {
		t.Errorf("S-36 of several rubrics: error %v, resolved to %+v", err, got.Rubrics)
	}
}
