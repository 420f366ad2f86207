// Package progress shows how far something is: as a bar on a terminal, else as lines.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/output"
)

const (
	barWidth = 24
	// everyLine is up to how many rows each change is a line; past it every tenth part is.
	everyLine = 20
)

// State is how far a run is.
type State struct {
	// Summary counts the rows that ended.
	Summary v1alpha1.Summary
	// Calls is how many judge calls the run makes at most; 0 when that is not known.
	Calls int32
}

func (s State) done() int32 {
	return s.Summary.Passed + s.Summary.Failed + s.Summary.Deferred + s.Summary.Errored
}

// text tells the state in words; zero counts of bad outcomes are left out.
func (s State) text() string {
	parts := []string{fmt.Sprintf("%d of %d rows", s.done(), s.Summary.Rows)}
	for _, c := range []struct {
		n    int32
		word string
	}{{s.Summary.Passed, "passed"}, {s.Summary.Failed, "failed"}, {s.Summary.Deferred, "deferred"}, {s.Summary.Errored, "errored"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.word))
		}
	}
	calls := fmt.Sprintf("%d calls", s.Summary.Calls)
	if s.Calls > 0 {
		calls = fmt.Sprintf("%d of %d calls", s.Summary.Calls, s.Calls)
	}
	return strings.Join(append(parts, calls), ", ")
}

// Progress writes to the error stream. It is safe for concurrent use.
type Progress struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	width    int
	last     string
	lastPart int32
	drawn    bool
}

// New returns a Progress that draws a bar when w is a terminal that can: a dumb one cannot go back in a line.
func New(w io.Writer) *Progress {
	width, _ := output.Page(w)
	return &Progress{w: w, terminal: draws(width, os.Getenv("TERM")), width: width, lastPart: -1}
}

// draws tells whether a bar can be drawn on a terminal so wide (0 for what is no terminal) and of this kind.
func draws(width int, term string) bool { return width > 0 && term != "dumb" }

// Update shows a state.
func (p *Progress) Update(s State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := s.text()
	if text == p.last || s.Summary.Rows == 0 {
		return
	}
	p.last = text
	if p.terminal {
		p.draw(s, text)
		return
	}
	part := s.done()
	if s.Summary.Rows > everyLine {
		part = s.done() * 10 / s.Summary.Rows
	}
	if part != p.lastPart {
		p.lastPart = part
		fmt.Fprintln(p.w, text)
	}
}

func (p *Progress) draw(s State, text string) {
	full := int(s.done()) * barWidth / int(s.Summary.Rows)
	line := []rune(strings.Repeat("█", full) + strings.Repeat("░", barWidth-full) + " " + text)
	if len(line) >= p.width {
		line = line[:max(p.width-1, 0)]
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", string(line))
	p.drawn = true
}

// Note writes a line that stays.
func (p *Progress) Note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintf(p.w, format+"\n", args...)
	p.last = ""
}

// Done removes the bar.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

func (p *Progress) clear() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.drawn = false
	}
}
