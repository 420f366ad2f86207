package evalrun

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"golang.org/x/sync/errgroup"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
	"github.com/mcptest/mcptest-operator/engine/plan"
	"github.com/mcptest/mcptest-operator/engine/redact"
	reports "github.com/mcptest/mcptest-operator/engine/report"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

// finish ends a run all of whose leaves have their report.
func (r *Reconciler) finish(s *scope, leaves []*v1alpha1.EvalRun) {
	summary := summarize(leaves)
	var notes []string
	if missing := missingRows(s.run, leaves); missing > 0 {
		summary.Rows += missing
		summary.Errored += missing
		notes = append(notes, counted(missing, "child run was", "child runs were")+" deleted before the run ended")
	}
	unjudged := overBudget(leaves)
	if unjudged > 0 && s.run.Spec.MaxCost != nil {
		notes = append(notes, fmt.Sprintf("maxCost %s was used up: %s not judged", runtree.USD(*s.run.Spec.MaxCost), counted(unjudged, "row was", "rows were")))
	}
	if runtree.IsChild(leaves[0]) {
		all := rowsOf(leaves)
		s.run.Status.Rows = listed(s.run, all)
		if n := len(s.run.Status.Rows); n < len(all) {
			notes = append(notes, fmt.Sprintf("status.rows lists %d of them, the bad ones first: the child runs hold all", n))
		}
	}
	note := strings.Join(append([]string{runtree.Sentence(summary)}, notes...), "; ")
	runtree.Conclude(s.run, runtree.Ending{Summary: summary, Note: note, OverBudget: unjudged > 0}, r.now())
}

// overBudget is how many leaves were not judged to their end because the run's maxCost was used up (S-42).
func overBudget(leaves []*v1alpha1.EvalRun) int32 {
	n := int32(0)
	for _, leaf := range leaves {
		if runtree.IsOverBudget(leaf) {
			n++
		}
	}
	return n
}

// missingRows is how many of the rows that a run was frozen with have no child any more: somebody deleted them.
func missingRows(run *v1alpha1.EvalRun, leaves []*v1alpha1.EvalRun) int32 {
	if run.Status.Summary == nil {
		return 0
	}
	return max(0, run.Status.Summary.Rows-int32(len(leaves)))
}

func counted(n int32, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}

// endOrphaned ends a run whose children were deleted before they had their reports.
func (r *Reconciler) endOrphaned(s *scope) {
	rows := int32(1)
	if s.run.Status.Summary != nil {
		rows = s.run.Status.Summary.Rows
	}
	summary := v1alpha1.Summary{Rows: rows, Errored: rows}
	note := "the child runs of this run were deleted before it ended; make a new run"
	runtree.Conclude(s.run, runtree.Ending{Summary: summary, Note: note}, r.now())
}

// endWithoutJudge ends the rows of a run none of which needs a judge, because they have no candidate or an empty one,
// and then the run.
func (r *Reconciler) endWithoutJudge(ctx context.Context, s *scope, leaves []*v1alpha1.EvalRun) error {
	if len(leaves) == 0 {
		leaves = []*v1alpha1.EvalRun{s.run}
	}
	grader := &rubric.Grader{Now: r.now}
	all, err := r.endLeaves(ctx, s, leaves, func(_ int, leaf *v1alpha1.EvalRun) (v1alpha1.Findings, error) {
		_, spec := runtree.Graded(leaf)
		return grader.Grade(ctx, spec, nil, nil)
	})
	if err != nil {
		return err
	}
	r.finish(s, all)
	return nil
}

// endFailed gives the leaves that have no report, although the Job ended, an Error that says why; then it ends the run.
// A report that reached the API server meanwhile wins.
func (r *Reconciler) endFailed(ctx context.Context, s *scope, leaves []*v1alpha1.EvalRun) error {
	why := causes(s.job, s.pods, leaves)
	all, err := r.endLeaves(ctx, s, leaves, func(i int, leaf *v1alpha1.EvalRun) (v1alpha1.Findings, error) {
		now := metav1.NewTime(r.now())
		return v1alpha1.Findings{Judgments: leaf.Status.Judgments, Error: why[i], StartedAt: s.run.Status.StartTime, FinishedAt: &now}, nil
	})
	if err != nil {
		return err
	}
	logf.FromContext(ctx).Info("the Job ended before every row was graded", "job", s.job.Name, "cause", jobCause(s.job))
	r.finish(s, all)
	return nil
}

