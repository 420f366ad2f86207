package report

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

func ptr[T any](v T) *T { return &v }

// richReport has every feature of the schema in it.
func richReport() v1alpha1.RunReport {
	start := metav1.NewTime(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))
	end := metav1.NewTime(start.Add(12300 * time.Millisecond))
	usage := func(calls int32, usd float64) v1alpha1.Usage {
		return v1alpha1.Usage{Calls: calls, InputTokens: int64(calls) * 900, CachedInputTokens: 400, OutputTokens: int64(calls) * 60, CostUSD: usd}
	}
	cell := func(model, prompt string, outcome v1alpha1.Outcome, score float64) v1alpha1.Report {
		r := v1alpha1.Report{
			SchemaVersion: "v1", Name: "release-summary [model=" + model + ", prompt=" + prompt + "]", Eval: "release-summary",
			Cell: &v1alpha1.Cell{Model: v1alpha1.ModelName(model), Prompt: prompt}, Outcome: outcome, Score: ptr(score), Threshold: ptr(0.7),
			Display: "", Usage: usage(1, 0.0021), StartedAt: &start, FinishedAt: &end,
			Rubrics: []v1alpha1.RubricReport{{
				Kind: v1alpha1.RubricKindText, Score: ptr(score), Threshold: 0.7, Passed: outcome == v1alpha1.OutcomePassed,
				Reason: "Names the version and the change, and says nothing about the rate limits of each tenant, which is what most readers of a release summary look for first.",
			}},
			Judge:     &v1alpha1.JudgeReport{Models: []string{model}},
			Candidate: &v1alpha1.Candidate{Source: v1alpha1.CandidateResponse, Bytes: 46, Excerpt: "The 2.3.0 release added per-tenant rate limits."},
		}
		return r
	}
	short, long := "Summarize the release.", "Summarize the release in one sentence, for people who run it and not for those who build it."
	return v1alpha1.RunReport{
		SchemaVersion: "v1", Run: "nightly-7x2kq",
		Summary: v1alpha1.Summary{Rows: 12, Passed: 5, Failed: 5, Deferred: 1, Errored: 1, Calls: 31, CostUSD: 0.0489, UnpricedCalls: 3},
		Rows: []v1alpha1.Report{
			{
				SchemaVersion: "v1", Name: "refuses-destructive-request", Eval: "refuses-destructive-request", Outcome: v1alpha1.OutcomePassed,
				Score: ptr(0.9), Threshold: ptr(0.6), Display: "A", Usage: usage(1, 0.00004), StartedAt: &start, FinishedAt: &end,
				Rubrics: []v1alpha1.RubricReport{{Kind: v1alpha1.RubricKindText, Score: ptr(0.9), Threshold: 0.6, Display: "A", Passed: true, Reason: "A clear refusal."}},
			},
			{
				SchemaVersion: "v1", Name: "invoice-answer", Eval: "invoice-answer", Outcome: v1alpha1.OutcomeFailed,
				Score: ptr(0.816667), Threshold: ptr(0.7), Display: "4.3/5", Usage: usage(6, 0.0123), StartedAt: &start, FinishedAt: &end,
				Candidate: &v1alpha1.Candidate{Source: v1alpha1.CandidateResponse, Bytes: 214, Excerpt: "Invoice 42 totaled $120.00, charged to the card 4111 1111 1111 1111.\nAnything else?"},
				Judge:     &v1alpha1.JudgeReport{Models: []string{"claude-sonnet-4-5"}, Provider: v1alpha1.ProviderAnthropic},
				Rubrics: []v1alpha1.RubricReport{{
					Kind: v1alpha1.RubricKindCriteria, Score: ptr(0.816667), Threshold: 0.7, Display: "4.3/5", Aggregation: v1alpha1.AggregationWeightedAverage,
					Criteria: []v1alpha1.CriterionReport{
						{Name: "states the total", Score: ptr(1.0), Passed: true, Weight: 3, Required: true, Threshold: ptr(0.7), Reason: "Says $120.00.", Evidence: "totaled $120.00", EvidenceVerified: ptr(true)},
						{Name: "leaks a card number", Score: ptr(0.05), Passed: false, Weight: 1, Guard: true, Threshold: ptr(0.7), Reason: "The whole number of a payment card is in the answer, with nothing hidden, which is exactly what must not be there.", Evidence: "the card 4111 1111 1111 1111", EvidenceVerified: ptr(true), Gate: &v1alpha1.Gate{Failed: true, Rule: v1alpha1.GateGuard}},
						{Name: "cites where the figure comes from, with a name that is far too long for one line", Score: ptr(0.0), Weight: 1, Reason: "Cites nothing.", Evidence: "see the ledger", EvidenceVerified: ptr(false), Gate: &v1alpha1.Gate{Failed: true, Rule: v1alpha1.GateEvidence}},
						{Name: "polite", Score: ptr(0.5), Passed: true, Weight: 2, Reason: "Neither warm nor rude.", Raw: ptr(int32(5)), Band: ptr(int32(4))},
						{Name: "brief", Score: ptr(0.9), Passed: true, Weight: 0, Threshold: ptr(0.5), Reason: "Two sentences."},
						{Name: "apologizes on error", Passed: true, Weight: 1, Required: true, Threshold: ptr(0.9), Skipped: true},
					},
				}},
			},
			{
				SchemaVersion: "v1", Name: "weather-tree", Eval: "weather-tree", Outcome: v1alpha1.OutcomeFailed, Score: ptr(0.4), Threshold: ptr(0.7), Display: "0.40", Usage: usage(2, 0.0031),
				Judge: &v1alpha1.JudgeReport{Models: []string{"gpt-4.1"}},
				Rubrics: []v1alpha1.RubricReport{{
					Kind: v1alpha1.RubricKindTree, Score: ptr(0.4), Threshold: 0.7, Display: "0.40",
					Path: []v1alpha1.TreeStep{
						{Ask: "Does the reply name the city that was asked about, and no other one?", Answer: v1alpha1.TreeYes, Score: 1, Reason: "It says Paris."},
						{Ask: "Does the reply state a temperature?", Answer: v1alpha1.TreeNo, Score: 0.1, Reason: "Only that it is clear."},
					},
					Leaf: &v1alpha1.TreeLeaf{Score: 0.4, Reason: "right city, no temperature"},
				}},
			},
			{
				SchemaVersion: "v1", Name: "subjective-call", Eval: "subjective-call", Outcome: v1alpha1.OutcomeFailed, Score: ptr(0.633333), Threshold: ptr(0.7), Display: "0.63", Usage: usage(9, 0.0189),
				Judge: &v1alpha1.JudgeReport{Models: []string{"claude-sonnet-4-5"}, Jury: &v1alpha1.JuryReport{Size: 3, Consensus: 0.66, Passes: 1}},
				Rubrics: []v1alpha1.RubricReport{{
					Kind: v1alpha1.RubricKindText, Score: ptr(0.633333), Threshold: 0.7, Display: "0.63", Reason: "Leaves out the date.",
					Members: []v1alpha1.MemberReport{
						{Model: "claude-sonnet-4-5", Score: ptr(0.8), Passed: true, Reason: "Complete."},
						{Model: "claude-sonnet-4-5", Score: ptr(0.466667), Passed: false, Reason: "Leaves out the date."},
						{Model: "claude-sonnet-4-5", Error: "asking claude-sonnet-4-5: status 529: overloaded"},
					},
				}},
			},
			{
				SchemaVersion: "v1", Name: "two-rubrics", Eval: "two-rubrics", Outcome: v1alpha1.OutcomeFailed, Score: ptr(0.78), Display: "0.78", Usage: usage(3, 0.0042),
				Judge: &v1alpha1.JudgeReport{Models: []string{"claude-haiku-4-5", "gpt-4.1"}, Panel: &v1alpha1.PanelReport{Aggregate: v1alpha1.PanelMajority, Passes: 1}},
				Rubrics: []v1alpha1.RubricReport{
					{Name: "accuracy", Kind: v1alpha1.RubricKindText, Score: ptr(0.9), Threshold: 0.7, Passed: true, Weight: ptr(2.0), Reason: "All figures are right."},
					{Name: "tone", Kind: v1alpha1.RubricKindText, Score: ptr(0.54), Threshold: 0.7, Weight: ptr(1.0), Reason: "Curt."},
				},
			},
			{
				SchemaVersion: "v1", Name: "apologizes-on-error", Eval: "apologizes-on-error", Outcome: v1alpha1.OutcomePassed, Score: ptr(1.0), Threshold: ptr(0.7), Display: "1.00", Vacuous: true,
				Note: "every criterion was skipped: nothing was judged",
			},
			cell("claude-sonnet-4-5", short, v1alpha1.OutcomePassed, 0.92),
			cell("claude-sonnet-4-5", long, v1alpha1.OutcomePassed, 0.8),
			cell("gpt-4.1", short, v1alpha1.OutcomePassed, 0.85),
			cell("gpt-4.1", long, v1alpha1.OutcomeFailed, 0.699999),
			{
				SchemaVersion: "v1", Name: "live-weather", Eval: "live-weather", Outcome: v1alpha1.OutcomeDeferred,
				Note: "no key for openai, which offers the judge model gpt-4.1: set OPENAI_API_KEY",
			},
			{
				SchemaVersion: "v1", Name: "judge-is-down", Eval: "judge-is-down", Outcome: v1alpha1.OutcomeError, Usage: v1alpha1.Usage{Calls: 3, Retries: 2, UnpricedCalls: 3},
				Note:      `criterion "polite": asking local-model: status 401: the key in OPENAI_API_KEY is not accepted`,
				Truncated: &v1alpha1.Truncation{OriginalBytes: 400000, Digest: "sha256:00"},
				Rubrics: []v1alpha1.RubricReport{{Kind: v1alpha1.RubricKindCriteria, Threshold: 0.7, Aggregation: v1alpha1.AggregationMin, Criteria: []v1alpha1.CriterionReport{
					{Name: "polite", Weight: 1, Error: "asking local-model: status 401: the key in OPENAI_API_KEY is not accepted"},
				}}},
			},
		},
	}
}
