package grading

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
	"github.com/mcptest/mcptest-operator/engine/judge"
)

func TestARetriedPodAsksOnlyTheRest(t *testing.T) {
	d := newDesk(3, 4, "clear", "short", "true")
	d.rows["run-000"].report = &v1alpha1.Report{Outcome: v1alpha1.OutcomePassed}
	d.rows["run-001"].kept = []v1alpha1.Judgment{answer("clear", 0.4), {QuestionKey: v1alpha1.QuestionKey{Question: "short"}, Error: "529"}}
	server := httptest.NewTLSServer(d)
	defer server.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("token"), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := wire.NewClient(wire.ClientOptions{
		URL: server.URL, TokenFile: token,
		CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{}
	want := Result{Rows: 3, Passed: 2, Earlier: 1}
	if diff := cmp.Diff(want, finish(t, optionsOf(client, b))); diff != "" {
		t.Error(diff)
	}
	if b.calls != 5 {
		t.Errorf("%d calls, want 2 for the row that was begun and 3 for the other", b.calls)
	}
	if got := *d.rows["run-001"].report.Rubrics[0].Criteria[0].Score; got != 0.4 {
		t.Errorf("the answer from before became %v", got)
	}
}

func TestRowsThatAreJudgedAtOnceCostOneWriteEach(t *testing.T) {
	for name, criteria := range map[string][]string{"one question": {"clear"}, "five questions": {"a", "b", "c", "d", "e"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, b := newDesk(20, 5, criteria...), &bench{}
				b.answer = func(context.Context, int, judge.Request) (judge.Response, error) {
					time.Sleep(200 * time.Millisecond) // virtual
					return verdict(1, "it is"), nil
				}
				finish(t, optionsOf(d, b))
				// Questions of two rows may mix when slots get free; most rows are in one piece.
				if d.posts > 4 || d.ends != 20 || b.calls != 20*len(criteria) {
					t.Errorf("%d posts of judgments, %d of findings, %d calls", d.posts, d.ends, b.calls)
				}
			})
		})
	}
}

func TestJudgmentsOfALongRowArePostedOnTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, b := newDesk(1, 1, "a", "b", "c", "d"), &bench{}
		kept := 0
		b.answer = func(_ context.Context, n int, _ judge.Request) (judge.Response, error) {
			time.Sleep(2 * time.Second) // virtual
			d.mu.Lock()
			defer d.mu.Unlock()
			kept = len(d.rows["run-000"].kept)
			if kept != n-1 {
				t.Errorf("%d judgments are kept while question %d is asked", kept, n)
			}
			return verdict(1, "it is"), nil
		}
		finish(t, optionsOf(d, b))
		if d.posts != 3 || d.ends != 1 {
			t.Errorf("%d posts of judgments and %d of findings, want 3 and 1", d.posts, d.ends)
		}
	})
}

func TestFewRowsAreOpenAndTheJudgesAreBusy(t *testing.T) {
	for name, tc := range map[string]struct {
		rows, concurrency int
		criteria          []string
	}{
		"many short rows": {200, 8, []string{"clear"}},
		"rows of five":    {60, 8, []string{"a", "b", "c", "d", "e"}},
		"one at a time":   {10, 1, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, b := newDesk(tc.rows, tc.concurrency, tc.criteria...), &bench{}
				b.answer = func(context.Context, int, judge.Request) (judge.Response, error) {
					time.Sleep(time.Second) // virtual
					return verdict(1, "it is"), nil
				}
				began := time.Now()
				finish(t, optionsOf(d, b))
				calls := tc.rows * len(tc.criteria)
				floor := time.Duration((calls+tc.concurrency-1)/tc.concurrency) * time.Second
				if took := time.Since(began); took > floor+2*time.Second {
					t.Errorf("took %v, the floor is %v", took, floor)
				}
				// Two for each call at once, those that are fetched ahead, and those that just ended and are being posted.
				if limit := 3*tc.concurrency + prefetched + 1; d.mostOpen > limit {
					t.Errorf("%d rows were open at once, want at most %d", d.mostOpen, limit)
				}
				if b.most != tc.concurrency {
					t.Errorf("%d calls at once, want %d", b.most, tc.concurrency)
				}
			})
		})
	}
}

