package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSyntaxErrorsHaveTheLineThatCannotBeRead(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"a dash without a blank":              {"evals:\n- name: b\n  rubric: x\n-name: a\n  rubric: x\n", `5: not YAML: mapping values are not allowed in this context; a dash needs a blank after it: write "- name:" in line 4`},
		"a colon in a text":                   {"evals:\n- name: a\n  prompt: Book: a meeting\n  rubric: x\n", `3: not YAML: mapping values are not allowed in this context; a text with ": " in it needs quotes`},
		"a quote that is never closed":        {"evals:\n- name: a\n  prompt: \"abc\n  rubric: x\n", `3: not YAML: found unexpected end of stream; is a quote open since line 3?`},
		"a quote that another one closes":     {"evals:\n- name: a\n  prompt: \"abc\n  rubric: x\n- name: \"b\"\n  rubric: x\n", `5: not YAML: did not find expected key; is a quote open since line 3?`},
		"an apostrophe in quotes":             {"evals:\n- name: a\n  prompt: 'it's bad'\n  rubric: x\n", `3: not YAML: did not find expected key; write '' for a quote inside '…', or put the text into "…"`},
		"a sign that begins no text":          {"evals:\n- name: a\n\n  rubric: `x`\n", "4: not YAML: found character that cannot start any token; a text that begins with %, @ or ` needs quotes"},
		"too deep, without a hint":            {"evals:\n- name: a\n  rubric: x\n   prompt: y\n", `4: not YAML: mapping values are not allowed in this context`},
		"between two depths":                  {"evals:\n- name: a\n  rubric:\n    text: x\n   threshold: 1\n- name: b\n", `5: not YAML: did not find expected key`},
		"a word alone, and blank lines":       {"evals:\n- name: a\nrubric x\n\n\n# more\nprompt: y\n", `3: not YAML: could not find expected ':'`},
		"a bracket that is open":              {"evals:\n- name: a\n  context: [a, b\n  rubric: x\n- name: c\n", `5: not YAML: did not find expected ',' or ']'`},
		"JSON without a comma":                {"{\"evals\": [\n {\"name\": \"a\",\n \"rubric\": \"x\"\n \"prompt\": \"y\"}]}\n", `4: not YAML: did not find expected ',' or '}'`},
		"a question mark in braces":           {"evals:\n- {name: a, rubric: {tree: {ask: Is it so?, yes: {score: 1}, no: {score: 0}}}}\n", `2: not YAML: did not find expected ',' or '}'; a text with ? inside {} needs quotes`},
		"an alias of nothing":                 {"evals:\n- name: a\n  rubric: *x\n", `3: not YAML: unknown anchor 'x' referenced`},
		"the second document, without an end": {"evals: []\n---\na: b\nc: d: e", `4: not YAML: mapping values are not allowed in this context; a text with ": " in it needs quotes`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load([]string{Stdin}, strings.NewReader(test.text))
			if err == nil {
				t.Fatalf("no problem was found, want %s", test.want)
			}
			if diff := cmp.Diff("<stdin>:"+test.want, err.Error()); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
