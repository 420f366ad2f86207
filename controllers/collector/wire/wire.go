// Package wire is what a runner and the collector say to each other, over HTTPS with the pod's projected token.
//
//	GET  /v1/slice                    -> Slice     what this pod grades
//	GET  /v1/leaves/{name}            -> Leaf      one row of it, with the judgments that were already paid for
//	POST /v1/judgments                Judgments -> keeps judgments while a row is being graded
//	POST /v1/leaves/{name}/findings   Findings  -> Receipt: ends a row; the collector scores it
//	POST /v1/budget                   Claim     -> Allowance: takes of the run's maxCost, or gives back (S-42)
//
// A pod of a run with maxCost (Slice.Limited) makes a call only within its allowance. It has one claim under way at a
// time. The amounts of a claim and of its answer are totals of this pod, so that the same claim again changes nothing,
// and one that comes late takes nothing back that was granted since. A pod gives back with its final claim, and with one
// that is answered with Wait. From when it makes a claim until it has the answer it keeps within Claim.Used.
//
// Errors are a status and a Problem: 401 the token is not good, 403 it is not this pod's slice, 404 no such leaf,
// 409 the leaf has another report already, 413 too big, 422 the judgments do not fit the questions, or the claim cannot
// be one, 503 try again.
package wire

import (
	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
)

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
	// Limited: the run has a maxCost. A call is made only within what POST /v1/budget granted (S-42).
	Limited bool `json:"limited,omitempty"`
	// Prices are those that the operator was given, beside those that this version knows.
	Prices judge.Prices `json:"prices,omitzero"`
}

// SliceLeaf is a row of a slice.
type SliceLeaf struct {
	Name string `json:"name"`
	// Done: the row has its report; there is nothing to do.
	Done bool `json:"done,omitempty"`
	// Calls is how many judge calls the row still takes, about; 0 in a run without maxCost.
	Calls int32 `json:"calls,omitempty"`
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

// Claim is what a pod needs of the budget of its run, in US dollars: totals since the pod began.
type Claim struct {
	// Used is what was spent, and what is reserved for calls under way. It is recorded whatever maxCost is: calls may
	// have cost more than they were estimated at.
	Used float64 `json:"used"`
	// Reserved is what of Used calls under way have reserved. The rest is spent.
	Reserved float64 `json:"reserved,omitempty"`
	// Want is Used, and what the calls need that wait for an allowance.
	Want float64 `json:"want"`
	// Least is what the call needs that waits first. 0: all that wait are granted together, or none.
	Least float64 `json:"least,omitempty"`
	// Extra is how much more this pod will need, as far as it can tell, so that it need not come for every call.
	Extra float64 `json:"extra,omitempty"`
	// Number counts the claims of a pod, from 1. One that is sent again keeps its number.
	Number int64 `json:"number,omitempty"`
	// Impatient: the pod waited for calls of others for as long as it does, and none of its own is under way. It is
	// granted what fits, or the budget is exhausted.
	Impatient bool `json:"impatient,omitempty"`
	// Final: the pod makes no further call. What it was granted and did not use is given back.
	Final bool `json:"final,omitempty"`
}

// Allowance is what a pod may use of the budget of its run.
type Allowance struct {
	// Granted is what this pod has in all, in US dollars.
	Granted float64 `json:"granted"`
	// Exhausted: a call did not fit any more, of this pod or of another. Nobody is granted more.
	Exhausted bool `json:"exhausted,omitempty"`
	// Wait: the call that waits first does not fit now, and may when calls under way have ended, of this pod or of others.
	Wait bool `json:"wait,omitempty"`
}

// Problem is why a request was refused.
type Problem struct {
	Message string `json:"message"`
}
