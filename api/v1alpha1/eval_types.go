package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Eval grades one candidate with one or more rubrics. An EvalRun runs it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=mcptest
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Rows",type=integer,JSONPath=`.status.rows`
// +kubebuilder:printcolumn:name="Calls",type=integer,JSONPath=`.status.judgeCalls`
// +kubebuilder:printcolumn:name="Last Outcome",type=string,JSONPath=`.status.lastRun.outcome`
// +kubebuilder:printcolumn:name="Score",type=number,JSONPath=`.status.lastRun.score`
// +kubebuilder:printcolumn:name="Last Run",type=string,JSONPath=`.status.lastRun.name`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Eval struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is graded, with what, by which judge.
	// +required
	Spec EvalSpec `json:"spec"`

	// What the operator found out about this eval.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status EvalStatus `json:"status,omitzero"`
}

// EvalList is a list of Evals.
//
// +kubebuilder:object:root=true
type EvalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Eval `json:"items"`
}

// EvalSpec says what is graded, with what, by which judge.
//
// +kubebuilder:validation:XValidation:rule="has(self.rubric) != has(self.rubrics)",message="set exactly one of rubric (one) or rubrics (several, all must pass)"
// +kubebuilder:validation:XValidation:rule="!(has(self.response) && has(self.responseFrom))",message="set response or responseFrom, not both"
// +kubebuilder:validation:XValidation:rule="!(has(self.judge) && has(self.judge.panel) && has(self.matrix) && has(self.matrix.models))",message="judge.panel and matrix.models both choose the judge model; remove one of them"
// +kubebuilder:validation:XValidation:rule="!(has(self.judge) && has(self.judge.model) && has(self.matrix) && has(self.matrix.models))",message="judge.model and matrix.models both choose the judge model; remove one of them"
type EvalSpec struct {
	// The name of the row in reports. Default: the name of the Eval.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Title string `json:"title,omitempty"`

	// What the candidate was asked. Shown to the judge.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Prompt string `json:"prompt,omitempty"`

	// The candidate: exactly this text is graded. Without response and responseFrom the eval is deferred: nothing is there to grade.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	Response *string `json:"response,omitempty"`

	// Where the candidate stands, when it is not in response.
	// +optional
	ResponseFrom *ResponseSource `json:"responseFrom,omitempty"`

	// The MCP server that the prompt is run against as a tool-using agent, when there is no response. This version runs no agents: such an eval is deferred.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="server is the name of an object: lower-case letters, digits and dashes, as in my-server"
	Server string `json:"server,omitempty"`

	// Documents and tool results that the candidate may rest on. Shown to the judge.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=65536
	Context []string `json:"context,omitempty"`

	// The rubric: a reference to a Rubric of this namespace, or the rubric itself.
	// +optional
	Rubric *RubricSource `json:"rubric,omitempty"`

	// Several rubrics. The eval passes when all of them pass; its score is their weighted mean.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.exists(r, !has(r.weight) || r.weight > 0.0)",message="every weight is 0, so no score can be made; give at least one rubric a weight above 0"
	Rubrics []NamedRubric `json:"rubrics,omitempty"`

	// Who judges, and how many.
	// +optional
	Judge *JudgeSpec `json:"judge,omitempty"`

	// Runs this eval once for each combination of its values; each combination is a row of its own.
	// +optional
	Matrix *Matrix `json:"matrix,omitempty"`

	// What a deferred row counts as (no key, no model, no candidate): Pass (default) or Fail.
	// +optional
	OnDeferred DeferredPolicy `json:"onDeferred,omitempty"`
}

// ResponseSource is where the candidate stands when it is not in the manifest.
type ResponseSource struct {
	// A key of a ConfigMap in the same namespace.
	// +required
	ConfigMapKeyRef ConfigMapKey `json:"configMapKeyRef"`
}

