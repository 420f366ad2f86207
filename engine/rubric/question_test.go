package rubric

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
)

// recorder is a provider that keeps the requests that it gets, and gives each of them the same score.
type recorder struct {
	score    float64
	evidence string

	mu       sync.Mutex
	requests []judge.Request
}

func (p *recorder) Complete(_ context.Context, r judge.Request) (judge.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, r)
	verdict := map[string]any{"reason": "so", "score": p.score}
	if slices.Contains(r.Schema.Required, "evidence") {
		verdict["evidence"] = p.evidence
	}
	text, err := json.Marshal(verdict)
	return judge.Response{Answer: judge.Answer{Text: string(text), Structured: true}}, err
}

// judgedByRecorder grades with a real judge whose provider is p.
func judgedByRecorder(t *testing.T, p *recorder, spec *v1alpha1.EvalSpec) v1alpha1.Findings {
	t.Helper()
	asker := judge.New(judge.Options{Clients: map[v1alpha1.Provider]judge.Client{v1alpha1.ProviderOpenAI: p}})
	f, err := graderOf(t, asker).Grade(t.Context(), spec, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestWhatAJudgeIsAsked follows the fields of a rubric into the words that reach the provider. The question that a
// case speaks of is the one about the description "is it so?".
func TestWhatAJudgeIsAsked(t *testing.T) {
	so := func(change ...func(*v1alpha1.Criterion)) v1alpha1.Criterion {
		c := criterionOf("so", change...)
		c.Description = "is it so?"
		return c
	}
	examples := func(c *v1alpha1.Criterion) {
		c.Examples = []v1alpha1.Example{{Response: "It is.", Score: 0.9}, {Response: "Is it?", Score: 0.25}, {Response: "No.", Score: 0}}
	}
	indicators := func(c *v1alpha1.Criterion) {
		c.Indicators = &v1alpha1.Indicators{Good: "it says that it is", Bad: "it beats about the bush"}
	}
	const calibration = "\nCalibration examples\nResponse: \"It is.\" -> score 0.90\nResponse: \"Is it?\" -> score 0.25\nResponse: \"No.\" -> score 0.00\n"
	response := func(text string) func(*v1alpha1.EvalSpec) {
		return func(s *v1alpha1.EvalSpec) { s.Response = &text }
	}
	documents := func(texts ...string) func(*v1alpha1.EvalSpec) {
		return func(s *v1alpha1.EvalSpec) { s.Context = texts }
	}
	evidence := v1alpha1.RubricSpec{RequireEvidence: true, Criteria: []v1alpha1.Criterion{so(), criterionOf("leak", guard)}}
	for name, tc := range map[string]struct {
		spec    *v1alpha1.EvalSpec
		calls   int
		want    []string
		without []string
	}{
		"S-6 a text is put as it is":                       {evalOf(v1alpha1.RubricSpec{Text: "is it so?"}), 1, []string{"How well does the candidate meet this rubric?\n\nis it so?\n"}, nil},
		"S-7 a criterion is asked about alone":             {evalOf(criteriaOf(so(), criterionOf("other"))), 2, []string{"this one criterion", "so\nis it so?\n"}, []string{"describes other"}},
		"S-13 a guard is asked for how far it is there":    {evalOf(criteriaOf(so(guard))), 1, []string{"How far is the following present in the candidate?", "from 0 (absent) to 1 (fully present)"}, []string{"How well"}},
		"S-15 examples, in the order in which they stand":  {evalOf(criteriaOf(so(examples))), 1, []string{calibration}, nil},
		"S-15 of a guard too":                              {evalOf(criteriaOf(so(guard, examples))), 1, []string{calibration}, nil},
		"S-15 of this criterion only":                      {evalOf(criteriaOf(so(), criterionOf("other", examples))), 2, nil, []string{"Calibration examples"}},
		"S-16 indicators are descriptions, without scores": {evalOf(criteriaOf(so(indicators))), 1, []string{"Good work looks like this: it says that it is\n", "Bad work looks like this: it beats about the bush\n"}, []string{"Calibration", "-> score"}},
		"S-17 a whole number from 0 to 10":                 {evalOf(criteriaOf(so(ranges("0", "7")))), 1, []string{"\n0: work worth 0\n7: work worth 7\n", "a whole number from 0 (not at all) to 10 (fully)"}, nil},
		"S-17 only where there are ranges":                 {evalOf(criteriaOf(so(), criterionOf("other", ranges("0")))), 2, []string{"a number from 0 (not at all) to 1 (fully)"}, []string{"whole number"}},
		"S-18 evidence is asked for":                       {evalOf(evidence), 2, []string{"- evidence: "}, nil},
		"S-18 of a guard too":                              {evalOf(v1alpha1.RubricSpec{RequireEvidence: true, Criteria: []v1alpha1.Criterion{so(guard)}}), 1, []string{"- evidence: "}, nil},
		"S-18 and not where it is not required":            {evalOf(criteriaOf(so())), 1, nil, []string{"evidence"}},
		"S-33 exactly the response is graded":              {evalOf(criteriaOf(so()), response("  two\n\n\tlines  \n")), 1, []string{">\n  two\n\n\tlines  \n</"}, nil},
		"S-33 a server beside it is not asked":             {evalOf(criteriaOf(so()), func(s *v1alpha1.EvalSpec) { s.Server = "weather" }), 1, []string{">\na fine answer\n</"}, nil},
		"S-35 the context is what it may rest on":          {evalOf(criteriaOf(so()), documents("It is 18C.", "It is dry.")), 1, []string{"may rest on, 2 in all:", ">\nIt is 18C.\n</", ">\nIt is dry.\n</"}, nil},
		"S-35 without context nothing is said to be there": {evalOf(criteriaOf(so())), 1, nil, []string{"may rest on, "}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &recorder{score: 1}
			judgedByRecorder(t, p, tc.spec)
			if len(p.requests) != tc.calls {
				t.Errorf("%d calls, want %d", len(p.requests), tc.calls)
			}
			i := slices.IndexFunc(p.requests, func(r judge.Request) bool { return strings.Contains(r.Question, "is it so?") })
			if i < 0 {
				t.Fatal("the question was not asked")
			}
			r := p.requests[i]
			for _, want := range tc.want {
				if !strings.Contains(r.Prefix+r.Question, want) {
					t.Errorf("%q is not in:\n%s%s", want, r.Prefix, r.Question)
				}
			}
			for _, without := range tc.without {
				if strings.Contains(r.Prefix+r.Question, without) {
					t.Errorf("%q is in:\n%s%s", without, r.Prefix, r.Question)
				}
			}
			asksForEvidence := slices.Contains(r.Schema.Required, "evidence")
			if want := tc.spec.Rubric.RequireEvidence; asksForEvidence != want {
				t.Errorf("S-18: the verdict has evidence: %v, want %v", asksForEvidence, want)
			}
		})
	}
}

func TestS21ATreeAsksForYesOrNo(t *testing.T) {
	p := &recorder{score: 1}
	judgedByRecorder(t, p, evalOf(v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{
		Ask: "is it so?", IfYes: &v1alpha1.TreeNode{Score: ptr(1.0)}, IfNo: &v1alpha1.TreeNode{Ask: "not asked", IfYes: &v1alpha1.TreeNode{Score: ptr(0.0)}, IfNo: &v1alpha1.TreeNode{Score: ptr(0.0)}},
	}}))
	if len(p.requests) != 1 || !strings.Contains(p.requests[0].Question, "with yes or no") || !strings.Contains(p.requests[0].Question, "from 0 (no) to 1 (yes)") {
		t.Errorf("asked %+v", p.requests)
	}
}

