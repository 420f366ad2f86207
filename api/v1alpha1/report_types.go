package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReportSchemaVersion is the version of the canonical report that this package describes.
const ReportSchemaVersion = "v1"

// MaxReportBytes bounds a report as JSON: past it the longest reasons are cut first, and Truncated says so.
const MaxReportBytes = 256 << 10

// Outcome is how a row or a run ended: exactly one of four (S-37).
//
// +kubebuilder:validation:Enum=Passed;Failed;Deferred;Error
type Outcome string

// The outcomes.
const (
	// OutcomePassed: it was judged, and it is good enough.
	OutcomePassed Outcome = "Passed"
	// OutcomeFailed: it was judged, and it is not good enough.
	OutcomeFailed Outcome = "Failed"
	// OutcomeDeferred: it could not be judged, because something is not configured (S-38).
	OutcomeDeferred Outcome = "Deferred"
	// OutcomeError: it should have been judged, and the judge could not be had (S-39).
	OutcomeError Outcome = "Error"
)

// RunReport is the canonical report of a whole run: what `kubectl mcptest report -o json` prints.
type RunReport struct {
	// The version of this form.
	SchemaVersion string `json:"schemaVersion"`
	// The name of the run.
	Run string `json:"run"`
	// The run in numbers.
	Summary Summary `json:"summary"`
	// A report per row.
	Rows []Report `json:"rows"`
}

// Summary is a run in numbers. Every row is in exactly one of passed, failed, deferred and errored, once it ended.
type Summary struct {
	// How many rows the run has.
	// +optional
	Rows int32 `json:"rows"`
	// How many passed.
	// +optional
	Passed int32 `json:"passed"`
	// How many failed.
	// +optional
	Failed int32 `json:"failed"`
	// How many were deferred: nothing was judged.
	// +optional
	Deferred int32 `json:"deferred"`
	// How many ended as errors.
	// +optional
	Errored int32 `json:"errored"`
	// The mean score, 0 to 1, of the rows that passed or failed and are not vacuous; absent when there is none, or when their judge models differ (S-32, S-37).
	// +optional
	Score *float64 `json:"score,omitempty"`
	// How many judge calls were made.
	// +optional
	Calls int32 `json:"calls"`
	// What they cost, in US dollars, as far as the models have a price.
	// +optional
	CostUSD float64 `json:"costUSD"`
	// How many of the calls went to models without a known price.
	// +optional
	UnpricedCalls int32 `json:"unpricedCalls,omitempty"`
}

// Report is the canonical report of one row.
type Report struct {
	// The version of this form.
	// +required
	SchemaVersion string `json:"schemaVersion"`
	// The name of the row.
	// +required
	Name string `json:"name"`
	// The name of the eval, without the matrix cell.
	// +required
	Eval string `json:"eval"`
	// The matrix cell.
	// +optional
	Cell *Cell `json:"cell,omitempty"`
	// How the row ended.
	// +required
	Outcome Outcome `json:"outcome"`
	// The score, 0 to 1; absent when the row was deferred or ended as an error.
	// +optional
	Score *float64 `json:"score,omitempty"`
	// The score that had to be reached, 0 to 1; absent for several rubrics, which have one each.
	// +optional
	Threshold *float64 `json:"threshold,omitempty"`
	// The score in the units of the rubric's scale, such as 4.0/5.
	// +optional
	Display string `json:"display,omitempty"`
	// Every criterion was skipped: nothing was judged, and the row passes (S-12).
	// +optional
	Vacuous bool `json:"vacuous,omitempty"`
	// Why the row is what it is, in one word for programs: BudgetExceeded when the run's maxCost ran out before the row was judged.
	// +optional
	Reason RowReason `json:"reason,omitempty"`
	// Why the row is what it is, when the scores do not say: why it was deferred, or what went wrong.
	// +optional
	Note string `json:"note,omitempty"`
	// What was graded.
	// +optional
	Candidate *Candidate `json:"candidate,omitempty"`
	// What each rubric found.
	// +optional
	// +listType=atomic
	Rubrics []RubricReport `json:"rubrics,omitempty"`
	// Who judged.
	// +optional
	Judge *JudgeReport `json:"judge,omitempty"`
	// What it took.
	// +optional
	Usage Usage `json:"usage,omitzero"`
	// When grading began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// When grading ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Set when the report was too long and was cut.
	// +optional
	Truncated *Truncation `json:"truncated,omitempty"`
}

// RowReason says in one word why a row ended as it did.
//
// +kubebuilder:validation:Enum=BudgetExceeded
type RowReason string

// RowBudgetExceeded says that the budget ran out before the row was judged; it ends as Error (S-42).
const RowBudgetExceeded RowReason = "BudgetExceeded"

