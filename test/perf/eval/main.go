// Command eval measures whole runs of `kubectl-mcptest eval`, without a cluster, and prints the figures of
// docs/performance.md as a table.
//
//	make perf-eval
//
// The judge is the stand-in with a fixed latency, so that the floor is known: calls x latency / calls at once.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/hack/fakejudge"
	"github.com/mcptest/mcptest-operator/test/local"
)

// load is a run to be measured.
type load struct {
	rows, criteria, concurrency int
	latency                     time.Duration
}

func (l load) calls() int { return l.rows * l.criteria }

// floor is what the judge alone takes.
func (l load) floor() time.Duration {
	return time.Duration(l.calls()) * l.latency / time.Duration(min(l.concurrency, l.calls()))
}

func main() {
	binary := flag.String("binary", "bin/kubectl-mcptest", "the program to measure")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := measure(ctx, *binary)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "perf:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, binary string) error {
	dir, err := os.MkdirTemp("", "perf-eval-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	fmt.Println("| rows x criteria | judge | calls at once | wall | floor | above it | CPU a call | memory peak |")
	fmt.Println("|---|---:|---:|---:|---:|---:|---:|---:|")
	for _, l := range []load{
		{1, 1, 16, 200 * time.Millisecond},
		{100, 5, 16, 200 * time.Millisecond},
		{1000, 5, 32, 200 * time.Millisecond},
		{1000, 5, 32, 0},
		{5000, 5, 64, 0},
	} {
		if err := run(ctx, binary, dir, l); err != nil {
			return fmt.Errorf("%d rows: %w", l.rows, err)
		}
	}
	return nil
}

// run measures one run and prints its line.
func run(ctx context.Context, binary, dir string, l load) error {
	judge, err := local.StartJudge(fakejudge.Options{Rules: fakejudge.Rules{
		Latency: fakejudge.Fixed(l.latency), Default: fakejudge.Default{Score: fakejudge.At(0.9)},
	}})
	if err != nil {
		return err
	}
	defer judge.Stop()
	evals, report := filepath.Join(dir, "evals.yaml"), filepath.Join(dir, "report.json")
	if err := os.WriteFile(evals, manifests(l), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, binary, "eval", "-f", evals, "-o", "json", "--output-file", report, "--concurrency", fmt.Sprint(l.concurrency))
	cmd.Env = []string{"HOME=" + dir}
	for name, value := range judge.Keys("no-real-key") {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	wall := time.Since(began)
	if err := check(report, l); err != nil {
		return err
	}
	above := "-"
	if floor := l.floor(); floor > 0 {
		above = fmt.Sprintf("%.1f %%", 100*(wall.Seconds()/floor.Seconds()-1))
	}
	used := cmd.ProcessState
	cpu := (used.UserTime() + used.SystemTime()) / time.Duration(l.calls())
	peak := "-"
	if u, ok := used.SysUsage().(*syscall.Rusage); ok {
		peak = fmt.Sprintf("%.0f MiB", float64(u.Maxrss)/1024) // Linux counts in KiB
	}
	fmt.Printf("| %d x %d | %v | %d | %.2f s | %.2f s | %s | %v | %s |\n", l.rows, l.criteria, l.latency, l.concurrency,
		wall.Seconds(), l.floor().Seconds(), above, cpu.Round(time.Microsecond), peak)
	return nil
}

// check makes sure that what was measured is what was meant.
func check(path string, l load) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var r v1alpha1.RunReport
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	if int(r.Summary.Passed) != l.rows || int(r.Summary.Calls) != l.calls() {
		return fmt.Errorf("%d of %d rows passed with %d calls", r.Summary.Passed, r.Summary.Rows, r.Summary.Calls)
	}
	return nil
}

// manifests are the evals of a load, one a row.
func manifests(l load) []byte {
	var b bytes.Buffer
	for i := range l.rows {
		response := fmt.Sprintf("Answer %d: it is a round, red fruit that grows on trees, and it keeps for months in a cool cellar.", i)
		eval := v1alpha1.Eval{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Eval"},
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("perf-%05d", i)},
			Spec: v1alpha1.EvalSpec{
				Prompt: fmt.Sprintf("Describe apple %d.", i), Response: &response,
				Judge: &v1alpha1.JudgeSpec{Model: "claude-sonnet-5-5"}, Rubric: &v1alpha1.RubricSource{},
			},
		}
		for n := range l.criteria {
			eval.Spec.Rubric.Criteria = append(eval.Spec.Rubric.Criteria, v1alpha1.Criterion{
				Name: fmt.Sprint("c", n), Description: fmt.Sprintf("The answer has quality %d.", n),
			})
		}
		data, err := yaml.Marshal(eval)
		if err != nil { // the types of the API always marshal
			panic(err)
		}
		b.WriteString("---\n")
		b.Write(data)
	}
	return b.Bytes()
}