func TestACollectorThatIsAwayIsWaitedFor(t *testing.T) {
	for name, away := range map[string]error{
		"too busy":  refused(http.StatusServiceUnavailable),
		"not there": errors.New("connection refused"),
		"broken":    refused(http.StatusInternalServerError),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, b := newDesk(30, 4, "clear", "short"), &bench{}
				b.answer = func(context.Context, int, judge.Request) (judge.Response, error) {
					time.Sleep(time.Second) // virtual
					return verdict(1, "it is"), nil
				}
				began := time.Now()
				d.down = func(_ context.Context, what string) error {
					since := time.Since(began)
					if (what == "slice" && since < time.Minute) || (what != "slice" && since > 80*time.Second && since < 5*time.Minute) {
						return away
					}
					return nil
				}
				result := finish(t, optionsOf(d, b))
				if result.Passed != 30 || b.calls != 60 {
					t.Errorf("%+v after %d calls, want 30 rows and 60 calls", result, b.calls)
				}
				if d.slices < 3 || d.slices > 40 {
					t.Errorf("the slice was asked for %d times in a minute", d.slices)
				}
			})
		})
	}
}

func TestACollectorThatStaysAwayEndsTheRun(t *testing.T) {
	for name, tc := range map[string]struct {
		what string
		want time.Duration
	}{
		"from the start":        {"slice", DefaultStartPatience},
		"before rows are begun": {"leaf", DefaultPatience},
		"before rows end":       {"findings", DefaultPatience},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, b := newDesk(10, 4, "clear"), &bench{}
				d.down = func(_ context.Context, what string) error {
					if strings.HasPrefix(what, tc.what) {
						return errors.New("connection refused")
					}
					return nil
				}
				began := time.Now()
				_, err := Run(t.Context(), optionsOf(d, b))
				if err == nil || !strings.Contains(err.Error(), "away for") || ExitCode(err) != 1 {
					t.Errorf("err = %v, exit code %d", err, ExitCode(err))
				}
				if took := time.Since(began); took > tc.want || took < tc.want-2*backoffCap {
					t.Errorf("given up after %v, want %v", took, tc.want)
				}
			})
		})
	}
}

func TestWhatWaitsForTheCollectorIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, b := newDesk(500, 4, "clear"), &bench{}
		o := optionsOf(d, b)
		o.MaxUnsent = 20
		var back atomic.Bool
		d.down = func(_ context.Context, what string) error {
			if !back.Load() && (what == "judgments" || strings.HasPrefix(what, "findings")) {
				return refused(http.StatusServiceUnavailable)
			}
			return nil
		}
		done := make(chan Result)
		go func() { done <- finish(t, o) }()
		time.Sleep(2 * time.Minute) // virtual
		synctest.Wait()
		b.mu.Lock()
		calls := b.calls
		b.mu.Unlock()
		if calls < 10 || calls > 40 {
			t.Errorf("%d questions were asked while the collector was away, want about 20", calls)
		}
		back.Store(true)
		if result := <-done; result.Passed != 500 || b.calls != 500 {
			t.Errorf("%+v after %d calls", result, b.calls)
		}
	})
}

func TestAStopLetsCallsUnderWayEndAndKeepsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, b := newDesk(10, 4, "a", "b", "c"), &bench{}
		ctx, stop := context.WithCancel(t.Context())
		var late atomic.Bool
		b.answer = func(context.Context, int, judge.Request) (judge.Response, error) {
			if late.Load() {
				t.Error("a question was asked after the stop")
			}
			time.Sleep(10 * time.Second) // virtual
			return verdict(1, "it is"), nil
		}
		time.AfterFunc(15*time.Second, func() { late.Store(true); stop() })
		began := time.Now()
		result, err := Run(ctx, optionsOf(d, b))
		if !errors.Is(err, ErrInterrupted) || ExitCode(err) != wire.ExitInterrupted {
			t.Errorf("err = %v", err)
		}
		if took := time.Since(began); took < 20*time.Second || took > 22*time.Second {
			t.Errorf("took %v: calls under way end after 20 s", took)
		}
		kept := 0
		for _, r := range d.rows {
			if r.report == nil {
				kept += len(r.kept)
			} else {
				kept += 3
			}
		}
		if kept != b.calls || b.calls != 8 {
			t.Errorf("%d calls were paid for, %d judgments are kept", b.calls, kept)
		}
		// The next pod pays for the rest only.
		next := &bench{}
		d.openRows = 0
		second := finish(t, optionsOf(d, next))
		if total := b.calls + next.calls; total != 30 {
			t.Errorf("%d questions were asked in all, want 30", total)
		}
		if result.Passed+second.Passed != 10 {
			t.Errorf("%+v and %+v", result, second)
		}
	})
}

func TestAStopDoesNotWaitForRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, b := newDesk(1, 1, "a"), &bench{}
		ctx, stop := context.WithCancel(t.Context())
		b.answer = func(context.Context, int, judge.Request) (judge.Response, error) {
			return judge.Response{}, &judge.StatusError{Provider: v1alpha1.ProviderAnthropic, Status: 429, RetryAfter: 2 * time.Minute}
		}
		time.AfterFunc(10*time.Second, stop)
		began := time.Now()
		_, err := Run(ctx, optionsOf(d, b))
		if took := time.Since(began); !errors.Is(err, ErrInterrupted) || took > 11*time.Second {
			t.Errorf("err = %v after %v", err, took)
		}
		if d.rows["run-000"].report != nil {
			t.Error("a row that was stopped got a report")
		}
	})
}

func TestAStopIsBoundedWhateverHangs(t *testing.T) {
	for name, tc := range map[string]struct {
		judgeHangs, collectorHangs bool
		want                       time.Duration
	}{
		"a judge":     {true, false, DefaultGrace},
		"a collector": {false, true, DefaultGrace + DefaultFlush},
		"both":        {true, true, DefaultGrace + DefaultFlush},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, b := newDesk(4, 2, "a", "b"), &bench{}
				ctx, stop := context.WithCancel(t.Context())
				b.answer = func(ctx context.Context, n int, _ judge.Request) (judge.Response, error) {
					if tc.judgeHangs && n%2 == 0 {
						<-ctx.Done()
						return judge.Response{}, ctx.Err()
					}
					return verdict(1, "it is"), nil
				}
				d.down = func(ctx context.Context, what string) error {
					if tc.collectorHangs && (what == "judgments" || strings.HasPrefix(what, "findings")) {
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				}
				time.AfterFunc(5*time.Second, stop)
				began := time.Now()
				_, err := Run(ctx, optionsOf(d, b))
				took := time.Since(began) - 5*time.Second
				if !errors.Is(err, ErrInterrupted) || took > tc.want+time.Second {
					t.Errorf("err = %v, %v after the stop, want at most %v", err, took, tc.want)
				}
			})
		})
	}
}

