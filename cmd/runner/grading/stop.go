package grading

import (
	"context"
	"sync"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

// stopper lets questions through until it is stopped. Then requests that are under way may end, and be kept; whatever
// waits (for a slot, for another attempt) ends at once with rubric.ErrStopped, and no further request is made.
type stopper struct {
	asker rubric.Asker

	mu      sync.Mutex
	stopped bool
	asks    map[*ask]struct{}
	then    []func()
}

// ask is one question on its way.
type ask struct {
	cancel  context.CancelCauseFunc
	calling bool // a request is under way
}

type askKey struct{}

func newStopper() *stopper { return &stopper{asks: make(map[*ask]struct{})} }

// Ask implements rubric.Asker.
func (s *stopper) Ask(ctx context.Context, m judge.Model, q judge.Question) (judge.Verdict, v1alpha1.Usage, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := &ask{cancel: cancel}
	if !s.enter(a) {
		return judge.Verdict{}, v1alpha1.Usage{}, rubric.ErrStopped
	}
	defer s.leave(a)
	return s.asker.Ask(context.WithValue(ctx, askKey{}, a), m, q)
}

func (s *stopper) enter(a *ask) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.asks[a] = struct{}{}
	}
	return !s.stopped
}

func (s *stopper) leave(a *ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asks, a)
}

// stop lets no further request begin.
func (s *stopper) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for a := range s.asks {
		if !a.calling {
			a.cancel(rubric.ErrStopped)
		}
	}
	for _, f := range s.then {
		f()
	}
	s.then = nil
}

// onStop has f called when the stopper is stopped; at once when it is already. f must not wait.
func (s *stopper) onStop(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		f()
		return
	}
	s.then = append(s.then, f)
}

// clients wraps the clients of providers, so that each of their requests is known.
func (s *stopper) clients(all map[v1alpha1.Provider]judge.Client) map[v1alpha1.Provider]judge.Client {
	out := make(map[v1alpha1.Provider]judge.Client, len(all))
	for provider, client := range all {
		out[provider] = &stoppable{stopper: s, client: client}
	}
	return out
}

type stoppable struct {
	stopper *stopper
	client  judge.Client
}

// Complete implements judge.Client.
func (c *stoppable) Complete(ctx context.Context, r judge.Request) (judge.Response, error) {
	a, ok := ctx.Value(askKey{}).(*ask)
	if !ok {
		return c.client.Complete(ctx, r)
	}
	if !c.stopper.begin(a) {
		return judge.Response{}, rubric.ErrStopped
	}
	res, err := c.client.Complete(ctx, r)
	c.stopper.end(a, err)
	return res, err
}

func (s *stopper) begin(a *ask) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		a.cancel(rubric.ErrStopped)
		return false
	}
	a.calling = true
	return true
}

func (s *stopper) end(a *ask, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.calling = false
	if s.stopped && err != nil {
		a.cancel(rubric.ErrStopped) // it would be tried again
	}
}
