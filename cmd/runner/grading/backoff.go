package grading

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
)

const (
	backoffBase = 200 * time.Millisecond
	backoffCap  = 10 * time.Second
	// maxUnauthorized is how often a token that is refused is shown again, over some seconds: the API server says of a
	// token that it is not good also when it cannot look just then.
	maxUnauthorized = 5
)

// backoff spaces attempts: exponentially, with jitter over the upper half, for at most patience in all.
type backoff struct {
	jitter   func() float64
	next     time.Duration
	patience time.Duration
	began    time.Time
	refusals int // of the token
}

func (r *run) newBackoff(patience time.Duration) *backoff {
	return &backoff{jitter: r.Jitter, next: backoffBase, patience: patience, began: time.Now()}
}

// classify makes an error that ends a run, or a row, of an answer of the collector; nil when it is to be asked again.
func (b *backoff) classify(row string, err error) error {
	if wire.Status(err) == http.StatusUnauthorized && b.refusals < maxUnauthorized {
		b.refusals++
		return nil
	}
	return classify(row, err)
}

// wait waits before the attempt after one that failed with cause. It fails when ctx ends, or when patience does.
func (b *backoff) wait(ctx context.Context, cause error) error {
	pause := b.next/2 + time.Duration(b.jitter()*float64(b.next/2))
	b.next = min(backoffCap, b.next*2)
	var refused *wire.StatusError
	if errors.As(cause, &refused) {
		pause = max(pause, refused.RetryAfter)
	}
	if time.Since(b.began)+pause > b.patience {
		return fmt.Errorf("the collector was away for %v: %w", b.patience, cause)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
