package cluster

import (
	"cmp"
	"context"
	"slices"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

// Report gathers the report of a run: its own, or those of its children, which are listed by label in chunks. Rows that
// have not ended are counted in the summary and are not among the rows.
func (c *Client) Report(ctx context.Context, run *v1alpha1.EvalRun) (*v1alpha1.RunReport, error) {
	var children []v1alpha1.EvalRun
	if run.Status.Report == nil && !runtree.IsChild(run) {
		var err error
		if children, err = c.Runs(ctx, v1alpha1.LabelParent+"="+run.Name); err != nil {
			return nil, err
		}
	}
	return report(run, children), nil
}

func report(run *v1alpha1.EvalRun, children []v1alpha1.EvalRun) *v1alpha1.RunReport {
	out := &v1alpha1.RunReport{SchemaVersion: v1alpha1.ReportSchemaVersion, Run: run.Name, Rows: []v1alpha1.Report{}}
	leaves := runtree.Leaves(run, children)
	reports := make([]*v1alpha1.Report, len(leaves))
	there := make(map[string]bool)
	for i, leaf := range leaves {
		there[leaf.Name] = true
		if reports[i] = leaf.Status.Report; reports[i] != nil {
			out.Rows = append(out.Rows, *reports[i])
		}
	}
	out.Summary = rubric.Summarize(reports)
	if run.Status.Summary != nil && (runtree.IsComplete(run) || out.Summary.Rows < run.Status.Summary.Rows) {
		out.Summary = *run.Status.Summary
	}
	if runtree.IsComplete(run) {
		out.Rows = append(out.Rows, withoutChild(run, there)...)
	}
	return out
}

// withoutChild are the rows of a finished run whose children are gone: only their line is left.
func withoutChild(run *v1alpha1.EvalRun, there map[string]bool) []v1alpha1.Report {
	var rows []v1alpha1.Report
	lines := slices.Clone(run.Status.Rows)
	slices.SortFunc(lines, func(a, b v1alpha1.RowResult) int { return cmp.Compare(a.Run, b.Run) })
	for _, r := range lines {
		if !there[r.Run] {
			rows = append(rows, v1alpha1.Report{
				SchemaVersion: v1alpha1.ReportSchemaVersion, Name: r.Name, Eval: r.Eval, Cell: r.Cell, Outcome: r.Outcome, Score: r.Score,
				Note: "the child run " + r.Run + " was deleted: its report is gone",
			})
		}
	}
	return rows
}