func TestEvidenceIsVerified(t *testing.T) {
	for name, tc := range map[string]struct {
		candidate, quote string
		want             *bool
	}{
		"S-19 a span of the candidate":                      {"The API says: all is well.", "all is well", ptr(true)},
		"S-19 a span of a document is none":                 {"The API says: all is well.", "18 degrees", ptr(false)},
		"S-19 a span of what was asked is none":             {"The API says: all is well.", "weather like", ptr(false)},
		"S-19 what the judge was shown counts":              {"sys\u200btem up", "sys[U+200B]tem", ptr(true)},
		"S-19 not what the candidate looks like":            {"sys\u200btem up", "system up", ptr(false)},
		"S-19 nor what it was before it was shown":          {"sys\u200btem up", "sys\u200btem", ptr(false)},
		"S-19 nothing quoted is nothing to verify":          {"The API says: all is well.", "", nil},
		"S-19 white space alone is no evidence":             {"The API says: all is well.", " \n ", ptr(false)},
		"S-19 across lines, as a judge copies it":           {"all is\n    well", "all is well", ptr(true)},
		"S-19 a secret is verified before it is hidden":     {"key ghp_0123456789abcdefghijABCDEFGHIJ012345 leaks", "ghp_0123456789abcdefghijABCDEFGHIJ012345", ptr(true)},
		"S-19 what stands for a secret is not in it (S-48)": {"key ghp_0123456789abcdefghijABCDEFGHIJ012345 leaks", "[REDACTED:token]", ptr(false)},
	} {
		t.Run(name, func(t *testing.T) {
			spec := evalOf(v1alpha1.RubricSpec{RequireEvidence: true, Criteria: []v1alpha1.Criterion{criterionOf("a")}}, func(s *v1alpha1.EvalSpec) {
				s.Response, s.Prompt, s.Context = &tc.candidate, "What is the weather like?", []string{"It has 18 degrees."}
			})
			f := judgedByRecorder(t, &recorder{score: 1, evidence: tc.quote}, spec)
			if len(f.Judgments) != 1 {
				t.Fatalf("judgments %v", brief(f.Judgments))
			}
			if diff := gocmp.Diff(tc.want, f.Judgments[0].EvidenceVerified); diff != "" {
				t.Errorf("evidenceVerified (-want +got):\n%s", diff)
			}
		})
	}
}

