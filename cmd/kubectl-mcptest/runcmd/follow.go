package runcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/cluster"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/exit"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/progress"
)

// follow waits until all runs ended, and returns them as they are then. Ctrl-C and the timeout leave them alone.
func (o *Options) follow(ctx context.Context, client *cluster.Client, made []*v1alpha1.EvalRun) ([]*v1alpha1.EvalRun, error) {
	timed, cancel := context.WithTimeoutCause(ctx, o.Timeout, os.ErrDeadlineExceeded)
	defer cancel()
	f := &follower{bar: progress.New(o.ErrOut), now: make([]*v1alpha1.EvalRun, len(made)), said: make([]string, len(made))}
	ended := make([]*v1alpha1.EvalRun, len(made))
	errs := make([]error, len(made))
	var wg sync.WaitGroup
	for i, run := range made {
		wg.Go(func() {
			ended[i], errs[i] = client.Follow(timed, run.Name, func(now *v1alpha1.EvalRun) error { return f.changed(i, now) })
		})
	}
	wg.Wait()
	f.bar.Done()
	names := make([]string, len(made))
	for i, run := range made {
		names[i] = run.Name
	}
	err := errors.Join(errs...)
	switch {
	case err == nil:
		return ended, nil
	case ctx.Err() != nil:
		return nil, exit.With(exit.NotFinished, fmt.Errorf("left alone: the run goes on in the cluster; %s", o.again(client, names)))
	case timed.Err() != nil:
		return nil, exit.With(exit.NotFinished, fmt.Errorf("not finished after %v; the run goes on in the cluster; %s", o.Timeout, o.again(client, names)))
	case errors.Is(err, cluster.ErrDeleted):
		return nil, exit.With(exit.NotFinished, err)
	}
	return nil, err
}

// again says how to look at runs later.
func (o *Options) again(client *cluster.Client, names []string) string {
	commands := make([]string, len(names))
	for i, name := range names {
		commands[i] = fmt.Sprintf("kubectl mcptest report %s -n %s", name, client.Namespace)
	}
	return "look again with: " + strings.Join(commands, "; ")
}

// follower shows how far the runs are together.
type follower struct {
	mu   sync.Mutex
	bar  *progress.Progress
	now  []*v1alpha1.EvalRun
	said []string
}

// changed shows a run as it is now. Its error is that the run cannot go on by itself.
func (f *follower) changed(i int, run *v1alpha1.EvalRun) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now[i] = run
	if c := cluster.Stalled(run); c != nil {
		return exit.With(exit.BadInput, fmt.Errorf("run %q cannot go on: %s: %s", run.Name, c.Reason, c.Message))
	}
	// Pending and running states are what the bar shows; anything else is worth a line.
	waiting := cluster.Waiting(run)
	if waiting != f.said[i] && waiting != "" && !usual(waiting) {
		f.bar.Note("%s waits: %s", run.Name, waiting)
	}
	f.said[i] = waiting
	f.bar.Update(f.state())
	return nil
}

// usual tells whether a run waits for nothing that somebody has to bring about.
func usual(waiting string) bool {
	reason, _, _ := strings.Cut(waiting, ":")
	switch reason {
	case v1alpha1.ReasonResolving, v1alpha1.ReasonExpanding, v1alpha1.ReasonPending, v1alpha1.ReasonRunning:
		return true
	}
	return false
}

// state is how far all runs are together.
func (f *follower) state() progress.State {
	var s progress.State
	for _, run := range f.now {
		if run == nil || run.Status.Summary == nil {
			continue
		}
		one := run.Status.Summary
		s.Calls += run.Status.ProjectedCalls
		s.Summary.Rows += one.Rows
		s.Summary.Passed += one.Passed
		s.Summary.Failed += one.Failed
		s.Summary.Deferred += one.Deferred
		s.Summary.Errored += one.Errored
		s.Summary.Calls += one.Calls
		s.Summary.CostUSD += one.CostUSD
		if began := run.Status.StartTime; began != nil && run.Status.CompletionTime == nil {
			s.Left = max(s.Left, progress.Left(time.Since(began.Time), one.Calls, run.Status.ProjectedCalls))
		}
	}
	return s
}
