package collector

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
)

// postBudget answers POST /v1/budget: it enters what a pod takes of the budget of its run, or gives back (S-42).
func (c *Collector) postBudget(e *exchange) (any, error) {
	var claim wire.Claim
	release, err := c.read(e, &claim)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := checkClaim(e.grant, claim); err != nil {
		return nil, err
	}
	leave, err := c.claims.enter(e.ctx, e.grant.root.uid)
	if err != nil {
		return nil, err
	}
	defer leave()
	var answer wire.Allowance
	var ended *v1alpha1.EvalRun // by this claim: the run whose budget is used up
	err = c.writePart(e.ctx, e.grant, e.grant.root, budgetOf, func(run *v1alpha1.EvalRun) (bool, error) {
		after := &v1alpha1.BudgetStatus{}
		if run.Status.Budget != nil {
			after = run.Status.Budget.DeepCopy()
		}
		was := after.Exhausted
		who := claimant{slice: e.grant.slice, pod: e.grant.pod.uid}
		granted, wait := take(after, nanoOf(*e.grant.maxCost), e.grant.pods, who, claim)
		answer = wire.Allowance{Granted: granted.usd(), Exhausted: after.Exhausted, Wait: wait}
		ended = nil
		if after.Exhausted && !was {
			ended = run
		}
		if equality.Semantic.DeepEqual(run.Status.Budget, after) {
			return false, nil
		}
		run.Status.Budget = after
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	if ended != nil {
		c.tellExhausted(e, ended)
	}
	return answer, nil
}

// checkClaim refuses claims that cannot be.
func checkClaim(g *grant, claim wire.Claim) error {
	switch {
	case g.maxCost == nil:
		return refuse(http.StatusUnprocessableEntity, reasonClaim, "run %s has no maxCost: its calls need no allowance", g.root.name)
	case claim.Used < 0, claim.Reserved < 0, claim.Reserved > claim.Used, claim.Least < 0, claim.Want < claim.Used+claim.Least, claim.Extra < 0, claim.Number < 0:
		return refuse(http.StatusUnprocessableEntity, reasonClaim,
			"claim %d of used %v, reserved %v, want %v, least %v, extra %v cannot be: they are US dollars, 0 or more; reserved is no more than used, and want no less than used and least together",
			claim.Number, claim.Used, claim.Reserved, claim.Want, claim.Least, claim.Extra)
	}
	return nil
}

// tellExhausted tells once of a run that its budget is used up: only one write sets that.
func (c *Collector) tellExhausted(e *exchange, run *v1alpha1.EvalRun) {
	c.metrics.exhausted.Inc()
	e.log.Info("the budget of the run is used up", "maxCost", *e.grant.maxCost, "taken", run.Status.Budget.TakenUSD)
	if c.events == nil {
		return
	}
	c.events.Eventf(run, nil, corev1.EventTypeWarning, string(v1alpha1.RowBudgetExceeded), "Grade",
		"maxCost %s is used up: no further judge call is made; rows that were not judged end as Error", runtree.USD(*e.grant.maxCost))
}

// budgetOf is the part of a run that a patch of its budget is made from. The rows of a big run are not in it.
func budgetOf(run *v1alpha1.EvalRun) *v1alpha1.EvalRun {
	out := versionOf(run)
	out.Status.Budget = run.Status.Budget.DeepCopy()
	return out
}

// claimQueue has the claims of one run decided one after the other: all of them change the same object, and those that
// are at it at once would only overtake each other. Claims that other replicas decide are told apart by the version of
// the object. The zero value is ready for use.
type claimQueue struct {
	mu   sync.Mutex
	runs map[types.UID]*claimTurn
}

// claimTurn is held by one claim at a time.
type claimTurn struct {
	held  chan struct{}
	users int // that hold it or wait for it
}

// enter waits for the turn of a claim of a run, until ctx ends. leave ends the turn.
func (q *claimQueue) enter(ctx context.Context, run types.UID) (leave func(), err error) {
	turn := q.join(run)
	select {
	case turn.held <- struct{}{}:
		return func() { <-turn.held; q.quit(run, turn) }, nil
	case <-ctx.Done():
		q.quit(run, turn)
		return nil, fmt.Errorf("waiting for the claims of other pods: %w", ctx.Err())
	}
}

func (q *claimQueue) join(run types.UID) *claimTurn {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.runs == nil {
		q.runs = make(map[types.UID]*claimTurn)
	}
	turn, ok := q.runs[run]
	if !ok {
		turn = &claimTurn{held: make(chan struct{}, 1)}
		q.runs[run] = turn
	}
	turn.users++
	return turn
}

func (q *claimQueue) quit(run types.UID, turn *claimTurn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if turn.users--; turn.users == 0 {
		delete(q.runs, run)
	}
}
