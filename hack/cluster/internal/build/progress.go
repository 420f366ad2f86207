//go:build unix

package build

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// Progress tells a person what is going on. On a terminal the line of a long step counts seconds in place;
// elsewhere it is repeated now and then, so that a log shows that the step is alive. A nil Progress is silent.
type Progress struct {
	out   io.Writer
	every time.Duration
	live  bool
	mu    sync.Mutex
}

// NewProgress writes to out, usually standard error.
func NewProgress(out io.Writer) *Progress {
	p := &Progress{out: out, every: 20 * time.Second}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.live, p.every = true, time.Second
	}
	return p
}

// Note prints one line.
func (p *Progress) Note(format string, args ...any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, format+"\n", args...)
}

// Begin announces a step that may take long. The function it returns ends the step; it takes what the step failed
// with, or nil.
func (p *Progress) Begin(what string) (done func(error)) {
	if p == nil {
		return func(error) {}
	}
	start := time.Now()
	p.line(what + " ...")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(p.every)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				p.line(fmt.Sprintf("%s ... %s", what, time.Since(start).Round(time.Second)))
			}
		}
	})
	return func(err error) {
		close(stop)
		wg.Wait()
		if err != nil {
			p.end(fmt.Sprintf("%s ... failed after %s", what, time.Since(start).Round(100*time.Millisecond)))
			return
		}
		p.end(fmt.Sprintf("%s ... done in %s", what, time.Since(start).Round(100*time.Millisecond)))
	}
}

// line prints a state that will be replaced by the next one.
func (p *Progress) line(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live {
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s", s)
		return
	}
	_, _ = fmt.Fprintln(p.out, s)
}

// end prints the last state of a step.
func (p *Progress) end(s string) {
	p.line(s)
	if p.live {
		p.mu.Lock()
		defer p.mu.Unlock()
		_, _ = fmt.Fprintln(p.out)
	}
}
