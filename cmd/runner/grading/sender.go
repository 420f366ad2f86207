package grading

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
	"github.com/mcptest/mcptest-operator/engine/report"
)

const (
	// maxBatch is how many judgments one post holds: at 3 KiB at most it stays well under wire.MaxBody.
	maxBatch = 1000
	// maxSentText is how many bytes of a reason or a quote go with a judgment; the collector keeps no more.
	maxSentText = 1 << 10
	// findingsAtOnce is how many findings are posted at once, so that the way to the collector does not slow down rows
	// that take milliseconds. Judgments have one post under way: what comes meanwhile gathers for the next.
	findingsAtOnce = 4
	// maxFindings is how long findings may be as JSON.
	maxFindings = wire.MaxBody - 64<<10
)

// sender posts judgments and findings. A row's findings hold its judgments, so that those which were not posted by
// then need not be: a row that is graded quickly costs one write.
type sender struct {
	run     *run
	workers sync.WaitGroup

	mu       sync.Mutex
	change   *sync.Cond
	pending  map[string][]v1alpha1.Judgment // of rows that are being graded
	order    []string                       // the rows of pending, the longest waiting first
	finished []finding
	unsent   int // judgments in pending, finished and in posts under way, and one for each of finished
	closed   bool
	lingered chan struct{} // closed with the sender
}

type finding struct {
	row      string
	findings v1alpha1.Findings
}

func newSender(r *run) *sender {
	s := &sender{run: r, pending: make(map[string][]v1alpha1.Judgment), lingered: make(chan struct{})}
	s.change = sync.NewCond(&s.mu)
	context.AfterFunc(r.posts, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.change.Broadcast()
	})
	s.workers.Go(s.sendJudgments)
	for range findingsAtOnce {
		s.workers.Go(s.sendFindings)
	}
	return s
}

// judgment takes a judgment of a row that is being graded.
func (s *sender) judgment(row string, j v1alpha1.Judgment) {
	j.Reason, j.Evidence = report.Cut(j.Reason, maxSentText), report.Cut(j.Evidence, maxSentText)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(row, j)
	s.change.Broadcast()
}

func (s *sender) add(row string, j v1alpha1.Judgment) {
	if _, ok := s.pending[row]; !ok {
		s.order = append(s.order, row)
	}
	s.pending[row] = append(s.pending[row], j)
	s.unsent++
}

// findings takes the findings of a row; its judgments that wait go with them.
func (s *sender) findings(row string, f v1alpha1.Findings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(row)
	s.finished = append(s.finished, finding{row, f})
	s.unsent += len(f.Judgments) + 1
	s.change.Broadcast()
}

// stopped takes all judgments of a row that will not be graded to its end by this process.
func (s *sender) stopped(row string, judgments []v1alpha1.Judgment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(row)
	for _, j := range judgments {
		j.Reason, j.Evidence = report.Cut(j.Reason, maxSentText), report.Cut(j.Evidence, maxSentText)
		s.add(row, j)
	}
	s.change.Broadcast()
}

func (s *sender) drop(row string) {
	s.unsent -= len(s.pending[row])
	delete(s.pending, row)
}

// waitForRoom waits while too much waits to be posted.
func (s *sender) waitForRoom() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.unsent >= s.run.MaxUnsent && s.run.posts.Err() == nil {
		s.change.Wait()
	}
}

// close posts what is left and returns when that is done, or when the posts were cancelled.
func (s *sender) close() {
	s.mu.Lock()
	s.closed = true
	close(s.lingered)
	s.change.Broadcast()
	s.mu.Unlock()
	s.workers.Wait()
}

func (s *sender) sendJudgments() {
	for s.waitForJudgments() {
		s.linger()
		batch := s.take()
		if len(batch.Leaves) == 0 {
			continue // the row ended meanwhile
		}
		s.postJudgments(batch)
		s.sent(count(batch))
	}
}

// waitForJudgments waits for something to send; false when nothing will come any more.
func (s *sender) waitForJudgments() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.pending) == 0 && !s.closed && s.run.posts.Err() == nil {
		s.change.Wait()
	}
	return len(s.pending) > 0 && s.run.posts.Err() == nil
}

// linger gives the other judgments of a row the time to come in.
func (s *sender) linger() {
	timer := time.NewTimer(s.run.Linger)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.lingered:
	case <-s.run.posts.Done():
	}
}

