package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Judgment is one verdict of one judge model on one question: a fact, from which scores are computed.
type Judgment struct {
	QuestionKey `json:",inline"`
	// The model that judged.
	// +optional
	Model string `json:"model,omitempty"`
	// What the judge answered, 0 to 1; of a guard: how far it is present. Absent when the judge could not be had.
	// +optional
	Score *float64 `json:"score,omitempty"`
	// The judge's whole number from 0 to 10, where it was asked for one.
	// +optional
	Raw *int32 `json:"raw,omitempty"`
	// Why the judge answered so, redacted.
	// +optional
	Reason string `json:"reason,omitempty"`
	// The part of the candidate that the verdict rests on, redacted after it was verified.
	// +optional
	Evidence string `json:"evidence,omitempty"`
	// Whether the evidence stands in the candidate as it was shown to the judge.
	// +optional
	EvidenceVerified *bool `json:"evidenceVerified,omitempty"`
	// Why there is no verdict.
	// +optional
	Error string `json:"error,omitempty"`
	// What this judgment took.
	// +optional
	Usage Usage `json:"usage,omitzero"`
}

// QuestionKey identifies a question within a row.
type QuestionKey struct {
	// The name of the rubric; empty for the only rubric of an eval.
	// +optional
	Rubric string `json:"rubric,omitempty"`
	// Which grading of a jury, or which model of a panel, from 0.
	// +optional
	Member int32 `json:"member,omitempty"`
	// The name of the criterion; for a tree the walk to the node, a y or n for each answer; empty for a text and for the root of a tree.
	// +optional
	Question string `json:"question,omitempty"`
}

// Findings are what grading a row brought to light, before anything is scored: what a runner sends, and what a report is computed from.
type Findings struct {
	// Every judgment, those that failed included.
	// +optional
	// +listType=atomic
	Judgments []Judgment `json:"judgments,omitempty"`
	// Why nothing could be judged (S-38); empty when something was, or when the judge could not be had.
	// +optional
	Deferred string `json:"deferred,omitempty"`
	// Why the row was not judged to its end, when that is not for the judgments to say; then the row is an error.
	// +optional
	Reason RowReason `json:"reason,omitempty"`
	// What went wrong beside single judgments; empty when nothing did.
	// +optional
	Error string `json:"error,omitempty"`
	// The provider that judged; empty when the models of a panel have several.
	// +optional
	Provider Provider `json:"provider,omitempty"`
	// The models that judge, one a member.
	// +optional
	// +listType=atomic
	Models []string `json:"models,omitempty"`
	// The version of the questions as they are put to judges.
	// +optional
	PromptVersion string `json:"promptVersion,omitempty"`
	// When grading began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// When grading ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}
