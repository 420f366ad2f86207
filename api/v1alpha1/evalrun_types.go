package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// EvalRun runs evals once and keeps what was found. Its spec cannot be changed, except for suspend.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=er,categories=mcptest
// +kubebuilder:printcolumn:name="Outcome",type=string,JSONPath=`.status.outcome`
// +kubebuilder:printcolumn:name="Score",type=number,JSONPath=`.status.summary.score`
// +kubebuilder:printcolumn:name="Rows",type=integer,JSONPath=`.status.summary.rows`
// +kubebuilder:printcolumn:name="Cost",type=number,JSONPath=`.status.summary.costUSD`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Standing",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Passed",type=integer,JSONPath=`.status.summary.passed`,priority=1
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.summary.failed`,priority=1
// +kubebuilder:printcolumn:name="Deferred",type=integer,JSONPath=`.status.summary.deferred`,priority=1
// +kubebuilder:printcolumn:name="Errored",type=integer,JSONPath=`.status.summary.errored`,priority=1
// +kubebuilder:printcolumn:name="Row",type=string,JSONPath=`.spec.row.name`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= (has(self.spec.row) ? 63 : 57)",message="the name of an EvalRun has at most 57 characters: its children and pods are named after it"
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.contains('.')",message="the name of an EvalRun has no dots: its Job and pods are named after it; use dashes"
type EvalRun struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is run, and how.
	// +required
	Spec EvalRunSpec `json:"spec"`

	// What was found.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status EvalRunStatus `json:"status,omitzero"`
}

// EvalRunList is a list of EvalRuns.
//
// +kubebuilder:object:root=true
type EvalRunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EvalRun `json:"items"`
}

// EvalRunSpec says what is run, and how.
//
// +kubebuilder:validation:XValidation:rule="[has(self.evalRef), has(self.evalSelector), has(self.eval)].filter(x, x).size() == 1",message="set exactly one of evalRef (one Eval), evalSelector (the Evals with these labels) or eval (the eval itself)"
// +kubebuilder:validation:XValidation:rule="!has(self.row) || has(self.eval)",message="row belongs to eval; the operator sets it on the children of a run"
// +kubebuilder:validation:XValidation:rule="has(self.evalRef) == has(oldSelf.evalRef) && has(self.evalSelector) == has(oldSelf.evalSelector) && has(self.eval) == has(oldSelf.eval) && has(self.row) == has(oldSelf.row) && has(self.judge) == has(oldSelf.judge) && has(self.maxCost) == has(oldSelf.maxCost) && has(self.parallelism) == has(oldSelf.parallelism) && has(self.concurrency) == has(oldSelf.concurrency) && has(self.queueName) == has(oldSelf.queueName) && has(self.activeDeadlineSeconds) == has(oldSelf.activeDeadlineSeconds) && has(self.ttlSecondsAfterFinished) == has(oldSelf.ttlSecondsAfterFinished) && has(self.backoffLimitPerIndex) == has(oldSelf.backoffLimitPerIndex) && has(self.podTemplate) == has(oldSelf.podTemplate)",message="the spec of an EvalRun cannot be changed, except for suspend; make a new EvalRun"
type EvalRunSpec struct {
	// The Eval to run.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of an EvalRun cannot be changed, except for suspend; make a new EvalRun"
	EvalRef *EvalReference `json:"evalRef,omitempty"`

	// Runs every Eval of this namespace that has these labels.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of an EvalRun cannot be changed, except for suspend; make a new EvalRun"
	EvalSelector *EvalSelector `json:"evalSelector,omitempty"`

	// The eval itself, for a run without an Eval object.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of an EvalRun cannot be changed, except for suspend; make a new EvalRun"
	Eval *EvalSpec `json:"eval,omitempty"`

	// Which row of its parent this run grades. The operator sets it on the children of a run.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of an EvalRun cannot be changed, except for suspend; make a new EvalRun"
	Row *Row `json:"row,omitempty"`

	// Overrides the judge of the evals.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of an EvalRun cannot be changed, except for suspend; make a new EvalRun"
	Judge *JudgeOverride `json:"judge,omitempty"`

	// The most that the judge calls of this run may cost, in US dollars. When the next call would pass it no further call is made, and rows that were not judged end as Error. Default: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:Maximum=1000000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of an EvalRun cannot be changed, except for suspend; make a new EvalRun"
	MaxCost *float64 `json:"maxCost,omitempty"`

	// How many pods may grade at once. Default 4.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of an EvalRun cannot be changed, except for suspend; make a new EvalRun"
	Parallelism *int32 `json:"parallelism,omitempty"`

	// How many judge calls one pod makes at once. Default 16.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of an EvalRun cannot be changed, except for suspend; make a new EvalRun"
	Concurrency *int32 `json:"concurrency,omitempty"`

	// Holds the run: no pod is started, and running pods are stopped. What was judged is kept.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// The Kueue queue whose quota the run's Job waits for.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of an EvalRun cannot be changed, except for suspend; make a new EvalRun"
	QueueName string `json:"queueName,omitempty"`

	// After so many seconds of grading the run is stopped; rows that were not judged end as Error. Default 3600.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of an EvalRun cannot be changed, except for suspend; make a new EvalRun"
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// So many seconds after it finished the run is deleted, with its children and its Job. Default: never.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of an EvalRun cannot be changed, except for suspend; make a new EvalRun"
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// How often the pod of one slice is started again after it failed. Default 3. Judgments that were paid for are kept.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of an EvalRun cannot be changed, except for suspend; make a new EvalRun"
	BackoffLimitPerIndex *int32 `json:"backoffLimitPerIndex,omitempty"`

	// Where and how the pods run.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of an EvalRun cannot be changed, except for suspend; make a new EvalRun"
	PodTemplate *PodTemplate `json:"podTemplate,omitempty"`
}

// What an EvalRun does when its spec does not say.
const (
	DefaultParallelism           = 4
	DefaultConcurrency           = 16
	DefaultBackoffLimitPerIndex  = 3
	DefaultActiveDeadlineSeconds = 3600
)

// EvalReference names an Eval in the same namespace.
type EvalReference struct {
	// The name of the Eval.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// EvalSelector chooses Evals of the same namespace by their labels.
type EvalSelector struct {
	// The labels that an Eval must have, all of them.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	MatchLabels map[string]LabelValue `json:"matchLabels"`
}

// LabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
type LabelValue string

// JudgeOverride replaces parts of the judge of the evals that a run grades.
type JudgeOverride struct {
	// The model that judges. It replaces judge.model of the evals; an axis of models in a matrix, and a panel, stay.
	// +required
	Model ModelName `json:"model"`
}

// Row says which row of a run something belongs to.
type Row struct {
	// The name of the row: the eval's, with the coordinates of its matrix cell.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name"`
	// The name of the eval, without the cell. Rows of two runs are compared by eval and cell.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Eval string `json:"eval"`
	// The matrix cell; absent without a matrix.
	// +optional
	Cell *Cell `json:"cell,omitempty"`
}

