package plugin

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/exit"
)

func newEval(t *testing.T, ns, name string, labels map[string]string) {
	t.Helper()
	create(t, &v1alpha1.Eval{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: labels}, Spec: *inline()})
}

// made waits for the runs that a command makes.
func made(t *testing.T, ns string, count int) []v1alpha1.EvalRun {
	t.Helper()
	var list v1alpha1.EvalRunList
	eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := c.List(ctx, &list, client.InNamespace(ns)); err != nil {
			t.Fatal(err)
		}
		return len(list.Items) == count
	}, func() string { return "the runs were not made" })
	return list.Items
}

func TestRunFollowsAndEndsWithTheVerdict(t *testing.T) {
	for name, test := range map[string]struct {
		score float64
		want  int
	}{
		"a run that passes": {0.9, exit.OK},
		"a run that fails":  {0.1, exit.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			ns := namespace(t)
			newEval(t, ns, "my.eval", nil)
			cmd := start(t, "", "run", "my.eval", "-n", ns, "--judge-model", "gpt-4.1", "--parallelism", "2", "--concurrency", "3")
			run := made(t, ns, 1)[0]
			if !strings.HasPrefix(run.Name, "my-eval-") || run.Spec.EvalRef.Name != "my.eval" || run.Labels[v1alpha1.LabelEval] != "my.eval" ||
				run.Spec.Judge.Model != "gpt-4.1" || *run.Spec.Parallelism != 2 || *run.Spec.Concurrency != 3 {
				t.Errorf("the run is %+v", run)
			}
			cmd.says(t, "evalrun.eval.mcptest.dev/"+run.Name+" created")
			updateStatus(t, &run, func(s *v1alpha1.EvalRunStatus) {
				meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse,
					Reason: v1alpha1.ReasonRubricNotFound, Message: `Rubric "x" not found`})
			})
			cmd.says(t, `waits: RubricNotFound: Rubric "x" not found`)
			updateStatus(t, &run, func(s *v1alpha1.EvalRunStatus) {
				s.Conditions, s.Summary, s.ProjectedCalls = nil, &v1alpha1.Summary{Rows: 1}, 1
			})
			cmd.says(t, "0 of 1 rows, 0 of 1 calls")
			updateStatus(t, &run, func(s *v1alpha1.EvalRunStatus) { s.Report = rowReport("my.eval", test.score) })
			conclude(t, &run, run.Status.Report)
			got := cmd.wait(t)
			if got.code != test.want || !strings.Contains(got.out, "The reason of my.eval.") {
				t.Errorf("exit code %d, want %d:\n%s%s", got.code, test.want, got.out, got.err)
			}
		})
	}
}

func TestRunWithoutWatchNamesTheRun(t *testing.T) {
	ns := namespace(t)
	newEval(t, ns, "e", map[string]string{"team": "docs"})
	got := command(t, "run", "-l", "team=docs", "-n", ns, "--watch=false", "--name", "mine")
	if got.code != exit.OK || got.out != "mine\n" {
		t.Errorf("exit code %d: %q %s", got.code, got.out, got.err)
	}
	if run := made(t, ns, 1)[0]; run.Spec.EvalSelector.MatchLabels["team"] != "docs" {
		t.Errorf("the run is %+v", run.Spec)
	}
	if got := command(t, "run", "-l", "team=ops", "-n", ns); got.code != exit.NothingSelected || !strings.Contains(got.err, "has the labels team=ops") {
		t.Errorf("of a label that no eval has: exit code %d: %s", got.code, got.err)
	}
	if got := command(t, "run", "ee", "-n", ns); got.code != exit.BadInput || !strings.Contains(got.err, `did you mean "e"?`) {
		t.Errorf("of an eval that is not there: exit code %d: %s", got.code, got.err)
	}
}

