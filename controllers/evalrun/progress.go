package evalrun

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

// progressInterval is the least time between two writes of the progress of one run.
const progressInterval = 2 * time.Second

// summarize puts the leaves of a run into numbers, those that have not ended included.
func summarize(leaves []*v1alpha1.EvalRun) v1alpha1.Summary {
	reports := make([]*v1alpha1.Report, len(leaves))
	for i, leaf := range leaves {
		reports[i] = leaf.Status.Report
	}
	return rubric.Summarize(reports)
}

// rowsOf lists the rows of a run with children in one line each: the bad ones first, each kind in the order of the rows.
func rowsOf(leaves []*v1alpha1.EvalRun) []v1alpha1.RowResult {
	rows := make([]v1alpha1.RowResult, 0, len(leaves))
	for _, leaf := range leaves {
		row, _ := runtree.Graded(leaf)
		if row == nil {
			continue
		}
		result := v1alpha1.RowResult{Row: *row, Run: leaf.Name}
		if r := leaf.Status.Report; r != nil {
			result.Outcome, result.Score = r.Outcome, r.Score
		}
		rows = append(rows, result)
	}
	slices.SortStableFunc(rows, func(a, b v1alpha1.RowResult) int { return cmp.Compare(rank(a.Outcome), rank(b.Outcome)) })
	return rows
}

func rank(o v1alpha1.Outcome) int {
	switch o {
	case v1alpha1.OutcomeError:
		return 0
	case v1alpha1.OutcomeFailed:
		return 1
	case v1alpha1.OutcomeDeferred:
		return 2
	case "":
		return 3
	}
	return 4
}

// throttle remembers when the progress of each run was written. The zero value is ready for use.
type throttle struct {
	mu   sync.Mutex
	last map[types.NamespacedName]time.Time
}

// wait is how long the progress of a run must wait; at 0 it may be written.
func (t *throttle) wait(run types.NamespacedName, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(0, t.last[run].Add(progressInterval).Sub(now))
}

// written notes that the progress of a run is being written.
func (t *throttle) written(run types.NamespacedName, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		t.last = make(map[types.NamespacedName]time.Time)
	}
	t.last[run] = now
}

// forget drops a run that ended.
func (t *throttle) forget(run types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.last, run)
}
