package rubric

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

func TestTheMeanOfARun(t *testing.T) {
	row := func(o v1alpha1.Outcome, score float64, models ...string) *v1alpha1.Report {
		r := &v1alpha1.Report{Outcome: o, Score: &score}
		if len(models) > 0 {
			r.Judge = &v1alpha1.JudgeReport{Models: models}
		}
		return r
	}
	without := func(o v1alpha1.Outcome) *v1alpha1.Report { return &v1alpha1.Report{Outcome: o} }
	vacuous := func(o v1alpha1.Outcome, models ...string) *v1alpha1.Report {
		r := row(o, 1, models...)
		r.Vacuous = true
		return r
	}
	for name, tc := range map[string]struct {
		rows []*v1alpha1.Report
		want *float64
	}{
		"S-4 the mean is stored with 6 decimals":            {[]*v1alpha1.Report{row("Passed", 1, "m"), row("Passed", 1, "m"), row("Failed", 0, "m")}, ptr(0.666667)},
		"S-12 a vacuous row stays out":                      {[]*v1alpha1.Report{row("Failed", 0.2, "m"), vacuous("Passed", "m")}, ptr(0.2)},
		"S-12 nothing but vacuous rows is no mean":          {[]*v1alpha1.Report{vacuous("Passed")}, nil},
		"S-32 a vacuous row of another judge hides no mean": {[]*v1alpha1.Report{row("Passed", 0.8, "m"), vacuous("Passed", "n")}, ptr(0.8)},
		"S-32 rows of two judges have no mean":              {[]*v1alpha1.Report{row("Passed", 0.8, "m"), row("Passed", 0.8, "n")}, nil},
		"S-32 a panel is another judge than its member":     {[]*v1alpha1.Report{row("Passed", 0.8, "m", "n"), row("Passed", 0.8, "m")}, nil},
		"S-32 rows of the same panel have one":              {[]*v1alpha1.Report{row("Passed", 0.8, "m", "n"), row("Passed", 0.6, "m", "n")}, ptr(0.7)},
		"S-34 an empty candidate counts with 0":             {[]*v1alpha1.Report{row("Passed", 0.8, "m"), row("Failed", 0)}, ptr(0.4)},
		"S-37 passed and failed rows count":                 {[]*v1alpha1.Report{row("Passed", 0.9, "m"), row("Failed", 0.3, "m")}, ptr(0.6)},
		"S-37 deferred and errored rows do not":             {[]*v1alpha1.Report{row("Passed", 0.9, "m"), without("Deferred"), without("Error")}, ptr(0.9)},
		"S-37 whatever score they are told to have":         {[]*v1alpha1.Report{row("Passed", 0.9, "m"), row("Deferred", 0.1, "m"), row("Error", 0.1, "m")}, ptr(0.9)},
		"S-38 a deferred row that failed has no score":      {[]*v1alpha1.Report{row("Passed", 0.9, "m"), without("Failed")}, ptr(0.9)},
		"S-39 an errored row is not a score of 0":           {[]*v1alpha1.Report{row("Passed", 0.8, "m"), without("Error")}, ptr(0.8)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Summarize(tc.rows).Score); diff != "" {
				t.Errorf("mean (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunOutcome(t *testing.T) {
	for name, tc := range map[string]struct {
		rows v1alpha1.Summary
		want v1alpha1.Outcome
	}{
		"S-38 a deferred row counts as passed":           {v1alpha1.Summary{Rows: 3, Passed: 1, Deferred: 2}, v1alpha1.OutcomePassed},
		"S-38 a run that judged nothing is not a pass":   {v1alpha1.Summary{Rows: 2, Deferred: 2}, v1alpha1.OutcomeDeferred},
		"S-39 an error fails the run closed":             {v1alpha1.Summary{Rows: 9, Passed: 8, Errored: 1}, v1alpha1.OutcomeError},
		"S-41 every row passed":                          {v1alpha1.Summary{Rows: 2, Passed: 2}, v1alpha1.OutcomePassed},
		"S-41 one failed row fails the run":              {v1alpha1.Summary{Rows: 9, Passed: 8, Failed: 1}, v1alpha1.OutcomeFailed},
		"S-41 one failed row fails a run of deferred":    {v1alpha1.Summary{Rows: 9, Deferred: 8, Failed: 1}, v1alpha1.OutcomeFailed},
		"S-41 one errored row fails a run of deferred":   {v1alpha1.Summary{Rows: 9, Deferred: 8, Errored: 1}, v1alpha1.OutcomeError},
		"S-41 an error is told before a failure":         {v1alpha1.Summary{Rows: 3, Passed: 1, Failed: 1, Errored: 1}, v1alpha1.OutcomeError},
		"S-41 an error is told before what was deferred": {v1alpha1.Summary{Rows: 3, Deferred: 2, Errored: 1}, v1alpha1.OutcomeError},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RunOutcome(tc.rows); got != tc.want {
				t.Errorf("RunOutcome = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestS37ARowEndsInExactlyOneOutcome(t *testing.T) {
	spec := evalOf(v1alpha1.RubricSpec{Text: "t"})
	for want, f := range map[v1alpha1.Outcome]v1alpha1.Findings{
		v1alpha1.OutcomePassed:   findings(judged("", 1)),
		v1alpha1.OutcomeFailed:   findings(judged("", 0)),
		v1alpha1.OutcomeError:    findings(failedBy(0, "")),
		v1alpha1.OutcomeDeferred: {Deferred: "no key", Judgments: []v1alpha1.Judgment{judged("", 1)}},
	} {
		got := Score(v1alpha1.Row{Name: "r", Eval: "r"}, spec, f)
		if got.Outcome != want {
			t.Errorf("outcome %s, want %s", got.Outcome, want)
		}
		if scored := want == v1alpha1.OutcomePassed || want == v1alpha1.OutcomeFailed; (got.Score != nil) != scored {
			t.Errorf("a row that ended %s has the score %v", want, got.Score)
		}
		s := Summarize([]*v1alpha1.Report{&got})
		if n := s.Passed + s.Failed + s.Deferred + s.Errored; n != 1 || s.Rows != 1 {
			t.Errorf("a row that ended %s is counted %d times: %+v", want, n, s)
		}
	}
}