func TestRunOfFilesMakesInlineRuns(t *testing.T) {
	ns := namespace(t)
	create(t, &v1alpha1.Rubric{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "of-the-cluster"}, Spec: v1alpha1.RubricSpec{Text: "From the cluster."}})
	const files = `
apiVersion: eval.mcptest.dev/v1alpha1
kind: Rubric
metadata: {name: of-the-file}
spec: {text: From the file.}
---
apiVersion: eval.mcptest.dev/v1alpha1
kind: Eval
metadata: {name: a}
spec: {response: x1, rubric: {ref: of-the-file, threshold: 0.5}}
---
apiVersion: eval.mcptest.dev/v1alpha1
kind: Eval
metadata: {name: b}
spec: {responseFrom: {configMapKeyRef: {name: m, key: k}}, rubric: {ref: of-the-cluster}}
`
	got := start(t, files, "run", "-f", "-", "-n", ns, "--watch=false").wait(t)
	if got.code != exit.OK {
		t.Fatalf("exit code %d: %s", got.code, got.err)
	}
	runs := made(t, ns, 2)
	a, b := runs[0].Spec.Eval, runs[1].Spec.Eval
	if a.Title != "a" || a.Rubric.Text != "From the file." || *a.Rubric.Threshold != 0.5 {
		t.Errorf("the first run grades %+v", a)
	}
	if b.Title != "b" || b.Rubric.Text != "From the cluster." || b.ResponseFrom == nil {
		t.Errorf("the second run grades %+v", b)
	}
	rest := strings.Replace(files, "ref: of-the-cluster", "ref: of-the-clutser", 1)
	missing := start(t, rest, "run", "-f", "-", "-n", ns, "--watch=false").wait(t)
	if missing.code != exit.BadInput || !strings.Contains(missing.err, `eval "b": Rubric "of-the-clutser" not found`) {
		t.Errorf("of a rubric that is nowhere: exit code %d: %s", missing.code, missing.err)
	}
	made(t, ns, 2) // nothing was made when one of them could not be
}

func TestRunThatCannotGoOnEnds(t *testing.T) {
	ns := namespace(t)
	newEval(t, ns, "e", nil)
	cmd := start(t, "", "run", "e", "-n", ns)
	run := made(t, ns, 1)[0]
	updateStatus(t, &run, func(s *v1alpha1.EvalRunStatus) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonInvalidSpec, Message: "spec.rubric: no candidate could pass"})
	})
	if got := cmd.wait(t); got.code != exit.BadInput || !strings.Contains(got.err, "cannot go on: InvalidSpec: spec.rubric: no candidate could pass") {
		t.Errorf("exit code %d: %s", got.code, got.err)
	}
}

func TestRunIsLeftAlone(t *testing.T) {
	ns := namespace(t)
	newEval(t, ns, "e", nil)
	interrupted := start(t, "", "run", "e", "-n", ns)
	run := made(t, ns, 1)[0]
	interrupted.says(t, "created")
	interrupted.cancel()
	if got := interrupted.wait(t); got.code != exit.NotFinished || !strings.Contains(got.err, "kubectl mcptest report "+run.Name+" -n "+ns) {
		t.Errorf("after Ctrl-C: exit code %d: %s", got.code, got.err)
	}
	if got := command(t, "run", "e", "-n", ns, "--timeout", "100ms"); got.code != exit.NotFinished || !strings.Contains(got.err, "not finished after 100ms") {
		t.Errorf("after the timeout: exit code %d: %s", got.code, got.err)
	}
	made(t, ns, 2) // both are still there
}

func TestRunThatIsDeletedEnds(t *testing.T) {
	ns := namespace(t)
	newEval(t, ns, "e", nil)
	cmd := start(t, "", "run", "e", "-n", ns)
	run := made(t, ns, 1)[0]
	cmd.says(t, "created")
	if err := c.Delete(t.Context(), &run); err != nil {
		t.Fatal(err)
	}
	if got := cmd.wait(t); got.code != exit.NotFinished || !strings.Contains(got.err, "the run was deleted") {
		t.Errorf("exit code %d: %s", got.code, got.err)
	}
}

func TestExplainOfTheCluster(t *testing.T) {
	ns := namespace(t)
	create(t, &v1alpha1.Rubric{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "r"}, Spec: v1alpha1.RubricSpec{Text: "Is it good?"}})
	create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "m"}, Data: map[string]string{"k": "An answer."}})
	create(t, &v1alpha1.Eval{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "e"}, Spec: v1alpha1.EvalSpec{
		ResponseFrom: &v1alpha1.ResponseSource{ConfigMapKeyRef: v1alpha1.ConfigMapKey{Name: "m", Key: "k"}},
		Rubric:       &v1alpha1.RubricSource{Ref: "r"}, Judge: &v1alpha1.JudgeSpec{Model: "gpt-4.1", Jury: &v1alpha1.Jury{Size: 3}},
	}})
	got := command(t, "explain", "e", "-n", ns)
	for _, want := range []string{"text, passes at 0.70", "a response of 10 bytes", "jury of 3 × gpt-4.1 (openai)", "1 row, 3 judge calls at most, about $"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("stdout lacks %q (exit code %d):\n%s%s", want, got.code, got.out, got.err)
		}
	}
}

func TestVersionOfACluster(t *testing.T) {
	if got := command(t, "version"); got.code != exit.OK || !strings.Contains(got.err, "no operator is in this cluster") {
		t.Errorf("exit code %d:\n%s%s", got.code, got.out, got.err)
	}
}
