package judge

import "github.com/mcptest/mcptest-operator/api/v1alpha1"

// PromptVersion is the version of the questions as this package puts them to judges. It changes
// whenever the same Question would be asked in other words, because scores may move with it (S-51).
const PromptVersion = "2"

// Model is a judge: which model, of which provider, asked how.
type Model struct {
	// Name is the model's name as its provider has it.
	Name string
	// Provider is the service that is asked.
	Provider v1alpha1.Provider
	// Temperature is the sampling temperature, 0 to 2; nil means 0 (S-47).
	Temperature *float64
}

// Kind says in which words a question is put.
type Kind string

// The kinds of questions.
const (
	// KindText asks how well the candidate meets a rubric in free text (S-6).
	KindText Kind = "text"
	// KindCriterion asks how well the candidate meets one criterion (S-7).
	KindCriterion Kind = "criterion"
	// KindGuard asks how far something that must not be there is present: 0 absent, 1 fully present (S-13).
	KindGuard Kind = "guard"
	// KindYesNo asks a question of a tree: 1 yes, 0 no (S-21).
	KindYesNo Kind = "yesno"
)

// Question is one question about one candidate.
type Question struct {
	// Prompt is what the candidate was asked; empty when that is not known.
	Prompt string
	// Context holds the documents and tool results that the candidate may rest on (S-35).
	Context []string
	// Candidate is the raw text that is graded. The judge is shown Shown(Candidate).
	Candidate string

	// Kind says in which words the question is put.
	Kind Kind
	// Name is the name of the criterion; empty for a text rubric and for a tree.
	Name string
	// Ask is the text of the rubric, the description of the criterion, or the question of the tree's node.
	Ask string
	// Examples are answers with the score that the judge should have given them (S-15). For a guard that
	// score is how far the thing is present.
	Examples []v1alpha1.Example
	// Indicators describe good and bad work (S-16).
	Indicators *v1alpha1.Indicators
	// ScoreRanges says what whole scores mean. When it is set the judge is asked for a whole number from 0 to 10 (S-17).
	ScoreRanges map[string]v1alpha1.ScoreRange
	// RequireEvidence asks for a span of the candidate that the verdict rests on (S-18).
	RequireEvidence bool
}

// Verdict is what a judge answered: valid in form, not yet scored.
type Verdict struct {
	// Score is 0 to 1. For a guard it is how far the thing is present; for a yes/no question 1 is yes.
	Score float64
	// Raw is the whole number from 0 to 10, where the question has ScoreRanges; Score is then Raw/10 exactly.
	Raw *int32
	// Reason says why; it is never blank.
	Reason string
	// Evidence is the span that the judge quoted; empty when it quoted none, or was not asked for one.
	// It is not verified here: S-19 compares it with Shown(Candidate).
	Evidence string
}
