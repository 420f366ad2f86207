package rubric

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/redact"
)

// maxExcerpt is how many bytes of a candidate a report shows.
const maxExcerpt = 4096

// Score makes the report of a row from what was found: every total, gate and outcome is computed here and nowhere else
// (S-2). It is pure. spec is a resolved eval: one cell, no references, the candidate in Response.
// Judgments of questions that the spec does not have are not counted; CheckJudgments refuses them beforehand.
func Score(row v1alpha1.Row, spec *v1alpha1.EvalSpec, f v1alpha1.Findings) v1alpha1.Report {
	report := v1alpha1.Report{
		SchemaVersion: v1alpha1.ReportSchemaVersion,
		Name:          row.Name, Eval: row.Eval, Cell: row.Cell,
		Candidate: candidateOf(spec),
		Judge:     judgeOf(spec, f),
		Usage:     usageOf(f.Judgments),
		StartedAt: f.StartedAt, FinishedAt: f.FinishedAt,
	}
	if f.Deferred != "" {
		return deferred(report, spec, f.Deferred)
	}
	rubrics := Rubrics(spec)
	var verdicts []verdict
	answers := indexOf(f.Judgments)
	for i := range rubrics {
		v, r := scoreRubric(spec, &rubrics[i], answers)
		verdicts = append(verdicts, v)
		report.Rubrics = append(report.Rubrics, r)
	}
	if f.Reason != "" { // not judged to its end, whatever a part of it would make (S-42)
		report.Outcome, report.Reason, report.Note = v1alpha1.OutcomeError, f.Reason, f.Error
		return report
	}
	conclude(&report, rubrics, verdicts, f)
	return report
}

// deferred ends a row that could not be judged (S-38).
func deferred(report v1alpha1.Report, spec *v1alpha1.EvalSpec, why string) v1alpha1.Report {
	report.Outcome, report.Note, report.Judge = v1alpha1.OutcomeDeferred, why, nil
	if spec.OnDeferred == v1alpha1.DeferredFail {
		report.Outcome = v1alpha1.OutcomeFailed
		report.Note = "deferred, and onDeferred is Fail: " + why
	}
	return report
}

// scoreRubric grades a rubric by each member and counts their votes.
func scoreRubric(spec *v1alpha1.EvalSpec, r *v1alpha1.NamedRubric, answers index) (verdict, v1alpha1.RubricReport) {
	s := subject{rubric: r.Name, answers: answers}
	if spec.Response != nil {
		s.candidate = *spec.Response
	}
	s.empty = Empty(s.candidate)
	members := make([]grading, Members(spec.Judge))
	for m := range members {
		s.member = int32(m)
		members[m] = grade(&r.RubricSpec, s)
	}
	threshold := Threshold(&r.RubricSpec)
	v := decide(spec.Judge, threshold, members)
	report := v1alpha1.RubricReport{
		Name: r.Name, Kind: Kind(&r.RubricSpec), Threshold: threshold, Passed: v.err == "" && v.passed,
	}
	if r.Name != "" {
		weight := valueOr(r.Weight, 1)
		report.Weight = &weight
	}
	if report.Kind == v1alpha1.RubricKindCriteria {
		report.Aggregation = Aggregation(&r.RubricSpec)
	}
	if v.err == "" {
		score := round6(v.score)
		report.Score = &score
		report.Display = Display(r.Scale, score, report.Passed)
		report.Vacuous = !slices.ContainsFunc(v.votes, func(g grading) bool { return !g.vacuous })
	}
	describe(&report, spec, v, members)
	return v, report
}

// describe fills in what the judges said: of the only member as it is, of several together and one by one.
func describe(report *v1alpha1.RubricReport, spec *v1alpha1.EvalSpec, v verdict, members []grading) {
	if len(members) == 1 && (spec.Judge == nil || (spec.Judge.Jury == nil && len(spec.Judge.Panel) == 0)) {
		g := members[0]
		report.Reason, report.Criteria, report.Path, report.Leaf = g.reason, g.criteria, g.path, g.leaf
		return
	}
	if len(v.votes) > 0 {
		report.Reason, report.Criteria = v.nearest().reason, v.meanCriteria(spec.Judge)
	}
	for m, g := range members {
		member := v1alpha1.MemberReport{
			Model: memberModel(spec.Judge, m), Passed: g.err == "" && g.passed, Error: g.err,
			Reason: g.reason, Criteria: g.criteria, Path: g.path, Leaf: g.leaf,
		}
		if g.err == "" {
			score := round6(g.score)
			member.Score = &score
		}
		report.Members = append(report.Members, member)
	}
}

func memberModel(j *v1alpha1.JudgeSpec, member int) string {
	switch {
	case j == nil:
		return ""
	case member < len(j.Panel):
		return string(j.Panel[member])
	}
	return string(j.Model)
}