// Candidate says what was graded.
type Candidate struct {
	// Where it came from.
	// +required
	Source CandidateSource `json:"source"`
	// Its SHA-256, as sha256:hex.
	// +optional
	Digest string `json:"digest,omitempty"`
	// Its length in bytes.
	// +optional
	Bytes int64 `json:"bytes"`
	// Its beginning, redacted.
	// +optional
	Excerpt string `json:"excerpt,omitempty"`
	// It has no letter or digit, so that no judge was asked (S-34).
	// +optional
	Empty bool `json:"empty,omitempty"`
}

// CandidateSource says where a candidate came from.
//
// +kubebuilder:validation:Enum=response
type CandidateSource string

// CandidateResponse is a candidate that the eval itself supplies.
const CandidateResponse CandidateSource = "response"

// RubricReport is what one rubric found.
type RubricReport struct {
	// The name of the rubric; absent for the only rubric of an eval that has none.
	// +optional
	Name string `json:"name,omitempty"`
	// text, criteria or tree.
	// +required
	Kind RubricKind `json:"kind"`
	// The score, 0 to 1; absent when it could not be had.
	// +optional
	Score *float64 `json:"score,omitempty"`
	// The score that had to be reached, 0 to 1.
	// +required
	Threshold float64 `json:"threshold"`
	// The score in the units of the scale.
	// +optional
	Display string `json:"display,omitempty"`
	// Whether it passed, gates included.
	// +required
	Passed bool `json:"passed"`
	// How much it counts among several rubrics.
	// +optional
	Weight *float64 `json:"weight,omitempty"`
	// How the criteria became one score.
	// +optional
	Aggregation Aggregation `json:"aggregation,omitempty"`
	// Every criterion was skipped (S-12).
	// +optional
	Vacuous bool `json:"vacuous,omitempty"`
	// What the judge said of a text rubric.
	// +optional
	Reason string `json:"reason,omitempty"`
	// What each criterion found. Under a jury or panel: the mean of the members.
	// +optional
	// +listType=atomic
	Criteria []CriterionReport `json:"criteria,omitempty"`
	// The walk through a tree: each question that was asked.
	// +optional
	// +listType=atomic
	Path []TreeStep `json:"path,omitempty"`
	// The leaf that the walk ended at.
	// +optional
	Leaf *TreeLeaf `json:"leaf,omitempty"`
	// The members of a jury or panel.
	// +optional
	// +listType=atomic
	Members []MemberReport `json:"members,omitempty"`
}

// CriterionReport is what one criterion found.
type CriterionReport struct {
	// The name of the criterion.
	// +required
	Name string `json:"name"`
	// The score, 0 to 1; absent when it was skipped or could not be had. Of a guard: 1 minus how far it was found present.
	// +optional
	Score *float64 `json:"score,omitempty"`
	// Whether its gate held; a criterion that is no gate always holds.
	// +required
	Passed bool `json:"passed"`
	// How much it counts.
	// +optional
	Weight float64 `json:"weight"`
	// It is a hard gate.
	// +optional
	Required bool `json:"required,omitempty"`
	// It says what must not be there.
	// +optional
	Guard bool `json:"guard,omitempty"`
	// Its condition did not hold: it was not judged and does not count.
	// +optional
	Skipped bool `json:"skipped,omitempty"`
	// The score that it had to reach itself, when it is a gate.
	// +optional
	Threshold *float64 `json:"threshold,omitempty"`
	// Why the judge gave this score.
	// +optional
	Reason string `json:"reason,omitempty"`
	// The part of the candidate that the verdict rests on.
	// +optional
	Evidence string `json:"evidence,omitempty"`
	// Whether the evidence stands in the candidate as it was shown to the judge.
	// +optional
	EvidenceVerified *bool `json:"evidenceVerified,omitempty"`
	// The judge's whole number from 0 to 10, of a criterion with scoreRanges.
	// +optional
	Raw *int32 `json:"raw,omitempty"`
	// The greatest key of scoreRanges that is not above raw.
	// +optional
	Band *int32 `json:"band,omitempty"`
	// The gate that failed.
	// +optional
	Gate *Gate `json:"gate,omitempty"`
	// Why there is no score, when the judge could not be had.
	// +optional
	Error string `json:"error,omitempty"`
}

// Gate is a gate of a criterion that failed.
type Gate struct {
	// Always true; a gate that held is not reported.
	// +required
	Failed bool `json:"failed"`
	// The rule that made it fail.
	// +required
	Rule GateRule `json:"rule"`
}

// GateRule names the rule that made a gate fail (S-14, S-20).
//
// +kubebuilder:validation:Enum=required;requiredZero;guard;threshold;evidence
type GateRule string

