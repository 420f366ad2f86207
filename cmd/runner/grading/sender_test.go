package grading

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/redact"
)

func TestNoSecretAndNoReasonLeavesTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, b := newDesk(3, 1, "a", "b"), &bench{}
		b.answer = func(_ context.Context, n int, _ judge.Request) (judge.Response, error) {
			time.Sleep(time.Second) // virtual
			if n == 3 {
				return judge.Response{}, &judge.StatusError{Provider: v1alpha1.ProviderAnthropic, Status: 400, Message: "bad key hunter2-hunter2"}
			}
			return verdict(1, "the candidate repeats hunter2-hunter2"), nil
		}
		var log bytes.Buffer
		o := optionsOf(d, b)
		o.Log = slog.New(slog.NewJSONHandler(&log, nil))
		finish(t, o)
		if d.posts == 0 {
			t.Fatal("no judgment was posted on the way")
		}
		for name, r := range d.rows {
			data, err := json.Marshal(map[string]any{"kept": r.kept, "report": r.report})
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(data, []byte("hunter2")) {
				t.Errorf("%s holds the secret: %s", name, data)
			}
		}
		for _, word := range []string{"hunter2", "candidate repeats", "Paris"} {
			if strings.Contains(log.String(), word) {
				t.Errorf("the log holds %q:\n%s", word, log.String())
			}
		}
	})
}

func TestFindingsAreCutToWhatAPostCanHold(t *testing.T) {
	var f v1alpha1.Findings
	for i := range 7680 {
		j := answer(fmt.Sprintf("%d%s", i, strings.Repeat("q", 120)), 1)
		j.Rubric, j.Reason, j.Evidence = strings.Repeat("r", 128), strings.Repeat("<", 3000), strings.Repeat("e", 3000)
		f.Judgments = append(f.Judgments, j)
	}
	got := boundFindings(f)
	data, err := json.Marshal(got)
	if err != nil || len(data) > maxFindings || len(got.Judgments) != 7680 {
		t.Errorf("%d bytes with %d judgments, %v", len(data), len(got.Judgments), err)
	}
	short := v1alpha1.Findings{Judgments: []v1alpha1.Judgment{answer("a", 1)}}
	if diff := cmp.Diff(short, boundFindings(v1alpha1.Findings{Judgments: []v1alpha1.Judgment{answer("a", 1)}})); diff != "" {
		t.Error(diff)
	}
}

func TestABatchHoldsNoMoreThanAPostCan(t *testing.T) {
	s := &sender{pending: map[string][]v1alpha1.Judgment{}}
	for i := range maxBatch + 500 {
		s.add("big", answer(fmt.Sprint(i), 1))
	}
	s.add("small", answer("a", 1))
	first, second := s.take(), s.take()
	if count(first) != maxBatch || count(second) != 501 || count(s.take()) != 0 {
		t.Errorf("%d, then %d", count(first), count(second))
	}
	if second.Leaves[1].Name != "small" {
		t.Errorf("leaves = %v", second.Leaves[1].Name)
	}
}

func TestMessage(t *testing.T) {
	redactor := redact.New("hunter2-hunter2")
	result := Result{Rows: 25, Passed: 24, Failed: 1}
	for name, tc := range map[string]struct {
		result Result
		err    error
		want   string
	}{
		"all rows ended": {result, nil, `{"rows":25,"passed":24,"failed":1,"deferred":0,"errored":0}` + "\n"},
		"an error":       {Result{}, errors.New("the key is hunter2-hunter2"), ""},
		"both":           {Result{Rows: 2, Passed: 1, Open: 1}, ErrInterrupted, `{"rows":2,"passed":1,"failed":0,"deferred":0,"errored":0,"open":1,"error":"` + ErrInterrupted.Error() + `"}` + "\n"},
		"a long error":   {result, errors.New(strings.Repeat("<&>\x00", 5000)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Message(tc.result, tc.err, redactor)
			if tc.want != "" && string(got) != tc.want {
				t.Errorf("message = %s", got)
			}
			var parsed map[string]any
			if err := json.Unmarshal(got, &parsed); err != nil || len(got) > maxMessageBytes {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if (tc.err == nil) != (parsed["error"] == nil) || bytes.Contains(got, []byte("hunter2")) || bytes.Count(got, []byte("\n")) != 1 {
				t.Errorf("message = %s", got)
			}
		})
	}
}

func TestWriteMessage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "termination-log")
	if err := WriteMessage(path, []byte("x\n")); err != nil {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("it was made: %v", err)
	}
	if err := os.WriteFile(path, []byte("what was there before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteMessage(path, []byte("x\n")); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "x\n" {
		t.Errorf("message = %q, %v", got, err)
	}
}
