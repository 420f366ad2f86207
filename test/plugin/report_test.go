package plugin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/exit"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

func ptr[T any](v T) *T { return &v }

func inline() *v1alpha1.EvalSpec {
	return &v1alpha1.EvalSpec{
		Response: ptr("An answer."),
		Rubric:   &v1alpha1.RubricSource{RubricSpec: v1alpha1.RubricSpec{Text: "Is it good?"}},
	}
}

// rowReport is the report of a row with a score against 0.7.
func rowReport(name string, score float64) *v1alpha1.Report {
	r := &v1alpha1.Report{
		SchemaVersion: "v1", Name: name, Eval: name, Outcome: v1alpha1.OutcomeFailed, Score: &score, Threshold: ptr(0.7), Display: fmt.Sprintf("%.2f", score),
		Rubrics: []v1alpha1.RubricReport{{Kind: v1alpha1.RubricKindText, Score: &score, Threshold: 0.7, Passed: score >= 0.7, Reason: "The reason of " + name + "."}},
		Usage:   v1alpha1.Usage{Calls: 1, CostUSD: 0.001},
	}
	if score >= 0.7 {
		r.Outcome = v1alpha1.OutcomePassed
	}
	return r
}

func newRoot(t *testing.T, ns, name string) *v1alpha1.EvalRun {
	t.Helper()
	run := &v1alpha1.EvalRun{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: v1alpha1.EvalRunSpec{Eval: inline()}}
	create(t, run)
	return run
}

// newChild makes the n-th of count children of a run.
func newChild(t *testing.T, root *v1alpha1.EvalRun, n, count int) *v1alpha1.EvalRun {
	t.Helper()
	row := fmt.Sprintf("row-%d", n)
	child := &v1alpha1.EvalRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: root.Namespace, Name: runtree.ChildName(root.Name, n, count), Labels: map[string]string{v1alpha1.LabelParent: root.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(root, v1alpha1.GroupVersion.WithKind("EvalRun"))},
		},
		Spec: v1alpha1.EvalRunSpec{Eval: inline(), Row: &v1alpha1.Row{Name: row, Eval: row}},
	}
	create(t, child)
	return child
}

// conclude ends a run with reports; a leaf keeps its own.
func conclude(t *testing.T, run *v1alpha1.EvalRun, reports ...*v1alpha1.Report) {
	t.Helper()
	updateStatus(t, run, func(s *v1alpha1.EvalRunStatus) {
		whole := &v1alpha1.EvalRun{ObjectMeta: run.ObjectMeta, Status: *s}
		runtree.Conclude(whole, runtree.Ending{Summary: rubric.Summarize(reports)}, time.Now())
		*s = whole.Status
	})
}

func TestReportOfChildren(t *testing.T) {
	ns := namespace(t)
	root := newRoot(t, ns, "nightly")
	reports := []*v1alpha1.Report{rowReport("row-0", 0.9), rowReport("row-1", 0.3)}
	for n, r := range reports {
		child := newChild(t, root, n, len(reports))
		updateStatus(t, child, func(s *v1alpha1.EvalRunStatus) { s.Report = r })
	}

	running := command(t, "report", "nightly", "-n", ns)
	if running.code != exit.OK || !strings.Contains(running.err, "note: the run goes on: 2 of 2 rows are there") {
		t.Errorf("of a running run (exit code %d):\n%s%s", running.code, running.out, running.err)
	}

	conclude(t, root, reports...)
	pretty := command(t, "report", "nightly", "-n", ns)
	for _, want := range []string{"✗ nightly", "✓ row-0", "✗ row-1", "The reason of row-1.", "2 rows · 1 passed · 1 failed · 0 deferred · 0 errored"} {
		if !strings.Contains(pretty.out, want) {
			t.Errorf("stdout lacks %q:\n%s", want, pretty.out)
		}
	}
	if pretty.code != exit.OK {
		t.Errorf("exit code %d, want %d: %s", pretty.code, exit.OK, pretty.err)
	}

	var got v1alpha1.RunReport
	if err := json.Unmarshal([]byte(command(t, "report", "nightly", "-n", ns, "-o", "json").out), &got); err != nil {
		t.Fatal(err)
	}
	if got.Run != "nightly" || len(got.Rows) != 2 || got.Rows[1].Name != "row-1" || *got.Summary.Score != 0.6 {
		t.Errorf("as JSON it is %+v", got)
	}
}

func TestReportOfOneRow(t *testing.T) {
	ns := namespace(t)
	root := newRoot(t, ns, "single")
	updateStatus(t, root, func(s *v1alpha1.EvalRunStatus) { s.Report = rowReport("single", 0.8) })
	conclude(t, root, root.Status.Report)
	if got := command(t, "report", "single", "-n", ns); got.code != exit.OK || !strings.Contains(got.out, "The reason of single.") {
		t.Errorf("exit code %d:\n%s%s", got.code, got.out, got.err)
	}
}

func TestReportKeepsRowsWhoseChildIsGone(t *testing.T) {
	ns := namespace(t)
	root := newRoot(t, ns, "swept")
	conclude(t, root, rowReport("row-0", 0.9), rowReport("row-1", 0.2))
	updateStatus(t, root, func(s *v1alpha1.EvalRunStatus) {
		s.Rows = []v1alpha1.RowResult{
			{Row: v1alpha1.Row{Name: "row-1", Eval: "row-1"}, Outcome: v1alpha1.OutcomeFailed, Score: ptr(0.2), Run: "swept-1"},
			{Row: v1alpha1.Row{Name: "row-0", Eval: "row-0"}, Outcome: v1alpha1.OutcomePassed, Score: ptr(0.9), Run: "swept-0"},
		}
	})
	got := command(t, "report", "swept", "-n", ns)
	for _, want := range []string{"✓ row-0", "✗ row-1", "the child run swept-1 was deleted", "2 rows ·"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("stdout lacks %q:\n%s", want, got.out)
		}
	}
}

func TestReportOfARunThatIsNotThere(t *testing.T) {
	ns := namespace(t)
	if got := command(t, "report", "nightly", "-n", ns); got.code != exit.BadInput || !strings.Contains(got.err, "has none; choose another with -n") {
		t.Errorf("in an empty namespace (exit code %d): %s", got.code, got.err)
	}
	newRoot(t, ns, "nightly")
	if got := command(t, "report", "nightyl", "-n", ns); got.code != exit.BadInput || !strings.Contains(got.err, `did you mean "nightly"?`) {
		t.Errorf("exit code %d: %s", got.code, got.err)
	}
}
