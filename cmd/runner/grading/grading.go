// Package grading is what a runner does: it asks the collector for its slice, grades the rows of it, and posts what it
// finds as it finds it, so that no judgment is paid for twice whatever happens to the pod.
package grading

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/redact"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

// Collector is what a runner needs of the collector; *wire.Client is one.
type Collector interface {
	Slice(ctx context.Context) (wire.Slice, error)
	Leaf(ctx context.Context, name string) (wire.Leaf, error)
	PostJudgments(ctx context.Context, j wire.Judgments) error
	PostFindings(ctx context.Context, name string, f v1alpha1.Findings) (wire.Receipt, error)
	Budget(ctx context.Context, claim wire.Claim) (wire.Allowance, error)
}

// What a run does when its Options do not say.
const (
	// DefaultStartPatience is how long the slice is asked for. A pod that cannot start is better started elsewhere.
	DefaultStartPatience = 2 * time.Minute
	// DefaultPatience is how long the collector may be away while rows are graded: a manager that is replaced, or a
	// node that is drained, is back by then.
	DefaultPatience = 5 * time.Minute
	// DefaultGrace and DefaultFlush fit into the 60 s that a pod is given to end.
	DefaultGrace = 45 * time.Second
	DefaultFlush = 10 * time.Second
	// DefaultLinger is what a killed pod may lose of its judgments, beside those under way. It saves a write of most
	// rows: the judgments of a row come in together, and then its findings hold them all.
	DefaultLinger = 100 * time.Millisecond
	// DefaultMoneyPatience is how long calls wait for those that other pods have under way. A pod that died may have said
	// that it has some.
	DefaultMoneyPatience = 3 * time.Minute
	// DefaultMaxUnsent is how many judgments may wait for a collector that is away: about 2 KiB each.
	DefaultMaxUnsent = 4096
)

// Options say how a slice is graded. Every duration has a default.
type Options struct {
	// Collector gives the slice and takes what is found.
	Collector Collector
	// Judge says who is asked. Its Concurrency and its Budget are those of the slice, and its Prices those that this
	// version knows, with those of the slice.
	Judge judge.Options
	// Env says which models and keys the process was given.
	Env judge.Env
	// Redactor knows the keys of the process (S-48).
	Redactor *redact.Redactor
	// Log never gets candidates, reasons or keys. Default: none.
	Log *slog.Logger
	// Now is the clock of the findings. Default: time.Now.
	Now func() time.Time
	// Jitter returns a number in [0,1). Default: math/rand/v2.
	Jitter func() float64

	// StartPatience is how long the slice is asked for.
	StartPatience time.Duration
	// Patience is how long the collector may be away before the run gives up.
	Patience time.Duration
	// Grace is how long calls under way may take after the run was told to stop.
	Grace time.Duration
	// Flush is how long what is there may be posted after that.
	Flush time.Duration
	// Linger is how long judgments wait for more of their kind before they are posted.
	Linger time.Duration
	// MoneyPatience is how long calls wait for the calls of other pods to end when maxCost has no room for them (S-42).
	MoneyPatience time.Duration
	// MaxUnsent is how many judgments may wait to be posted before no further row is begun.
	MaxUnsent int
}

func (o *Options) setDefaults() {
	o.StartPatience = cmp.Or(o.StartPatience, DefaultStartPatience)
	o.Patience = cmp.Or(o.Patience, DefaultPatience)
	o.Grace = cmp.Or(o.Grace, DefaultGrace)
	o.Flush = cmp.Or(o.Flush, DefaultFlush)
	o.Linger = cmp.Or(o.Linger, DefaultLinger)
	o.MoneyPatience = cmp.Or(o.MoneyPatience, DefaultMoneyPatience)
	o.MaxUnsent = cmp.Or(o.MaxUnsent, DefaultMaxUnsent)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Jitter == nil {
		o.Jitter = mathrand.Float64
	}
}

