package mcptest_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/engine/convert/mcptest"
	"github.com/mcptest/mcptest-operator/engine/manifest"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

const examples = "../../../examples/mcptest"

// load reads a text as mcptest YAML and checks it as validate does.
func load(text string) (*manifest.Set, *plan.Plan, error) {
	set, err := manifest.LoadOptions{Format: mcptest.Format()}.Load([]string{manifest.Stdin}, strings.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	if err := set.Check(); err != nil {
		return set, nil, err
	}
	p, err := set.Plan(plan.Options{})
	return set, p, err
}

// written are the manifests that a text becomes.
func written(t *testing.T, text string) string {
	t.Helper()
	set, _, err := load(text)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := set.Write(&out, manifest.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestS53Rewriting(t *testing.T) {
	// Each eval is named e; what stands after its metadata is compared.
	for name, test := range map[string]struct{ text, want string }{
		"a rubric in one text, with the threshold beside it": {
			"rubric: Be kind.\nthreshold: 0.6",
			"title: e\nrubric:\n  threshold: 0.6\n  text: Be kind.",
		},
		"a rubric in one text may stand behind an alias": {
			"context: &a Be kind.\nrubric: *a\nthreshold: 0.6",
			"title: e\ncontext:\n  - Be kind.\nrubric:\n  threshold: 0.6\n  text: Be kind.",
		},
		"snake_case becomes camelCase": {
			"on_deferred: Fail\nrubric: {require_evidence: true, required_gate: zero, criteria: [{name: a, description: b, score_ranges: {0: bad, 10: good}}]}\njudge: {panel: [gpt-a, gpt-b], tie_break: pass}",
			"title: e\nrubric:\n  requireEvidence: true\n  requiredGate: zero\n  criteria:\n    - name: a\n      description: b\n      scoreRanges:\n        \"0\": bad\n        \"10\": good\njudge:\n  panel:\n    - gpt-a\n    - gpt-b\n  tieBreak: pass\nonDeferred: Fail",
		},
		"yes and no, plain or quoted": {
			"rubric: {tree: {ask: q, yes: {score: 1}, \"no\": {ask: r, \"yes\": {score: 1}, no: {score: 0, reason: no}}}}",
			"title: e\nrubric:\n  tree:\n    ask: q\n    ifYes:\n      score: 1\n    ifNo:\n      ask: r\n      ifYes:\n        score: 1\n      ifNo:\n        score: 0\n        reason: \"no\"",
		},
		"a scale by its name": {
			"rubric: {text: x, scale: boolean}",
			"title: e\nrubric:\n  scale:\n    boolean: {}\n  text: x",
		},
		"a scale with its ends": {
			"rubric: {text: x, scale: {likert: {min: 1, max: 5}}}",
			"title: e\nrubric:\n  scale:\n    likert:\n      min: 1\n      max: 5\n  text: x",
		},
		"context is a text or a list": {
			"context: [a, 2]\nrubric: x",
			"title: e\ncontext:\n  - a\n  - \"2\"\nrubric:\n  text: x",
		},
		"the server's name is that of an object": {
			"server: Remote_API v2\nrubric: x",
			"title: e\nserver: remote-api-v2\nrubric:\n  text: x",
		},
		"several rubrics": {
			"rubrics: [{name: a, weight: 2, text: x}, {name: b, preset: conciseness}]",
			"title: e\nrubrics:\n  - name: a\n    weight: 2\n    text: x\n  - name: b\n    preset: conciseness",
		},
		"where a text is expected, a number or boolean is its text": {
			"response: 42\nprompt: true\nrubric: 1.50",
			"title: e\nprompt: \"true\"\nresponse: \"42\"\nrubric:\n  text: \"1.50\"",
		},
		"YAML 1.2: yes, off and a date are text": {
			"response: yes\nprompt: off\nrubric: 2026-01-02",
			"title: e\nprompt: \"off\"\nresponse: \"yes\"\nrubric:\n  text: \"2026-01-02\"",
		},
		"YAML 1.2: 010 is ten": {
			"rubric: x\njudge: {model: gpt-a, jury: {size: 010}}",
			"title: e\nrubric:\n  text: x\njudge:\n  model: gpt-a\n  jury:\n    size: 10",
		},
		"merge keys": {
			"rubric:\n  criteria:\n  - &a {name: a, description: x, weight: 2}\n  - {<<: *a, name: b}",
			"title: e\nrubric:\n  criteria:\n    - name: a\n      description: x\n      weight: 2\n    - name: b\n      description: x\n      weight: 2",
		},
		"a text of several lines": {
			"response: |\n  one\n  two\nrubric: x",
			"title: e\nresponse: |\n  one\n  two\nrubric:\n  text: x",
		},
		"a text that nobody gave is not there": {
			"response:\nrubric: x",
			"title: e\nrubric:\n  text: x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := written(t, "evals:\n- name: e\n"+indent(test.text, 2))
			_, spec, ok := strings.Cut(got, "\nspec:\n")
			if !ok {
				t.Fatalf("no spec:\n%s", got)
			}
			if diff := cmp.Diff(indent(test.want, 2), spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

func indent(text string, n int) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.Repeat(" ", n) + lines[i]
	}
	return strings.Join(lines, "\n") + "\n"
}

func TestS53NamesAndReferences(t *testing.T) {
	got := written(t, `
rubrics:
  Helpful & grounded: Is it helpful?
  helpful-grounded: {text: Is it so, threshold: 0.5}
evals:
- name: "Größe: stays on topic"
  rubric: {ref: Helpful & grounded}
- name: grosse stays on topic
  rubric: {ref: helpful-grounded, strict: true}
- name: Große; stays on topic!
  rubric: {ref: helpful-grounded}
- name: 天気
  rubric: x
`)
	var names []string
	for line := range strings.Lines(got) {
		for _, field := range []string{"  name: ", "  title: ", "    ref: ", "eval.mcptest.dev/suite: "} {
			if _, value, ok := strings.Cut(line, field); ok && (field != "  name: " || strings.HasPrefix(line, field)) {
				names = append(names, strings.TrimSpace(value))
			}
		}
	}
	want := []string{
		"helpful-grounded", "stdin", "helpful-grounded-2", "stdin",
		"gro-e-stays-on-topic", "stdin", "'Größe: stays on topic'", "helpful-grounded",
		"grosse-stays-on-topic", "stdin", "grosse stays on topic", "helpful-grounded-2",
		"gro-e-stays-on-topic-2", "stdin", "Große; stays on topic!", "helpful-grounded-2",
		"eval-bc79d84d", "stdin", "天気",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestVariables(t *testing.T) {
	const evals = "evals:\n- name: e ${who}\n  prompt: \"${who}, $${who}, $$${who}, ${who, ${}\"\n  judge: {model: \"${m}\"}\n  rubric: {ref: \"${m}\"}\nrubrics:\n  gpt-a: Ask ${who}.\n"
	t.Run("${name} is replaced in any text, once", func(t *testing.T) {
		_, p, err := load("variables: {who: \"Ada ${m}\", m: gpt-a, n: 1}\n" + evals)
		if err != nil {
			t.Fatal(err)
		}
		row := p.Rows[0]
		got := []string{row.Name, row.Spec.Prompt, string(row.Spec.Judge.Model), row.Spec.Rubric.Text}
		if diff := cmp.Diff([]string{"e Ada ${m}", "Ada ${m}, ${who}, $${who}, ${who, ${}", "gpt-a", "Ask Ada ${m}."}, got); diff != "" {
			t.Errorf("texts (-want +got):\n%s", diff)
		}
	})
	t.Run("without variables they stay, with one note a name", func(t *testing.T) {
		set, p, err := load("evals:\n- name: e\n  prompt: \"${a} ${a} $${a}\"\n  response: ${b}\n  rubric: ${a}\n")
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Rows[0].Spec.Prompt; got != "${a} ${a} $${a}" {
			t.Errorf("prompt = %q", got)
		}
		want := []string{
			"<stdin>:3: ${a} stays as it stands: the file has no variables",
			"<stdin>:4: ${b} stays as it stands: the file has no variables",
		}
		if diff := cmp.Diff(want, set.Notes); diff != "" {
			t.Errorf("notes (-want +got):\n%s", diff)
		}
	})
}

func TestNotes(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"no evals":                      {"evals: []", []string{"<stdin>:1: holds no evals"}},
		"an empty file":                 {"# later\n", []string{"<stdin>: holds no evals"}},
		"what looks like a variable":    {"variables: {a: b}\nevals:\n- name: e\n  prompt: ${ a } ${a}\n  rubric: ${a", []string{`<stdin>:4: "${ a } " stands as text: it is no variable; one is written ${name}`, `<stdin>:5: "${a" stands as text: it is no variable; one is written ${name}`}},
		"x- is a place for anchors":     {"x-base: &b {rubric: x}\nevals: [{<<: *b, name: e}]", nil},
		"$${name} is no such text":      {"variables: {a: b}\nevals: [{name: e, rubric: \"$${a}\"}]", nil},
		"an empty rubric beside others": {"evals: [{name: e, rubric: , rubrics: [{name: a, text: b}]}]", nil},
	} {
		t.Run(name, func(t *testing.T) {
			set, _, err := load(test.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, set.Notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOtherBlocksAreNoted(t *testing.T) {
	set, err := manifest.Load([]string{manifest.Stdin}, strings.NewReader("version: 1\nservers:\n  demo: {command: [x]}\ntests: [1]\nevals:\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"<stdin>:1: version is not read here: only evals are graded",
		"<stdin>:3: servers belong to live evals, which this version defers: their settings are not read",
		"<stdin>:4: tests is not read here: only evals are graded",
		"<stdin>:5: holds no evals",
	}
	if diff := cmp.Diff(want, set.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestS52ProblemsAreToldInTheTermsOfTheFile(t *testing.T) {
	eval := func(text string) string { return "evals:\n- name: e\n" + indent(text, 2) }
	for name, test := range map[string]struct{ text, want string }{
		"an unknown key, with the nearest":             {eval("rubric:\n  criteria:\n  - {name: a, description: b}\n  - name: c\n    weigth: 2\n    description: d"), `7: evals[0].rubric.criteria[1].weigth: unknown field; did you mean "weight"?`},
		"a key in camelCase":                           {eval("rubric: {requireEvidence: true, text: x}"), `3: evals[0].rubric.requireEvidence: unknown field; did you mean "require_evidence"?`},
		"a key of manifests in a tree":                 {eval("rubric: {tree: {ask: a, yes: {score: 1}, ifNo: {score: 0}}}"), `3: evals[0].rubric.tree.ifNo: unknown field; write no`},
		"a key that is like none":                      {eval("rubric: {text: x, scale: {zebra: {}}}"), `3: evals[0].rubric.scale.zebra: unknown field; known here: boolean, letter, likert, unit`},
		"title is name":                                {eval("title: x\nrubric: x"), `3: evals[0].title: unknown field; write name: it is the name of the row`},
		"what only a cluster has":                      {eval("rubric: x\njudge: {secret_ref: {name: x}}"), `4: evals[0].judge.secret_ref: unknown field; it names a Secret of a cluster; keys come from the environment, as ANTHROPIC_API_KEY does`},
		"a response of a cluster":                      {eval("rubric: x\nresponse_from: {}"), `4: evals[0].response_from: unknown field; it names a ConfigMap of a cluster; write the candidate in response`},
		"an unknown block":                             {"rubic:\n  a: x\nevals:\n- {name: a, rubric: x}", `1: rubic: unknown field; did you mean "rubrics"?`},
		"an unknown ref":                               {"rubrics: {helpful: x}\n" + eval("rubric: {ref: helpfull}"), `4: evals[0].rubric.ref: rubric "helpfull" is not among the rubrics of this file; did you mean "helpful"?`},
		"a ref without rubrics":                        {eval("rubric: {ref: helpful}"), `3: evals[0].rubric.ref: rubric "helpful" is not among the rubrics of this file; write it there`},
		"a ref in a rubric":                            {"rubrics:\n  a: {ref: b}", `2: rubrics.a.ref: unknown field; a rubric of this file stands on its own; write it out, and refer to it in an eval`},
		"a ref with more than an override":             {"rubrics: {a: x}\n" + eval("rubric: {ref: a, scale: letter}"), `4: evals[0].rubric.ref: with ref only threshold and strict can be set here; change the rest under rubrics:`},
		"an override that nothing can pass":            {"rubrics: {a: {threshold: 0.3, tree: {ask: x, yes: {score: 0.5}, no: {score: 0}}}}\n" + eval("rubric: {ref: a, threshold: 0.9}"), `4: evals[0].rubric.tree: 0.5: no candidate could pass: the best leaf scores 0.5 and the threshold is 0.9; lower the threshold, or raise a leaf`},
		"an unknown preset":                            {eval("rubric: {preset: groundednes}"), `3: evals[0].rubric.preset: unknown preset "groundednes"; did you mean "groundedness"?`},
		"an unknown aggregation":                       {eval("rubric: {aggregation: average, criteria: [{name: a, description: b}]}"), `3: evals[0].rubric.aggregation: "average": supported values: "weighted_average", "min", "worst"`},
		"an unknown scale":                             {eval("rubric: {scale: leter, text: x}"), `3: evals[0].rubric.scale: unknown scale "leter"; did you mean "letter"?`},
		"likert without its ends":                      {eval("rubric: {scale: likert, text: x}"), `3: evals[0].rubric.scale: likert needs its ends; write {likert: {min: 1, max: 5}}`},
		"a threshold beside criteria":                  {eval("threshold: 0.5\nrubric: {criteria: [{name: a, description: b}]}"), `3: evals[0].threshold: a threshold beside rubric belongs to a rubric in one text; write it inside the rubric, as in rubric: {threshold: 0.7, criteria: [...]}`},
		"a threshold out of range":                     {eval("rubric: x\nthreshold: 1.5"), `4: evals[0].threshold: 1.5: must be from 0 to 1, such as 0.7`},
		"criteria and a tree":                          {eval("rubric: {criteria: [{name: a, description: b}], tree: {ask: q, yes: {score: 1}, no: {score: 0}}}"), `3: evals[0].rubric: criteria and tree exclude each other: set exactly one of ref (a rubric under rubrics:), text, criteria, tree or preset (criteria beside a preset are added to it)`},
		"a question without no":                        {eval("rubric: {tree: {ask: q, yes: {score: 1}}}"), `3: evals[0].rubric.tree: missing: a question needs both yes and no`},
		"a leaf with a way on":                         {eval("rubric: {tree: {ask: q, yes: {score: 1, no: {score: 1}}, no: {score: 0}}}"), `3: evals[0].rubric.tree.yes: a leaf ends the walk: remove yes and no, or give the node a question in ask`},
		"evidence with a text":                         {eval("rubric: {text: x, require_evidence: true}"), `3: evals[0].rubric.require_evidence: require_evidence works with criteria only; move the question into criteria, or remove require_evidence`},
		"a tie break without a panel":                  {eval("rubric: x\njudge: {tie_break: fail}"), `4: evals[0].judge: aggregate and tie_break belong to a panel; add panel, or remove them`},
		"score ranges without 0":                       {eval("rubric: {criteria: [{name: a, description: b, score_ranges: {10: good}}]}"), `3: evals[0].rubric.criteria[0].score_ranges[0]: missing: score_ranges must say what a score of 0 means; add a key "0"`},
		"yes is a text, not a boolean":                 {eval("rubric: {strict: yes, text: x}"), `3: evals[0].rubric.strict: is the text "yes", where true or false is expected`},
		"1_000 is a text, not a number":                {eval("rubric: {criteria: [{name: a, description: b, weight: 1_000}]}"), `3: evals[0].rubric.criteria[0].weight: is the text "1_000", where a number is expected`},
		"a list where a mapping is expected":           {eval("rubric: [x]"), `3: evals[0].rubric: is a list, where a mapping is expected`},
		"a mapping where a text is expected":           {eval("prompt: {a: b}\nrubric: x"), `3: evals[0].prompt: is a mapping, where a text is expected`},
		"a missing description":                        {eval("rubric:\n  criteria:\n  - name: a"), `5: evals[0].rubric.criteria[0].description: missing: say what the judge must look at`},
		"no rubric":                                    {eval("response: x"), `2: evals[0].rubric: missing: set exactly one of rubric (one) or rubrics (several, all must pass)`},
		"an empty rubric beside a threshold":           {eval("rubric:\nthreshold: 0.6"), `3: evals[0].rubric: is empty; write what the judge must look for`},
		"a rubric of no words":                         {eval("rubric: \"\""), `3: evals[0].rubric: is empty; write what the judge must look for`},
		"an empty rubric under rubrics":                {"rubrics:\n  g:", `2: rubrics.g: is empty; write what the judge must look for`},
		"no models in a panel":                         {eval("rubric: x\njudge: {panel: []}"), `4: evals[0].judge.panel: is empty; write at least one`},
		"no prompts in a matrix":                       {eval("rubric: x\nmatrix: {models: [claude-x], prompts: []}"), `4: evals[0].matrix.prompts: is empty; write at least one`},
		"no rubrics beside a rubric":                   {eval("rubric: x\nrubrics: []"), `4: evals[0].rubrics: is empty; write at least one`},
		"no criteria":                                  {"rubrics:\n  g:\n    criteria: []", `3: rubrics.g.criteria: is empty; write at least one`},
		"the path of a rubric whose name is no word":   {"rubrics:\n  a b:\n    texd: x", `3: rubrics["a b"].texd: unknown field; did you mean "text"?`},
		"both branches of a tree have a wrong name":    {eval("rubric: {tree: {ask: a, if_yes: {score: 1}, if_no: {score: 0}}}"), `3: evals[0].rubric.tree.if_yes: unknown field; write yes`},
		"a key that begins with a dash":                {"evals: []\n-name: x", `2: -name: unknown field; a dash needs a blank after it: write "- name:"`},
		"a text for when":                              {eval("rubric: {criteria: [{name: a, description: b, when: error}]}"), `3: evals[0].rubric.criteria[0].when: is the text "error", where a mapping is expected; write {contains: "error"}`},
		"a text for a panel":                           {eval("rubric: x\njudge: {panel: gpt-a}"), `4: evals[0].judge.panel: is the text "gpt-a", where a list is expected; write [gpt-a, ...]`},
		"a text for a judge":                           {eval("rubric: x\njudge: gpt-a"), `4: evals[0].judge: is the text "gpt-a", where a mapping is expected; write {model: gpt-a}`},
		"a number for a branch":                        {eval("rubric: {tree: {ask: a, yes: 1.0, no: {score: 0}}}"), `3: evals[0].rubric.tree.yes: is the number 1, where a mapping is expected; write {score: 1.0}`},
		"a text for a criterion":                       {eval("rubric: {criteria: [Is it so]}"), `3: evals[0].rubric.criteria[0]: is the text "Is it so", where a mapping is expected; write {name: ..., description: "Is it so"}`},
		"a percentage":                                 {eval("rubric: x\nthreshold: 80%"), `4: evals[0].threshold: is the text "80%", where a number is expected; write 0.8`},
		"a decimal comma":                              {eval("rubric: x\nthreshold: 0,7"), `4: evals[0].threshold: is the text "0,7", where a number is expected; write 0.7`},
		"no name":                                      {"evals:\n- rubric: x", `2: evals[0].name: missing: give the eval a name; the report shows it`},
		"an empty name":                                {"evals:\n- name:\n  rubric: x", `2: evals[0].name: missing: give the eval a name; the report shows it`},
		"a name that is there twice":                   {"evals:\n- {name: a, rubric: x}\n- {name: a, rubric: x}", `3: evals[1].name: "a" is there twice; every eval has a name of its own`},
		"a long name":                                  {"evals:\n- {name: " + strings.Repeat("x", 300) + ", rubric: x}", `2: evals[0].name: "300 characters": may have at most 256 characters`},
		"a key that is there twice":                    {eval("rubric: x\nrubric: z"), `4: evals[0].rubric: is there twice; remove one of them`},
		"evals that are no list":                       {"evals: {name: a}", `1: evals: is a mapping, where a list of evals is expected: begin each with a dash, as in "- name: ..."`},
		"an eval that is none":                         {"evals: [a]", `1: evals[0]: is a single value, where an eval is expected: a mapping with a name and a rubric`},
		"servers that are no mapping":                  {"servers: [a]", `1: servers: is a list, where a mapping of names to servers is expected`},
		"rubrics that are no mapping":                  {"rubrics: [a]", `1: rubrics: is a list, where a mapping of names to rubrics is expected`},
		"variables that are no texts":                  {"evals:\nvariables: {a: [b]}", `2: variables.a: is a list, where a text is expected`},
		"a variable that is empty":                     {"evals:\nvariables:\n  a:", `3: variables.a: is empty; write a text, or "" for none`},
		"an unknown variable":                          {"variables: {team: x}\n" + eval("prompt: ${teem}\nrubric: x"), `4: evals[0].prompt: variable "teem" is not among the variables of this file; did you mean "team"?`},
		"an unknown variable that is like none":        {"variables: {team: x}\n" + eval("prompt: ${USER}\nrubric: x"), `4: evals[0].prompt: variable "USER" is not among the variables of this file; add it there, or write $${USER} for that very text`},
		"a judge that nobody offers":                   {eval("response: r\nrubric: x\njudge: {model: llama-9}"), `5: evals[0].judge.model: model llama-9: its name does not tell its provider: set judge.provider`},
		"a tag":                                        {eval("rubric: {threshold: !!binary aGk=, text: x}"), `3: evals[0].rubric.threshold: !!binary is not read here; write the text itself`},
		"a key that is a list":                         {eval("? [a]\n: b\nrubric: x"), `3: evals[0]: a key must be a name, not a mapping or a list`},
		"a merge of what is no mapping":                {eval("<<: a\nrubric: x"), `3: evals[0]: << merges a mapping, or a list of them`},
		"what is no mapping":                           {"- a", `1: not mcptest YAML; write the blocks evals and rubrics`},
		"a preset's criterion again":                   {eval("rubric: {preset: groundedness, criteria: [{name: supported, description: x}]}"), `3: evals[0].rubric.criteria[0].name: "supported": the preset groundedness@1 has a criterion of this name already; rename this one`},
		"matrix and judge both choose":                 {eval("rubric: x\njudge: {model: gpt-a}\nmatrix: {models: [gpt-b]}"), `5: evals[0].matrix.models: judge.model and matrix.models both choose the judge model; remove one of them`},
		"an eval of the same name in another document": {"evals: [{name: a b, rubric: x}]\n---\nevals: [{name: a-b, rubric: x}]", `3: evals[0].name: Eval "a-b" is there twice: it stands in <stdin>:1 too; rename one of them: each becomes an object of its own`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := load(test.text)
			if err == nil {
				t.Fatalf("no problem was found, want %s", test.want)
			}
			if want := "<stdin>:" + test.want; !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("problems (-want +got):\n%s", cmp.Diff(want, err.Error()))
			}
		})
	}
}

func TestS53ConvertedExamplesPlanAlike(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(examples, "*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	evals := 0
	for _, path := range files {
		set, err := manifest.Load([]string{path}, nil)
		if err != nil {
			t.Fatal(err)
		}
		evals += len(set.Evals)
		sameAgain(t, set)
	}
	if evals != 16 {
		t.Errorf("the examples have %d evals, want the 16 of the format's documentation", evals)
	}
}

// sameAgain checks that the manifests of a set load to the plan of the set.
func sameAgain(t *testing.T, set *manifest.Set) {
	t.Helper()
	want, err := set.Plan(plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := set.Write(&text, manifest.WriteOptions{Namespace: "team"}); err != nil {
		t.Fatal(err)
	}
	converted, err := manifest.Load([]string{manifest.Stdin}, &text)
	if err != nil {
		t.Fatalf("what was converted does not load: %v", err)
	}
	if err := converted.Check(); err != nil {
		t.Fatalf("what was converted is not valid: %v", err)
	}
	got, err := converted.Plan(plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest != want.Digest || got.Revision != want.Revision {
		t.Errorf("the plans differ (-file +manifests):\n%s", cmp.Diff(want, got))
	}
}

func TestBombsEndSoon(t *testing.T) {
	many := func(n int, alias string) string { return "[" + strings.Repeat(alias+", ", n) + alias + "]" }
	for name, test := range map[string]struct{ text, want string }{
		"an alias inside its anchor": {"evals: [{name: e, rubric: {tree: &a {ask: q, yes: *a, no: *a}}}]", "nested more than"},
		"an eval in itself":          {"evals: &a [{name: e, rubric: x, rubrics: *a}, *a]", "where an eval is expected"},
		"a merge inside its anchor":  {"evals:\n- &a {name: e, <<: [*a, *a, *a, *a]}", "nested more than"},
		"a long text many times":     {"x: &a " + strings.Repeat("y", 1<<20) + "\nevals: [{name: e, rubric: x, context: " + many(60, "*a") + "}]", "of text, aliases included"},
		"a long variable many times": {"variables: {v: " + strings.Repeat("y", 1<<20) + "}\nevals: [{name: e, rubric: x, prompt: \"" + strings.Repeat("${v}", 60) + "\"}]", "the variables make more than 16 MiB"},
		"a deep tree":                {"evals: [{name: e, rubric: {tree: " + strings.Repeat("{ask: q, yes: ", 1000) + "{score: 1}" + strings.Repeat("}", 1000) + "}}]", "nested more than"},
		"deep servers":               {"servers: {a: " + strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + "}\nevals: 1", "where a list of evals is expected"},
		"many problems":              {"evals: [" + strings.Repeat("1, ", 10000) + "1]", "where an eval is expected"},
		"many unknown names":         {"variables: {}\nevals: [{name: e, rubric: x, prompt: \"" + strings.Repeat("${v}", 100000) + "\"}]", `variable "v" is not among`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := load(test.text)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Load = %.300v, want a problem with %q", err, test.want)
			}
			if err != nil && len(err.Error()) > 40000 {
				t.Errorf("the problems have %d bytes", len(err.Error()))
			}
		})
	}
}

func FuzzLoad(f *testing.F) {
	for _, text := range []string{
		"evals: [{name: a, rubric: x}]",
		"rubrics: {r: {criteria: [{name: a, description: b, when: {contains: c}, score_ranges: {0: a}}]}}\nevals: [{name: a, rubric: {ref: r, threshold: .5}}]",
		"evals:\n- name: yes\n  threshold: 010\n  rubric: no\n  judge: {panel: [gpt-a, gpt-b], tie_break: fail}",
		"variables: {a: \"${b}\", b: 1}\nevals: [{name: \"${a}\", rubric: \"$${a}\", scale: ${b}}]",
		"evals: [{name: a, rubric: {tree: {ask: q, yes: {score: 1}, \"no\": {score: 0}}, scale: letter}}]",
		"evals: [{name: a, rubrics: [{name: b, preset: safety, weight: 0}, {name: c, text: d}], matrix: {prompts: [a, b]}}]",
		"evals: &a [*a]\nrubrics: &b {<<: *b, c: *a}\nservers: *b\nvariables: *b",
		"? {a: b}\n: c\n<<: [{evals: 1}]", "evals: [{name: !!binary aGk=, rubric: !x y}]", "a: &a\nevals: [*a]",
		`{"evals": [{"name": "\ud83d\ude00", "rubric": "` + "\\u0000" + `"}]}`,
		"evals: [{name: a, context: |2\n   x\n, rubric: x}]",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, _, err := load(text)
		var problems manifest.Problems
		if err != nil && !errors.As(err, &problems) {
			t.Fatalf("the error is no Problems: %v", err)
		}
		for _, p := range problems {
			if p.Line == 0 && !strings.Contains(p.Message, "two rows are named") && !strings.HasPrefix(p.Message, "not YAML") {
				t.Errorf("a problem without a line: %v", p)
			}
			if strings.ContainsAny(p.Error(), "\n\r") || len(p.Error()) > 10000 {
				t.Errorf("a problem that is not told on a line: %q", p.Error())
			}
		}
		if err == nil {
			sameAgain(t, set)
		}
	})
}
