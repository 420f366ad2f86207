package manifest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/engine/plan"
)

// loaded is what a run of a file would be.
func loaded(t *testing.T, text string) (*Set, *plan.Plan) {
	t.Helper()
	set, err := Load([]string{Stdin}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := set.Plan(plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set, p
}

func TestJSONMeansWhatJSONMeans(t *testing.T) {
	for name, tc := range map[string]struct{ written, want string }{
		"an escaped slash":           {`https:\/\/x.y`, "https://x.y"},
		"a next line":                {"a\u0085b", "a\u0085b"},
		"blanks beside a line break": {"a \u2028 b \u2029 c", "a \u2028 b \u2029 c"},
		"a delete, and a C1 control": {"a\u007f\u0090b", "a\u007f\u0090b"},
		"an escape of an escape":     {`a\\/b`, `a\/b`},
		"letters of other scripts":   {"größe 東京 🙂", "größe 東京 🙂"},
	} {
		t.Run(name, func(t *testing.T) {
			_, p := loaded(t, `{"evals":[{"name":"a","rubric":"x","response":"`+tc.written+`"}]}`)
			if diff := cmp.Diff(tc.want, *p.Rows[0].Spec.Response); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADirectiveOfYAML12IsTaken(t *testing.T) {
	loaded(t, "# a comment\n%YAML 1.2\n---\nevals: [{name: a, rubric: x, response: r}]\n")
}

func TestARubricsNameMayHoldAVariable(t *testing.T) {
	set, _ := loaded(t, "variables: {team: acme}\nrubrics: {\"${team}-style\": x}\nevals: [{name: a, response: r, rubric: {ref: \"${team}-style\"}}]\n")
	if _, ok := set.Rubrics["acme-style"]; !ok {
		t.Errorf("rubrics = %v", set.Rubrics)
	}
}

func TestABlankQuestionIsNone(t *testing.T) {
	_, err := Load([]string{Stdin}, strings.NewReader(`evals: [{name: a, response: r, rubric: {tree: {ask: " ", yes: {score: 1}, no: {score: 0}}}}]`))
	if err == nil || !strings.Contains(err.Error(), "write the question") {
		t.Errorf("err = %v", err)
	}
}

// Small files that took minutes: what aliases repeat is counted, and nothing is made up for problems that are not told.
func TestSmallFilesDoNotTakeLong(t *testing.T) {
	var keys, aliases, refs strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&keys, "k%d: 1, ", i)
		fmt.Fprint(&aliases, "- *a\n")
		fmt.Fprintf(&refs, "- {name: e%d, rubric: {ref: r%d}}\n", i, i)
	}
	for name, text := range map[string]string{
		"aliases of unknown keys": "evals:\n- &a {" + keys.String() + "}\n" + aliases.String(),
		"unknown refs":            "rubrics: {a: x}\nevals:\n" + refs.String(),
	} {
		t.Run(name, func(t *testing.T) {
			var problems Problems
			if _, err := Load([]string{Stdin}, strings.NewReader(text)); !errors.As(err, &problems) || len(problems) > 300 {
				t.Errorf("%d problems", len(problems))
			}
		})
	}
}
