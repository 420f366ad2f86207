package evalcmd

import (
	"context"
	"sync"
	"time"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/progress"
	"github.com/mcptest/mcptest-operator/engine/plan"
	"github.com/mcptest/mcptest-operator/engine/redact"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

func now() time.Time { return time.Now() }

// grade grades rows, as many at once as calls may be made at once. When ctx ends no further call is made; rows that
// were not graded to their end are nil.
func (o *Options) grade(ctx context.Context, grader *rubric.Grader, redactor *redact.Redactor, rows []plan.Row, calls int32) []*v1alpha1.Report {
	bar := progress.New(o.ErrOut)
	defer bar.Done()
	t := &tally{bar: bar, began: now(), state: progress.State{Calls: calls, Summary: v1alpha1.Summary{Rows: int32(len(rows))}}}
	bar.Update(t.state)
	reports := make([]*v1alpha1.Report, len(rows))
	slots := make(chan struct{}, o.Concurrency)
	var wg sync.WaitGroup
	for i := range rows {
		select {
		case <-ctx.Done():
		case slots <- struct{}{}:
		}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			findings, err := grader.Grade(ctx, &rows[i].Spec, nil, t.judged)
			if err != nil {
				return // stopped half-way: there is no verdict
			}
			redactor.Findings(&findings)
			report := rubric.Score(rows[i].Row, &rows[i].Spec, findings)
			redactor.Report(&report)
			reports[i] = &report
			t.ended(report.Outcome)
		})
	}
	wg.Wait()
	return reports
}

// tally counts what has been done so far and shows it.
type tally struct {
	mu    sync.Mutex
	bar   *progress.Progress
	began time.Time
	state progress.State
}

func (t *tally) judged(j v1alpha1.Judgment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.Summary.Calls += j.Usage.Calls
	t.state.Summary.CostUSD += j.Usage.CostUSD
	t.state.Left = progress.Left(now().Sub(t.began), t.state.Summary.Calls, t.state.Calls)
	t.bar.Update(t.state)
}

func (t *tally) ended(o v1alpha1.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch o {
	case v1alpha1.OutcomePassed:
		t.state.Summary.Passed++
	case v1alpha1.OutcomeFailed:
		t.state.Summary.Failed++
	case v1alpha1.OutcomeDeferred:
		t.state.Summary.Deferred++
	case v1alpha1.OutcomeError:
		t.state.Summary.Errored++
	}
	t.bar.Update(t.state)
}
