package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// directory writes files into a new directory.
func directory(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// within cuts a directory off the lines that begin with it.
func within(dir string, lines []string) []string {
	var out []string
	for _, line := range lines {
		out = append(out, strings.TrimPrefix(line, dir+string(filepath.Separator)))
	}
	return out
}

func TestForeignFilesOfADirectoryAreNoted(t *testing.T) {
	dir := directory(t, map[string]string{
		"compose.yml":  "services: {}\nvars: {}\n",
		"empty.yml":    "# nothing\n",
		"evals.yml":    "evals: [{name: e, rubric: x}]\n",
		"list.json":    "[1]",
		"package.json": `{"name": "x", "bin": "y", "main": "z"}`,
		"report.json":  "\n" + `{"schemaVersion": "1", "run": "r", "summary": {}, "rows": []}`,
		"tools.yml":    "version: 1\ntests: [1]\nproviders: []\n",
	})
	set, err := Load([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Evals) != 1 {
		t.Errorf("%d evals, want 1", len(set.Evals))
	}
	want := []string{
		"compose.yml:1: holds no manifest and no evals: skipped",
		"empty.yml: holds no evals",
		"list.json:1: holds no manifest and no evals: skipped",
		"package.json:1: holds no manifest and no evals: skipped",
		"report.json:2: is a report of a run; render it with report -f: skipped",
		"tools.yml:1: holds no evals: not read",
	}
	if diff := cmp.Diff(want, within(dir, set.Notes)); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestMisspelledFilesOfADirectoryAreProblems(t *testing.T) {
	dir := directory(t, map[string]string{
		"a.yml":  "eval: [{name: e, rubric: x}]\n",
		"b.yml":  "tests: []\nrubric: {}\n",
		"c.yaml": head + "knd: Eval\n",
		"d.yaml": "Kind: Eval\napiversion: v1\n",
	})
	_, err := Load([]string{dir}, nil)
	if err == nil {
		t.Fatal("no problem was found")
	}
	want := []string{
		`a.yml:1: eval: unknown field; did you mean "evals"?`,
		`b.yml:2: rubric: unknown field; did you mean "rubrics"?`,
		`c.yaml:1: kind: missing; write one of Rubric, Eval, EvalRun, ConfigMap (and apiVersion: eval.mcptest.dev/v1alpha1), or the evals of another format: mcptest YAML`,
		`d.yaml:1: Kind: unknown field; did you mean "kind"?`,
	}
	if diff := cmp.Diff(want, within(dir, strings.Split(err.Error(), "\n"))); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestAForeignFileThatIsNamedIsAProblem(t *testing.T) {
	dir := directory(t, map[string]string{"package.json": `{"name": "x"}`})
	_, err := Load([]string{filepath.Join(dir, "package.json")}, nil)
	var problems Problems
	if !errors.As(err, &problems) || len(problems) != 1 || problems[0].Path != "kind" {
		t.Errorf("Load = %v, want a problem of its kind", err)
	}
}

func TestEvalsWithoutARunKeepTheOrderOfTheFiles(t *testing.T) {
	const evals = "evals:\n- {name: z, rubric: x}\n- {name: b, rubric: x}\n- {name: m, rubric: x}\n"
	runs := func(specs ...string) string {
		text := evals
		for i, spec := range specs {
			text += "---\n" + head + "kind: EvalRun\nmetadata: {name: run" + string(rune('1'+i)) + "}\nspec: " + spec + "\n"
		}
		return text
	}
	for name, test := range map[string]struct {
		text        string
		rows, notes []string
	}{
		"without a run": {evals, []string{"z", "b", "m"}, nil},
		"runs go by name, as in a cluster": {
			runs("{evalRef: {name: z}}", "{evalRef: {name: b}}"), []string{"b", "z"},
			[]string{"<stdin>:6: 1 eval is not graded: the 2 EvalRuns choose b, z"},
		},
		"one run leaves evals out": {
			runs("{evalRef: {name: m}}"), []string{"m"},
			[]string{`<stdin>:6: 2 evals are not graded: EvalRun "run1" chooses m`},
		},
		"a run of all": {runs("{evalSelector: {matchLabels: {eval.mcptest.dev/suite: stdin}}}"), []string{"b", "m", "z"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			set, p, err := load(test.text)
			if err != nil {
				t.Fatal(err)
			}
			var rows []string
			for _, r := range p.Rows {
				rows = append(rows, r.Name)
			}
			if diff := cmp.Diff(test.rows, rows); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			if _, err := set.Selected(); err != nil { // tells it once, however often it is asked
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.notes, set.Notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}
