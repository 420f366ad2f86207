package progress

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

func TestWithoutATerminalEachChangeIsALine(t *testing.T) {
	var b bytes.Buffer
	p := New(&b)
	for done := range int32(3) {
		for range 2 { // the same state is told once
			p.Update(State{Summary: v1alpha1.Summary{Rows: 2, Passed: done, Calls: done * 3}, Calls: 6})
		}
	}
	p.Note("%s waits", "run")
	p.Done()
	want := "0 of 2 rows, 0 of 6 calls\n1 of 2 rows, 1 passed, 3 of 6 calls\n2 of 2 rows, 2 passed, 6 of 6 calls\nrun waits\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestWithoutATerminalManyRowsAreFewLines(t *testing.T) {
	var b bytes.Buffer
	p := New(&b)
	for done := range int32(1001) {
		p.Update(State{Summary: v1alpha1.Summary{Rows: 1000, Failed: done}})
	}
	if lines := strings.Count(b.String(), "\n"); lines != 11 {
		t.Errorf("%d lines, want 11:\n%s", lines, b.String())
	}
}

func TestOnATerminalTheBarFitsAndIsRemoved(t *testing.T) {
	var b bytes.Buffer
	p := &Progress{w: &b, terminal: true, width: 40, lastPart: -1}
	p.Update(State{Summary: v1alpha1.Summary{Rows: 4, Passed: 2, Errored: 1, Calls: 9}, Calls: 12})
	p.Done()
	want := "\r\x1b[K██████████████████░░░░░░ 3 of 4 rows, 2\r\x1b[K"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestBarIsForTerminalsThatCanGoBackInALine(t *testing.T) {
	for name, test := range map[string]struct {
		width int
		term  string
		want  bool
	}{
		"a terminal":      {80, "xterm", true},
		"a dumb terminal": {80, "dumb", false},
		"a file":          {0, "xterm", false},
	} {
		if got := draws(test.width, test.term); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
