// Package judge puts one question to one model and returns one verdict: it builds the prompt, speaks
// through a provider's structured output, checks the verdict's form, retries, limits and prices the calls.
//
// It scores nothing: what a verdict means for a rubric is decided in engine/rubric.
package judge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// What a Judge does when its Options do not say.
const (
	DefaultConcurrency   = v1alpha1.DefaultConcurrency
	DefaultCallTimeout   = 120 * time.Second
	DefaultMaxAttempts   = 6
	DefaultMaxRetryAfter = 5 * time.Minute
)

const (
	// maxRepairs is how often a judge is asked again after an invalid verdict (S-40).
	maxRepairs = 2
	// toolTokens bounds a verdict that is a forced call of a tool: nothing else is written.
	toolTokens = 1024
	// answerTokens bounds any other answer: models that think before they answer count their thoughts.
	answerTokens = 8192
	// maxAnswerTokens bounds the answer after one that was cut.
	maxAnswerTokens = 16384
)

// Options says how a Judge works. The zero value of every field but Clients has a default.
type Options struct {
	// Clients are the providers that can be asked.
	Clients map[v1alpha1.Provider]Client
	// Prices says what calls cost. Default: DefaultPrices.
	Prices Prices
	// Budget bounds what all calls cost together. Default: none. With it every model must have a price.
	Budget Budget
	// Concurrency is how many requests may be under way at once, over all calls of Ask. Default 16.
	Concurrency int
	// CallTimeout bounds one request. Default 120 s.
	CallTimeout time.Duration
	// MaxAttempts is how often one request is sent at most, faults included. Default 6.
	MaxAttempts int
	// MaxRetryAfter is the longest Retry-After that is waited for; a longer one ends the question at once. Default 5 min.
	MaxRetryAfter time.Duration
	// Jitter returns a number in [0,1) by which a wait is multiplied. Default: math/rand/v2.
	Jitter func() float64
	// NonceKey keys the nonces of the prompt's blocks (S-45). Default: 32 random bytes of this process.
	NonceKey []byte
}

// Judge asks judge models. It is safe for concurrent use; a process should have one.
type Judge struct {
	options Options
	slots   chan struct{}

	mu      sync.Mutex
	refused map[modelKey]Feature
}

// modelKey is what the features that were refused are remembered by.
type modelKey struct {
	provider v1alpha1.Provider
	model    string
}

// New returns a Judge.
func New(o Options) *Judge {
	if o.Prices.Empty() {
		o.Prices = DefaultPrices()
	}
	if o.Concurrency <= 0 {
		o.Concurrency = DefaultConcurrency
	}
	if o.CallTimeout <= 0 {
		o.CallTimeout = DefaultCallTimeout
	}
	if o.MaxAttempts <= 0 {
		o.MaxAttempts = DefaultMaxAttempts
	}
	if o.MaxRetryAfter <= 0 {
		o.MaxRetryAfter = DefaultMaxRetryAfter
	}
	if o.Jitter == nil {
		o.Jitter = mathrand.Float64
	}
	if len(o.NonceKey) == 0 {
		o.NonceKey = processKey()
	}
	return &Judge{options: o, slots: make(chan struct{}, o.Concurrency), refused: map[modelKey]Feature{}}
}

// processKey is the key of the nonces: random, made once a process, never written anywhere.
var processKey = sync.OnceValue(func() []byte {
	key := make([]byte, 32)
	rand.Read(key) // never returns an error: it ends the process instead
	return key
})

// Ask puts a question to a model and returns its verdict, with what that took. The usage is complete also
// when there is an error: every request that was answered counts.
//
// Invalid verdicts are asked for again twice, in the same conversation, then Ask returns *InvalidVerdictError;
// faults of the network and of the provider are retried (S-40). Other errors wrap *StatusError, *MalformedError,
// *DeferredError (no client for the provider), *UnpricedError, ErrBudgetExceeded, or the context's.
func (j *Judge) Ask(ctx context.Context, m Model, q Question) (Verdict, v1alpha1.Usage, error) {
	client, ok := j.options.Clients[m.Provider]
	if !ok {
		return Verdict{}, v1alpha1.Usage{}, noKey(m.Provider, v1alpha1.ModelName(m.Name))
	}
	c := conversation{judge: j, client: client, model: m, question: q, form: formOf(q)}
	c.request = newRequest(m, q, c.form, j.options.NonceKey)
	v, err := c.verdict(ctx)
	c.usage.Retries = max(0, c.sent-1)
	return v, c.usage, err
}

