package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"

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

func TestCostAndTimeLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		state State
		want  string
	}{
		"nothing is known yet": {State{Summary: v1alpha1.Summary{Rows: 2}}, "0 of 2 rows, 0 calls"},
		"cost":                 {State{Summary: v1alpha1.Summary{Rows: 2, Passed: 1, Calls: 3, CostUSD: 0.0123}, Calls: 6}, "1 of 2 rows, 1 passed, 3 of 6 calls, $0.0123"},
		"seconds":              {State{Summary: v1alpha1.Summary{Rows: 2}, Left: 42 * time.Second}, "0 of 2 rows, 0 calls, about 42s left"},
		"minutes":              {State{Summary: v1alpha1.Summary{Rows: 2}, Left: 125 * time.Second}, "0 of 2 rows, 0 calls, about 2m05s left"},
		"hours":                {State{Summary: v1alpha1.Summary{Rows: 2}, Left: 3*time.Hour + 7*time.Minute}, "0 of 2 rows, 0 calls, about 3h07m left"},
		"less than a second":   {State{Summary: v1alpha1.Summary{Rows: 2}, Left: time.Millisecond}, "0 of 2 rows, 0 calls, almost done"},
		"all rows ended":       {State{Summary: v1alpha1.Summary{Rows: 1, Passed: 1}, Left: time.Minute}, "1 of 1 rows, 1 passed, 0 calls"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			New(&b).Update(tc.state)
			if diff := cmp.Diff(tc.want+"\n", b.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		done, calls int32
		want        time.Duration
	}{
		"nothing was done":        {0, 10, 0},
		"a quarter was done":      {5, 20, 30 * time.Second},
		"all was done":            {20, 20, 0},
		"more than was reckoned":  {25, 20, 0},
		"the number is not known": {5, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Left(10*time.Second, tc.done, tc.calls); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
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
	state := State{Summary: v1alpha1.Summary{Rows: 4, Passed: 2, Errored: 1, Calls: 9, CostUSD: 0.0123}, Calls: 12, Left: 90 * time.Second}
	for width, want := range map[int]string{
		120: "██████████████████░░░░░░ 3 of 4 rows, 2 passed, 1 errored, 9 of 12 calls, $0.0123, about 1m30s left",
		90:  "██████░░ 3 of 4 rows, 2 passed, 1 errored, 9 of 12 calls, $0.0123, about 1m30s left",
		80:  "██████░░ 3/4 rows, 2 passed, 1 errored, 9/12 calls, $0.0123, 1m30s left",
		66:  "3/4 rows, 2 passed, 1 errored, 9/12 calls, $0.0123, 1m30s left",
		20:  "3/4 rows, 2 passed…",
	} {
		b.Reset()
		p := &Progress{w: &b, terminal: true, width: width, lastPart: -1}
		p.Update(state)
		p.Done()
		if diff := cmp.Diff("\r\x1b[K"+want+"\r\x1b[K", b.String()); diff != "" {
			t.Errorf("width %d (-want +got):\n%s", width, diff)
		}
	}
}

func TestTheBarMovesWithTheCallsOfARow(t *testing.T) {
	s := State{Summary: v1alpha1.Summary{Rows: 1, Calls: 3}, Calls: 6}
	if got := s.bar(8); got != "████░░░░ " {
		t.Errorf("bar = %q", got)
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