// Result is how the rows of a slice ended.
type Result struct {
	// Rows is how many the slice has.
	Rows int `json:"rows"`
	// Passed, Failed, Deferred and Errored are how the collector scored those that this process graded.
	Passed   int `json:"passed"`
	Failed   int `json:"failed"`
	Deferred int `json:"deferred"`
	Errored  int `json:"errored"`
	// Earlier is how many had their report from elsewhere, or were deleted.
	Earlier int `json:"earlier,omitempty"`
	// Open is how many have no report yet.
	Open int `json:"open,omitempty"`
}

// ErrInterrupted says that the process was told to stop before all rows had their report. What was judged was posted.
var ErrInterrupted = errors.New("told to stop before all rows were graded; what was judged is kept, and the next pod goes on")

// RefusedError says that the collector does not know this pod, or cannot be trusted. No later attempt of this pod changes that.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string {
	if wire.Status(e.Err) != 0 {
		return fmt.Sprintf("the collector does not let this pod in: %v; check the projected token, its audience, and that the Job belongs to an EvalRun", e.Err)
	}
	return fmt.Sprintf("this pod cannot work with the collector: %v; check that %s is the authority of the collector", e.Err, wire.EnvCA)
}

// Unwrap returns the refusal.
func (e *RefusedError) Unwrap() error { return e.Err }

// DataError says that the collector did not take what was sent for a row, and never will.
type DataError struct {
	// Row is the name of the leaf; empty for the slice.
	Row string
	Err error
}

func (e *DataError) Error() string {
	if e.Row == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("row %s: %v", e.Row, e.Err)
}

// Unwrap returns the refusal.
func (e *DataError) Unwrap() error { return e.Err }

// ExitCode is the exit code of a process whose Run returned err (package wire).
func ExitCode(err error) int {
	var refused *RefusedError
	var data *DataError
	switch {
	case err == nil:
		return wire.ExitDone
	case errors.Is(err, ErrInterrupted):
		return wire.ExitInterrupted
	case errors.As(err, &refused):
		return wire.ExitConfig
	case errors.As(err, &data):
		return wire.ExitData
	}
	return 1
}

// Run grades the slice of this pod. It returns nil when every row has its report.
//
// When ctx ends no further question is asked; calls under way are waited for and everything is posted, within Grace
// and Flush; the error is ErrInterrupted then. Other errors are *RefusedError, *DataError, or say that the collector
// stayed away.
func Run(ctx context.Context, o Options) (Result, error) {
	o.setDefaults()
	r := &run{Options: o, finished: make(chan struct{})}
	slice, err := r.slice(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = ErrInterrupted
		}
		return Result{}, err
	}
	o.Log.Info("grading", "run", slice.Run, "rows", len(slice.Leaves), "concurrency", slice.Concurrency)
	return r.grade(ctx, slice)
}

// run is one call of Run.
type run struct {
	Options
	stopper *stopper
	sender  *sender
	grader  *rubric.Grader
	// purse bounds what calls cost (S-42); nil in a run without maxCost.
	purse *purse

	calls, posts             context.Context
	cancelCalls, cancelPosts context.CancelCauseFunc
	finished                 chan struct{} // closed when all is done, so that nothing waits for a stop any more

	mu     sync.Mutex
	result Result
	fatal  error // ends the run at once
	data   error // ends it badly once all other rows are done
}

// slice asks for the slice until the collector is there.
func (r *run) slice(ctx context.Context) (wire.Slice, error) {
	b := r.newBackoff(r.StartPatience)
	for {
		slice, err := r.Collector.Slice(ctx)
		if err == nil {
			return slice, nil
		}
		if err := b.classify("", err); err != nil {
			return wire.Slice{}, err
		}
		r.Log.Warn("the collector cannot be reached; trying again", "error", err)
		if waited := b.wait(ctx, err); waited != nil {
			return wire.Slice{}, waited
		}
	}
}

// classify makes an error that ends a run, or a row, of an answer of the collector; nil for one that may pass.
func classify(row string, err error) error {
	switch status := wire.Status(err); {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return &RefusedError{Err: err}
	case wire.Temporary(err), errors.Is(err, context.Canceled):
		return nil
	case status == 0:
		return &RefusedError{Err: err}
	}
	return &DataError{Row: row, Err: err}
}

