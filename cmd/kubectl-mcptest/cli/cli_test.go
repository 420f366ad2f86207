package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/exit"
	"github.com/mcptest/mcptest-operator/hack/fakejudge"
)

const head = "apiVersion: eval.mcptest.dev/v1alpha1\n"

const twoEvals = head + `kind: Eval
metadata: {name: good}
spec: {response: A fine answer., rubric: {text: "Is it fine?"}}
---
` + head + `kind: Eval
metadata: {name: bad}
spec: {response: A poor answer., rubric: {text: "Is it poor?"}}
`

// result is what a command did.
type result struct {
	code     int
	out, err string
}

// command runs a command with standard input.
func command(ctx context.Context, stdin string, args ...string) result {
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errOut}
	code := Run(ctx, "kubectl mcptest", args, streams)
	return result{code, out.String(), errOut.String()}
}

// withoutKeys takes the environment's keys away.
func withoutKeys(t *testing.T) {
	t.Helper()
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY", "MISTRAL_API_KEY", "MCPTEST_JUDGE_MODEL"} {
		t.Setenv(name, "")
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
}

// withJudge starts a stand-in judge and gives the environment a key for it.
func withJudge(t *testing.T, rules string) *fakejudge.Server {
	t.Helper()
	withoutKeys(t)
	parsed, err := fakejudge.ParseRules([]byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	judge := fakejudge.New(fakejudge.Options{Rules: parsed})
	server := httptest.NewServer(judge)
	t.Cleanup(func() { judge.Close(); server.Close() })
	t.Setenv("ANTHROPIC_API_KEY", "test-key-of-the-stand-in")
	t.Setenv("ANTHROPIC_BASE_URL", server.URL)
	return judge
}

const goodAndBad = `
rules:
- {when: {contains: fine}, score: 0.9, reason: It is fine.}
- {when: {contains: poor}, score: 0.2, reason: It is poor.}
`

func TestExitCodesWithoutAJudge(t *testing.T) {
	withoutKeys(t)
	for name, test := range map[string]struct {
		stdin    string
		args     []string
		want     int
		out, err string
	}{
		"valid files":                            {twoEvals, []string{"validate", "-f", "-"}, exit.OK, "1 file, 2 evals, 0 rubrics: valid\n", ""},
		"--config is -f":                         {twoEvals, []string{"validate", "--config", "-"}, exit.OK, "valid", ""},
		"a problem":                              {"kind: Evl", []string{"validate", "-f", "-"}, exit.BadInput, `<stdin>:1: kind: unknown kind "Evl"; did you mean "Eval"?`, "error: 1 problem"},
		"a rubric that is missing":               {head + "kind: Eval\nmetadata: {name: a}\nspec: {rubric: {ref: r}}", []string{"validate", "-f", "-"}, exit.BadInput, `<stdin>:4: spec.rubric.ref: Rubric "r" is not in these files`, ""},
		"a model that nobody offers":             {head + "kind: Eval\nmetadata: {name: a}\nspec:\n  response: r\n  rubric: {text: x}\n  judge:\n    model: llama-9", []string{"validate", "-f", "-"}, exit.BadInput, `<stdin>:8: spec.judge.model: model llama-9: its name does not tell its provider: set judge.provider`, ""},
		"a model of a matrix that nobody offers": {head + "kind: Eval\nmetadata: {name: a}\nspec:\n  response: r\n  rubric: {text: x}\n  matrix:\n    prompts: [p, q]\n    models: [gpt-5.4, llama-9]", []string{"validate", "-f", "-"}, exit.BadInput, "<stdin>:9: spec.matrix.models: model llama-9", "error: 1 problem\n"},
		"an eval that no run chooses":            {twoEvals + "---\n" + head + "kind: Eval\nmetadata: {name: c}\nspec:\n  rubric: {ref: t, threshold: 0.9}\n---\n" + head + "kind: Rubric\nmetadata: {name: t}\nspec: {threshold: 0.3, tree: {ask: x, ifYes: {score: 0.5}, ifNo: {score: 0}}}\n---\n" + head + "kind: EvalRun\nmetadata: {name: r}\nspec: {evalRef: {name: good}}", []string{"validate", "-f", "-"}, exit.BadInput, "no candidate could pass", ""},
		"a file without -f":                      {"", []string{"validate", "a.yaml", "b.yaml"}, exit.BadInput, "", "validate takes no arguments; name files with -f, as in kubectl mcptest validate -f a.yaml -f b.yaml"},
		"eval without -f":                        {"", []string{"eval", "a.yaml"}, exit.BadInput, "", "as in kubectl mcptest eval -f a.yaml"},
		"nothing to validate":                    {"", []string{"validate"}, exit.BadInput, "", "name a file, a directory or - with -f"},
		"eval of a wrong file":                   {"kind: Evl", []string{"eval", "-f", "-"}, exit.BadInput, "", "<stdin>:1: kind: unknown kind"},
		"a deferred row passes":                  {twoEvals, []string{"eval", "-f", "-"}, exit.OK, "2 deferred", "2 rows, 0 judge calls, 2 deferred"},
		"a deferred row can fail":                {twoEvals, []string{"eval", "-f", "-", "--on-deferred", "Fail"}, exit.Failed, "2 failed", ""},
		"a filter that matches one":              {twoEvals, []string{"eval", "-f", "-", "--filter", "^bad$"}, exit.OK, "1 row ·", ""},
		"a filter without a match":               {twoEvals, []string{"eval", "-f", "-", "--filter", "x"}, exit.NothingSelected, "", "no row matches"},
		"a filter that is none":                  {twoEvals, []string{"eval", "-f", "-", "--filter", "("}, exit.BadInput, "", "--filter:"},
		"no eval at all":                         {"", []string{"eval", "-f", "-"}, exit.NothingSelected, "", "the files hold no Eval"},
		"an unknown format":                      {twoEvals, []string{"eval", "-f", "-", "-o", "yam"}, exit.BadInput, "", "the formats are pretty, json"},
		"--reporter is -o":                       {twoEvals, []string{"eval", "-f", "-", "--reporter", "json"}, exit.OK, `"outcome": "Deferred"`, ""},
		"concurrency out of range":               {twoEvals, []string{"eval", "-f", "-", "--concurrency", "0"}, exit.BadInput, "", "from 1 to 256"},
		"a policy that is none":                  {twoEvals, []string{"eval", "-f", "-", "--on-deferred", "fail"}, exit.BadInput, "", "write Pass or Fail"},
		"explain needs no key":                   {twoEvals, []string{"explain", "-f", "-"}, exit.OK, "with keys for the deferred rows: 2 rows, 2 judge calls at most", ""},
		"eval --explain":                         {twoEvals, []string{"eval", "-f", "-", "--explain"}, exit.OK, "with a key: 1, about $", ""},
		"explain nothing":                        {"", []string{"explain"}, exit.BadInput, "", "name one Eval of the cluster, or files with -f"},
		"an unknown verb":                        {"", []string{"evl"}, exit.BadInput, "", "Did you mean this?\n\teval"},
		"an unknown flag":                        {"", []string{"eval", "--filtr", "x"}, exit.BadInput, "", "did you mean --filter?"},
		"report of nothing":                      {"", []string{"report"}, exit.BadInput, "", "name one EvalRun of the cluster"},
		"report of what is none":                 {"{}", []string{"report", "-f", "-"}, exit.BadInput, "", "is no report of a run"},
		"report of a newer version":              {`{"schemaVersion": "v2", "run": "r", "rows": [], "new": 1}`, []string{"report", "-f", "-"}, exit.OK, "0 rows", "newer than"},
		"run of nothing":                         {"", []string{"run"}, exit.BadInput, "", "say what to run"},
		"run by a wrong selector":                {"", []string{"run", "-l", "a in (b)"}, exit.BadInput, "", "write key=value pairs"},
		"a cluster that is not":                  {"", []string{"report", "r"}, exit.BadInput, "", "the cluster cannot be reached"},
		"version":                                {"", []string{"version", "--client"}, exit.OK, "client    ", ""},
		"version without a cluster":              {"", []string{"version", "-o", "json"}, exit.OK, `"client": `, ""},
		"--version":                              {"", []string{"--version"}, exit.OK, "\n", ""},
		"help names the command":                 {"", []string{"eval", "--help"}, exit.OK, "kubectl mcptest eval -f evals.yaml", ""},
		"completion":                             {"", []string{"completion", "bash"}, exit.OK, "bash completion", ""},
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

func TestEvalGradesAndEndsWithTheVerdict(t *testing.T) {
	judge := withJudge(t, goodAndBad)
	got := command(t.Context(), twoEvals, "eval", "-f", "-")
	if got.code != exit.Failed {
		t.Errorf("exit code %d, want %d", got.code, exit.Failed)
	}
	for _, want := range []string{"✓ good", "0.90 ≥ 0.70", "✗ bad", "0.20 < 0.70", "It is poor.", "2 rows · 1 passed · 1 failed · 0 deferred · 0 errored"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("stdout lacks %q:\n%s", want, got.out)
		}
	}
	header, _, _ := strings.Cut(got.err, "\n")
	if want := regexp.MustCompile(`^2 rows, 2 judge calls at most, about \$0\.\d+$`); !want.MatchString(header) {
		t.Errorf("the header is %q", header)
	}
	if strings.Contains(got.out+got.err, "\x1b") {
		t.Error("an escape was written to what is no terminal")
	}
	if calls := judge.Stats().Calls; calls != 2 {
		t.Errorf("%d calls, want 2", calls)
	}
	if got := command(t.Context(), twoEvals, "eval", "-f", "-", "--filter", "good"); got.code != exit.OK {
		t.Errorf("a run that passes ends with %d:\n%s", got.code, got.out)
	}
}

func TestHeaderNamesTheServersThatAreAsked(t *testing.T) {
	withJudge(t, goodAndBad)
	t.Setenv("OPENAI_API_KEY", "another-test-key")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
	got := command(t.Context(), twoEvals, "eval", "-f", "-", "--judge-model", "claude-haiku-5-5")
	if !strings.Contains(got.err, "anthropic is asked at "+os.Getenv("ANTHROPIC_BASE_URL")) || strings.Contains(got.err, "openai is asked") {
		t.Errorf("only anthropic is asked, and the header says:\n%s", got.err)
	}
}

func TestNothingIsSpentOnWhatCannotBeFinished(t *testing.T) {
	for name, test := range map[string]struct {
		env  [2]string
		args []string
		want string
	}{
		"a report that cannot be written": {[2]string{"MCPTEST_JUDGE_MODEL", ""}, []string{"--output-file", filepath.Join(t.TempDir(), "none", "report.json")}, "--output-file: open"},
		"a base URL that is none":         {[2]string{"ANTHROPIC_BASE_URL", "::bad"}, nil, "ANTHROPIC_BASE_URL is no URL of a server"},
		"a base URL without a scheme":     {[2]string{"ANTHROPIC_BASE_URL", "localhost:8080"}, nil, "write it as in https://"},
	} {
		t.Run(name, func(t *testing.T) {
			judge := withJudge(t, goodAndBad)
			t.Setenv(test.env[0], test.env[1])
			got := command(t.Context(), twoEvals, append([]string{"eval", "-f", "-"}, test.args...)...)
			if got.code != exit.BadInput || !strings.Contains(got.err, test.want) {
				t.Errorf("exit code %d: %s", got.code, got.err)
			}
			if calls := judge.Stats().Calls; calls != 0 {
				t.Errorf("%d calls, want none", calls)
			}
		})
	}
}

func TestEvalReportsAnErrorAsFailed(t *testing.T) {
	withJudge(t, "rules: [{fault: status, status: 401}]")
	got := command(t.Context(), twoEvals, "eval", "-f", "-")
	if got.code != exit.Failed || !strings.Contains(got.out, "2 errored") || !strings.Contains(got.out, "ANTHROPIC_API_KEY") {
		t.Errorf("exit code %d:\n%s", got.code, got.out)
	}
}

func TestExplainAsksNobody(t *testing.T) {
	judge := withJudge(t, goodAndBad)
	got := command(t.Context(), twoEvals, "explain", "-f", "-")
	if got.code != exit.OK || !strings.Contains(got.out, "2 rows, 2 judge calls at most") {
		t.Errorf("exit code %d:\n%s", got.code, got.out)
	}
	if calls := judge.Stats().Calls; calls != 0 {
		t.Errorf("%d calls, want none", calls)
	}
}

func TestReportsAreRedacted(t *testing.T) {
	withJudge(t, "rules: [{score: 0.1, reason: 'The key is test-key-of-the-stand-in.'}]")
	for _, format := range []string{"pretty", "json"} {
		got := command(t.Context(), twoEvals, "eval", "-f", "-", "-o", format)
		if strings.Contains(got.out, "test-key-of-the-stand-in") || !strings.Contains(got.out, "REDACTED") {
			t.Errorf("%s is not redacted:\n%s", format, got.out)
		}
	}
}

func TestStoredReportRendersTheSame(t *testing.T) {
	withJudge(t, goodAndBad)
	path := filepath.Join(t.TempDir(), "report.json")
	got := command(t.Context(), twoEvals, "eval", "-f", "-", "-o", "json", "--output-file", path)
	if got.code != exit.Failed || got.out != "" || !strings.Contains(got.err, "was written to "+path) {
		t.Fatalf("exit code %d: %s%s", got.code, got.out, got.err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var stored v1alpha1.RunReport
	if err := json.Unmarshal(data, &stored); err != nil {
		t.Fatal(err)
	}
	if len(stored.Rows) != 2 || stored.Summary.Failed != 1 {
		t.Errorf("the report is %+v", stored.Summary)
	}
	again := command(t.Context(), "", "report", "-f", path, "-o", "json")
	if again.code != exit.OK || again.out != string(data) {
		t.Errorf("rendered again (exit code %d) it is\n%s\nwant\n%s", again.code, again.out, data)
	}
}

func TestInterruptKeepsWhatWasGraded(t *testing.T) {
	judge := withJudge(t, goodAndBad)
	judge.Hold(1) // the first call is answered, the second hangs
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan result, 1)
	go func() { done <- command(ctx, twoEvals, "eval", "-f", "-", "--concurrency", "1") }()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for judge.Stats().Held == 0 {
		select {
		case <-tick.C:
		case got := <-done:
			t.Fatalf("ended before it was interrupted: %+v", got)
		case <-deadline:
			t.Fatal("the second call was not made")
		}
	}
	cancel()
	select {
	case got := <-done:
		if got.code != exit.NotFinished {
			t.Errorf("exit code %d, want %d", got.code, exit.NotFinished)
		}
		if !strings.Contains(got.out, "1 not finished") || !strings.Contains(got.err, "stopped: 1 of 2 rows were not graded") {
			t.Errorf("stdout:\n%s\nstderr:\n%s", got.out, got.err)
		}
	case <-deadline:
		t.Fatal("it did not end when it was interrupted")
	}
}

func TestDisplayName(t *testing.T) {
	for program, want := range map[string]string{
		"/usr/local/bin/kubectl-mcptest": "kubectl mcptest",
		"kubectl-mcptest.exe":            "kubectl mcptest",
		"/opt/mcptest":                   "mcptest",
	} {
		if got := DisplayName(program); got != want {
			t.Errorf("DisplayName(%q) = %q, want %q", program, got, want)
		}
	}
}

func TestExamplesGrade(t *testing.T) {
	withJudge(t, "default: {score: 0.9}")
	t.Setenv("OPENAI_API_KEY", "another-test-key")
	t.Setenv("OPENAI_BASE_URL", os.Getenv("ANTHROPIC_BASE_URL")+"/v1")
	matches, err := filepath.Glob("../../../examples/*.yaml")
	if err != nil || len(matches) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range matches {
		got := command(t.Context(), "", "eval", "-f", path)
		if strings.Contains(got.out, " deferred · 0 errored") == false || got.code > exit.Failed {
			t.Errorf("%s: exit code %d\n%s%s", path, got.code, got.out, got.err)
		}
	}
}
