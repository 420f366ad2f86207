package evalrun

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/condition"
)

func TestEventsTellWhatChanged(t *testing.T) {
	resolved := func(r *v1alpha1.EvalRun) {
		r.Status.Digest, r.Status.ProjectedCalls, r.Status.Summary = "d", 4, &v1alpha1.Summary{Rows: 4}
	}
	started := func(r *v1alpha1.EvalRun) { resolved(r); r.Status.Job = "nightly" }
	lacking := func(name string) func(*v1alpha1.EvalRun) {
		return func(r *v1alpha1.EvalRun) { report(r, condition.Missing("RubricNotFound", name), epoch) }
	}
	running := condition.InProgress("Running", "Job nightly is grading the rows")
	standsAt := func(s condition.Situation) func(*v1alpha1.EvalRun) {
		return func(r *v1alpha1.EvalRun) { started(r); report(r, s, epoch) }
	}
	over := func(s v1alpha1.Summary) func(*v1alpha1.EvalRun) {
		return func(r *v1alpha1.EvalRun) { started(r); conclude(r, s) }
	}
	for name, tc := range map[string]struct {
		before, after func(*v1alpha1.EvalRun)
		want          []event
	}{
		"nothing":             {resolved, resolved, nil},
		"resolved":            {func(*v1alpha1.EvalRun) {}, resolved, []event{{"Normal", "Resolved", "Resolve", "4 rows, 4 judge calls at most"}}},
		"a Rubric is missing": {func(*v1alpha1.EvalRun) {}, lacking("a"), []event{{"Warning", "RubricNotFound", "Reconcile", "a"}}},
		"still missing: once": {lacking("a"), lacking("a"), nil},
		"started": {resolved, started, []event{
			{"Normal", "ChildrenCreated", "Expand", "4 child runs, one a row"},
			{"Normal", "JobCreated", "Start", "Job nightly grades 4 rows"},
		}},
		"one row has no children": {
			func(*v1alpha1.EvalRun) {},
			func(r *v1alpha1.EvalRun) {
				r.Status.Digest, r.Status.ProjectedCalls, r.Status.Summary, r.Status.Job = "d", 1, &v1alpha1.Summary{Rows: 1}, "nightly"
			},
			[]event{{"Normal", "Resolved", "Resolve", "1 row, 1 judge call at most"}, {"Normal", "JobCreated", "Start", "Job nightly grades 1 row"}},
		},
		"suspended": {started, standsAt(suspended()), []event{{"Normal", "Suspended", "Suspend", "the run is suspended; set spec.suspend to false to go on"}}},
		"resumed":   {standsAt(suspended()), standsAt(running), []event{{"Normal", "Resumed", "Resume", "Job nightly is grading the rows"}}},
		"healed": {
			standsAt(condition.Missing("SecretNotFound", "no keys")), standsAt(running),
			[]event{{"Normal", "Running", "Reconcile", "Job nightly is grading the rows"}},
		},
		"running: no news": {standsAt(condition.InProgress("Pending", "Job nightly waits for its pods")), standsAt(running), nil},
		"passed":           {started, over(v1alpha1.Summary{Rows: 1, Passed: 1, Calls: 2}), []event{{"Normal", "Passed", "Finish", "1 of 1 rows passed; 2 judge calls, $0.0000"}}},
		"failed":           {started, over(v1alpha1.Summary{Rows: 2, Passed: 1, Failed: 1}), []event{{"Warning", "Failed", "Finish", "1 of 2 rows passed, 1 failed; 0 judge calls, $0.0000"}}},
		"error":            {started, over(v1alpha1.Summary{Rows: 1, Errored: 1}), []event{{"Warning", "Error", "Finish", "0 of 1 rows passed, 1 errored; 0 judge calls, $0.0000"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := story(root(tc.before), root(tc.after))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(event{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