func (r *run) grade(ctx context.Context, slice wire.Slice) (Result, error) {
	concurrency := max(1, slice.Concurrency)
	r.calls, r.cancelCalls = context.WithCancelCause(context.WithoutCancel(ctx))
	r.posts, r.cancelPosts = context.WithCancelCause(context.WithoutCancel(ctx))
	defer r.cancelCalls(nil)
	defer r.cancelPosts(nil)

	options := r.Judge
	options.Concurrency = concurrency
	r.stopper = newStopper()
	options.Clients = r.stopper.clients(options.Clients)
	options.Prices = judge.DefaultPrices().With(slice.Prices)
	if slice.Limited {
		r.purse = newPurse(r, questionsOfSlice(slice.Leaves))
		defer r.purse.stopAsking()
		options.Budget = r.purse
	}
	r.stopper.asker = judge.New(options)
	r.grader = &rubric.Grader{Asker: r.stopper, Env: r.Env, Now: r.Now}
	r.sender = newSender(r)

	watching := make(chan struct{})
	go func() {
		defer close(watching)
		r.watch(ctx)
	}()
	r.result.Rows, r.result.Open = len(slice.Leaves), len(slice.Leaves)
	for _, leaf := range slice.Leaves {
		if leaf.Done {
			r.endedElsewhere()
		}
	}
	r.gradeRows(slice.Leaves, concurrency) //nolint:contextcheck // r.calls and r.posts outlive ctx: watch ends them
	r.postRest()                           //nolint:contextcheck // the same
	close(r.finished)
	<-watching
	return r.conclude(ctx)
}

// postRest posts what is left to be posted once all rows were graded.
func (r *run) postRest() {
	posted := make(chan struct{})
	var last sync.WaitGroup
	if r.purse != nil {
		last.Go(func() { r.purse.giveBack(posted) })
	}
	r.sender.close()
	close(posted)
	last.Wait()
}

// watch stops the run when ctx ends: first the questions, then the calls, then the posts.
func (r *run) watch(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-r.finished:
		return
	}
	r.Log.Info("told to stop: no further questions; waiting for calls under way", "grace", r.Grace.String())
	r.stopper.stop()
	for _, step := range []struct {
		after  time.Duration
		cancel context.CancelCauseFunc
	}{{r.Grace, r.cancelCalls}, {r.Flush, r.cancelPosts}} {
		timer := time.NewTimer(step.after)
		select {
		case <-timer.C:
			step.cancel(ErrInterrupted)
		case <-r.finished:
			timer.Stop()
			return
		}
	}
}

// fail ends the run at once: nothing that it would go on to find could be kept.
func (r *run) fail(err error) {
	r.mu.Lock()
	if r.fatal == nil {
		r.fatal = err
	}
	r.mu.Unlock()
	r.stopper.stop()
	r.cancelCalls(err)
	r.cancelPosts(err)
}

// failRow notes that a row cannot end well; the others go on.
func (r *run) failRow(err error) {
	r.Log.Error("a row cannot be graded", "error", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.data == nil {
		r.data = err
	}
}

func (r *run) conclude(ctx context.Context) (Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.result.Open == 0:
		return r.result, nil
	case r.fatal != nil:
		return r.result, r.fatal
	case r.data != nil:
		return r.result, r.data
	case ctx.Err() != nil:
		return r.result, ErrInterrupted
	}
	return r.result, fmt.Errorf("%d of %d rows have no report", r.result.Open, r.result.Rows)
}

// ended counts a row that the collector scored.
func (r *run) ended(outcome v1alpha1.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Open--
	switch outcome {
	case v1alpha1.OutcomePassed:
		r.result.Passed++
	case v1alpha1.OutcomeFailed:
		r.result.Failed++
	case v1alpha1.OutcomeDeferred:
		r.result.Deferred++
	case v1alpha1.OutcomeError:
		r.result.Errored++
	}
}

// endedElsewhere counts a row that needs nothing of this process.
func (r *run) endedElsewhere() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Open--
	r.result.Earlier++
}
