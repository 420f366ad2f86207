// Package wire is what a runner and the collector say to each other, over HTTPS with the pod's projected token.
//
//	GET  /v1/slice                    -> Slice     what this pod grades
//	GET  /v1/leaves/{name}            -> Leaf      one row of it, with the judgments that were already paid for
//	POST /v1/judgments                Judgments -> keeps judgments while a row is being graded
//	POST /v1/leaves/{name}/findings   Findings  -> Receipt: ends a row; the collector scores it
//
// Errors are a status and a Problem: 401 the token is not good, 403 it is not this pod's slice, 404 no such leaf,
// 409 the leaf has another report already, 413 too big, 422 the judgments do not fit the questions, 503 try again.
package wire

import "github.com/mcptest/mcptest-operator/api/v1alpha1"

// Audience is the audience of the token that a runner shows: it is good for nothing else.
const Audience = "collector.eval.mcptest.dev"

// MaxBody bounds a request or an answer, in bytes.
const MaxBody = 8 << 20

// What a runner finds in its environment.
const (
	// EnvURL is the URL of the collector.
	EnvURL = "MCPTEST_COLLECTOR_URL"
	// EnvCA is the certificate of the collector's authority, as PEM. It is public.
	EnvCA = "MCPTEST_COLLECTOR_CA"
	// EnvTokenFile is the path of the projected token, which is renewed in place.
	EnvTokenFile = "MCPTEST_COLLECTOR_TOKEN_FILE"
	// EnvTerminationLog is the path of the container's termination message. Default: DefaultTerminationLog.
	EnvTerminationLog = "MCPTEST_TERMINATION_LOG"
)

// DefaultTerminationLog is where Kubernetes looks for a termination message when the pod does not say.
const DefaultTerminationLog = "/dev/termination-log"

// Exit codes of a runner. Those of the second group fail a slice for good; any other code is tried again.
const (
	// ExitDone: every row of the slice was accepted, whatever its verdict.
	ExitDone = 0
	// ExitInterrupted: told to stop; what was judged is kept, and the next pod goes on.
	ExitInterrupted = 75

	// ExitUsage: started wrongly.
	ExitUsage = 64
	// ExitData: the collector says that what was sent cannot be right.
	ExitData = 65
	// ExitConfig: the collector does not know this pod.
	ExitConfig = 78
)

// Slice is what a pod grades.
type Slice struct {
	// Run is the root run.
	Run string `json:"run"`
	// Concurrency is how many judge calls the pod makes at once.
	Concurrency int `json:"concurrency"`
	// Leaves are the rows, in order.
	Leaves []SliceLeaf `json:"leaves"`
}

// SliceLeaf is a row of a slice.
type SliceLeaf struct {
	Name string `json:"name"`
	// Done: the row has its report; there is nothing to do.
	Done bool `json:"done,omitempty"`
}

// Leaf is a row to be graded.
type Leaf struct {
	Name string            `json:"name"`
	Row  v1alpha1.Row      `json:"row"`
	Spec v1alpha1.EvalSpec `json:"spec"`
	// Judgments were made by an earlier pod; their answers are not asked for again.
	Judgments []v1alpha1.Judgment `json:"judgments,omitempty"`
	// Done: the row got its report since the slice was asked for. Then spec and judgments are left out.
	Done bool `json:"done,omitempty"`
}

// Judgments are judgments of rows that are being graded.
type Judgments struct {
	Leaves []LeafJudgments `json:"leaves"`
}

// LeafJudgments are judgments of one row.
type LeafJudgments struct {
	Name      string              `json:"name"`
	Judgments []v1alpha1.Judgment `json:"judgments"`
}

// Receipt is how a row ended, as the collector computed it.
type Receipt struct {
	Outcome v1alpha1.Outcome `json:"outcome"`
	Score   *float64         `json:"score,omitempty"`
}

// Problem is why a request was refused.
type Problem struct {
	Message string `json:"message"`
}
