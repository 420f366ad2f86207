package collector

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
)

var errConflict = apierrors.NewConflict(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "evalruns"}, "run-0", errors.New("it changed"))

func questions(judgments []v1alpha1.Judgment) map[string]float64 {
	out := map[string]float64{}
	for _, j := range judgments {
		out[j.Question] = *j.Score
	}
	return out
}

func TestTheFirstAnswerToAQuestionIsKept(t *testing.T) {
	w := newRun(t, 2, 1, "clear", "short", "true")
	w.want(w.postJudgments("pod-0", "run-0", answered("clear", 0.9, "ok"), unanswered("short", "529")), 200, "")
	w.want(w.postJudgments("pod-0", "run-0", answered("clear", 0.1, "changed its mind"), answered("short", 0.5, "so so")), 200, "")
	want := map[string]float64{"clear": 0.9, "short": 0.5}
	if diff := cmp.Diff(want, questions(w.run("run-0").Status.Judgments)); diff != "" {
		t.Error(diff)
	}
	writes := w.writes
	w.want(w.postJudgments("pod-0", "run-0", answered("clear", 0.2, "again"), unanswered("true", "down")), 200, "")
	if w.writes != writes {
		t.Error("a post with nothing new was written")
	}
	if got := metricOf(t, w, "mcptest_collector_judgments_kept_total", "", ""); got != 2 {
		t.Errorf("%v judgments were counted, want 2", got)
	}
	// A retried pod is told of them.
	var leaf wire.Leaf
	w.ask("pod-0", http.MethodGet, "/v1/leaves/run-0", nil).into(t, &leaf)
	if diff := cmp.Diff(want, questions(leaf.Judgments)); diff != "" {
		t.Error(diff)
	}
	if leaf.Row.Name != "row 0" || leaf.Spec.Response == nil {
		t.Errorf("leaf = %+v", leaf)
	}
}

func TestAPodIsToldOfJudgmentsThatTheCacheDoesNotKnow(t *testing.T) {
	w := newRun(t, 1, 1, "clear")
	w.cached.keepOld(w.run("run-0"))
	w.want(w.postJudgments("pod-0", "run-0", answered("clear", 0.9, "ok")), 200, "")
	var leaf wire.Leaf
	w.ask("pod-0", http.MethodGet, "/v1/leaves/run-0", nil).into(t, &leaf)
	if len(leaf.Judgments) != 1 {
		t.Errorf("%d judgments, want 1", len(leaf.Judgments))
	}
}

func TestJudgmentsThatCannotBeAreRefused(t *testing.T) {
	with := func(change func(*v1alpha1.Judgment)) v1alpha1.Judgment {
		j := answered("clear", 0.5, "ok")
		change(&j)
		return j
	}
	for name, tc := range map[string]struct {
		j    v1alpha1.Judgment
		says string
	}{
		"of no criterion":     {answered("fast", 0.5, "ok"), "no such criterion"},
		"of no rubric":        {with(func(j *v1alpha1.Judgment) { j.Rubric = "other" }), "no such rubric"},
		"of no member":        {with(func(j *v1alpha1.Judgment) { j.Member = 1 }), "member 1"},
		"out of range":        {answered("clear", 1.5, "ok"), "outside 0..1"},
		"neither nor":         {with(func(j *v1alpha1.Judgment) { j.Score = nil }), "either a score or an error"},
		"a raw nobody asked":  {with(func(j *v1alpha1.Judgment) { j.Raw = new(int32(5)) }), "raw"},
		"money back":          {with(func(j *v1alpha1.Judgment) { j.Usage.CostUSD = -1 }), "cost -1"},
		"calls without end":   {with(func(j *v1alpha1.Judgment) { j.Usage.Calls = 1 << 30 }), "calls"},
		"fewer than no token": {with(func(j *v1alpha1.Judgment) { j.Usage.OutputTokens = -5 }), "tokens"},
		"a model like a book": {with(func(j *v1alpha1.Judgment) { j.Model = strings.Repeat("m", 300) }), "model"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRun(t, 1, 1, "clear")
			w.want(w.postJudgments("pod-0", "run-0", tc.j), 422, tc.says)
			w.want(w.postFindings("pod-0", "run-0", findingsOf(tc.j)), 422, tc.says)
			if w.writes != 0 {
				t.Errorf("%d writes", w.writes)
			}
		})
	}
}