// findings are what is known about a leaf, the i-th of its run, when it ends here.
type findings func(i int, leaf *v1alpha1.EvalRun) (v1alpha1.Findings, error)

// endLeaves gives each leaf that has no report one, and returns the leaves as they are then. A root that is its own leaf
// is not written here: its status is written at the end of the reconcile.
func (r *Reconciler) endLeaves(ctx context.Context, s *scope, leaves []*v1alpha1.EvalRun, find findings) ([]*v1alpha1.EvalRun, error) {
	out := slices.Clone(leaves)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxWriters)
	for i, leaf := range leaves {
		switch {
		case leaf.Status.Report != nil:
		case leaf.UID == s.run.UID:
			if err := score(s.run, i, find); err != nil {
				return nil, err
			}
			out[i] = s.run
		default:
			group.Go(func() (err error) {
				out[i], err = r.endChild(ctx, i, leaf, find)
				return err
			})
		}
	}
	return out, group.Wait()
}

// maxEndAttempts bounds how often the end of a child is tried while others write to it: a collector writes to a leaf a
// few times a second at most, and not at all once its Job ended.
const maxEndAttempts = 5

// endChild ends a child. The first try is with what the cache says: when that is not the newest, the write is refused.
func (r *Reconciler) endChild(ctx context.Context, i int, child *v1alpha1.EvalRun, find findings) (*v1alpha1.EvalRun, error) {
	before := child
	if child.ResourceVersion == "" { // it was there already, and was not read
		before = &v1alpha1.EvalRun{}
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(child), before); err != nil {
			return nil, fmt.Errorf("reading child %q: %w", child.Name, err)
		}
	}
	var err error
	for range maxEndAttempts {
		if before.Status.Report != nil {
			return before, nil
		}
		after := before.DeepCopy()
		if err := score(after, i, find); err != nil {
			return nil, err
		}
		runtree.Conclude(after, runtree.Ending{Summary: summarize([]*v1alpha1.EvalRun{after})}, r.now())
		err = r.Client.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			return after, nil
		}
		if !apierrors.IsConflict(err) {
			break
		}
		before = &v1alpha1.EvalRun{}
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(child), before); err != nil {
			return nil, fmt.Errorf("reading child %q: %w", child.Name, err)
		}
	}
	return nil, fmt.Errorf("ending child %q: %w", child.Name, err)
}

// score gives a leaf its report.
func score(leaf *v1alpha1.EvalRun, i int, find findings) error {
	row, spec := runtree.Graded(leaf)
	if row == nil {
		return fmt.Errorf("run %q does not say which row it grades", leaf.Name)
	}
	found, err := find(i, leaf)
	if err != nil {
		return fmt.Errorf("ending row %q: %w", row.Name, err)
	}
	result := rubric.Score(*row, spec, found)
	result = *result.DeepCopy() // it shares its cell with the row
	redact.New().Report(&result)
	reports.Bound(&result)
	leaf.Status.Report = &result
	leaf.Status.Judgments = nil
	return nil
}

// allReported tells whether every leaf has its report.
func allReported(leaves []*v1alpha1.EvalRun) bool {
	return !slices.ContainsFunc(leaves, func(leaf *v1alpha1.EvalRun) bool { return leaf.Status.Report == nil })
}

// rowsToGrade are the rows of leaves.
func rowsToGrade(leaves []*v1alpha1.EvalRun) ([]planRow, error) {
	rows := make([]planRow, len(leaves))
	for i, leaf := range leaves {
		row, spec := runtree.Graded(leaf)
		if row == nil {
			return nil, fmt.Errorf("run %q does not say which row it grades", leaf.Name)
		}
		rows[i] = planRow{Row: *row, Spec: *spec, Calls: plan.Calls(spec)}
	}
	return rows, nil
}