func TestS4WhatAJudgeAnswersIsComparedBeforeRounding(t *testing.T) {
	tree := v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{Ask: "so?", IfYes: &v1alpha1.TreeNode{Score: ptr(1.0)}, IfNo: &v1alpha1.TreeNode{Score: ptr(0.0)}}}
	for name, tc := range map[string]struct {
		rubric v1alpha1.RubricSpec
		answer float64
		want   outcome
	}{
		"S-4 a text under its threshold":            {v1alpha1.RubricSpec{Text: "t"}, 0.6999999, failed(0.7)},
		"S-4 a guard under its threshold":           {criteriaOf(criterionOf("leak", guard)), 0.3000001, gated(0.7, "leak", v1alpha1.GateGuard)},
		"S-21 a no of a tree":                       {tree, 0.4999999, failed(0)},
		"S-1 what is off by a rounding error holds": {v1alpha1.RubricSpec{Text: "t"}, 0.7 - 1e-10, passed(0.7)},
	} {
		t.Run(name, func(t *testing.T) {
			spec := evalOf(tc.rubric)
			f := judgedByRecorder(t, &recorder{score: tc.answer}, spec)
			if diff := gocmp.Diff(tc.want, outcomeOf(Score(v1alpha1.Row{Name: "r", Eval: "r"}, spec, f))); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnEmptyCandidateNeedsNoJudge(t *testing.T) {
	for _, candidate := range []string{"", " \n\t", "?!", "👍", "\u0301\u200d"} {
		t.Run(fmt.Sprintf("S-34 %q", candidate), func(t *testing.T) {
			spec := evalOf(v1alpha1.RubricSpec{Text: "t"}, func(s *v1alpha1.EvalSpec) { s.Response = &candidate })
			g := graderOf(t, &scripted{})
			g.Env = judge.Env{} // no key: without one anything else is deferred
			f, err := g.Grade(t.Context(), spec, nil, nil)
			if err != nil || f.Deferred != "" || len(f.Judgments) > 0 {
				t.Fatalf("deferred %q, %d judgments, error %v", f.Deferred, len(f.Judgments), err)
			}
			got := Score(v1alpha1.Row{Name: "r", Eval: "r"}, spec, f)
			if diff := gocmp.Diff(failed(0), outcomeOf(got)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			if !got.Candidate.Empty || got.Rubrics[0].Reason != "empty candidate" {
				t.Errorf("candidate empty: %v, reason %q", got.Candidate.Empty, got.Rubrics[0].Reason)
			}
		})
	}
}

func TestS5NothingOutOfRangeIsClamped(t *testing.T) {
	for _, answer := range []float64{8, 1.0000001, -0.0000001} {
		spec := evalOf(v1alpha1.RubricSpec{Text: "t"})
		p := &recorder{score: answer}
		f := judgedByRecorder(t, p, spec)
		if diff := gocmp.Diff(errored, outcomeOf(Score(v1alpha1.Row{Name: "r", Eval: "r"}, spec, f))); diff != "" {
			t.Errorf("answer %v (-want +got):\n%s", answer, diff)
		}
		if len(p.requests) != 3 {
			t.Errorf("answer %v: asked %d times, want once and twice again (S-40)", answer, len(p.requests))
		}
	}
}