func TestWhatIsKeptIsRedactedAndCut(t *testing.T) {
	const secret = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
	w := newRun(t, 1, 1, "clear")
	w.want(w.postJudgments("pod-0", "run-0", answered("clear", 0.9, "it leaks "+secret+" "+strings.Repeat("and on ", 1000))), 200, "")
	got := w.run("run-0").Status.Judgments[0].Reason
	if strings.Contains(got, secret) || !strings.Contains(got, "[REDACTED") {
		t.Errorf("reason = %.80q", got)
	}
	if len(got) > maxKeptText {
		t.Errorf("the reason has %d bytes", len(got))
	}
}

func TestAWriteThatWasOvertakenIsMadeAgain(t *testing.T) {
	w := newRun(t, 1, 1, "clear", "short")
	w.beforeWrite = func(n int) error {
		if n == 1 { // another replica keeps another answer, and one to the same question
			w.updateStatus("run-0", func(s *v1alpha1.EvalRunStatus) {
				s.Judgments = append(s.Judgments, answered("short", 0.3, "theirs"), answered("clear", 0.2, "theirs"))
			})
		}
		return nil
	}
	w.cached.keepOld(w.run("run-0")) // the cache never catches up: the second attempt reads live
	w.want(w.postFindings("pod-0", "run-0", findingsOf(answered("clear", 1, "ours"), answered("short", 1, "ours"))), 200, "")
	r := w.run("run-0").Status.Report
	if r == nil || *r.Rubrics[0].Criteria[0].Score != 0.2 || *r.Rubrics[0].Criteria[1].Score != 0.3 {
		t.Errorf("answers that were kept first did not win: %+v", r)
	}
	if w.writes != 2 || metricOf(t, w, "mcptest_collector_write_conflicts_total", "", "") != 1 {
		t.Errorf("%d writes, want 2 with one conflict", w.writes)
	}
}

func TestConflictsWithoutEndAreABusyRow(t *testing.T) {
	w := newRun(t, 1, 1, "clear")
	w.beforeWrite = func(int) error { return errConflict }
	a := w.postJudgments("pod-0", "run-0", answered("clear", 1, "ok"))
	w.want(a, 503, "come again")
	if w.writes != maxWrites || a.header.Get("Retry-After") == "" {
		t.Errorf("%d writes, Retry-After %q", w.writes, a.header.Get("Retry-After"))
	}
}

func TestARowThatIsGoneDoesNotHoldUpOthers(t *testing.T) {
	w := newRun(t, 2, 1, "clear")
	w.want(w.ask("pod-0", http.MethodGet, "/v1/slice", nil), 200, "")
	if err := w.live.Delete(t.Context(), w.run("run-0")); err != nil {
		t.Fatal(err)
	}
	body := wire.Judgments{Leaves: []wire.LeafJudgments{
		{Name: "run-0", Judgments: []v1alpha1.Judgment{answered("clear", 1, "ok")}},
		{Name: "run-1", Judgments: []v1alpha1.Judgment{answered("clear", 1, "ok")}},
	}}
	w.want(w.ask("pod-0", http.MethodPost, "/v1/judgments", body), 200, "")
	if len(w.run("run-1").Status.Judgments) != 1 {
		t.Error("the judgment of the other row was not kept")
	}
	w.want(w.ask("pod-0", http.MethodGet, "/v1/leaves/run-0", nil), 404, "gone")
	w.want(w.postFindings("pod-0", "run-0", findingsOf(answered("clear", 1, "ok"))), 404, "gone")
	var s wire.Slice
	w.ask("pod-0", http.MethodGet, "/v1/slice", nil).into(t, &s)
	if diff := cmp.Diff([]wire.SliceLeaf{{Name: "run-0", Done: true}, {Name: "run-1"}}, s.Leaves); diff != "" {
		t.Error(diff)
	}
}

func TestBoundJudgments(t *testing.T) {
	many := func(n, words int) []v1alpha1.Judgment {
		var out []v1alpha1.Judgment
		for i := range n {
			j := answered(fmt.Sprintf("question %d", i), 0.5, strings.Repeat("w", words))
			j.Evidence = strings.Repeat("e", words)
			out = append(out, j)
		}
		return out
	}
	for name, tc := range map[string]struct {
		judgments []v1alpha1.Judgment
		limit     int
		want      int // how many are left
		words     int // how long a reason is at most
	}{
		"what fits stays":               {many(10, 1000), 64 << 10, 10, 1000},
		"words are cut first":           {many(100, 1000), 64 << 10, 100, 128},
		"then all words go":             {many(200, 1000), 64 << 10, 200, 0},
		"and then the newest answers":   {many(8000, 1000), maxJudgmentsBytes, 2300, 0},
		"no room at all leaves no room": {many(3, 10), 0, 0, 10},
		"nor does less than no room":    {many(3, 10), -5, 0, 10},
	} {
		t.Run(name, func(t *testing.T) {
			got := boundJudgments(tc.judgments, tc.limit)
			if tc.limit > 0 && encodedLen(got) > tc.limit {
				t.Errorf("%d bytes, limit %d", encodedLen(got), tc.limit)
			}
			if len(got) < tc.want || (tc.want < 1000 && len(got) != tc.want) {
				t.Errorf("%d judgments are left, want %d", len(got), tc.want)
			}
			if len(got) > 0 && (len(got[0].Reason) > tc.words || got[0].Question != "question 0") {
				t.Errorf("the first is %q with %d bytes of reason", got[0].Question, len(got[0].Reason))
			}
		})
	}
}