// Cell is one combination of a matrix.
type Cell struct {
	// The judge model.
	// +optional
	Model ModelName `json:"model,omitempty"`
	// The prompt, whole.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	Prompt string `json:"prompt,omitempty"`
}

// PodTemplate says where and how the pods of a run run.
type PodTemplate struct {
	// Labels and annotations of the pods.
	// +optional
	Metadata *PodMetadata `json:"metadata,omitempty"`
	// Scheduling and resources of the pods.
	// +optional
	Spec *PodSpec `json:"spec,omitempty"`
}

// PodMetadata is the metadata that a pod template may add.
type PodMetadata struct {
	// Labels of the pods. Those under eval.mcptest.dev/ and batch.kubernetes.io/ are the operator's and the Job's.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PodSpec is the part of a pod's spec that a run may choose.
type PodSpec struct {
	// The labels of the nodes that the pods may run on.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// The taints that the pods bear.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// Near which nodes and pods the pods run.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// The priority class of the pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// Requests and limits of the runner. Default: 50m CPU and 64Mi memory requested, 256Mi memory at most.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// The service account of the pods. Default: default. No credential of it is given to the pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// The Secrets with the credentials of the image registry.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []SecretReference `json:"imagePullSecrets,omitempty"`
	// The runtime class of the pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	RuntimeClassName *string `json:"runtimeClassName,omitempty"`
}

// EvalRunStatus is what was found.
//
// A run with more than one row has a child run per row; its own status holds one line a row, the children hold the reports.
// A run with one row, and every child, is a leaf: its status holds the report.
type EvalRunStatus struct {
	// The generation of the spec that this status speaks of; -1 until it was looked at.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Identifies what is graded, by what and by whom.
	// +optional
	Digest string `json:"digest,omitempty"`

	// How many judge calls this run makes, at most.
	// +optional
	ProjectedCalls int32 `json:"projectedCalls,omitempty"`

	// The name of the Job that grades the rows of this run.
	// +optional
	Job string `json:"job,omitempty"`

	// When the run began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// When the run ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// What a leaf made from an evalRef or evalSelector grades: the eval with its rubrics and its response filled in, frozen when the run began.
	// +optional
	EvalSpec *EvalSpec `json:"evalSpec,omitempty"`

	// Which row a leaf made from an evalRef or evalSelector grades.
	// +optional
	Row *Row `json:"row,omitempty"`

	// How the run ended; absent while it goes on.
	// +optional
	Outcome Outcome `json:"outcome,omitempty"`

	// The run in numbers.
	// +optional
	Summary *Summary `json:"summary,omitempty"`

	// What the pods of a run with maxCost have taken of it.
	// +optional
	Budget *BudgetStatus `json:"budget,omitempty"`

	// The rows of a run with children, the bad ones first, at most 1000. The children hold the reports.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Rows []RowResult `json:"rows,omitempty"`

	// The judgments of a leaf that is being graded, so that none is paid for twice. They go into the report when the leaf is done.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8192
	Judgments []Judgment `json:"judgments,omitempty"`

	// The report of a leaf.
	// +optional
	Report *Report `json:"report,omitempty"`

	// Complete: did it run. Passed: the verdict. Ready: everything it names was found, and it ended well. Reconciling and Stalled: as kstatus has them.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// BudgetStatus is what the pods of a run have taken of its maxCost (S-42): a pod takes before it makes a call, and
// gives back what it did not need.
type BudgetStatus struct {
	// What was taken and not given back, in US dollars: what was spent, and what is reserved for calls under way.
	// +optional
	TakenUSD float64 `json:"takenUSD"`
	// A call did not fit any more, and no call is under way that could leave it enough: no further call is made.
	// +optional
	Exhausted bool `json:"exhausted,omitempty"`
	// What each slice of the run took, one a completion index of its Job.
	// +optional
	// +listType=map
	// +listMapKey=slice
	// +kubebuilder:validation:MaxItems=8192
	Accounts []BudgetAccount `json:"accounts,omitempty"`
}

// BudgetAccount is what one slice of a run took of the budget.
type BudgetAccount struct {
	// The completion index of the slice.
	// +required
	Slice int32 `json:"slice"`
	// The UID of the pod that grades the slice now.
	// +required
	Pod types.UID `json:"pod"`
	// What this pod took and did not give back, in US dollars.
	// +optional
	TakenUSD float64 `json:"takenUSD"`
	// What of takenUSD is not spent: it is reserved for calls under way, or was granted for the next ones. 0 when no call
	// was under way as the pod last said.
	// +optional
	ReservedUSD float64 `json:"reservedUSD,omitempty"`
	// The number of the claim that was entered last: an older one that comes late changes nothing.
	// +optional
	Claim int64 `json:"claim,omitempty"`
}

// RowResult is one row of a run, in one line.
type RowResult struct {
	Row `json:",inline"`
	// How the row ended; absent while it goes on.
	// +optional
	Outcome Outcome `json:"outcome,omitempty"`
	// The score, 0 to 1; absent when there is none.
	// +optional
	Score *float64 `json:"score,omitempty"`
	// The child run that holds the report.
	// +required
	Run string `json:"run"`
}
