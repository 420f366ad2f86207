package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/exit"
)

const mcptestExamples = "../../../examples/mcptest"

// example reads an example.
func example(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(mcptestExamples, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// reportOf grades a file and returns its rows by name.
func reportOf(t *testing.T, text string) map[string]v1alpha1.Report {
	t.Helper()
	got := command(t.Context(), text, "eval", "-f", "-", "-o", "json")
	if got.code != exit.OK && got.code != exit.Failed {
		t.Fatalf("exit code %d: %s", got.code, got.err)
	}
	var run v1alpha1.RunReport
	if err := json.Unmarshal([]byte(got.out), &run); err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]v1alpha1.Report)
	for _, r := range run.Rows {
		rows[r.Name] = r
	}
	return rows
}

// verdict is a row in one line: its outcome, score (in its scale too), the gates that failed, votes and calls.
func verdict(r v1alpha1.Report) string {
	line := string(r.Outcome)
	if r.Score != nil {
		line += fmt.Sprintf(" %v", *r.Score)
	}
	if strings.Contains(r.Display, "/") { // a scale of its own
		line += " " + r.Display
	}
	for _, rubric := range r.Rubrics {
		for _, c := range rubric.Criteria {
			if c.Gate != nil {
				line += fmt.Sprintf(" %s:%s", c.Gate.Rule, c.Name)
			}
		}
		if rubric.Leaf != nil {
			line += " leaf:" + rubric.Leaf.Reason
		}
	}
	if r.Judge != nil && r.Judge.Jury != nil {
		line += fmt.Sprintf(" jury:%d/%d", r.Judge.Jury.Passes, r.Judge.Jury.Size)
	}
	if r.Judge != nil && r.Judge.Panel != nil {
		line += fmt.Sprintf(" panel:%d", r.Judge.Panel.Passes)
	}
	return fmt.Sprintf("%s, %d calls", line, r.Usage.Calls)
}

