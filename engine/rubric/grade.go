package rubric

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
)

// Asker puts one question to one judge. *judge.Judge is one; it bounds how many calls are under way at once.
type Asker interface {
	Ask(ctx context.Context, m judge.Model, q judge.Question) (judge.Verdict, v1alpha1.Usage, error)
}

// ErrStopped is returned by an Asker that takes no more questions, because the process is about to end. A question
// that met it was not judged, and can be asked again later.
var ErrStopped = judge.ErrStopped

// Grader collects the findings of rows.
type Grader struct {
	// Asker puts the questions.
	Asker Asker
	// Env says which models and keys the process was given.
	Env judge.Env
	// Now is the clock of the report.
	Now func() time.Time
}

// Grade asks judges every question of a resolved eval that has no answer yet, and returns all that is known then.
//
// known are judgments from before: answers are kept and not asked again, errors are asked anew. record, which may be
// nil, is given each new judgment as soon as it is there, one at a time.
//
// A judge that cannot be had is a finding, not an error, and so is a budget that ran out (S-42). The error is that of a context that ended, or ErrStopped:
// the row is not judged to its end then, and the findings hold what is.
func (g *Grader) Grade(ctx context.Context, spec *v1alpha1.EvalSpec, known []v1alpha1.Judgment, record func(v1alpha1.Judgment)) (f v1alpha1.Findings, err error) {
	f = v1alpha1.Findings{PromptVersion: judge.PromptVersion, StartedAt: g.now()}
	defer func() { f.FinishedAt = g.now() }()
	if spec.Response == nil {
		f.Deferred = "the eval has no response, and this version cannot run an agent to get one; set response or responseFrom"
		return f, nil
	}
	if Empty(*spec.Response) {
		return f, nil
	}
	models, err := judge.ResolveModel(spec.Judge, "", "", g.Env)
	var missing *judge.DeferredError
	kept := answered(known)
	switch {
	case errors.As(err, &missing) && len(kept) > 0: // the key went away half-way: a row that was judged in part is no pass
		f.Judgments, f.Error = kept, "judged in part only: "+missing.Error()
		for _, j := range kept {
			if !slices.Contains(f.Models, j.Model) {
				f.Models = append(f.Models, j.Model)
			}
		}
		return f, nil
	case errors.As(err, &missing):
		f.Deferred = missing.Error()
		return f, nil
	case err != nil:
		f.Judgments, f.Error = kept, err.Error()
		return f, nil
	}
	s := &session{grader: g, spec: spec, models: models, known: kept, record: record}
	f.Judgments, err = s.run(ctx)
	for m := range Members(spec.Judge) {
		f.Models = append(f.Models, s.model(m).Name)
	}
	f.Provider = commonProvider(models)
	if s.overBudget && err == nil {
		f.Reason, f.Error = v1alpha1.RowBudgetExceeded, budgetNote(len(answered(f.Judgments)))
	}
	return f, err
}

// budgetNote says what became of a row that the budget did not reach for.
func budgetNote(judged int) string {
	note := string(v1alpha1.RowBudgetExceeded) + ": maxCost was used up before this row was judged"
	if judged > 0 {
		note += fmt.Sprintf(" to its end; judgments that were made are kept (%d)", judged)
	}
	return note
}

// now is the clock in whole seconds, as reports are stored.
func (g *Grader) now() *metav1.Time {
	t := metav1.NewTime(g.Now()).Rfc3339Copy()
	return &t
}

// answered are the judgments that need not be asked for again.
func answered(known []v1alpha1.Judgment) []v1alpha1.Judgment {
	var out []v1alpha1.Judgment
	for _, j := range known {
		if j.Score != nil {
			out = append(out, j)
		}
	}
	return out
}

func commonProvider(models []judge.Model) v1alpha1.Provider {
	for _, m := range models {
		if m.Provider != models[0].Provider {
			return ""
		}
	}
	return models[0].Provider
}

// session grades one row.
type session struct {
	grader *Grader
	spec   *v1alpha1.EvalSpec
	models []judge.Model
	known  []v1alpha1.Judgment
	record func(v1alpha1.Judgment)

	mu        sync.Mutex
	judgments []v1alpha1.Judgment
	stopped   error
	// overBudget: a question was not asked, because the budget was used up.
	overBudget bool
}

// model is the judge of a member: one each in a panel, the same for all of a jury.
func (s *session) model(member int) judge.Model {
	if member < len(s.models) {
		return s.models[member]
	}
	return s.models[0]
}