func TestALeafWithItsJudgmentsFitsIntoEtcd(t *testing.T) {
	const etcd = 1536 << 10
	for name, spec := range map[string]int{"a short spec": 1 << 10, "a long spec": 1 << 20, "the longest spec": 1300 << 10} {
		t.Run(name, func(t *testing.T) {
			var criteria []string
			var judgments []v1alpha1.Judgment
			for i := range 64 {
				criteria = append(criteria, fmt.Sprintf("criterion %d", i))
			}
			eval := evalOf(criteria...)
			eval.Response = new(strings.Repeat("r", spec))
			eval.Judge = &v1alpha1.JudgeSpec{Jury: &v1alpha1.Jury{Size: 15}}
			for i := range 64 * 15 {
				j := answered(criteria[i%64], 0.5, strings.Repeat("<", maxKeptText))
				j.Member = int32(i / 64)
				judgments = append(judgments, j)
			}
			w := newWorld(t, rootRun("run"), childRun("run", 0, 1, eval), jobOfRun("run", 1), podOfJob("pod-0", "run", "0"))
			w.tokens["pod-0"] = bound("pod-0")
			w.want(w.postJudgments("pod-0", "run-0", judgments...), 200, "")
			run := w.run("run-0")
			if n := encodedLen(run); n > etcd-64<<10 {
				t.Errorf("the leaf has %d bytes", n)
			}
			if len(run.Status.Judgments) == 0 {
				t.Error("no judgment was kept")
			}
			w.want(w.postFindings("pod-0", "run-0", findingsOf(judgments...)), 200, "")
			if n := encodedLen(w.run("run-0")); n > etcd-64<<10 {
				t.Errorf("the leaf has %d bytes with its report", n)
			}
		})
	}
}

func TestMerge(t *testing.T) {
	long := strings.Repeat("because ", 400)
	cut := func(j v1alpha1.Judgment) v1alpha1.Judgment {
		kept, _ := keepFirst(nil, []v1alpha1.Judgment{j})
		return kept[0]
	}
	for name, tc := range map[string]struct{ kept, sent, want []v1alpha1.Judgment }{
		"what was kept wins":                    {kept: []v1alpha1.Judgment{answered("a", 1, "kept")}, sent: []v1alpha1.Judgment{answered("a", 0, "sent")}, want: []v1alpha1.Judgment{answered("a", 1, "kept")}},
		"an answer wins over an error":          {kept: []v1alpha1.Judgment{answered("a", 1, "kept")}, sent: []v1alpha1.Judgment{unanswered("a", "down")}, want: []v1alpha1.Judgment{answered("a", 1, "kept")}},
		"the whole reason of the same answer":   {kept: []v1alpha1.Judgment{cut(answered("a", 1, long))}, sent: []v1alpha1.Judgment{answered("a", 1, long)}, want: []v1alpha1.Judgment{answered("a", 1, long)}},
		"not the reason of another answer":      {kept: []v1alpha1.Judgment{cut(answered("a", 1, long))}, sent: []v1alpha1.Judgment{answered("a", 0.5, long)}, want: []v1alpha1.Judgment{cut(answered("a", 1, long))}},
		"not other words for the same answer":   {kept: []v1alpha1.Judgment{answered("a", 1, "kept")}, sent: []v1alpha1.Judgment{answered("a", 1, "sent")}, want: []v1alpha1.Judgment{answered("a", 1, "kept")}},
		"what is only on one side is there too": {kept: []v1alpha1.Judgment{answered("a", 1, "kept")}, sent: []v1alpha1.Judgment{answered("b", 0, "sent")}, want: []v1alpha1.Judgment{answered("b", 0, "sent"), answered("a", 1, "kept")}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, merge(tc.kept, tc.sent)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