// take takes what one post can hold.
func (s *sender) take() wire.Judgments {
	s.mu.Lock()
	defer s.mu.Unlock()
	var batch wire.Judgments
	room := maxBatch
	var rest []string
	for _, row := range s.order {
		judgments, ok := s.pending[row]
		switch {
		case !ok:
			continue
		case room == 0:
			rest = append(rest, row)
			continue
		case len(judgments) > room:
			s.pending[row] = judgments[room:]
			judgments = judgments[:room:room]
			rest = append(rest, row)
		default:
			delete(s.pending, row)
		}
		room -= len(judgments)
		batch.Leaves = append(batch.Leaves, wire.LeafJudgments{Name: row, Judgments: judgments})
	}
	s.order = rest
	return batch
}

func (s *sender) sent(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsent -= n
	s.change.Broadcast()
}

func count(batch wire.Judgments) int {
	n := 0
	for _, leaf := range batch.Leaves {
		n += len(leaf.Judgments)
	}
	return n
}

// postJudgments posts until the collector took them. When it refuses them they still are in the findings of their row,
// which decide.
func (s *sender) postJudgments(batch wire.Judgments) {
	b := s.run.newBackoff(s.run.Patience)
	for {
		err := s.run.Collector.PostJudgments(s.run.posts, batch)
		switch {
		case err == nil:
			return
		case s.run.posts.Err() != nil:
			return
		}
		if err := b.classify("", err); err != nil {
			if !errors.As(err, new(*DataError)) {
				s.run.fail(err)
				return
			}
			s.run.Log.Warn("the collector did not keep judgments", "error", err)
			return
		}
		if !s.again(b, err) {
			return
		}
	}
}

// again waits before another attempt to post; false when there is none.
func (s *sender) again(b *backoff, cause error) bool {
	s.run.Log.Warn("the collector cannot be reached; trying again", "error", cause)
	err := b.wait(s.run.posts, cause)
	if err != nil && s.run.posts.Err() == nil {
		s.run.fail(err)
	}
	return err == nil
}

func (s *sender) sendFindings() {
	for {
		f, ok := s.nextFindings()
		if !ok {
			return
		}
		s.postFindings(f)
		s.sent(len(f.findings.Judgments) + 1)
	}
}

func (s *sender) nextFindings() (finding, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.finished) == 0 && !s.closed && s.run.posts.Err() == nil {
		s.change.Wait()
	}
	if len(s.finished) == 0 || s.run.posts.Err() != nil {
		return finding{}, false
	}
	f := s.finished[0]
	s.finished[0] = finding{}
	s.finished = s.finished[1:]
	return f, true
}

// postFindings posts until the collector took them, or said that the row has its report already.
func (s *sender) postFindings(f finding) {
	b := s.run.newBackoff(s.run.Patience)
	for {
		receipt, err := s.run.Collector.PostFindings(s.run.posts, f.row, f.findings)
		switch status := wire.Status(err); {
		case err == nil:
			s.run.ended(receipt.Outcome)
			s.run.Log.Info("row ended", "row", f.row, "outcome", receipt.Outcome)
			return
		case status == http.StatusConflict, status == http.StatusNotFound:
			s.run.endedElsewhere()
			s.run.Log.Info("the row ended elsewhere; what was found here is not needed", "row", f.row, "status", status)
			return
		case s.run.posts.Err() != nil:
			return
		}
		if err := b.classify(f.row, err); err != nil {
			s.run.refused(err)
			return
		}
		if !s.again(b, fmt.Errorf("posting findings of %s: %w", f.row, err)) {
			return
		}
	}
}

// boundFindings cuts the words of findings until a post can hold them.
func boundFindings(f v1alpha1.Findings) v1alpha1.Findings {
	// More words than this would not fit, whatever else there is.
	most := max(64, maxFindings/max(1, len(f.Judgments)))
	for text := min(16<<10, most); ; text /= 2 {
		for i := range f.Judgments {
			j := &f.Judgments[i]
			j.Reason, j.Evidence, j.Error = report.Cut(j.Reason, text), report.Cut(j.Evidence, text), report.Cut(j.Error, max(text, 64))
		}
		if data, err := json.Marshal(f); err != nil || len(data) <= maxFindings || text == 0 {
			return f
		}
	}
}