func (s *session) run(ctx context.Context) ([]v1alpha1.Judgment, error) {
	s.judgments = append(s.judgments, s.known...)
	answers := indexOf(s.known)
	var wg sync.WaitGroup
	rubrics := Rubrics(s.spec)
	for i := range rubrics {
		r := &rubrics[i]
		for m := range Members(s.spec.Judge) {
			key := v1alpha1.QuestionKey{Rubric: r.Name, Member: int32(m)}
			if r.Tree != nil {
				wg.Go(func() { s.walk(ctx, r.Tree, key, answers) })
				continue
			}
			for _, q := range s.questions(&r.RubricSpec) {
				asked := key
				asked.Question = q.Name
				if answers[asked] == nil {
					wg.Go(func() { s.ask(ctx, asked, q) })
				}
			}
		}
	}
	wg.Wait()
	slices.SortFunc(s.judgments, func(a, b v1alpha1.Judgment) int { // the order of the answers is chance
		return cmp.Or(cmp.Compare(a.Rubric, b.Rubric), cmp.Compare(a.Member, b.Member), cmp.Compare(a.Question, b.Question))
	})
	return s.judgments, s.stopped
}

// questions are those of a text rubric, or of the criteria that apply, as a judge is asked them.
func (s *session) questions(r *v1alpha1.RubricSpec) []judge.Question {
	base := s.base()
	if Kind(r) == v1alpha1.RubricKindText {
		base.Kind, base.Ask = judge.KindText, r.Text
		return []judge.Question{base}
	}
	var out []judge.Question
	for i := range r.Criteria {
		c := &r.Criteria[i]
		if applies, err := Applies(c.When, *s.spec.Response); err != nil || !applies {
			continue // Score says why
		}
		q := base
		q.Kind, q.Name, q.Ask = judge.KindCriterion, c.Name, c.Description
		if c.Guard {
			q.Kind = judge.KindGuard
		}
		q.Examples, q.Indicators, q.ScoreRanges, q.RequireEvidence = c.Examples, c.Indicators, c.ScoreRanges, r.RequireEvidence
		out = append(out, q)
	}
	return out
}

// base is what all questions about a candidate share.
func (s *session) base() judge.Question {
	return judge.Question{Prompt: s.spec.Prompt, Context: s.spec.Context, Candidate: *s.spec.Response}
}

// walk asks the questions on the way to a leaf, one after the other (S-22).
func (s *session) walk(ctx context.Context, n *v1alpha1.TreeNode, key v1alpha1.QuestionKey, answers index) {
	for n != nil && n.Ask != "" {
		var score *float64
		if j := answers[key]; j != nil {
			score = j.Score
		} else {
			q := s.base()
			q.Kind, q.Ask = judge.KindYesNo, n.Ask
			score = s.ask(ctx, key, q)
		}
		if score == nil {
			return
		}
		next, step := descend(n, isYes(*score))
		n, key.Question = next, key.Question+step
	}
}

// ask puts one question, keeps its judgment and returns its score; nil when the judge could not be had.
func (s *session) ask(ctx context.Context, key v1alpha1.QuestionKey, q judge.Question) *float64 {
	m := s.model(int(key.Member))
	v, usage, err := s.grader.Asker.Ask(ctx, m, q)
	j := v1alpha1.Judgment{QuestionKey: key, Model: m.Name, Usage: usage}
	switch {
	case err != nil && (errors.Is(err, ErrStopped) || ctx.Err() != nil):
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stopped = err
		if ctx.Err() != nil {
			s.stopped = ctx.Err()
		}
		return nil
	case errors.Is(err, judge.ErrBudgetExceeded):
		s.mu.Lock()
		s.overBudget = true
		s.mu.Unlock()
		if usage.Calls == 0 {
			return nil
		}
		j.Error = err.Error() // what was paid for is counted
	case err != nil:
		j.Error = err.Error()
	default:
		j.Score, j.Raw, j.Reason = &v.Score, v.Raw, v.Reason // not rounded: it is still to be compared (S-4)
		if q.RequireEvidence && v.Evidence != "" {
			occurs := EvidenceOccurs(judge.Shown(q.Candidate), v.Evidence)
			j.Evidence, j.EvidenceVerified = v.Evidence, &occurs
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.judgments = append(s.judgments, j)
	if s.record != nil {
		s.record(j)
	}
	return j.Score
}