// ConfigMapKey names a key of a ConfigMap in the same namespace.
type ConfigMapKey struct {
	// The name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// The key whose value is the candidate.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// RubricSource is a rubric: a reference to a Rubric (ref, with threshold and strict as overrides), or the rubric itself.
//
// +kubebuilder:validation:XValidation:rule="[has(self.ref), has(self.text), has(self.criteria) && !has(self.preset), has(self.tree), has(self.preset)].filter(x, x).size() == 1",message="set exactly one of ref (a Rubric of this namespace), text, criteria, tree or preset (criteria beside a preset are added to it)"
// +kubebuilder:validation:XValidation:rule="!has(self.ref) || !(has(self.aggregation) || has(self.requireEvidence) || has(self.requiredGate) || has(self.scale) || has(self.description))",message="with ref only threshold and strict can be set here; change the rest in the Rubric"
type RubricSource struct {
	// The name of a Rubric in the same namespace. threshold and strict beside it override the Rubric's own.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Ref string `json:"ref,omitempty"`

	RubricSpec `json:",inline"`
}

// NamedRubric is one of several rubrics of an eval.
type NamedRubric struct {
	// The name of the rubric in the report, unique in this eval.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`

	// How much this rubric counts in the score of the eval. Default 1. At 0 it must pass, and does not count in the score.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Weight *float64 `json:"weight,omitempty"`

	RubricSource `json:",inline"`
}

// JudgeSpec says who judges, and how many.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.panel) && has(self.jury))",message="a panel (several models) and a jury (one model several times) exclude each other; remove one of them"
// +kubebuilder:validation:XValidation:rule="!(has(self.panel) && has(self.model))",message="panel and model both choose the judge model; remove model, or put it into the panel"
// +kubebuilder:validation:XValidation:rule="has(self.panel) || !(has(self.aggregate) || has(self.tieBreak))",message="aggregate and tieBreak belong to a panel; add panel, or remove them"
// +kubebuilder:validation:XValidation:rule="!(has(self.panel) && has(self.provider))",message="each model of a panel finds its provider by its name; remove provider"
type JudgeSpec struct {
	// The model that judges, such as claude-sonnet-5-5. Default: MCPTEST_JUDGE_MODEL, else the default model of the first provider that has a key.
	// +optional
	Model ModelName `json:"model,omitempty"`

	// The provider of the model. Default: told by the name of the model. Say openai for any server that speaks its protocol.
	// +optional
	Provider Provider `json:"provider,omitempty"`

	// The sampling temperature, 0 to 2. Default 0. Models that refuse the parameter are asked without it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2
	Temperature *float64 `json:"temperature,omitempty"`

	// The Secret of this namespace that holds the keys of the judges, as ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or MISTRAL_API_KEY. Default: the Secret mcptest-judge, if there is one. Used in a cluster only.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`

	// Grades several times with one model; passes when enough of them pass.
	// +optional
	Jury *Jury `json:"jury,omitempty"`

	// Grades once with each of these models.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=9
	Panel []ModelName `json:"panel,omitempty"`

	// How a panel decides: mean (default) or median of the scores against the threshold, or majority of the passes.
	// +optional
	Aggregate PanelAggregate `json:"aggregate,omitempty"`

	// What an even split of a panel means: fail (default) or pass.
	// +optional
	TieBreak TieBreak `json:"tieBreak,omitempty"`
}

// ModelName names a model as its provider does.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$')",message="a model name starts with a letter or digit and goes on with letters, digits and . _ : / @ + -, as in claude-sonnet-5-5"
type ModelName string

// Provider is a service that offers judge models (S-24).
//
// +kubebuilder:validation:Enum=anthropic;openai;gemini;mistral
type Provider string

// The providers.
const (
	ProviderAnthropic Provider = "anthropic"
	ProviderOpenAI    Provider = "openai"
	ProviderGemini    Provider = "gemini"
	ProviderMistral   Provider = "mistral"
)

// SecretReference names a Secret in the same namespace.
type SecretReference struct {
	// The name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Jury grades the whole rubric several times with one model (S-25).
type Jury struct {
	// How many times.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=15
	Size int32 `json:"size"`

	// The share of the gradings, above 0 and up to 1, that must pass. Default 0.5. Compared after rounding to 2 decimals, so that 2 of 3 meets 0.67.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:Maximum=1
	Consensus *float64 `json:"consensus,omitempty"`
}

// PanelAggregate says how a panel decides (S-26).
//
// +kubebuilder:validation:Enum=mean;median;majority
type PanelAggregate string

// The ways a panel decides.
const (
	PanelMean     PanelAggregate = "mean"
	PanelMedian   PanelAggregate = "median"
	PanelMajority PanelAggregate = "majority"
)

// TieBreak says what an even split means (S-26, S-27).
//
// +kubebuilder:validation:Enum=fail;pass
type TieBreak string

// The tie breaks.
const (
	TieBreakFail TieBreak = "fail"
	TieBreakPass TieBreak = "pass"
)

// Matrix runs an eval once for each combination of its values (S-31).
//
// +kubebuilder:validation:XValidation:rule="has(self.models) || has(self.prompts)",message="a matrix needs an axis: set models, prompts or both"
// +kubebuilder:validation:XValidation:rule="(has(self.models) ? self.models.size() : 1) * (has(self.prompts) ? self.prompts.size() : 1) <= 1024",message="the matrix has more than 1024 cells; shorten an axis, or split the eval"
type Matrix struct {
	// The judge models.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Models []ModelName `json:"models,omitempty"`

	// The prompts. Each replaces the eval's prompt in its row.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=16384
	Prompts []string `json:"prompts,omitempty"`
}

// DeferredPolicy says what a deferred row counts as (S-38).
//
// +kubebuilder:validation:Enum=Pass;Fail
type DeferredPolicy string

// What a deferred row counts as.
const (
	DeferredPass DeferredPolicy = "Pass"
	DeferredFail DeferredPolicy = "Fail"
)

// EvalStatus is what the operator found out about an Eval.
type EvalStatus struct {
	// The generation of the spec that this status speaks of; -1 until it was looked at.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Identifies what is graded, by what and by whom: while it stays the same, a run would grade the same.
	// +optional
	Digest string `json:"digest,omitempty"`

	// How many rows a run of this eval has.
	// +optional
	Rows int32 `json:"rows,omitempty"`

	// How many judge calls a run of this eval makes, at most.
	// +optional
	JudgeCalls int32 `json:"judgeCalls,omitempty"`

	// The newest finished run of this eval.
	// +optional
	LastRun *RunResult `json:"lastRun,omitempty"`

	// Ready: the eval is valid and all it names exists. Passed: the verdict of the newest finished run. Reconciling and Stalled: as kstatus has them.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RunResult is how a run ended.
type RunResult struct {
	// The name of the EvalRun.
	// +required
	Name string `json:"name"`
	// The digest of what it graded.
	// +optional
	Digest string `json:"digest,omitempty"`
	// How it ended.
	// +optional
	Outcome Outcome `json:"outcome,omitempty"`
	// The mean score of its rows, 0 to 1; absent when no row has a score.
	// +optional
	Score *float64 `json:"score,omitempty"`
}
