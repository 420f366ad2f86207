package rubric

import (
	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// The builders below keep the tables short.

func ptr[T any](v T) *T { return &v }

func criterionOf(name string, change ...func(*v1alpha1.Criterion)) v1alpha1.Criterion {
	c := v1alpha1.Criterion{Name: name, Description: "describes " + name}
	for _, f := range change {
		f(&c)
	}
	return c
}

func weight(w float64) func(*v1alpha1.Criterion) {
	return func(c *v1alpha1.Criterion) { c.Weight = &w }
}

func threshold(t float64) func(*v1alpha1.Criterion) {
	return func(c *v1alpha1.Criterion) { c.Threshold = &t }
}

func required(c *v1alpha1.Criterion) { c.Required = true }

func guard(c *v1alpha1.Criterion) { c.Guard = true }

func when(w v1alpha1.When) func(*v1alpha1.Criterion) {
	return func(c *v1alpha1.Criterion) { c.When = &w }
}

func ranges(keys ...string) func(*v1alpha1.Criterion) {
	return func(c *v1alpha1.Criterion) {
		c.ScoreRanges = map[string]v1alpha1.ScoreRange{}
		for _, k := range keys {
			c.ScoreRanges[k] = v1alpha1.ScoreRange("work worth " + k)
		}
	}
}

func criteriaOf(criteria ...v1alpha1.Criterion) v1alpha1.RubricSpec {
	return v1alpha1.RubricSpec{Criteria: criteria}
}

// evalOf is an eval of "a fine answer" with one rubric.
func evalOf(r v1alpha1.RubricSpec, change ...func(*v1alpha1.EvalSpec)) *v1alpha1.EvalSpec {
	spec := &v1alpha1.EvalSpec{
		Response: ptr("a fine answer"),
		Rubric:   &v1alpha1.RubricSource{RubricSpec: r},
	}
	for _, f := range change {
		f(spec)
	}
	return spec
}

func jury(size int32, consensus *float64) func(*v1alpha1.EvalSpec) {
	return func(s *v1alpha1.EvalSpec) {
		s.Judge = &v1alpha1.JudgeSpec{Model: "m", Jury: &v1alpha1.Jury{Size: size, Consensus: consensus}}
	}
}

func panel(a v1alpha1.PanelAggregate, tie v1alpha1.TieBreak, models ...v1alpha1.ModelName) func(*v1alpha1.EvalSpec) {
	return func(s *v1alpha1.EvalSpec) {
		s.Judge = &v1alpha1.JudgeSpec{Panel: models, Aggregate: a, TieBreak: tie}
	}
}

func judged(question string, score float64) v1alpha1.Judgment {
	return judgedBy(0, question, score)
}

func judgedBy(member int32, question string, score float64) v1alpha1.Judgment {
	return v1alpha1.Judgment{
		QuestionKey: v1alpha1.QuestionKey{Member: member, Question: question},
		Model:       "m", Score: &score, Reason: "because",
	}
}

func judgedRaw(question string, raw int32) v1alpha1.Judgment {
	j := judged(question, float64(raw)/10)
	j.Raw = &raw
	return j
}

func failedBy(member int32, question string) v1alpha1.Judgment {
	return v1alpha1.Judgment{QuestionKey: v1alpha1.QuestionKey{Member: member, Question: question}, Error: "the judge is down"}
}

func quoted(j v1alpha1.Judgment, span string, occurs bool) v1alpha1.Judgment {
	j.Evidence, j.EvidenceVerified = span, &occurs
	return j
}

func findings(judgments ...v1alpha1.Judgment) v1alpha1.Findings {
	return v1alpha1.Findings{Judgments: judgments, Models: []string{"m"}, Provider: v1alpha1.ProviderOpenAI}
}

func scoreOf(spec *v1alpha1.EvalSpec, judgments ...v1alpha1.Judgment) v1alpha1.Report {
	return Score(v1alpha1.Row{Name: "row", Eval: "row"}, spec, findings(judgments...))
}
