package fakejudge

import (
	"context"
	"sync"
)

// gate holds calls back on request.
type gate struct {
	mu      sync.Mutex
	holding bool
	left    int // calls that still pass while holding
	waiting int64
	open    chan struct{} // closed by release
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

func (g *gate) hold(after int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holding, g.left = true, max(after, 0)
}

func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holding = false
	close(g.open)
	g.open = make(chan struct{})
}

func (g *gate) held() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting
}

// pass returns true when the call may go on, at once or after a release, and
// false when its client went away or closed was closed first.
func (g *gate) pass(ctx context.Context, closed <-chan struct{}) bool {
	g.mu.Lock()
	if !g.holding || g.left > 0 {
		if g.holding {
			g.left--
		}
		g.mu.Unlock()
		return ctx.Err() == nil
	}
	open := g.open
	g.waiting++
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.waiting--
		g.mu.Unlock()
	}()
	select {
	case <-open:
		return true
	case <-ctx.Done():
		return false
	case <-closed:
		return false
	}
}
