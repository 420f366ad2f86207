package grading

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
)

const (
	backoffBase = 200 * time.Millisecond
	backoffCap  = 10 * time.Second
)

// backoff spaces attempts: exponentially, with jitter over the upper half, for at most patience in all.
type backoff struct {
	jitter   func() float64
	next     time.Duration
	patience time.Duration
	began    time.Time
}

func (r *run) newBackoff(patience time.Duration) *backoff {
	return &backoff{jitter: r.Jitter, next: backoffBase, patience: patience, began: time.Now()}
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
