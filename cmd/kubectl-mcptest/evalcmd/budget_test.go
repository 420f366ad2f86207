package evalcmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/exit"
	"github.com/mcptest/mcptest-operator/hack/fakejudge"
)

const head = "apiVersion: eval.mcptest.dev/v1alpha1\n"

// evals is so many evals of one call each.
func evals(n int, judge string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "---\n%skind: Eval\nmetadata: {name: e%02d}\nspec: {response: A fine answer., rubric: {text: Is it fine}, judge: {%s}}\n", head, i, judge)
	}
	return b.String()
}

// graded runs `eval -f - -o json` with more arguments against a stand-in judge.
func graded(t *testing.T, stdin string, args ...string) (*v1alpha1.RunReport, string, *fakejudge.Server, error) {
	t.Helper()
	rules, err := fakejudge.ParseRules([]byte("default: {score: 0.9, reason: It is fine.}"))
	if err != nil {
		t.Fatal(err)
	}
	judge := fakejudge.New(fakejudge.Options{Rules: rules})
	server := httptest.NewServer(judge)
	t.Cleanup(func() { judge.Close(); server.Close() })
	env := map[string]string{"OPENAI_API_KEY": "no-real-key", "OPENAI_BASE_URL": server.URL + "/v1"}
	var out, errOut bytes.Buffer
	o := &Options{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errOut}}
	cmd := newCommand(o)
	o.Getenv = func(name string) string { return env[name] }
	cmd.SetArgs(append([]string{"-f", "-", "-o", "json"}, args...))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	report := &v1alpha1.RunReport{}
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), report); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
	}
	return report, errOut.String(), judge, err
}

func TestS42ABudgetStopsALocalRun(t *testing.T) {
	whole, _, _, err := graded(t, evals(40, "model: gpt-5.4-mini"))
	if err != nil || whole.Summary.Passed+whole.Summary.Failed != 40 || whole.Summary.CostUSD <= 0 {
		t.Fatalf("%v, %+v", err, whole.Summary)
	}
	half := whole.Summary.CostUSD / 2
	cut, said, judge, err := graded(t, evals(40, "model: gpt-5.4-mini"), "--max-cost", fmt.Sprint(half), "--concurrency", "4")
	if exit.Code(err) != exit.BudgetExceeded || !strings.Contains(err.Error(), "the budget ran out") {
		t.Errorf("exit code %d, %v", exit.Code(err), err)
	}
	if !strings.Contains(said, "more than the budget") {
		t.Errorf("the header does not say that the budget is too small:\n%s", said)
	}
	over := 0
	for _, r := range cut.Rows {
		switch {
		case r.Reason == v1alpha1.RowBudgetExceeded:
			over++
			if r.Outcome != v1alpha1.OutcomeError || r.Score != nil || !strings.HasPrefix(r.Note, "BudgetExceeded: ") {
				t.Errorf("%s: %s, score %v, %q", r.Name, r.Outcome, r.Score, r.Note)
			}
		case r.Score == nil:
			t.Errorf("%s was judged and has no score: %+v", r.Name, r)
		}
	}
	judged := len(cut.Rows) - over
	if over == 0 || judged == 0 || len(cut.Rows) != 40 || int(cut.Summary.Calls) != judged || cut.Summary.CostUSD > half {
		t.Errorf("%d rows of %d were judged with %d calls for $%v of $%v", judged, len(cut.Rows), cut.Summary.Calls, cut.Summary.CostUSD, half)
	}
	if stats := judge.Stats(); stats.Answered != int64(judged) {
		t.Errorf("the judge answered %d calls, and %d rows were judged", stats.Answered, judged)
	}
}

func TestS42ABudgetThatSuffices(t *testing.T) {
	report, said, _, err := graded(t, evals(4, "model: gpt-5.4-mini"), "--max-cost", "$5")
	if err != nil || report.Summary.Errored != 0 || !strings.Contains(said, "the budget is $5.00") {
		t.Errorf("%v, %+v\n%s", err, report.Summary, said)
	}
}

func TestS42HowManyCallsAreMadeAtOnceDoesNotMatterToTheBudget(t *testing.T) {
	const rows = 40
	whole, _, _, err := graded(t, evals(rows, "model: gpt-5.4-mini"))
	if err != nil {
		t.Fatal(err)
	}
	enough := whole.Summary.CostUSD * 1.1 // the estimates are more than twice that
	for _, concurrency := range []string{"1", "16"} {
		report, _, _, err := graded(t, evals(rows, "model: gpt-5.4-mini"), "--max-cost", fmt.Sprint(enough), "--concurrency", concurrency)
		if err != nil || report.Summary.Passed != rows {
			t.Errorf("concurrency %s: %v, %d of %d rows passed", concurrency, err, report.Summary.Passed, rows)
		}
	}
}

func TestS42AModelWithoutAPriceIsRefused(t *testing.T) {
	unpriced := evals(1, "model: llama-9, provider: openai")
	_, _, judge, err := graded(t, unpriced, "--max-cost", "1")
	if exit.Code(err) != exit.BadInput || !strings.Contains(err.Error(), "the model llama-9 has no known price") || !strings.Contains(err.Error(), "--prices") {
		t.Errorf("exit code %d, %v", exit.Code(err), err)
	}
	if n := judge.Stats().Answered; n != 0 {
		t.Errorf("%d calls were made", n)
	}
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(prices, []byte("models: {llama-9: {input: 1, output: 5}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	report, _, _, err := graded(t, unpriced, "--max-cost", "1", "--prices", prices)
	if err != nil || report.Summary.CostUSD <= 0 || report.Summary.UnpricedCalls != 0 {
		t.Errorf("with a price: %v, %+v", err, report.Summary)
	}
}

func TestTheBudgetOfAnEvalRunCounts(t *testing.T) {
	run := func(name, spec string) string {
		return "---\n" + head + "kind: EvalRun\nmetadata: {name: " + name + "}\nspec: {evalRef: {name: e00}" + spec + "}\n"
	}
	one := evals(1, "model: gpt-5.4-mini")
	_, _, _, err := graded(t, one+run("r", ", maxCost: 0.0000001"))
	if exit.Code(err) != exit.BudgetExceeded {
		t.Errorf("maxCost of the EvalRun: exit code %d, %v", exit.Code(err), err)
	}
	if _, _, _, err = graded(t, one+run("r", ", maxCost: 0.0000001"), "--max-cost", "1"); err != nil {
		t.Errorf("--max-cost comes before it: %v", err)
	}
	_, _, _, err = graded(t, one+run("r", ", maxCost: 1")+run("s", ""))
	if exit.Code(err) != exit.BadInput || !strings.Contains(err.Error(), "--max-cost") {
		t.Errorf("several EvalRuns: exit code %d, %v", exit.Code(err), err)
	}
}

func TestFlagsOfMoney(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"nothing":           {[]string{"--max-cost", "0"}, "above 0 and at most 1000000, such as 0.50"},
		"less than nothing": {[]string{"--max-cost", "-1"}, "above 0 and at most 1000000, such as 0.50"},
		"no number":         {[]string{"--max-cost", "lots"}, "above 0 and at most 1000000, such as 0.50"},
		"not a number":      {[]string{"--max-cost", "NaN"}, "above 0 and at most 1000000, such as 0.50"},
		"no price file":     {[]string{"--prices", "no/such/file"}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, _, err := graded(t, evals(1, ""), tc.args...); exit.Code(err) != exit.BadInput || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("exit code %d, %v", exit.Code(err), err)
			}
		})
	}
}
