package projection

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

func ptr[T any](v T) *T { return &v }

func planOf(t *testing.T, specs ...v1alpha1.EvalSpec) *plan.Plan {
	t.Helper()
	var evals []plan.NamedEval
	for i, s := range specs {
		evals = append(evals, plan.NamedEval{Name: string(rune('a' + i)), Spec: s})
	}
	p, err := plan.Make(evals, plan.Catalog{}, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func eval(r v1alpha1.RubricSpec, j *v1alpha1.JudgeSpec) v1alpha1.EvalSpec {
	return v1alpha1.EvalSpec{Response: ptr("An answer."), Rubric: &v1alpha1.RubricSource{RubricSpec: r}, Judge: j}
}

var text = v1alpha1.RubricSpec{Text: "Is it good?"}

func TestProjection(t *testing.T) {
	leaf := func(score float64) *v1alpha1.TreeNode { return &v1alpha1.TreeNode{Score: &score} }
	tree := v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{Ask: "One?", IfNo: leaf(0), IfYes: &v1alpha1.TreeNode{Ask: "Two?", IfYes: leaf(1), IfNo: leaf(0)}}}
	anthropic := judge.Env{Keys: map[v1alpha1.Provider]bool{v1alpha1.ProviderAnthropic: true}}
	for name, test := range map[string]struct {
		spec     v1alpha1.EvalSpec
		env      judge.Env
		calls    int32
		deferred string
		priced   bool
		withKeys int32
	}{
		"a text is one call":               {eval(text, nil), anthropic, 1, "", true, 0},
		"a jury asks each of its members":  {eval(text, &v1alpha1.JudgeSpec{Jury: &v1alpha1.Jury{Size: 3}}), anthropic, 3, "", true, 0},
		"a tree is as deep as it gets":     {eval(tree, nil), anthropic, 2, "", true, 0},
		"a model without a price":          {eval(text, &v1alpha1.JudgeSpec{Model: "claude-unheard-of"}), anthropic, 1, "", false, 0},
		"no key: deferred, and what if":    {eval(text, &v1alpha1.JudgeSpec{Model: "gpt-4.1"}), anthropic, 0, "OPENAI_API_KEY", true, 1},
		"no response: deferred":            {v1alpha1.EvalSpec{Rubric: &v1alpha1.RubricSource{RubricSpec: text}}, anthropic, 0, "no response", true, 0},
		"an empty response asks nobody":    {v1alpha1.EvalSpec{Response: ptr(" "), Rubric: &v1alpha1.RubricSource{RubricSpec: text}}, anthropic, 0, "", true, 0},
		"a panel asks each of its members": {eval(text, &v1alpha1.JudgeSpec{Panel: []v1alpha1.ModelName{"claude-sonnet-4-5", "gpt-4.1"}}), judge.EveryKey(), 2, "", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := Of(planOf(t, test.spec), test.env, judge.DefaultPrices())[0]
			if got.Calls != test.calls || !strings.Contains(got.Deferred, test.deferred) || (test.deferred == "") != (got.Deferred == "") {
				t.Errorf("%d calls, deferred %q; want %d, %q", got.Calls, got.Deferred, test.calls, test.deferred)
			}
			if priced := len(got.Unpriced) == 0; priced != test.priced || (got.Calls > 0 && priced) != (got.CostUSD > 0) {
				t.Errorf("cost %v, without a price %v", got.CostUSD, got.Unpriced)
			}
			var with int32
			if got.WithKeys != nil {
				with = got.WithKeys.Calls
			}
			if with != test.withKeys {
				t.Errorf("with keys %d calls, want %d", with, test.withKeys)
			}
		})
	}
}

func TestCostGrowsWithTheMembers(t *testing.T) {
	rows := Of(planOf(t, eval(text, nil), eval(text, &v1alpha1.JudgeSpec{Jury: &v1alpha1.Jury{Size: 3}})), judge.EveryKey(), judge.DefaultPrices())
	if one, three := rows[0].CostUSD, rows[1].CostUSD; three < 2.999*one || three > 3.001*one {
		t.Errorf("a jury of 3 costs %v, one grading %v", three, one)
	}
}

func TestNamesAreSafeToPrint(t *testing.T) {
	spec := eval(text, nil)
	spec.Title = "a\x1b[2Jb"
	var b bytes.Buffer
	if err := Write(&b, Of(planOf(t, spec), judge.EveryKey(), judge.DefaultPrices()), KeysLocal); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Errorf("an escape was printed: %q", b.String())
	}
}