// The arithmetic of each outcome is written beside it; no number here was taken from a run.
func TestS53SourceExamplesAreGraded(t *testing.T) {
	const response = "    response: An answer.\n"
	for name, test := range map[string]struct {
		file   string
		change [2]string // what is replaced in the file
		rules  string
		want   map[string]string
	}{
		"S-6 a fixed response and a rubric in one text, with its own threshold": {
			file: "rubric-eval.yml", rules: "default: {score: 0.65}",
			want: map[string]string{"refuses the destructive request": "Passed 0.65, 1 calls"}, // 0.65 >= 0.6
		},
		"S-38 without a response nothing is graded": {
			file: "forms.yml", rules: "default: {score: 1}",
			want: map[string]string{
				"summary stays on topic": "Deferred, 0 calls", "booking quality": "Deferred, 0 calls",
				"weather answered": "Deferred, 0 calls", "books the meeting and confirms": "Deferred, 0 calls",
			},
		},
		"S-8 weighted criteria, S-22 a tree, once they have a response": {
			file: "forms.yml", change: [2]string{"    rubric:", response + "    rubric:"},
			rules: `rules:
- {when: {contains: correct Tuesday}, score: 0.9}
- {when: {contains: confirms the booking}, score: 0.6}
- {when: {contains: get_weather}, score: 0.5}
- {when: {contains: temperature}, score: 0.49}
- {when: {contains: release tag}, score: 0.7}`,
			want: map[string]string{
				"summary stays on topic":         "Passed 0.7, 1 calls",                                              // 0.7 >= 0.7
				"booking quality":                "Passed 0.8, 2 calls",                                              // (0.9x2 + 0.6x1) / 3 = 0.8 >= 0.8
				"books the meeting and confirms": "Failed 0.75, 2 calls",                                             // (0.9 + 0.6) / 2 = 0.75 < 0.8
				"weather answered":               "Failed 0.4 leaf:called the tool but gave no temperature, 2 calls", // 0.5 is yes, 0.49 is no
			},
		},
		"a rubric for several evals, one with a threshold of its own": {
			file: "reusable.yml",
			rules: `rules:
- {when: {contains: Directly answers}, score: 0.9}
- {when: {contains: Makes no claim}, score: 0.8}`,
			want: map[string]string{ // (0.9 + 0.8) / 2
				"weather answer is good": "Passed 0.85, 2 calls", // >= 0.7
				"strict billing answer":  "Failed 0.85, 2 calls", // < 0.9
			},
		},
		"S-14 gates, S-19 evidence, S-11 conditions, S-9 the lowest score on a scale": {
			file: "criteria.yml",
			rules: `rules:
- {when: {contains: correct invoice total}, score: 0.6}
- {when: {contains: full card number}, score: 0}
- {when: {contains: supported by the release notes}, score: 0.9}
- {when: {contains: Names the release version}, score: 1}
- {when: {contains: Describes what the release changed}, score: 0.9, evidence: nobody wrote this}
- {when: {contains: Acknowledges the failure}, score: 0.85}
- {when: {contains: States the correct change}, score: 0.9}
- {when: {contains: every notable change}, score: 0.75}`,
			want: map[string]string{
				"safe and grounded":                              "Failed 0.8 required:correct total, 2 calls",        // (0.6 + (1-0)) / 2 = 0.8, but 0.6 < 0.7
				"groundedness with anchors":                      "Passed 0.9, 1 calls",                               // 0.9 >= 0.7
				"grounded answer with citations":                 "Failed 0.5 evidence:states the change, 2 calls",    // (1 + 0) / 2: no evidence scores 0
				"error responses must apologize":                 "Failed 0.85 required:apologizes on error, 1 calls", // 0.85 >= 0.7, but < its own 0.9
				"answer quality, worst-criterion on a 1-5 scale": "Passed 0.75 4.0/5, 2 calls",                        // min(0.9, 0.75); 1 + 0.75 x 4 = 4
			},
		},
		"S-13 a guard that is found": {
			file: "criteria.yml", change: [2]string{"threshold: 0.7\n      criteria:\n        - name: correct total", "threshold: 0.6\n      criteria:\n        - name: correct total"},
			rules: `rules:
- {when: {contains: full card number}, score: 0.75}
default: {score: 1}`,
			want: map[string]string{
				"safe and grounded":                              "Failed 0.625 guard:leaks a card number, 2 calls", // (1 + 0.25) / 2 = 0.625 >= 0.6, but 0.25 < 0.6
				"groundedness with anchors":                      "Passed 1, 1 calls",
				"grounded answer with citations":                 "Passed 1, 2 calls",
				"error responses must apologize":                 "Passed 1, 1 calls",
				"answer quality, worst-criterion on a 1-5 scale": "Passed 1 5.0/5, 2 calls",
			},
		},
		"S-25 a jury, S-26 a panel that is split": {
			file: "judges.yml",
			rules: `rules:
- {when: {model: claude-haiku-4-5}, score: 0.5}
default: {score: 0.9}`,
			want: map[string]string{
				"subjective call, juried":   "Passed 0.9 jury:3/3, 3 calls",
				"subjective call, ensemble": "Failed 0.7 panel:1, 2 calls", // 1 of 2 passes: tie_break fail; (0.9 + 0.5) / 2
			},
		},
		"S-36 a preset with a criterion more": {
			file: "presets.yml",
			rules: `rules:
- {when: {contains: Every statement of fact in the candidate}, score: 0.9}
- {when: {contains: contradicts the documents}, score: 0}
- {when: {contains: states something specific}, score: 0.1}
- {when: {contains: does not hold what was asked for}, score: 0.8}
- {when: {contains: without filler}, score: 0.5}`,
			want: map[string]string{"grounded and brief": "Passed 0.833333, 5 calls"}, // (0.9x2 + 1 + 0.9 + 0.8 + 0.5) / 6 >= 0.8
		},
		"S-31 a matrix": {
			file: "matrix.yml",
			rules: `rules:
- {when: {model: claude-haiku-4-5}, score: 0.6}
default: {score: 0.9}`,
			want: map[string]string{
				"summary quality [model=claude-sonnet-4-5, prompt=Summarize the release.]":                 "Passed 0.9, 1 calls",
				"summary quality [model=claude-sonnet-4-5, prompt=Summarize the release in one sentence.]": "Passed 0.9, 1 calls",
				"summary quality [model=claude-haiku-4-5, prompt=Summarize the release.]":                  "Failed 0.6, 1 calls",
				"summary quality [model=claude-haiku-4-5, prompt=Summarize the release in one sentence.]":  "Failed 0.6, 1 calls",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			withJudge(t, test.rules)
			text := example(t, test.file)
			if test.change[0] != "" {
				if !strings.Contains(text, test.change[0]) {
					t.Fatalf("%s lacks %q", test.file, test.change[0])
				}
				text = strings.ReplaceAll(text, test.change[0], test.change[1])
			}
			got := make(map[string]string)
			for row, r := range reportOf(t, text) {
				got[row] = verdict(r)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// What convert prints is graded to the same report as what it was made of.
func TestS53ConvertedExamplesGradeAlike(t *testing.T) {
	withJudge(t, "default: {score: hash}")
	files, err := filepath.Glob(filepath.Join(mcptestExamples, "*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text := example(t, filepath.Base(path))
			converted := command(t.Context(), text, "convert", "-f", "-", "-n", "team")
			if converted.code != exit.OK {
				t.Fatalf("convert ends with %d: %s", converted.code, converted.err)
			}
			if got := command(t.Context(), converted.out, "validate", "-f", "-"); got.code != exit.OK {
				t.Errorf("validate: %s\n%s", got.out, converted.out)
			}
			want, got := reportOf(t, text), reportOf(t, converted.out)
			for _, rows := range []map[string]v1alpha1.Report{want, got} {
				for name, r := range rows {
					r.StartedAt, r.FinishedAt = nil, nil
					r.Usage.InputTokens, r.Usage.OutputTokens, r.Usage.CachedInputTokens, r.Usage.CostUSD = 0, 0, 0, 0 // the nonces of the prompts differ
					rows[name] = r
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("reports (-source +converted):\n%s", diff)
			}
			if again := command(t.Context(), converted.out, "convert", "-f", "-"); again.out != converted.out {
				t.Errorf("manifests that were printed are printed otherwise (-first +second):\n%s", cmp.Diff(converted.out, again.out))
			}
		})
	}
}

func TestConvertAndSchemaVerbs(t *testing.T) {
	withoutKeys(t)
	text := example(t, "reusable.yml")
	for name, test := range map[string]struct {
		stdin    string
		args     []string
		want     int
		out, err string
	}{
		"S-53 a file becomes manifests":       {text, []string{"convert", "-f", "-"}, exit.OK, "kind: Rubric\nmetadata:\n  name: helpful-and-grounded\n  labels:\n    eval.mcptest.dev/suite: stdin\n", ""},
		"a namespace":                         {text, []string{"convert", "-f", "-", "-n", "team"}, exit.OK, "\n  namespace: team\n", ""},
		"the suite is the name of the file":   {"", []string{"convert", "-f", filepath.Join(mcptestExamples, "judges.yml")}, exit.OK, "eval.mcptest.dev/suite: judges\n", ""},
		"a format that is said":               {"rubrics: {a: b}", []string{"convert", "-f", "-", "--from", "mcptest"}, exit.OK, "  text: b\n", ""},
		"an unknown format":                   {text, []string{"convert", "-f", "-", "--from", "mcptests"}, exit.BadInput, "", `--from: unknown format "mcptests"; did you mean "mcptest"?; the formats are mcptest`},
		"a namespace that is none":            {text, []string{"convert", "-f", "-", "-n", "My Team"}, exit.BadInput, "", "-n My Team: the name of a namespace"},
		"nothing to convert":                  {"", []string{"convert"}, exit.BadInput, "", "name a file, a directory or - with -f"},
		"a file that holds nothing":           {"", []string{"convert", "-f", "-"}, exit.NothingSelected, "", "the files hold nothing to convert"},
		"S-52 a file with a problem":          {"evals:\n- {name: a, rubrik: x}", []string{"convert", "-f", "-"}, exit.BadInput, "", `<stdin>:2: evals[0].rubrik: unknown field; did you mean "rubric"?`},
		"what is not read is said":            {text + "tests: []\n", []string{"explain", "-f", "-"}, exit.OK, "weather answer is good", "tests is not read here: only evals are graded"},
		"validate counts what a file becomes": {text, []string{"validate", "-f", "-"}, exit.OK, "1 file, 2 evals, 1 rubric: valid", ""},
		"the schema":                          {"", []string{"schema"}, exit.OK, `"$schema": "http://json-schema.org/draft-07/schema#"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := command(t.Context(), test.stdin, test.args...)
			if got.code != test.want {
				t.Errorf("exit code %d, want %d", got.code, test.want)
			}
			if !strings.Contains(got.out, test.out) {
				t.Errorf("stdout lacks %q:\n%s", test.out, got.out)
			}
			if !strings.Contains(got.err, test.err) {
				t.Errorf("stderr lacks %q:\n%s", test.err, got.err)
			}
		})
	}
}

func TestSchemaIsOne(t *testing.T) {
	got := command(t.Context(), "", "schema")
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(got.out))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if s.DraftVersion != 7 || !slices.Contains(s.Types.ToStrings(), "object") {
		t.Errorf("the schema is of draft %d for %v, want draft 7 for an object", s.DraftVersion, s.Types.ToStrings())
	}
}
