package grading

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

const (
	// grantSlack forgives the rounding of an allowance to billionths of a dollar.
	grantSlack = 1e-9
	// askAgain is how long calls wait before the collector is asked once more whether others left them enough.
	askAgain = time.Second
)

// purse is what the collector granted this pod of the budget of its run (S-42). A call that does not fit into it waits
// until more was granted. One claim is under way at a time; what comes meanwhile goes with the next.
type purse struct {
	run *run
	// asking ends the waits between two attempts to reach the collector.
	asking     context.Context
	stopAsking context.CancelFunc
	claims     sync.WaitGroup // the loop that makes claims

	mu      sync.Mutex
	granted float64
	// committed is what was spent, and what is reserved for calls under way. reserved is the second part of it.
	committed, reserved float64
	underWay            int // calls
	// waiting are the calls that do not fit, in the order in which they came.
	waiting   []*reservation
	claiming  bool
	number    int64 // of the last claim; 0: there was none
	exhausted bool
	// stuckSince is since when calls wait, nothing was granted, and no call of this pod ended; zero when none wait so.
	stuckSince time.Time
	// changed says that a call ended, or waits no more: the next claim may be answered otherwise.
	changed chan struct{}
	// questions are those of the slice that no call was made for, about; lowest is the lowest estimate so far. Together
	// they say what this pod will need at least, and no more of the budget is asked for in advance.
	questions int
	lowest    float64
}

// reservation is a call that waits.
type reservation struct {
	usd     float64
	decided chan struct{} // closed when err is set
	err     error
}

// newPurse is the purse of a pod that has so many questions to ask.
func newPurse(r *run, questions int) *purse {
	p := &purse{run: r, questions: questions, changed: make(chan struct{}, 1)}
	p.asking, p.stopAsking = context.WithCancel(r.posts)
	return p
}

// questionsOfSlice is how many questions a slice has left, at most.
func questionsOfSlice(leaves []wire.SliceLeaf) int {
	n := 0
	for _, leaf := range leaves {
		if !leaf.Done {
			n += int(leaf.Calls)
		}
	}
	return n
}

// Reserve implements judge.Budget. It waits for the collector; when that stays away the run fails.
func (p *purse) Reserve(ctx context.Context, usd float64) error {
	p.mu.Lock()
	if p.exhausted {
		p.mu.Unlock()
		return judge.ErrBudgetExceeded
	}
	if p.lowest == 0 || usd < p.lowest {
		p.lowest = usd
	}
	if len(p.waiting) == 0 && p.fits(usd) {
		p.commit(usd)
		p.mu.Unlock()
		return nil
	}
	r := &reservation{usd: usd, decided: make(chan struct{})}
	p.waiting = append(p.waiting, r)
	if !p.claiming {
		p.claiming = true
		p.claims.Go(p.claimAll)
	}
	p.mu.Unlock()
	select {
	case <-r.decided:
		return r.err
	case <-ctx.Done():
		return p.abandon(ctx, r)
	}
}

// abandon takes a call back that nobody waits for any more.
func (p *purse) abandon(ctx context.Context, r *reservation) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-r.decided: // at the same moment
		if r.err == nil {
			p.release(r.usd, 0)
		}
	default:
		p.waiting = slices.DeleteFunc(p.waiting, func(w *reservation) bool { return w == r })
		p.serve() // it may have kept others waiting that are cheaper
		p.tell()
	}
	return context.Cause(ctx)
}

// Settle implements judge.Budget.
func (p *purse) Settle(reserved, cost float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release(reserved, cost)
}

// release puts what a call did cost in the place of what was reserved for it.
func (p *purse) release(reserved, cost float64) {
	p.committed += cost - reserved
	p.reserved -= reserved
	if p.underWay--; p.underWay == 0 {
		p.reserved = 0 // without what the sums of binary fractions leave
	}
	p.stuckSince = time.Time{}
	p.serve()
	p.tell()
}

// tell lets the next claim be made at once.
func (p *purse) tell() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// notAsked says that so many questions of a row that ended were none: their criteria did not apply, say.
func (p *purse) notAsked(questions int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.questions = max(0, p.questions-questions)
}

func (p *purse) fits(usd float64) bool { return p.committed+usd <= p.granted+grantSlack }

func (p *purse) commit(usd float64) {
	p.committed += usd
	p.reserved += usd
	p.underWay++
	p.questions = max(0, p.questions-1)
}

// serve lets the calls go that fit, in their order.
func (p *purse) serve() {
	for len(p.waiting) > 0 && p.fits(p.waiting[0].usd) {
		p.commit(p.waiting[0].usd)
		p.decide(nil)
	}
}

// decide ends the wait of the call that came first.
func (p *purse) decide(err error) {
	first := p.waiting[0]
	p.waiting[0] = nil
	p.waiting = p.waiting[1:]
	first.err = err
	close(first.decided)
}

