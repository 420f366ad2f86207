// Package progress shows how far something is: as a bar on a terminal, else as lines.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/money"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/output"
)

const (
	barWidth, shortBar = 24, 8
	// everyLine is up to how many rows each change is a line; past it every tenth part is.
	everyLine = 20
)

// State is how far a run is.
type State struct {
	// Summary counts the rows that ended.
	Summary v1alpha1.Summary
	// Calls is how many judge calls the run makes at most; 0 when that is not known.
	Calls int32
	// Left is about how long the rest takes, at most; 0 when that is not known.
	Left time.Duration
}

func (s State) done() int32 {
	return s.Summary.Passed + s.Summary.Failed + s.Summary.Deferred + s.Summary.Errored
}

// wording is how a state is told: at length, or as short as a narrow terminal needs it.
type wording struct{ of, left string }

var (
	atLength = wording{of: "%d of %d %s", left: "about %s left"}
	inShort  = wording{of: "%d/%d %s", left: "%s left"}
)

// text tells the state in words; zero counts of bad outcomes are left out. The time left is not in it.
func (s State) text(w wording) string {
	parts := []string{fmt.Sprintf(w.of, s.done(), s.Summary.Rows, "rows")}
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
		calls = fmt.Sprintf(w.of, s.Summary.Calls, s.Calls, "calls")
	}
	parts = append(parts, calls)
	if s.Summary.CostUSD > 0 {
		parts = append(parts, money.Dollars(s.Summary.CostUSD))
	}
	return strings.Join(parts, ", ")
}

// remaining tells how long the rest takes, as people say it; empty when that is not known.
func (s State) remaining(w wording) string {
	switch left := s.Left.Round(time.Second); {
	case s.Left <= 0 || s.done() == s.Summary.Rows:
		return ""
	case left < time.Second:
		return ", almost done"
	case left < time.Minute:
		return ", " + fmt.Sprintf(w.left, fmt.Sprintf("%ds", int(left.Seconds())))
	case left < time.Hour:
		return ", " + fmt.Sprintf(w.left, fmt.Sprintf("%dm%02ds", int(left.Minutes()), int(left.Seconds())%60))
	default:
		return ", " + fmt.Sprintf(w.left, fmt.Sprintf("%dh%02dm", int(left.Hours()), int(left.Minutes())%60))
	}
}

// Left estimates how long the rest of a run takes: as long per call as it took so far. Calls is an upper bound, and so
// is this.
func Left(elapsed time.Duration, done, calls int32) time.Duration {
	if done <= 0 || calls <= done {
		return 0
	}
	return time.Duration(float64(elapsed) / float64(done) * float64(calls-done))
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
	text := s.text(atLength)
	if text == p.last || s.Summary.Rows == 0 {
		return
	}
	p.last = text
	if p.terminal {
		p.draw(s)
		return
	}
	part := s.done()
	if s.Summary.Rows > everyLine {
		part = s.done() * 10 / s.Summary.Rows
	}
	if part != p.lastPart {
		p.lastPart = part
		fmt.Fprintln(p.w, text+s.remaining(atLength))
	}
}

// draw writes the bar and the words that the terminal has room for. Past its width a line would break, and stay.
func (p *Progress) draw(s State) {
	room := max(p.width-1, 0)
	long, short := s.text(atLength)+s.remaining(atLength), s.text(inShort)+s.remaining(inShort)
	line := ""
	for _, try := range []string{s.bar(barWidth) + long, s.bar(shortBar) + long, s.bar(shortBar) + short, short} {
		if line = try; utf8.RuneCountInString(line) <= room {
			break
		}
	}
	if runes := []rune(line); len(runes) > room {
		line = string(runes[:max(room-1, 0)]) + "…"
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", line)
	p.drawn = true
}

// bar is how much is done: of the calls, which a row may have many of, or of the rows.
func (s State) bar(width int) string {
	part := float64(s.done()) / float64(s.Summary.Rows)
	if s.Calls > 0 {
		part = max(part, min(1, float64(s.Summary.Calls)/float64(s.Calls)))
	}
	full := int(part * float64(width))
	return strings.Repeat("█", full) + strings.Repeat("░", width-full) + " "
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