// conclude makes the row's score and outcome of its rubrics': all must pass, and the score is their weighted mean.
func conclude(report *v1alpha1.Report, rubrics []v1alpha1.NamedRubric, verdicts []verdict, f v1alpha1.Findings) {
	if f.Error != "" && slices.ContainsFunc(verdicts, func(v verdict) bool { return len(v.votes) < len(v.passedBy) }) {
		// Not judged to its end, whatever the members that were could decide.
		report.Outcome, report.Note = v1alpha1.OutcomeError, f.Error
		return
	}
	var sum, weights float64
	passed, vacuous := true, true
	for i, v := range verdicts {
		if v.err != "" {
			report.Outcome, report.Note = v1alpha1.OutcomeError, v.err
			if report.Rubrics[i].Name != "" {
				report.Note = fmt.Sprintf("rubric %q: %s", report.Rubrics[i].Name, v.err)
			}
			if f.Error != "" {
				report.Note = f.Error
			}
			return
		}
		weight := valueOr(rubrics[i].Weight, 1)
		sum, weights = sum+v.score*weight, weights+weight
		passed = passed && v.passed
		vacuous = vacuous && report.Rubrics[i].Vacuous
	}
	if weights == 0 {
		report.Outcome, report.Note = v1alpha1.OutcomeError, "the eval has no rubric with a weight above 0"
		return
	}
	score := round6(sum / weights)
	report.Score, report.Vacuous = &score, vacuous
	report.Outcome = v1alpha1.OutcomeFailed
	if passed {
		report.Outcome = v1alpha1.OutcomePassed
	}
	if vacuous {
		report.Note = vacuousNote(report.Rubrics)
	}
	if len(rubrics) == 1 {
		threshold := report.Rubrics[0].Threshold
		report.Threshold, report.Display = &threshold, report.Rubrics[0].Display
	} else {
		report.Display = Display(nil, score, passed)
	}
	countPasses(report.Judge, verdicts)
}

// vacuousNote says why a score says nothing (S-12). A criterion of weight 0 may have been judged all the same.
func vacuousNote(rubrics []v1alpha1.RubricReport) string {
	for _, r := range rubrics {
		if slices.ContainsFunc(r.Criteria, func(c v1alpha1.CriterionReport) bool { return !c.Skipped }) {
			return "every criterion with a weight was skipped: the score says nothing"
		}
	}
	return "every criterion was skipped: nothing was judged"
}

// countPasses tells how many members of a jury or panel passed every rubric.
func countPasses(judge *v1alpha1.JudgeReport, verdicts []verdict) {
	passes := 0
	for m := range verdicts[0].passedBy {
		if !slices.ContainsFunc(verdicts, func(v verdict) bool { return !v.passedBy[m] }) {
			passes++
		}
	}
	switch {
	case judge == nil:
	case judge.Jury != nil:
		judge.Jury.Passes = int32(passes)
	case judge.Panel != nil:
		judge.Panel.Passes = int32(passes)
	}
}

func candidateOf(spec *v1alpha1.EvalSpec) *v1alpha1.Candidate {
	if spec.Response == nil {
		return nil
	}
	text := *spec.Response
	sum := sha256.Sum256([]byte(text))
	return &v1alpha1.Candidate{
		Source:  v1alpha1.CandidateResponse,
		Digest:  "sha256:" + hex.EncodeToString(sum[:]),
		Bytes:   int64(len(text)),
		Excerpt: excerpt(text),
		Empty:   Empty(text),
	}
}

// excerpt is the beginning of a text, redacted before it is cut between characters: a secret that the cut went through
// could not be told any more (S-48).
func excerpt(text string) string {
	whole := len(text) <= 2*maxExcerpt
	text = strings.ToValidUTF8(text[:min(len(text), 2*maxExcerpt)], "\uFFFD")
	text = (*redact.Redactor)(nil).String(text)
	if whole && len(text) <= maxExcerpt {
		return text
	}
	cut := min(maxExcerpt, len(text))
	for cut > 0 && cut < len(text) && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

func judgeOf(spec *v1alpha1.EvalSpec, f v1alpha1.Findings) *v1alpha1.JudgeReport {
	if len(f.Models) == 0 {
		return nil
	}
	report := &v1alpha1.JudgeReport{Provider: f.Provider, PromptVersion: f.PromptVersion}
	for _, m := range f.Models {
		if !slices.Contains(report.Models, m) {
			report.Models = append(report.Models, m)
		}
	}
	switch j := spec.Judge; {
	case j == nil:
	case len(j.Panel) > 0:
		report.Panel = &v1alpha1.PanelReport{Aggregate: v1alpha1.PanelMean}
		if j.Aggregate != "" {
			report.Panel.Aggregate = j.Aggregate
		}
	case j.Jury != nil:
		report.Jury = &v1alpha1.JuryReport{Size: j.Jury.Size, Consensus: valueOr(j.Jury.Consensus, DefaultConsensus)}
	}
	return report
}

func usageOf(judgments []v1alpha1.Judgment) v1alpha1.Usage {
	var total v1alpha1.Usage
	for _, j := range judgments {
		AddUsage(&total, j.Usage)
	}
	return total
}

// AddUsage adds what something took to a total.
func AddUsage(total *v1alpha1.Usage, u v1alpha1.Usage) {
	total.Calls += u.Calls
	total.Retries += u.Retries
	total.InputTokens += u.InputTokens
	total.CachedInputTokens += u.CachedInputTokens
	total.OutputTokens += u.OutputTokens
	total.CostUSD = round9(total.CostUSD + u.CostUSD)
	total.UnpricedCalls += u.UnpricedCalls
}