func TestAnswersOfTheCollector(t *testing.T) {
	for name, tc := range map[string]struct {
		what   string // which request is refused
		status int
		code   int
		want   Result
		says   string
	}{
		"409: the row has its report":     {"findings run-001", 409, 0, Result{Rows: 3, Passed: 2, Earlier: 1}, ""},
		"404: the row is gone":            {"leaf run-001", 404, 0, Result{Rows: 3, Passed: 2, Earlier: 1}, ""},
		"404: it went while it ended":     {"findings run-001", 404, 0, Result{Rows: 3, Passed: 2, Earlier: 1}, ""},
		"422: that row cannot end":        {"findings run-001", 422, wire.ExitData, Result{Rows: 3, Passed: 2, Open: 1}, "run-001"},
		"413: that row is too big":        {"findings run-001", 413, wire.ExitData, Result{Rows: 3, Passed: 2, Open: 1}, "run-001"},
		"400: that row cannot be read":    {"leaf run-001", 400, wire.ExitData, Result{Rows: 3, Passed: 2, Open: 1}, "run-001"},
		"422: judgments are not kept":     {"judgments", 422, 0, Result{Rows: 3, Passed: 3}, ""},
		"401: the token is not good":      {"slice", 401, wire.ExitConfig, Result{}, "does not let this pod in"},
		"403: not this pod's":             {"slice", 403, wire.ExitConfig, Result{}, "check the projected token"},
		"403: while rows are fetched":     {"leaf run-000", 403, wire.ExitConfig, Result{Rows: 3, Open: 3}, "does not let this pod in"},
		"404: a collector of another age": {"slice", 404, wire.ExitData, Result{}, "404"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, b := newDesk(3, 2, "a", "b"), &bench{}
				b.answer = func(_ context.Context, n int, _ judge.Request) (judge.Response, error) {
					time.Sleep(time.Duration(n) * time.Second) // virtual
					return verdict(1, "it is"), nil
				}
				d.down = func(_ context.Context, what string) error {
					if what == tc.what {
						return refused(tc.status)
					}
					return nil
				}
				result, err := Run(t.Context(), optionsOf(d, b))
				if ExitCode(err) != tc.code || (tc.says != "" && !strings.Contains(fmt.Sprint(err), tc.says)) {
					t.Errorf("err = %v, exit code %d", err, ExitCode(err))
				}
				if diff := cmp.Diff(tc.want, result); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// The API server says of a token that it is not good when it only cannot look: exit code 78 would end all rows of the slice.
func TestATokenThatIsNotGoodForAMomentIsShownAgain(t *testing.T) {
	for _, what := range []string{"slice", "leaf run-001", "judgments", "findings run-002"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, b := newDesk(3, 2, "a", "b"), &bench{}
				b.answer = func(_ context.Context, n int, _ judge.Request) (judge.Response, error) {
					time.Sleep(time.Duration(n) * time.Second) // virtual
					return verdict(1, "it is"), nil
				}
				var refusals atomic.Int32
				d.down = func(_ context.Context, asked string) error {
					if asked == what && refusals.Add(1) <= 3 {
						return refused(http.StatusUnauthorized)
					}
					return nil
				}
				if diff := cmp.Diff(Result{Rows: 3, Passed: 3}, finish(t, optionsOf(d, b))); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestAPodThatIsShutOutPaysForNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, b := newDesk(50, 2, "a"), &bench{}
		b.answer = func(ctx context.Context, _ int, _ judge.Request) (judge.Response, error) {
			select {
			case <-time.After(time.Minute): // virtual
				return verdict(1, "it is"), nil
			case <-ctx.Done():
				return judge.Response{}, ctx.Err()
			}
		}
		began := time.Now()
		d.down = func(_ context.Context, what string) error {
			if time.Since(began) > 30*time.Second {
				return refused(http.StatusUnauthorized)
			}
			return nil
		}
		_, err := Run(t.Context(), optionsOf(d, b))
		if ExitCode(err) != wire.ExitConfig || b.calls > 4 {
			t.Errorf("err = %v after %d calls", err, b.calls)
		}
	})
}

func TestRowsThatNeedNoJudgeEndToo(t *testing.T) {
	d, b := newDesk(3, 2, "a"), &bench{}
	d.rows["run-000"].spec.Response = nil
	d.rows["run-001"].spec.Response = new("  ")
	d.rows["run-002"].spec.Judge.Model = "gpt-test" // no key
	if diff := cmp.Diff(Result{Rows: 3, Failed: 1, Deferred: 2}, finish(t, optionsOf(d, b))); diff != "" {
		t.Error(diff)
	}
	if b.calls != 0 {
		t.Errorf("%d calls", b.calls)
	}
}

func TestAJudgeThatCannotBeHadIsAReportNotAnExit(t *testing.T) {
	d, b := newDesk(2, 2, "a"), &bench{}
	b.answer = func(context.Context, int, judge.Request) (judge.Response, error) {
		return judge.Response{}, &judge.StatusError{Provider: v1alpha1.ProviderAnthropic, Status: 401, Message: "invalid x-api-key"}
	}
	if diff := cmp.Diff(Result{Rows: 2, Errored: 2}, finish(t, optionsOf(d, b))); diff != "" {
		t.Error(diff)
	}
	if note := d.rows["run-000"].report.Note; !strings.Contains(note, "ANTHROPIC_API_KEY") {
		t.Errorf("note = %q", note)
	}
}