// conversation is one question on its way to a verdict.
type conversation struct {
	judge    *Judge
	client   Client
	model    Model
	question Question
	form     form
	request  Request
	// without holds the features that this conversation goes on without, whatever is remembered of the model.
	without Feature
	// lengths is how many times the usual limit an answer may be long, as a power of 2.
	lengths int64
	// promptTokens is about how many tokens the prompt has; 0 until somebody wants to know.
	promptTokens int
	sent         int32
	usage        v1alpha1.Usage
}

// verdict asks until there is a valid verdict, the repairs are used up, or the judge cannot be had.
func (c *conversation) verdict(ctx context.Context) (Verdict, error) {
	for asked := 1; ; asked++ {
		res, without, err := c.send(ctx)
		if err != nil {
			return Verdict{}, fmt.Errorf("asking %s: %w", c.model.Name, err)
		}
		v, problem := c.form.read(res.Answer, without.Has(FeatureStructuredOutput))
		if problem == "" {
			return v, nil
		}
		if asked > maxRepairs {
			return Verdict{}, &InvalidVerdictError{Model: c.model.Name, Problem: problem, Asked: asked}
		}
		c.repair(res.Answer, problem)
	}
}

// repair prepares the next question of the conversation: what was wrong, said to the judge.
func (c *conversation) repair(a Answer, problem string) {
	if a.Cut {
		c.lengths += 2
	}
	if a.Structured && a.ToolUseID == "" && a.Refusal == "" && !a.Cut && !strings.HasPrefix(strings.TrimSpace(a.Text), "{") {
		// The server let the schema pass and did not follow it: ask in words.
		c.without |= FeatureStructuredOutput
	}
	c.request.Turns = append(c.request.Turns, Turn{Answer: a, Complaint: complaint(a, problem)})
}

// once sends one request, when there is a slot for it, and counts the answer. It also returns the features that
// the request went without.
func (c *conversation) once(ctx context.Context) (Response, Feature, error) {
	r := c.request
	r.Without |= c.without | c.judge.refusedBy(c.model)
	if r.Without.Has(FeatureTemperature) {
		r.Temperature = nil
	}
	if r.Without.Has(FeatureStructuredOutput) {
		r.Question += plainInstruction
	}
	r.MaxTokens = answerTokens
	if c.model.Provider == v1alpha1.ProviderAnthropic && !r.Without.Has(FeatureForcedTool) {
		r.MaxTokens = toolTokens
	}
	r.MaxTokens = min(maxAnswerTokens, r.MaxTokens<<c.lengths)

	select {
	case c.judge.slots <- struct{}{}:
	case <-ctx.Done():
		return Response{}, r.Without, context.Cause(ctx)
	}
	// The slot is held for the request only: who waits for a retry holds none.
	defer func() { <-c.judge.slots }()
	if ctx.Err() != nil {
		return Response{}, r.Without, context.Cause(ctx)
	}
	reserved, err := c.reserve(ctx, &r)
	if err != nil {
		return Response{}, r.Without, err
	}
	timeout := c.judge.options.CallTimeout
	callCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c.sent++
	res, err := c.client.Complete(callCtx, r)
	res.Tokens = res.Tokens.counted()
	c.settle(reserved, res.Tokens, err)
	var malformed *MalformedError
	switch {
	case err == nil, errors.As(err, &malformed):
		c.count(res.Tokens)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case callCtx.Err() != nil:
		err = fmt.Errorf("no answer within %v", timeout)
	}
	return res, r.Without, err
}

// count adds an answered request to the usage.
func (c *conversation) count(t Tokens) {
	c.usage.Calls++
	c.usage.InputTokens += t.Input
	c.usage.CachedInputTokens += t.CacheRead
	c.usage.OutputTokens += t.Output
	cost, ok := c.judge.options.Prices.Cost(c.model.Name, t)
	if !ok {
		c.usage.UnpricedCalls++
	}
	c.usage.CostUSD += cost
}

// refusedBy returns the features that a model is known to refuse.
func (j *Judge) refusedBy(m Model) Feature {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.refused[modelKey{m.Provider, m.Name}]
}

// remember notes that a model refuses a feature.
func (j *Judge) remember(m Model, f Feature) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.refused[modelKey{m.Provider, m.Name}] |= f
}