// The rules of gates.
const (
	// GateRequired: a required criterion scored below its threshold.
	GateRequired GateRule = "required"
	// GateRequiredZero: a required criterion scored 0, under requiredGate: zero.
	GateRequiredZero GateRule = "requiredZero"
	// GateGuard: what must not be there was found.
	GateGuard GateRule = "guard"
	// GateThreshold: a criterion scored below its own threshold.
	GateThreshold GateRule = "threshold"
	// GateEvidence: a verdict rests on no verified evidence.
	GateEvidence GateRule = "evidence"
)

// TreeStep is one question on the walk through a tree.
type TreeStep struct {
	// The question.
	// +required
	Ask string `json:"ask"`
	// yes or no.
	// +required
	Answer TreeAnswer `json:"answer"`
	// The judge's score, 0 to 1; 0.5 and more is yes.
	// +required
	Score float64 `json:"score"`
	// Why the judge answered so.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// TreeAnswer is yes or no.
//
// +kubebuilder:validation:Enum=yes;no
type TreeAnswer string

// The answers.
const (
	TreeYes TreeAnswer = "yes"
	TreeNo  TreeAnswer = "no"
)

// TreeLeaf is where a walk through a tree ended.
type TreeLeaf struct {
	// The score of the leaf, 0 to 1.
	// +required
	Score float64 `json:"score"`
	// What the rubric says about it.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// MemberReport is what one member of a jury or panel found.
type MemberReport struct {
	// The model of the member.
	// +optional
	Model string `json:"model,omitempty"`
	// Its score, 0 to 1; absent when it could not be had.
	// +optional
	Score *float64 `json:"score,omitempty"`
	// Whether it passes the rubric, gates included.
	// +required
	Passed bool `json:"passed"`
	// Why the member has no vote.
	// +optional
	Error string `json:"error,omitempty"`
	// What it said of a text rubric.
	// +optional
	Reason string `json:"reason,omitempty"`
	// What it said of each criterion.
	// +optional
	// +listType=atomic
	Criteria []CriterionReport `json:"criteria,omitempty"`
	// Its walk through a tree.
	// +optional
	// +listType=atomic
	Path []TreeStep `json:"path,omitempty"`
	// The leaf that its walk ended at.
	// +optional
	Leaf *TreeLeaf `json:"leaf,omitempty"`
}

// JudgeReport says who judged.
type JudgeReport struct {
	// The models that judged, each once.
	// +optional
	// +listType=atomic
	Models []string `json:"models,omitempty"`
	// The provider; absent when the models of a panel have several.
	// +optional
	Provider Provider `json:"provider,omitempty"`
	// The vote of a jury.
	// +optional
	Jury *JuryReport `json:"jury,omitempty"`
	// The vote of a panel.
	// +optional
	Panel *PanelReport `json:"panel,omitempty"`
	// The version of the questions as they are put to judges.
	// +optional
	PromptVersion string `json:"promptVersion,omitempty"`
}

// JuryReport is the vote of a jury.
type JuryReport struct {
	// How many gradings there were.
	// +required
	Size int32 `json:"size"`
	// The share that had to pass.
	// +required
	Consensus float64 `json:"consensus"`
	// How many passed.
	// +required
	Passes int32 `json:"passes"`
}

// PanelReport is the vote of a panel.
type PanelReport struct {
	// How the panel decides.
	// +required
	Aggregate PanelAggregate `json:"aggregate"`
	// How many members passed.
	// +required
	Passes int32 `json:"passes"`
}

// Usage is what grading took.
type Usage struct {
	// Requests that bear a judgment, and those that asked again for one that was not valid: all that a provider answered and may have billed.
	// +optional
	Calls int32 `json:"calls"`
	// Requests beyond the first of a question: repeated after a fault, or because the verdict was not valid.
	// +optional
	Retries int32 `json:"retries"`
	// Tokens that went to the judges, cached ones included.
	// +optional
	InputTokens int64 `json:"inputTokens"`
	// Those of them that were served from the provider's prompt cache.
	// +optional
	CachedInputTokens int64 `json:"cachedInputTokens"`
	// Tokens that came from the judges.
	// +optional
	OutputTokens int64 `json:"outputTokens"`
	// The cost in US dollars, as far as the models have a price.
	// +optional
	CostUSD float64 `json:"costUSD"`
	// How many of the calls went to models without a known price.
	// +optional
	UnpricedCalls int32 `json:"unpricedCalls,omitempty"`
}

// Truncation says that a report was cut, and what it was before.
type Truncation struct {
	// The length of the whole report as JSON, in bytes.
	// +required
	OriginalBytes int64 `json:"originalBytes"`
	// The SHA-256 of the whole report as JSON, as sha256:hex.
	// +required
	Digest string `json:"digest"`
}
