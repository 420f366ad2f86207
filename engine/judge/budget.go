package judge

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
)

// ErrBudgetExceeded says that a call was not made, because it did not fit into the budget any more (S-42).
var ErrBudgetExceeded = errors.New("the budget is used up")

// Budget bounds what calls cost together (S-42). It is safe for concurrent use.
type Budget interface {
	// Reserve takes what a call is estimated to cost, in US dollars, out of the budget, before the call is made. It may
	// wait for calls under way. The error is ErrBudgetExceeded when the call does not fit, for it and for all after it, or
	// that of the context.
	Reserve(ctx context.Context, usd float64) error
	// Settle puts what the call did cost in the place of what was reserved for it. It is called once for each Reserve
	// that succeeded.
	Settle(reserved, cost float64)
}

// Purse is the Budget of one process. A call that does not fit waits while others are under way, which may cost less than
// was reserved for them; the budget is used up when a call does not fit and none is under way, or would not fit beside what
// was spent alone.
type Purse struct {
	mu              sync.Mutex
	limit           float64
	spent, reserved float64
	underWay        int // reservations that were not settled yet
	exhausted       bool
	// changed is closed, and replaced, when a call that waits should look again.
	changed chan struct{}
}

// NewPurse returns a Budget of so many US dollars.
func NewPurse(usd float64) *Purse {
	return &Purse{limit: usd + budgetSlack, changed: make(chan struct{})}
}

// budgetSlack forgives the rounding of sums of binary fractions: a billionth of a dollar.
const budgetSlack = 1e-9

// Reserve implements Budget.
func (p *Purse) Reserve(ctx context.Context, usd float64) error {
	for {
		wait, err := p.try(usd)
		if wait == nil {
			return err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// try reserves; or it returns what to wait for, when that may help.
func (p *Purse) try(usd float64) (wait <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.exhausted:
		return nil, ErrBudgetExceeded
	case p.spent+p.reserved+usd <= p.limit:
		p.reserved += usd
		p.underWay++
		return nil, nil
	case p.underWay > 0 && p.spent+usd <= p.limit:
		return p.changed, nil
	}
	p.exhausted = true
	p.wake()
	return nil, ErrBudgetExceeded
}

// Settle implements Budget.
func (p *Purse) Settle(reserved, cost float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent += cost
	p.reserved -= reserved
	if p.underWay--; p.underWay == 0 {
		p.reserved = 0 // and nothing of what sums of binary fractions leave
	}
	p.wake()
}

// wake has every call that waits look again.
func (p *Purse) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// UnpricedError says that a model cannot be asked within a budget, because nobody knows what it costs.
type UnpricedError struct{ Model string }

// Error says how a price is given.
func (e *UnpricedError) Error() string {
	return fmt.Sprintf("there is a budget, and the model %s has no known price: give it one with a price file (eval and explain: --prices; in a cluster: "+
		"the chart's prices), as in models: {%s: {input: 1, output: 5}}, in US dollars per million tokens", e.Model, e.Model)
}

// reserve takes the estimate of a request out of the budget; without a budget it is 0.
func (c *conversation) reserve(ctx context.Context, r *Request) (float64, error) {
	budget := c.judge.options.Budget
	if budget == nil {
		return 0, nil
	}
	input, output := c.estimate(r)
	usd, ok := c.judge.options.Prices.Estimate(c.model.Name, input, output)
	if !ok {
		return 0, &UnpricedError{Model: c.model.Name}
	}
	return usd, budget.Reserve(ctx, usd)
}

// settle puts what a request cost in the place of what was reserved. A request that was sent and has no answer, or one
// that does not say what it took, may have been billed: it counts with its estimate.
func (c *conversation) settle(reserved float64, t Tokens, err error) {
	budget := c.judge.options.Budget
	if budget == nil {
		return
	}
	cost := reserved
	var malformed *MalformedError
	switch {
	case (err == nil || errors.As(err, &malformed)) && t != (Tokens{}):
		cost, _ = c.judge.options.Prices.Cost(c.model.Name, t)
	case neverBilled(err):
		cost = 0
	}
	budget.Settle(reserved, cost)
}

// ErrStopped is returned by a Client that makes no more requests, because the process is about to end.
var ErrStopped = errors.New("no more questions are asked: the process is about to end")

// neverBilled tells whether a request that failed cost nothing: the provider declined it, or it was never sent.
func neverBilled(err error) bool {
	var status *StatusError
	var network *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &status): // of 502 and 504 a proxy says that the provider, which was asked, did not answer
		return status.Status != http.StatusBadGateway && status.Status != http.StatusGatewayTimeout
	case errors.As(err, &network):
		return network.Op == "dial" || network.Op == "proxyconnect"
	}
	return errors.Is(err, ErrStopped) || errors.As(err, &certificate)
}

// estimate guesses the tokens of a request, as an Estimator does of the first one of a question. The part that never
// changes is counted once.
func (c *conversation) estimate(r *Request) (input, output int) {
	if c.promptTokens == 0 {
		c.promptTokens = lengthOf(r.System, r.Prefix, r.Question).tokens() + overheadTokens
	}
	input = c.promptTokens
	for _, t := range r.Turns {
		input += lengthOf(t.Answer.Text, t.Complaint).tokens()
	}
	return input, verdictTokens
}

var _ Budget = (*Purse)(nil)

// Priced tells whether every model of a list has a price; else the first that has none.
func (p Prices) Priced(models []Model) (unpriced string, ok bool) {
	for _, m := range models {
		if _, ok := p.find(m.Name); !ok {
			return m.Name, false
		}
	}
	return "", true
}
