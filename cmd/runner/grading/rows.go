package grading

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

// prefetched is how many rows are fetched ahead, so that fetching does not hold up short rows.
const prefetched = 4

// gradeRows grades rows in order, as many at once as keep the judges busy, and returns when all have been given to the
// sender, or when the run stops.
func (r *run) gradeRows(leaves []wire.SliceLeaf, concurrency int) {
	ctx, cancel := context.WithCancel(r.calls)
	defer cancel()
	gate := newGate(concurrency)
	defer context.AfterFunc(ctx, gate.close)()
	r.stopper.onStop(func() { cancel(); gate.close() })

	var rows sync.WaitGroup
	defer rows.Wait()
	for fetch := range r.fetchAhead(ctx, leaves) {
		leaf, ok := <-fetch
		if !ok {
			continue
		}
		r.sender.waitForRoom()
		t, ok := gate.enter(questionsOf(&leaf))
		if !ok {
			continue // stopped: the rows that were fetched ahead are let go
		}
		rows.Go(func() { r.gradeRow(leaf, t) })
	}
}

// questionsOf is how many questions a row has left, at most.
func questionsOf(leaf *wire.Leaf) int {
	n := int(plan.Calls(&leaf.Spec))
	for _, j := range leaf.Judgments {
		if j.Score != nil {
			n--
		}
	}
	return max(0, n)
}

// fetchAhead fetches the rows that have no report, a few at once, and hands them out in order. A row that cannot be
// graded comes as a closed channel.
func (r *run) fetchAhead(ctx context.Context, leaves []wire.SliceLeaf) <-chan chan wire.Leaf {
	out := make(chan chan wire.Leaf, prefetched-1)
	go func() {
		defer close(out)
		for _, leaf := range leaves {
			if leaf.Done {
				continue
			}
			fetched := make(chan wire.Leaf, 1)
			select {
			case out <- fetched:
			case <-ctx.Done():
				return
			}
			go func() {
				defer close(fetched)
				if l, ok := r.fetch(ctx, leaf.Name); ok {
					fetched <- l
				}
			}()
		}
	}()
	return out
}

// fetch gets a row until the collector is there; false when there is nothing to grade.
func (r *run) fetch(ctx context.Context, name string) (wire.Leaf, bool) {
	b := r.newBackoff(r.Patience)
	for {
		leaf, err := r.Collector.Leaf(ctx, name)
		switch {
		case err == nil && leaf.Done, wire.Status(err) == http.StatusNotFound:
			r.Log.Info("the row needs no grading any more", "row", name)
			r.endedElsewhere()
			return wire.Leaf{}, false
		case err == nil:
			return leaf, true
		case ctx.Err() != nil:
			return wire.Leaf{}, false
		}
		if err := b.classify(name, err); err != nil {
			r.refused(err)
			return wire.Leaf{}, false
		}
		if err := b.wait(ctx, err); err != nil {
			if ctx.Err() == nil {
				r.fail(err)
			}
			return wire.Leaf{}, false
		}
	}
}

// refused ends the run, or the row, that the collector refuses.
func (r *run) refused(err error) {
	if errors.As(err, new(*DataError)) {
		r.failRow(err)
		return
	}
	r.fail(err)
}

// gradeRow grades one row. A row that was stopped has posted what it had by then.
func (r *run) gradeRow(leaf wire.Leaf, t *ticket) {
	defer func() {
		if open := t.leave(); r.purse != nil {
			r.purse.notAsked(open)
		}
	}()
	findings, err := r.grader.Grade(r.calls, &leaf.Spec, leaf.Judgments, func(j v1alpha1.Judgment) {
		last := t.judged()
		// The findings follow at once on the last judgment of a row, and hold it.
		if j.Score != nil && !last {
			r.sender.judgment(leaf.Name, r.redacted(j))
		}
	})
	if err != nil {
		// The last judgment may have been kept back for findings that do not come.
		r.sender.stopped(leaf.Name, r.redactedAll(unknown(findings.Judgments, leaf.Judgments)))
		return
	}
	r.Redactor.Findings(&findings)
	r.sender.findings(leaf.Name, boundFindings(findings))
}

// unknown are the answers that the collector does not have from before.
func unknown(all, known []v1alpha1.Judgment) []v1alpha1.Judgment {
	seen := make(map[v1alpha1.QuestionKey]bool, len(known))
	for _, j := range known {
		seen[j.QuestionKey] = j.Score != nil
	}
	var out []v1alpha1.Judgment
	for _, j := range all {
		if j.Score != nil && !seen[j.QuestionKey] {
			out = append(out, j)
		}
	}
	return out
}

func (r *run) redacted(j v1alpha1.Judgment) v1alpha1.Judgment {
	return r.redactedAll([]v1alpha1.Judgment{j})[0]
}

func (r *run) redactedAll(judgments []v1alpha1.Judgment) []v1alpha1.Judgment {
	f := v1alpha1.Findings{Judgments: judgments}
	r.Redactor.Findings(&f)
	return f.Judgments
}

// gate bounds how many questions are open: twice as many as are asked at once, so that the judges always have one
// more to answer, and few rows are in memory.
type gate struct {
	mu     sync.Mutex
	change *sync.Cond
	room   int
	most   int // what one row takes at most
	closed bool
}

func newGate(concurrency int) *gate {
	g := &gate{room: 2 * concurrency, most: concurrency}
	g.change = sync.NewCond(&g.mu)
	return g
}

// enter waits for room for a row with so many questions; false when the gate was closed.
func (g *gate) enter(questions int) (*ticket, bool) {
	t := &ticket{gate: g, open: questions, held: max(1, min(questions, g.most))}
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.room < t.held && !g.closed {
		g.change.Wait()
	}
	if g.closed {
		return nil, false
	}
	g.room -= t.held
	return t, true
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.change.Broadcast()
}

// ticket is the room that a row takes: less and less as its questions are answered.
type ticket struct {
	gate *gate
	open int
	held int
}

// judged gives room back for a question that was answered, and tells whether it was the last one.
func (t *ticket) judged() bool {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	t.open--
	t.hold(max(1, min(t.open, t.gate.most)))
	return t.open == 0
}

// leave gives back what is left, and tells how many questions were not answered.
func (t *ticket) leave() int {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	t.hold(0)
	return max(0, t.open)
}

func (t *ticket) hold(n int) {
	if n < t.held {
		t.gate.room += t.held - n
		t.held = n
		t.gate.change.Broadcast()
	}
}