// claimAll makes claims until no call waits.
func (p *purse) claimAll() {
	for {
		claim, ok := p.next()
		if !ok {
			return
		}
		// A claim that is on its way is waited for, also when no other follows: the final one must come after it.
		allowance, err := p.post(p.run.posts, p.asking, claim)
		if err != nil && p.asking.Err() == nil {
			p.run.fail(err)
		}
		if !p.answered(allowance, err) {
			continue
		}
		if err := p.pause(); err != nil {
			p.answered(wire.Allowance{}, err)
		}
	}
}

// pause waits until another claim is worth making: a call of this pod ended, or one of another pod may have. It fails
// when no further claim is to be made.
func (p *purse) pause() error {
	timer := time.NewTimer(askAgain)
	defer timer.Stop()
	select {
	case <-p.changed:
	case <-timer.C:
	case <-p.asking.Done():
		return context.Cause(p.asking)
	}
	return nil
}

// next is the claim for the calls that wait; false when there are none.
func (p *purse) next() (wire.Claim, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		p.claiming, p.stuckSince = false, time.Time{}
		return wire.Claim{}, false
	}
	select {
	case <-p.changed: // what changed by now is in the claim
	default:
	}
	claim := p.claim()
	claim.Least, claim.Extra = p.waiting[0].usd, float64(max(0, p.questions-len(p.waiting)))*p.lowest
	// What other pods have under way is waited for only so long. What this pod has ends by itself.
	claim.Impatient = p.underWay == 0 && !p.stuckSince.IsZero() && time.Since(p.stuckSince) >= p.run.MoneyPatience
	if claim.Impatient {
		p.run.Log.Warn("other pods left nothing of maxCost; their calls are not waited for any longer", "waited", p.run.MoneyPatience.String())
	}
	p.granted = min(p.granted, claim.Used) // the rest goes back when the call cannot be granted
	for _, r := range p.waiting {
		claim.Want += r.usd
	}
	return claim, true
}

// claim begins the next claim.
func (p *purse) claim() wire.Claim {
	p.number++
	return wire.Claim{Number: p.number, Used: p.used(), Reserved: min(p.used(), max(0, p.reserved)), Want: p.used()}
}

// used is committed without what the sums of binary fractions leave below 0.
func (p *purse) used() float64 { return max(0, p.committed) }

// answered takes what the collector granted, or why it could not be asked. It tells whether to wait before the next
// claim, because no call could go.
func (p *purse) answered(allowance wire.Allowance, err error) (wait bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := len(p.waiting)
	if err == nil {
		p.granted = allowance.Granted
		p.serve()
	}
	switch {
	case err != nil: // the run ends
		err = rubric.ErrStopped
	case allowance.Exhausted:
		if !p.exhausted {
			p.run.Log.Info("the run's maxCost is used up: no further call is made")
		}
		p.exhausted, err = true, judge.ErrBudgetExceeded
	case len(p.waiting) < waiting:
		p.stuckSince = time.Time{}
		return false
	default:
		if p.stuckSince.IsZero() {
			p.stuckSince = time.Now()
		}
		return true
	}
	for len(p.waiting) > 0 {
		p.decide(err)
	}
	return false
}

// giveBack tells the collector, once all rows were graded, what this pod really spent. The collector may be away as
// long as rows wait to be posted; when they are posted, which posted tells, it has Flush. What cannot be given back
// stays taken.
func (p *purse) giveBack(posted <-chan struct{}) {
	p.stopAsking()
	p.claims.Wait()
	p.mu.Lock()
	needed := p.number > 0
	claim := p.claim()
	p.mu.Unlock()
	claim.Final, claim.Reserved = true, 0
	if !needed {
		return
	}
	ctx, cancel := context.WithCancel(p.run.posts)
	defer cancel()
	given := make(chan struct{})
	defer close(given)
	go func() {
		select {
		case <-posted:
		case <-given:
			return
		}
		timer := time.NewTimer(p.run.Flush)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-given:
		}
	}()
	if _, err := p.post(ctx, ctx, claim); err != nil {
		p.run.Log.Warn("what this pod took of maxCost and did not spend could not be given back", "error", err)
	}
}

// post makes a claim until it is answered, or the collector was away for too long. A request ends with ctx, and no
// other attempt is made once trying ended.
func (p *purse) post(ctx, trying context.Context, claim wire.Claim) (wire.Allowance, error) {
	b := p.run.newBackoff(p.run.Patience)
	for {
		allowance, err := p.run.Collector.Budget(ctx, claim)
		if err == nil || trying.Err() != nil {
			return allowance, err
		}
		if err := b.classify("", err); err != nil {
			return wire.Allowance{}, err
		}
		p.run.Log.Warn("the collector cannot be reached; trying again", "error", err)
		if err := b.wait(trying, err); err != nil {
			return wire.Allowance{}, err
		}
	}
}

var _ judge.Budget = (*purse)(nil)
