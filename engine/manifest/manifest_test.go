package manifest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/engine/plan"
)

const head = "apiVersion: eval.mcptest.dev/v1alpha1\n"

// evalWith is an Eval whose spec.rubric begins on line 5.
func evalWith(rubric string) string {
	return head + "kind: Eval\nmetadata: {name: a}\nspec:\n  rubric:\n" + indent(rubric, 4)
}

func indent(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.Repeat(" ", n) + lines[i]
	}
	return strings.Join(lines, "\n") + "\n"
}

// load loads text as standard input, follows references and plans.
func load(text string) (*Set, *plan.Plan, error) {
	set, err := Load([]string{Stdin}, strings.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	if err := set.Check(); err != nil {
		return set, nil, err
	}
	p, err := set.Plan(plan.Options{})
	return set, p, err
}

func TestProblemsHaveLinesAndSayWhatToWrite(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"an unknown field is told with the nearest": {
			evalWith("critera: []"),
			`<stdin>:6: spec.rubric.critera: unknown field; did you mean "criteria"?`,
		},
		"snake case is told as camel case": {
			evalWith("text: x\nrequire_evidence: true"),
			`<stdin>:7: spec.rubric.require_evidence: unknown field; did you mean "requireEvidence"?`,
		},
		"an unknown field that is like none": {
			evalWith("text: x\nscale: {zebra: {}}"),
			`<stdin>:7: spec.rubric.scale.zebra: unknown field; known here: boolean, letter, likert, unit`,
		},
		"an unquoted yes in a tree": {
			evalWith("tree:\n  ask: Is it so?\n  yes: {score: 1}\n  ifNo: {score: 0}"),
			`<stdin>:8: spec.rubric.tree.yes: YAML reads an unquoted yes as true; write ifYes`,
		},
		"an unquoted No in a tree": {
			evalWith("tree:\n  ask: Is it so?\n  ifYes: {score: 1}\n  No: {score: 0}"),
			`<stdin>:9: spec.rubric.tree.No: YAML reads an unquoted No as false; write ifNo`,
		},
		"a quoted yes in a tree": {
			evalWith("tree:\n  ask: Is it so?\n  \"yes\": {score: 1}\n  ifNo: {score: 0}"),
			`<stdin>:8: spec.rubric.tree.yes: unknown field; write ifYes`,
		},
		"a boolean key elsewhere": {
			head + "kind: Eval\nmetadata:\n  name: a\n  labels:\n    on: x\nspec: {rubric: {text: x}}",
			`<stdin>:6: metadata.labels[on]: YAML reads an unquoted on as true; put it in quotes: "on"`,
		},
		"an unquoted yes where a text is expected": {
			head + "kind: Eval\nmetadata: {name: a}\nspec:\n  response: yes\n  rubric: {text: x}",
			`<stdin>:5: spec.response: is a boolean (true), where a text is expected; put it in quotes: "yes"`,
		},
		"a number where a text is expected": {
			head + "kind: Eval\nmetadata: {name: a}\nspec:\n  response: 1.50\n  rubric: {text: x}",
			`<stdin>:5: spec.response: is the number 1.5, where a text is expected; put it in quotes: "1.50"`,
		},
		"a text where a number is expected": {
			evalWith("text: x\nthreshold: high"),
			`<stdin>:7: spec.rubric.threshold: is the text "high", where a number is expected`,
		},
		"a number that must be there": {
			evalWith("criteria:\n  - name: a\n    description: b\n    examples:\n      - response: x"),
			`<stdin>:10: spec.rubric.criteria[0].examples[0].score: missing; write a number`,
		},
		"a number that must be there and is empty": {
			evalWith("text: x\nscale:\n  likert: {max: 5, min: }"),
			`<stdin>:8: spec.rubric.scale.likert.min: missing; write a whole number`,
		},
		"a fraction where a whole number is expected": {
			head + "kind: Eval\nmetadata: {name: a}\nspec:\n  rubric: {text: x}\n  judge: {jury: {size: 2.5}}",
			`<stdin>:6: spec.judge.jury.size: 2.5 is not a whole number from -2147483647 to 2147483647`,
		},
		"a mapping where a list is expected": {
			evalWith("criteria: {name: x}"),
			`<stdin>:6: spec.rubric.criteria: is a mapping, where a list is expected`,
		},
		"a list where a mapping is expected": {
			evalWith("[]"),
			`<stdin>:6: spec.rubric: is a list, where a mapping is expected`,
		},
		"a rubric in one text": {
			head + "kind: Eval\nmetadata: {name: a}\nspec:\n  rubric: Be nice.",
			`<stdin>:5: spec.rubric: is a text, where a mapping is expected; a rubric in one text is written {text: "Be nice."}`,
		},
		"a key that is there twice": {
			evalWith("text: x\ntext: y"),
			`<stdin>:7: spec.rubric.text: is there twice; remove one of them`,
		},
		"an empty item": {
			evalWith("criteria:\n  -"),
			`<stdin>:7: spec.rubric.criteria[0]: is empty; write a mapping, or remove it`,
		},
		"a threshold out of range": {
			evalWith("text: x\nthreshold: 1.5"),
			`<stdin>:7: spec.rubric.threshold: 1.5: must be from 0 to 1, such as 0.7`,
		},
		"a problem inside a list": {
			evalWith("criteria:\n  - {name: a, description: x}\n  - name: a\n    description: z"),
			`<stdin>:8: spec.rubric.criteria[1].name: "a" is there twice; every name is used once`,
		},
		"a missing field is told where it belongs": {
			evalWith("criteria:\n  - {name: a, description: x}\n  - description: z"),
			`<stdin>:8: spec.rubric.criteria[1].name: missing: give the criterion a name; the report shows it`,
		},
		"a value that is not known": {
			evalWith("criteria: [{name: a, description: x}]\naggregation: average"),
			`<stdin>:7: spec.rubric.aggregation: "average": supported values: "weighted_average", "min", "worst"`,
		},
		"both text and criteria": {
			evalWith("text: x\ncriteria: [{name: a, description: x}]"),
			`<stdin>:5: spec.rubric: text and criteria exclude each other: set exactly one of ref (a Rubric of this namespace), text, criteria, tree or preset (criteria beside a preset are added to it)`,
		},
		"neither text nor criteria": {
			evalWith("threshold: 0.5"),
			`<stdin>:5: spec.rubric: missing: set exactly one of ref (a Rubric of this namespace), text, criteria, tree or preset (criteria beside a preset are added to it)`,
		},
		"a rubric that is not there": {
			evalWith("ref: helpfull") + "---\n" + head + "kind: Rubric\nmetadata: {name: helpful}\nspec: {text: x}",
			`<stdin>:6: spec.rubric.ref: Rubric "helpfull" is not in these files; did you mean "helpful"?`,
		},
		"a ConfigMap that is not there": {
			head + "kind: Eval\nmetadata: {name: a}\nspec:\n  rubric: {text: x}\n  responseFrom:\n    configMapKeyRef: {name: m, key: k}",
			`<stdin>:7: spec.responseFrom.configMapKeyRef.name: ConfigMap "m" is not in these files`,
		},
		"an override that nothing can pass": {
			evalWith("ref: t\nthreshold: 0.9") + "---\n" + head + "kind: Rubric\nmetadata: {name: t}\nspec: {threshold: 0.3, tree: {ask: x, ifYes: {score: 0.5}, ifNo: {score: 0}}}",
			`<stdin>:5: spec.rubric.tree: 0.5: no candidate could pass: the best leaf scores 0.5 and the threshold is 0.9; lower the threshold, or raise a leaf`,
		},
		"an unknown kind": {
			head + "kind: Evall\nmetadata: {name: a}",
			`<stdin>:2: kind: unknown kind "Evall"; did you mean "Eval"?`,
		},
		"another version of the API": {
			"apiVersion: eval.mcptest.dev/v1beta1\nkind: Eval\nmetadata: {name: a}",
			`<stdin>:1: apiVersion: "eval.mcptest.dev/v1beta1" is not known; write apiVersion: eval.mcptest.dev/v1alpha1`,
		},
		"no apiVersion": {
			"kind: Rubric\nmetadata: {name: a}\nspec: {text: x}",
			`<stdin>:1: apiVersion: missing; write apiVersion: eval.mcptest.dev/v1alpha1`,
		},
		"no kind": {
			"spec:\n- name: x",
			`<stdin>:1: kind: missing; write one of Rubric, Eval, EvalRun, ConfigMap (and apiVersion: eval.mcptest.dev/v1alpha1), or the evals of another format: mcptest YAML`,
		},
		"a misspelled block of another format": {
			"eval:\n- name: x",
			`<stdin>:1: eval: unknown field; did you mean "evals"?`,
		},
		"a report that was stored": {
			`{"schemaVersion": "1", "run": "r", "summary": {}, "rows": []}`,
			`<stdin>:1: is a report of a run; render it with report -f`,
		},
		"a threshold beside the rubric": {
			head + "kind: Eval\nmetadata: {name: a}\nspec:\n  rubric: {text: x}\n  threshold: 0.6",
			`<stdin>:6: spec.threshold: unknown field; write it in spec.rubric`,
		},
		"weights that are all 0": {
			evalWith("criteria: [{name: a, description: b, weight: 0}]"),
			`<stdin>:6: spec.rubric.criteria: every weight is 0, so no score can be made; give at least one criterion a weight above 0`,
		},
		"a budget of nothing": {
			head + "kind: EvalRun\nmetadata: {name: r}\nspec:\n  eval: {rubric: {text: x}}\n  maxCost: 0",
			`<stdin>:6: spec.maxCost: 0: must be above 0 and at most 1000000 US dollars; remove it for no limit`,
		},
		"a budget above all": {
			head + "kind: EvalRun\nmetadata: {name: r}\nspec:\n  eval: {rubric: {text: x}}\n  maxCost: 1000001",
			`<stdin>:6: spec.maxCost: 1.000001e+06: must be above 0 and at most 1000000 US dollars; remove it for no limit`,
		},
		"a run without time": {
			head + "kind: EvalRun\nmetadata: {name: r}\nspec:\n  eval: {rubric: {text: x}}\n  activeDeadlineSeconds: 0",
			`<stdin>:6: spec.activeDeadlineSeconds: 0: must be from 1 to 604800`,
		},
		"a run that is kept too long": {
			head + "kind: EvalRun\nmetadata: {name: r}\nspec:\n  eval: {rubric: {text: x}}\n  ttlSecondsAfterFinished: 31536001",
			`<stdin>:6: spec.ttlSecondsAfterFinished: 31536001: must be from 0 to 31536000`,
		},
		"a run that starts pods too often": {
			head + "kind: EvalRun\nmetadata: {name: r}\nspec:\n  eval: {rubric: {text: x}}\n  backoffLimitPerIndex: -1",
			`<stdin>:6: spec.backoffLimitPerIndex: -1: must be from 0 to 100`,
		},
		"a judge of a run whose name is none": {
			head + "kind: EvalRun\nmetadata: {name: r}\nspec:\n  eval: {rubric: {text: x}}\n  judge: {model: gpt-a b}",
			`<stdin>:6: spec.judge.model: gpt-a b: write the model as its provider names it, such as claude-sonnet-5-5`,
		},
		"a selector of too many labels": {
			head + "kind: EvalRun\nmetadata: {name: r}\nspec:\n  evalSelector:\n    matchLabels: {a: x, b: x, c: x, d: x, e: x, f: x, g: x, h: x, i: x, j: x, k: x, l: x, m: x, ww: x, o: x, p: x, q: x}",
			`<stdin>:6: spec.evalSelector.matchLabels: "17 labels": may have at most 16 labels`,
		},
		"a queue with a long name": {
			head + "kind: EvalRun\nmetadata: {name: r}\nspec:\n  eval: {rubric: {text: x}}\n  queueName: " + strings.Repeat("q", 64),
			`<stdin>:6: spec.queueName: "64 characters": may have at most 63 characters`,
		},
		"a model that nobody is known to offer": {
			head + "kind: Eval\nmetadata: {name: a}\nspec:\n  rubric: {text: x}\n  judge:\n    temperature: 0\n    model: sonnet",
			`<stdin>:8: spec.judge.model: model sonnet: its name does not tell its provider: set judge.provider to anthropic, openai, gemini or mistral (openai, with OPENAI_BASE_URL, for any server that speaks OpenAI's protocol)`,
		},
		"no manifest at all": {
			"just text",
			`<stdin>:1: not a manifest; write apiVersion: eval.mcptest.dev/v1alpha1, a kind and a spec`,
		},
		"no name": {
			head + "kind: Rubric\nmetadata: {}\nspec: {text: x}",
			`<stdin>:3: metadata.name: missing; give the Rubric a name`,
		},
		"a name that no object can have": {
			head + "kind: Rubric\nmetadata: {name: My Rubric}\nspec: {text: x}",
			`<stdin>:3: metadata.name: "My Rubric" is no name for an object: write lower-case letters, digits and dashes, such as my-eval`,
		},
		"an object that is there twice": {
			strings.Repeat(head+"kind: Rubric\nmetadata: {name: a}\nspec: {text: x}\n---\n", 2),
			`<stdin>:8: metadata.name: Rubric "a" is there twice: it stands in <stdin>:3 too; rename one of them`,
		},
		"two namespaces": {
			head + "kind: Rubric\nmetadata: {name: a, namespace: p}\nspec: {text: x}\n---\n" + head + "kind: Rubric\nmetadata: {name: b, namespace: q}\nspec: {text: x}",
			`<stdin>:8: metadata.namespace: the files hold objects of the namespaces "p" and "q"; load one namespace at a time`,
		},
		"what is not YAML": {
			"a: [\nb: }",
			`<stdin>:2: not YAML: did not find expected node content`,
		},
		"a tab": {
			"a:\n\tb: 1",
			`<stdin>:2: not YAML: found character that cannot start any token (YAML is indented with spaces, not tabs)`,
		},
		"a run of nothing": {
			head + "kind: EvalRun\nmetadata: {name: r}\nspec: {parallelism: 4}",
			`<stdin>:4: spec: set exactly one of evalRef (one Eval), evalSelector (the Evals with these labels) or eval (the eval itself)`,
		},
		"a run of an eval that is not there": {
			evalWith("text: x") + "---\n" + head + "kind: EvalRun\nmetadata: {name: r}\nspec:\n  evalRef: {name: b}",
			`<stdin>:12: spec.evalRef.name: Eval "b" is not in these files`,
		},
		"a problem of an inline eval": {
			head + "kind: EvalRun\nmetadata: {name: r}\nspec:\n  eval:\n    rubric:\n      text: x\n      threshold: 7",
			`<stdin>:8: spec.eval.rubric.threshold: 7: must be from 0 to 1, such as 0.7`,
		},
		"a ConfigMap of our API": {
			head + "kind: ConfigMap\nmetadata: {name: a}",
			`<stdin>:1: apiVersion: "eval.mcptest.dev/v1alpha1" is not known; write apiVersion: v1`,
		},
		"an alias that holds itself": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: &a\n  x: *a",
			`<stdin>:4: data[x]: is a mapping, where a text is expected`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := load(test.text)
			if err == nil {
				t.Fatalf("no problem was found, want %s", test.want)
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAllProblemsOfAllFilesAreTold(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("b.yaml", evalWith("texd: x\nthreshold: 2"))
	write("a/a.yml", evalWith("text: x\nthreshold: 3"))
	write("c.json", `{"apiVersion": "eval.mcptest.dev/v1alpha1",`+"\n\t"+`"kind": "Rubric", "metadata": {"name": "j"}, "spec": {"text": "\ud83d\ude00 \u00e9", "colour": 1}}`)
	write(".hidden/x.yaml", "nonsense")
	write("README.md", "nonsense")
	_, err := Load([]string{dir, filepath.Join(dir, "b.yaml"), filepath.Join(dir, "missing.yaml")}, nil)
	var problems Problems
	if !errors.As(err, &problems) {
		t.Fatalf("Load = %v, want Problems", err)
	}
	var got []string
	for _, p := range problems {
		got = append(got, strings.TrimPrefix(p.Error(), dir+string(filepath.Separator)))
	}
	want := []string{
		`a/a.yml:7: spec.rubric.threshold: 3: must be from 0 to 1, such as 0.7`,
		`b.yaml:6: spec.rubric.texd: unknown field; did you mean "text"?`,
		`c.json:2: spec.colour: unknown field; known here: aggregation, criteria, description, preset, requireEvidence, requiredGate, scale, strict, text, threshold, tree`,
		`missing.yaml: no such file or directory`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestEmptyDirectoryIsAProblem(t *testing.T) {
	dir := t.TempDir()
	_, err := Load([]string{dir}, nil)
	if want := dir + ": no .yaml, .yml or .json file is in this directory"; err == nil || err.Error() != want {
		t.Errorf("Load = %v, want %s", err, want)
	}
}

func TestLinksOfADirectory(t *testing.T) {
	dir := t.TempDir()
	for link, target := range map[string]string{"nothing.yaml": "gone.yaml", "directory.yaml": t.TempDir(), "loop.yaml": "loop.yaml"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Load([]string{dir}, nil)
	// Only what may be a manifest, and cannot be looked at, is a problem.
	if want := filepath.Join(dir, "loop.yaml") + ": too many levels of symbolic links"; err == nil || err.Error() != want {
		t.Errorf("Load = %v, want %s", err, want)
	}
}

func TestLargeFileIsAProblem(t *testing.T) {
	_, err := Load([]string{Stdin}, strings.NewReader(strings.Repeat("# x\n", MaxFileBytes/4+1)))
	if want := "<stdin>: the file is larger than 16 MiB; split it"; err == nil || err.Error() != want {
		t.Errorf("Load = %v, want %s", err, want)
	}
}

func TestBombsEndSoon(t *testing.T) {
	const object = "apiVersion: eval.mcptest.dev/v1alpha1\nkind: EvalRun\nmetadata:\n  name: a\n  managedFields:\n  - fieldsV1:\n"
	var laughs strings.Builder
	laughs.WriteString("      a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 12 {
		fmt.Fprintf(&laughs, "      a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	for name, test := range map[string]struct{ text, want string }{
		"a billion laughs":            {laughs.String(), "values, aliases included"},
		"an alias inside its anchor":  {"      a: &a [*a, *a, *a]\n", "nested more than"},
		"a merge inside its anchor":   {"      a: &a {<<: [*a, *a, *a, *a]}\n", "nested more than"},
		"a merge that merges merges":  {"      a: &a {b: {<<: *a}, c: {<<: *a}, d: {<<: *a}}\n", "nested more than"},
		"a long key in deep mappings": {"      a: &a {? " + strings.Repeat("k", 1<<20) + " : [*a, *a]}\n", "a key has at most"},
		"deep flow lists":             {"      a: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n", "nested more than"},
		"very deep flow lists":        {"      a: " + strings.Repeat("[", 1<<20), "not YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := Load([]string{Stdin}, strings.NewReader(object+test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Load = %.300v, want a problem with %q", err, test.want)
			}
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("took %v", d)
			}
			if err != nil && len(err.Error()) > 10000 {
				t.Errorf("the problems have %d bytes", len(err.Error()))
			}
		})
	}
}

func TestWhatKubectlReadsIsRead(t *testing.T) {
	set, p, err := load(`
# anchors and merge keys
apiVersion: v1
kind: ConfigMap
metadata: {name: answers, creationTimestamp: "2026-01-02T03:04:05Z"}
data:
  a: &text |
    two
    lines
  "yes": *text
---
apiVersion: v1
kind: List
items:
- apiVersion: eval.mcptest.dev/v1alpha1
  kind: Rubric
  metadata: {name: r}
  spec:
    criteria:
    - &base {name: one, description: d, weight: 2, scoreRanges: {0: bad, 10: good}}
    - <<: *base
      name: two
  status: {observedGeneration: 1}
---
---
apiVersion: eval.mcptest.dev/v1alpha1
kind: Eval
metadata: {name: e, labels: {team: docs}}
spec:
  responseFrom: {configMapKeyRef: {name: answers, key: "yes"}}
  rubric: {ref: r, threshold: 0.8}
  matrix: {models: [gpt-a, gpt-b]}
---
apiVersion: eval.mcptest.dev/v1alpha1
kind: Eval
metadata: {name: other}
spec: {rubric: {text: x}, response: null}
---
apiVersion: eval.mcptest.dev/v1alpha1
kind: EvalRun
metadata: {generateName: docs-}
spec: {evalSelector: {matchLabels: {team: docs}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: x}
`)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, r := range p.Rows {
		rows = append(rows, r.Name)
	}
	if diff := cmp.Diff([]string{"e [model=gpt-a]", "e [model=gpt-b]"}, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if got := *p.Rows[0].Spec.Response; got != "two\nlines\n" {
		t.Errorf("response = %q", got)
	}
	if c := set.Rubrics["r"].Criteria[1]; c.Name != "two" || c.Description != "d" || *c.Weight != 2 || c.ScoreRanges["0"] != "bad" {
		t.Errorf("the merged criterion is %+v", c)
	}
	if diff := cmp.Diff([]string{
		`<stdin>:39: 1 eval is not graded: EvalRun "docs-" chooses e`,
		"<stdin>:44: Deployment of apps/v1 is not read here: skipped",
	}, set.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if at, ok := set.Position(KindEval, "e", "spec.matrix.models[1]"); !ok || at.Line != 32 {
		t.Errorf("Position = %v, %v, want line 32", at, ok)
	}
}

func TestRunsChooseEvals(t *testing.T) {
	evals := evalWith("text: x") + "---\n" + strings.Replace(evalWith("text: z"), "name: a", "name: b", 1) + "---\n"
	run := func(spec string) string {
		return evals + head + "kind: EvalRun\nmetadata: {name: run}\nspec: " + spec
	}
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"without a run all":       {evals, []string{"a", "b"}},
		"a reference":             {run("{evalRef: {name: b}}"), []string{"b"}},
		"an eval in the run":      {run("{eval: {rubric: {text: z}}}"), []string{"run"}},
		"several runs, each once": {run("{evalRef: {name: b}}") + "\n---\n" + head + "kind: EvalRun\nmetadata: {name: run2}\nspec: {evalRef: {name: b}}", []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, p, err := load(test.text)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range p.Rows {
				got = append(got, r.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunOverridesTheJudge(t *testing.T) {
	text := evalWith("text: x") + "---\n" + head + "kind: EvalRun\nmetadata: {name: run}\nspec: {evalRef: {name: a}, judge: {model: gpt-4.1}}"
	_, p, err := load(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Rows[0].Spec.Judge.Model; got != "gpt-4.1" {
		t.Errorf("model = %q, want gpt-4.1", got)
	}
	_, _, err = load(text + "\n---\n" + head + "kind: EvalRun\nmetadata: {name: run2}\nspec: {evalRef: {name: a}}")
	if err == nil || !strings.Contains(err.Error(), "override the judge differently") {
		t.Errorf("two runs with different judges: %v", err)
	}
}

// Each directory is a set of its own, as the files of one format are.
func TestExamplesAreValid(t *testing.T) {
	for name, test := range map[string]struct {
		pattern string
		rows    int
	}{
		"manifests":    {"../../examples/*.yaml", 10},
		"mcptest YAML": {"../../examples/mcptest/*.yml", 19},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := filepath.Glob(test.pattern)
			if err != nil {
				t.Fatal(err)
			}
			set, err := Load(files, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := set.Check(); err != nil {
				t.Fatal(err)
			}
			set.Runs = nil // grade all of them
			p, err := set.Plan(plan.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Rows) < test.rows {
				t.Errorf("the examples have %d rows, want at least %d", len(p.Rows), test.rows)
			}
		})
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(evalWith("text: x"))
	f.Add(evalWith("tree: {ask: x, yes: {score: 1}}"))
	f.Add("a: &a [*a, *a]\n<<: *a")
	f.Add("a: &a {<<: *a}")
	f.Add(`{"kind": "Eval", "apiVersion": "eval.mcptest.dev/v1alpha1", "spec": {"title": "\ud800"}}`)
	f.Add("kind: List\nitems: [*x]")
	f.Add("? [a]\n: b\n!!binary x: !!float .nan")
	f.Add("evals: [{name: a, rubric: {tree: {ask: q, yes: {score: 1}, no: {score: 0}}}}]")
	f.Add(head + "kind: EvalRun\nmetadata: {generateName: '-'}\nspec: {eval: {rubric: {ref: a}}}")
	f.Fuzz(func(t *testing.T, text string) {
		set, _, err := load(text)
		var problems Problems
		if err != nil && !errors.As(err, &problems) {
			t.Errorf("the error is no Problems: %v", err)
		}
		for _, p := range problems {
			if strings.ContainsAny(p.Error(), "\n\r") {
				t.Errorf("a problem on several lines: %q", p.Error())
			}
			if len(p.Error()) > 10000 {
				t.Errorf("a problem of %d bytes", len(p.Error()))
			}
		}
		if set != nil {
			set.Name()
		}
	})
}
