package rubric

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
)

// scripted answers questions from a table, and keeps what it was asked.
type scripted struct {
	answers map[string]judge.Verdict // by the text of the question
	errs    map[string]error

	mu    sync.Mutex
	asked []string
}

func (s *scripted) Ask(_ context.Context, m judge.Model, q judge.Question) (judge.Verdict, v1alpha1.Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, m.Name+" "+q.Ask)
	usage := v1alpha1.Usage{Calls: 1}
	if err := s.errs[q.Ask]; err != nil {
		return judge.Verdict{}, usage, err
	}
	v, ok := s.answers[q.Ask]
	if !ok {
		return judge.Verdict{}, usage, fmt.Errorf("no answer for %q", q.Ask)
	}
	return v, usage, nil
}

func (s *scripted) sorted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.asked)
	return s.asked
}

// keyed is an environment with a key for OpenAI.
func keyed(t *testing.T) judge.Env {
	t.Helper()
	return judge.Env{Model: "gpt-4.1", Keys: map[v1alpha1.Provider]bool{v1alpha1.ProviderOpenAI: true}}
}

func graderOf(t *testing.T, a Asker) *Grader {
	t.Helper()
	return &Grader{Asker: a, Env: keyed(t), Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
}

func brief(judgments []v1alpha1.Judgment) []string {
	var out []string
	for _, j := range judgments {
		text := fmt.Sprintf("%s/%d/%s ", j.Rubric, j.Member, j.Question)
		if j.Score != nil {
			text += fmt.Sprint(*j.Score)
		} else {
			text += "error " + j.Error
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

func TestGradeAsksWhatTheRubricNeeds(t *testing.T) {
	verdict := func(score float64) judge.Verdict { return judge.Verdict{Score: score, Reason: "so"} }
	tree := v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{
		Ask:   "first?",
		IfYes: &v1alpha1.TreeNode{Ask: "second?", IfYes: &v1alpha1.TreeNode{Score: ptr(1.0)}, IfNo: &v1alpha1.TreeNode{Score: ptr(0.4)}},
		IfNo:  &v1alpha1.TreeNode{Ask: "other?", IfYes: &v1alpha1.TreeNode{Score: ptr(0.2)}, IfNo: &v1alpha1.TreeNode{Score: ptr(0.0)}},
	}}
	answers := map[string]judge.Verdict{
		"Is it good?": verdict(0.8), "describes a": verdict(0.9), "describes b": verdict(0.3),
		"first?": verdict(1), "second?": verdict(0), "other?": verdict(1),
	}
	for name, tc := range map[string]struct {
		spec          *v1alpha1.EvalSpec
		known         []v1alpha1.Judgment
		errs          map[string]error
		asked         []string
		wantJudgments []string
	}{
		"S-6 a text is one call": {
			spec:          evalOf(v1alpha1.RubricSpec{Text: "Is it good?"}),
			asked:         []string{"gpt-4.1 Is it good?"},
			wantJudgments: []string{"/0/ 0.8"},
		},
		"S-7 a call each criterion": {
			spec:          evalOf(criteriaOf(criterionOf("a"), criterionOf("b", weight(0)))),
			asked:         []string{"gpt-4.1 describes a", "gpt-4.1 describes b"},
			wantJudgments: []string{"/0/a 0.9", "/0/b 0.3"},
		},
		"S-11 a skipped criterion is not judged": {
			spec:          evalOf(criteriaOf(criterionOf("a"), criterionOf("b", when(v1alpha1.When{Contains: "zzz"})))),
			asked:         []string{"gpt-4.1 describes a"},
			wantJudgments: []string{"/0/a 0.9"},
		},
		"S-22 only the path of a tree is judged": {
			spec:          evalOf(tree),
			asked:         []string{"gpt-4.1 first?", "gpt-4.1 second?"},
			wantJudgments: []string{"/0/ 1", "/0/y 0"},
		},
		"S-25 a jury asks everything again": {
			spec:          evalOf(criteriaOf(criterionOf("a")), jury(2, nil), func(s *v1alpha1.EvalSpec) { s.Judge.Model = "gpt-4.1" }),
			asked:         []string{"gpt-4.1 describes a", "gpt-4.1 describes a"},
			wantJudgments: []string{"/0/a 0.9", "/1/a 0.9"},
		},
		"S-26 a panel asks each model": {
			spec:          evalOf(criteriaOf(criterionOf("a")), panel("", "", "gpt-4.1", "gpt-5")),
			asked:         []string{"gpt-4.1 describes a", "gpt-5 describes a"},
			wantJudgments: []string{"/0/a 0.9", "/1/a 0.9"},
		},
		"S-34 nobody is asked about an empty candidate": {
			spec: evalOf(criteriaOf(criterionOf("a")), func(s *v1alpha1.EvalSpec) { s.Response = ptr("...") }),
		},
		"what was answered before is not asked again": {
			spec:          evalOf(criteriaOf(criterionOf("a"), criterionOf("b"))),
			known:         []v1alpha1.Judgment{judged("a", 0.1)},
			asked:         []string{"gpt-4.1 describes b"},
			wantJudgments: []string{"/0/a 0.1", "/0/b 0.3"},
		},
		"a tree goes on where it stopped": {
			spec:          evalOf(tree),
			known:         []v1alpha1.Judgment{judged("", 0)},
			asked:         []string{"gpt-4.1 other?"},
			wantJudgments: []string{"/0/ 0", "/0/n 1"},
		},
		"what failed before is asked again": {
			spec:          evalOf(criteriaOf(criterionOf("a"))),
			known:         []v1alpha1.Judgment{failedBy(0, "a")},
			asked:         []string{"gpt-4.1 describes a"},
			wantJudgments: []string{"/0/a 0.9"},
		},
		"S-39 a judge that cannot be had is a finding": {
			spec:          evalOf(criteriaOf(criterionOf("a"), criterionOf("b"))),
			errs:          map[string]error{"describes b": errors.New("down")},
			asked:         []string{"gpt-4.1 describes a", "gpt-4.1 describes b"},
			wantJudgments: []string{"/0/a 0.9", "/0/b error down"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			asker := &scripted{answers: answers, errs: tc.errs}
			var recorded []v1alpha1.Judgment
			f, err := graderOf(t, asker).Grade(t.Context(), tc.spec, tc.known, func(j v1alpha1.Judgment) { recorded = append(recorded, j) })
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(tc.asked, asker.sorted()); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if diff := gocmp.Diff(tc.wantJudgments, brief(f.Judgments)); diff != "" {
				t.Errorf("judgments (-want +got):\n%s", diff)
			}
			if len(recorded) != len(tc.asked) {
				t.Errorf("%d judgments were recorded, want each of the %d new ones", len(recorded), len(tc.asked))
			}
		})
	}
}

func TestGradeDefersWithoutWhatItNeeds(t *testing.T) {
	for name, tc := range map[string]struct {
		spec *v1alpha1.EvalSpec
		env  judge.Env
		want string
	}{
		"S-38 no response":             {evalOf(v1alpha1.RubricSpec{Text: "t"}, func(s *v1alpha1.EvalSpec) { s.Response = nil }), keyed(t), "no response"},
		"S-38 no key for the provider": {evalOf(v1alpha1.RubricSpec{Text: "t"}, func(s *v1alpha1.EvalSpec) { s.Judge = &v1alpha1.JudgeSpec{Model: "claude-x"} }), keyed(t), "ANTHROPIC_API_KEY"},
		"S-38 no model and no key":     {evalOf(v1alpha1.RubricSpec{Text: "t"}), judge.Env{}, "_API_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			asker := &scripted{}
			g := graderOf(t, asker)
			g.Env = tc.env
			f, err := g.Grade(t.Context(), tc.spec, nil, nil)
			if err != nil || !strings.Contains(f.Deferred, tc.want) || len(asker.asked) > 0 {
				t.Errorf("got deferred %q, error %v, %d questions; want a note with %q", f.Deferred, err, len(asker.asked), tc.want)
			}
		})
	}
}

func TestGradeVerifiesEvidenceAgainstWhatTheJudgeSaw(t *testing.T) {
	spec := evalOf(v1alpha1.RubricSpec{RequireEvidence: true, Criteria: []v1alpha1.Criterion{criterionOf("a"), criterionOf("b"), criterionOf("c")}})
	asker := &scripted{answers: map[string]judge.Verdict{
		"describes a": {Score: 1, Reason: "so", Evidence: "fine  answer"},
		"describes b": {Score: 1, Reason: "so", Evidence: "splendid answer"},
		"describes c": {Score: 1, Reason: "so"},
	}}
	f, err := graderOf(t, asker).Grade(t.Context(), spec, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(f.Judgments, func(a, b v1alpha1.Judgment) int { return cmp.Compare(a.Question, b.Question) })
	want := []*bool{ptr(true), ptr(false), nil}
	for i, j := range f.Judgments {
		if diff := gocmp.Diff(want[i], j.EvidenceVerified); diff != "" {
			t.Errorf("S-19: criterion %s: evidenceVerified (-want +got):\n%s", j.Question, diff)
		}
	}
}

func TestGradeKeepsWhatItHasWhenItIsStopped(t *testing.T) {
	spec := evalOf(criteriaOf(criterionOf("a"), criterionOf("b")))
	asker := &scripted{answers: map[string]judge.Verdict{"describes a": {Score: 1, Reason: "so"}}, errs: map[string]error{"describes b": ErrStopped}}
	f, err := graderOf(t, asker).Grade(t.Context(), spec, nil, nil)
	if !errors.Is(err, ErrStopped) {
		t.Errorf("error %v, want ErrStopped", err)
	}
	if diff := gocmp.Diff([]string{"/0/a 1"}, brief(f.Judgments)); diff != "" {
		t.Errorf("judgments (-want +got):\n%s", diff)
	}
}

func TestFindingsSayWhenGradingBeganAndEnded(t *testing.T) {
	g := graderOf(t, &scripted{answers: map[string]judge.Verdict{"q": {Score: 0.9, Reason: "r"}}})
	at := time.Unix(1_800_000_000, 0)
	g.Now = func() time.Time {
		at = at.Add(1500 * time.Millisecond)
		return at
	}
	response := "An answer."
	f, err := g.Grade(t.Context(), &v1alpha1.EvalSpec{
		Response: &response, Rubric: &v1alpha1.RubricSource{RubricSpec: v1alpha1.RubricSpec{Text: "q"}},
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.StartedAt == nil || f.StartedAt.Unix() != 1_800_000_001 || f.FinishedAt == nil || f.FinishedAt.Unix() != 1_800_000_003 {
		t.Errorf("from %v to %v, want whole seconds of when it began and ended", f.StartedAt, f.FinishedAt)
	}
	if f.StartedAt != nil && f.StartedAt.Nanosecond() != 0 {
		t.Errorf("began at %v: a stored report has whole seconds", f.StartedAt)
	}
}

func TestGradeKeepsWhatWasPaidForWhenTheKeyGoesAway(t *testing.T) {
	g := graderOf(t, &scripted{})
	g.Env = judge.Env{}
	for name, tc := range map[string]struct {
		known []v1alpha1.Judgment
		want  outcome
		note  string
	}{
		"a row that was judged in part fails closed": {[]v1alpha1.Judgment{judged("a", 1)}, errored, "judged in part only: no judge is configured"},
		"a row that was judged whole has its score":  {[]v1alpha1.Judgment{judged("a", 1), judged("b", 0.8)}, passed(0.9), ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec := evalOf(criteriaOf(criterionOf("a"), criterionOf("b")))
			f, err := g.Grade(t.Context(), spec, tc.known, nil)
			if err != nil {
				t.Fatal(err)
			}
			report := Score(v1alpha1.Row{Name: "r", Eval: "r"}, spec, f)
			if diff := gocmp.Diff(tc.want, outcomeOf(report)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			if !strings.HasPrefix(report.Note, tc.note) || len(f.Judgments) != len(tc.known) {
				t.Errorf("note %q with %d judgments, want %q with %d", report.Note, len(f.Judgments), tc.note, len(tc.known))
			}
		})
	}
}
