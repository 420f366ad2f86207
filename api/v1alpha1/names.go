package v1alpha1

// Conditions of the kinds of this package. Ready, Reconciling and Stalled have the meaning that kstatus gives them.
const (
	// ConditionReady: everything that the object names was found and is valid; a run also ended well.
	ConditionReady = "Ready"
	// ConditionReconciling: the operator is at work on the object. Absent when it is not.
	ConditionReconciling = "Reconciling"
	// ConditionStalled: the object cannot go on until somebody changes something. Absent when it can.
	ConditionStalled = "Stalled"
	// ConditionComplete: the run ended, whatever its verdict.
	ConditionComplete = "Complete"
	// ConditionPassed: the verdict.
	ConditionPassed = "Passed"
)

// Reasons of conditions.
const (
	ReasonValid             = "Valid"
	ReasonInvalidSpec       = "InvalidSpec"
	ReasonRubricNotFound    = "RubricNotFound"
	ReasonConfigMapNotFound = "ConfigMapNotFound"
	ReasonSecretNotFound    = "SecretNotFound"
	ReasonEvalNotFound      = "EvalNotFound"
	ReasonNothingSelected   = "NothingSelected"
	ReasonResolving         = "Resolving"
	ReasonExpanding         = "Expanding"
	ReasonPending           = "Pending"
	ReasonRunning           = "Running"
	ReasonSuspended         = "Suspended"
	ReasonPodsBlocked       = "PodsBlocked"
	ReasonFinished          = "Finished"
	ReasonDeadlineExceeded  = "DeadlineExceeded"
	ReasonRunnerFailed      = "RunnerFailed"
	ReasonNeverRun          = "NeverRun"
)

// Labels and annotations that the operator sets.
const (
	// LabelParent is set on the children of a run: the name of the run.
	LabelParent = "eval.mcptest.dev/parent"
	// LabelRun is set on the Job and the pods of a run: the name of the run.
	LabelRun = "eval.mcptest.dev/run"
	// LabelEval is set on a run of an Eval: the name of the Eval, where it is a valid label value.
	LabelEval = "eval.mcptest.dev/eval"
	// LabelPlan is set on the children of a run: which revision of its plan they belong to.
	LabelPlan = "eval.mcptest.dev/plan"
	// LabelManagedBy and ManagedBy mark the Jobs and pods that the operator watches.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedBy      = "mcptest-operator"
)

// DefaultJudgeSecret is the Secret with the keys of the judges for evals that name none (spec.judge.secretRef).
const DefaultJudgeSecret = "mcptest-judge"
