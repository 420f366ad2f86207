package fakejudge

import (
	"maps"
	"sync"
	"time"
)

const (
	defaultMaxDistinct = 1_000_000
	maxModelNames      = 1000
	otherModels        = "(other)"
	settleTimeout      = time.Second
)

// Stats are the counters since the start or the last reset. Every call ends in
// exactly one of answered, refused, faults and aborted, so that
// Calls = Answered + Refused + Faults + Aborted + the calls in flight.
type Stats struct {
	// StandIn is always "fakejudge".
	StandIn string `json:"standIn"`
	// Calls is the number of requests that reached one of the wire formats.
	Calls int64 `json:"calls"`
	// Answered counts valid verdicts that were handed to a live connection.
	Answered int64 `json:"answered"`
	// Refused counts requests that the real service would have refused too.
	Refused int64 `json:"refused"`
	// Faults counts calls that got a fault instead of a valid verdict.
	Faults int64 `json:"faults"`
	// Aborted counts calls whose client went away before the answer was written.
	Aborted int64 `json:"aborted"`
	// ByStatus counts the responses that were written, by HTTP status.
	ByStatus map[int]int64 `json:"byStatus"`
	// ByModel counts the well-formed calls by model, at most 1000 names.
	ByModel map[string]int64 `json:"byModel"`
	// ByFault splits Faults by kind.
	ByFault map[Fault]int64 `json:"byFault"`
	// Distinct is the number of different bodies, nonces aside.
	Distinct int64 `json:"distinct"`
	// AnsweredKeys is the number of different questions (model and text, nonces
	// aside) that got a valid verdict.
	AnsweredKeys int64 `json:"answeredKeys"`
	// AnsweredTwice is the number of questions that got a valid verdict more than
	// once: 0 proves that no judgment was bought twice. A jury (S-25) asks the
	// same question on purpose; there, look at AnsweredMost.
	AnsweredTwice int64 `json:"answeredTwice"`
	// AnsweredMost is how often the most answered question was answered.
	AnsweredMost int64 `json:"answeredMost"`
	// Capped says that a set was full: the four counters above are lower bounds.
	Capped bool `json:"capped"`
	// InFlight is the number of calls that have not ended; MaxInFlight its maximum.
	InFlight    int64 `json:"inFlight"`
	MaxInFlight int64 `json:"maxInFlight"`
	// Held is how many of them a hold keeps waiting.
	Held int64 `json:"held"`
}

// recorder keeps the counters. A reset starts a new generation: calls of an older
// one still count as in flight, and as nothing else.
type recorder struct {
	mu          sync.Mutex
	limit       int
	generation  int64
	inFlight    int64
	totals      Stats
	distinct    map[digest]struct{}
	answered    map[digest]int64
	settling    map[int64]chan struct{}
	nextSettled int64
}

func newRecorder(limit int) *recorder {
	r := &recorder{limit: limit, settling: map[int64]chan struct{}{}}
	r.reset()
	return r
}

func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.generation++
	r.totals = Stats{
		StandIn: Name, ByStatus: map[int]int64{}, ByModel: map[string]int64{}, ByFault: map[Fault]int64{},
		MaxInFlight: r.inFlight,
	}
	r.distinct = map[digest]struct{}{}
	r.answered = map[digest]int64{}
}

// snapshot waits for the calls that have written their response and are about to
// be counted, so that a client that asks right after its answer finds it counted.
func (r *recorder) snapshot() Stats {
	r.mu.Lock()
	pending := make([]chan struct{}, 0, len(r.settling))
	for _, ch := range r.settling {
		pending = append(pending, ch)
	}
	r.mu.Unlock()
	deadline := time.NewTimer(settleTimeout)
	defer deadline.Stop()
wait:
	for _, ch := range pending {
		select {
		case <-ch:
		case <-deadline.C:
			break wait
		}
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	st := r.totals
	st.ByStatus, st.ByModel, st.ByFault = maps.Clone(st.ByStatus), maps.Clone(st.ByModel), maps.Clone(st.ByFault)
	st.Distinct, st.AnsweredKeys = int64(len(r.distinct)), int64(len(r.answered))
	st.InFlight = r.inFlight
	return st
}

// call is the accounting of one call.
type call struct {
	r          *recorder
	generation int64
	ended      bool // in flight no more; guarded by r.mu
	counted    bool // in one of the four ends; guarded by r.mu
}

func (r *recorder) begin() *call {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inFlight++
	r.totals.Calls++
	r.totals.MaxInFlight = max(r.totals.MaxInFlight, r.inFlight)
	return &call{r: r, generation: r.generation}
}

// record changes the totals, unless they were reset since the call began.
func (c *call) record(change func(r *recorder)) {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	if c.generation == c.r.generation {
		change(c.r)
	}
}

// finish records the call's end; only the first one counts.
func (c *call) finish(change func(r *recorder)) {
	c.record(func(r *recorder) {
		if !c.counted {
			c.counted = true
			change(r)
		}
	})
}

func (c *call) sawBody(body []byte) {
	key := digestOf(string(body))
	c.record(func(r *recorder) {
		if _, ok := r.distinct[key]; ok {
			return
		}
		if len(r.distinct) >= r.limit {
			r.totals.Capped = true
			return
		}
		r.distinct[key] = struct{}{}
	})
}

func (c *call) sawModel(model string) {
	c.record(func(r *recorder) {
		if _, ok := r.totals.ByModel[model]; !ok && len(r.totals.ByModel) >= maxModelNames || len(model) > 256 {
			model = otherModels
		}
		r.totals.ByModel[model]++
	})
}

func (c *call) wrote(status int) { c.record(func(r *recorder) { r.totals.ByStatus[status]++ }) }
func (c *call) abort()           { c.finish(func(r *recorder) { r.totals.Aborted++ }) }
func (c *call) refuse()          { c.finish(func(r *recorder) { r.totals.Refused++ }) }

func (c *call) fault(f Fault) {
	c.finish(func(r *recorder) {
		r.totals.Faults++
		r.totals.ByFault[f]++
	})
}

func (c *call) answer(req *request) {
	key := digestOf(req.model, req.prompt.all)
	c.finish(func(r *recorder) {
		r.totals.Answered++
		n, ok := r.answered[key]
		if !ok && len(r.answered) >= r.limit {
			r.totals.Capped = true
			return
		}
		n++
		r.answered[key] = n
		if n == 2 {
			r.totals.AnsweredTwice++
		}
		r.totals.AnsweredMost = max(r.totals.AnsweredMost, n)
	})
}

// settle marks the call as writing its response; the function it returns ends the
// call and lets a waiting snapshot go on.
func (c *call) settle() func() {
	done := make(chan struct{})
	c.r.mu.Lock()
	c.r.nextSettled++
	id := c.r.nextSettled
	c.r.settling[id] = done
	c.r.mu.Unlock()
	return func() {
		c.end()
		c.r.mu.Lock()
		delete(c.r.settling, id)
		c.r.mu.Unlock()
		close(done)
	}
}

// end takes the call out of flight; it may be called more than once.
func (c *call) end() {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	if !c.ended {
		c.ended = true
		c.r.inFlight--
	}
}
