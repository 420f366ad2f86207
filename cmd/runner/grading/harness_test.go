package grading

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/plan"
	"github.com/mcptest/mcptest-operator/engine/redact"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

// desk is a collector that keeps everything in memory.
type desk struct {
	mu          sync.Mutex
	concurrency int
	order       []string
	rows        map[string]*row
	posts       int // of judgments
	ends        int // of findings, those that failed included
	slices      int
	openRows    int // fetched and not ended
	mostOpen    int
	// limit is the maxCost of the run, in US dollars; 0: none. share is how much of it a pod gets in advance.
	limit, share float64
	claims       []wire.Claim
	allowance    wire.Allowance
	// others is what other pods have, and othersReserved what of it is not spent.
	others, othersReserved float64
	prices                 judge.Prices
	// down is asked before each request; an error is the answer.
	down func(ctx context.Context, what string) error
}

type row struct {
	spec   v1alpha1.EvalSpec
	kept   []v1alpha1.Judgment
	report *v1alpha1.Report
}

func evalOf(criteria ...string) v1alpha1.EvalSpec {
	spec := v1alpha1.EvalSpec{
		Response: new("Paris."), Rubric: &v1alpha1.RubricSource{}, Judge: &v1alpha1.JudgeSpec{Model: "claude-test"},
	}
	for _, name := range criteria {
		spec.Rubric.Criteria = append(spec.Rubric.Criteria, v1alpha1.Criterion{Name: name, Description: "Is it " + name + "?"})
	}
	return spec
}

// newDesk has so many rows, each with these criteria.
func newDesk(rows, concurrency int, criteria ...string) *desk {
	d := &desk{concurrency: concurrency, rows: map[string]*row{}}
	for n := range rows {
		name := fmt.Sprintf("run-%03d", n)
		d.order = append(d.order, name)
		d.rows[name] = &row{spec: evalOf(criteria...)}
	}
	return d
}

func (d *desk) ask(ctx context.Context, what string) error {
	d.mu.Lock()
	down := d.down
	d.mu.Unlock()
	if down != nil {
		return down(ctx, what)
	}
	return nil
}

func (d *desk) Slice(ctx context.Context) (wire.Slice, error) {
	d.mu.Lock()
	d.slices++
	d.mu.Unlock()
	if err := d.ask(ctx, "slice"); err != nil {
		return wire.Slice{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := wire.Slice{Run: "run", Concurrency: d.concurrency, Limited: d.limit > 0, Prices: d.prices}
	for _, name := range d.order {
		r := d.rows[name]
		s.Leaves = append(s.Leaves, wire.SliceLeaf{Name: name, Done: r.report != nil, Calls: plan.Calls(&r.spec)})
	}
	return s, nil
}

// Budget grants what fits, has calls wait for others, and grants nothing more once it was exhausted.
func (d *desk) Budget(ctx context.Context, claim wire.Claim) (wire.Allowance, error) {
	if err := d.ask(ctx, "budget"); err != nil {
		return wire.Allowance{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.claims = append(d.claims, claim)
	a := &d.allowance
	room := d.limit - d.others + 1e-9
	a.Wait = false
	switch {
	case claim.Final:
		a.Granted = claim.Used
	case a.Exhausted:
	case claim.Want <= room:
		a.Granted = claim.Want + min(claim.Extra, d.share*(room-claim.Want))
	case claim.Used+claim.Least <= room:
		a.Granted = claim.Used + claim.Least
	case !claim.Impatient && claim.Reserved+d.othersReserved > 0 && claim.Used-claim.Reserved+claim.Least <= room+d.othersReserved:
		a.Granted, a.Wait = claim.Used, true
	default:
		a.Granted, a.Exhausted = claim.Used, true
	}
	return *a, nil
}

func (d *desk) Leaf(ctx context.Context, name string) (wire.Leaf, error) {
	if err := d.ask(ctx, "leaf "+name); err != nil {
		return wire.Leaf{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.rows[name]
	d.openRows++
	d.mostOpen = max(d.mostOpen, d.openRows)
	return wire.Leaf{Name: name, Row: v1alpha1.Row{Name: name, Eval: name}, Spec: r.spec, Judgments: slices.Clone(r.kept), Done: r.report != nil}, nil
}

func (d *desk) PostJudgments(ctx context.Context, j wire.Judgments) error {
	if err := d.ask(ctx, "judgments"); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.posts++
	for _, leaf := range j.Leaves {
		r := d.rows[leaf.Name]
		for _, judgment := range leaf.Judgments {
			known := slices.ContainsFunc(r.kept, func(k v1alpha1.Judgment) bool { return k.QuestionKey == judgment.QuestionKey })
			if !known && judgment.Score != nil {
				r.kept = append(r.kept, judgment)
			}
		}
	}
	return nil
}

func (d *desk) PostFindings(ctx context.Context, name string, f v1alpha1.Findings) (wire.Receipt, error) {
	d.mu.Lock()
	d.ends++
	d.mu.Unlock()
	if err := d.ask(ctx, "findings "+name); err != nil {
		return wire.Receipt{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.rows[name]
	if r.report != nil {
		return wire.Receipt{}, refused(http.StatusConflict)
	}
	report := rubric.Score(v1alpha1.Row{Name: name, Eval: name}, &r.spec, f)
	r.report = &report
	d.openRows--
	return wire.Receipt{Outcome: report.Outcome, Score: report.Score}, nil
}

// ServeHTTP makes of a desk a collector behind HTTP, as package wire says.
func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer any
	var err error
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.Header.Get("Authorization") != "Bearer token":
		err = refused(http.StatusUnauthorized)
	case r.URL.Path == "/v1/slice":
		answer, err = d.Slice(r.Context())
	case r.URL.Path == "/v1/judgments":
		var body wire.Judgments
		if err = json.NewDecoder(r.Body).Decode(&body); err == nil {
			err = d.PostJudgments(r.Context(), body)
		}
	case r.URL.Path == "/v1/budget":
		var body wire.Claim
		if err = json.NewDecoder(r.Body).Decode(&body); err == nil {
			answer, err = d.Budget(r.Context(), body)
		}
	case r.Method == http.MethodGet:
		answer, err = d.Leaf(r.Context(), parts[2])
	default:
		var body v1alpha1.Findings
		if err = json.NewDecoder(r.Body).Decode(&body); err == nil {
			answer, err = d.PostFindings(r.Context(), parts[2], body)
		}
	}
	if err != nil {
		w.WriteHeader(wire.Status(err))
		answer = wire.Problem{Message: err.Error()}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func refused(status int) error {
	return &wire.StatusError{Status: status, Message: http.StatusText(status)}
}

// bench is a judge that answers every question, and remembers how often each was asked.
type bench struct {
	mu    sync.Mutex
	asked map[string]int
	calls int
	now   int
	most  int
	// answer says what is answered; the default is a score of 1.
	answer func(ctx context.Context, n int, r judge.Request) (judge.Response, error)
}

func (b *bench) Complete(ctx context.Context, r judge.Request) (judge.Response, error) {
	b.mu.Lock()
	if b.asked == nil {
		b.asked = map[string]int{}
	}
	b.calls++
	n := b.calls
	b.asked[r.Question]++
	b.now++
	b.most = max(b.most, b.now)
	b.mu.Unlock()
	defer func() { b.mu.Lock(); b.now--; b.mu.Unlock() }()
	if b.answer != nil {
		return b.answer(ctx, n, r)
	}
	return verdict(1, "it is"), nil
}

func verdict(score float64, reason string) judge.Response {
	data, _ := json.Marshal(map[string]any{"score": score, "reason": reason})
	return judge.Response{Answer: judge.Answer{Text: string(data), Structured: true}, Tokens: judge.Tokens{Input: 10, Output: 5}}
}

func optionsOf(c Collector, b *bench) Options {
	return Options{
		Collector: c,
		Judge:     judge.Options{Clients: map[v1alpha1.Provider]judge.Client{v1alpha1.ProviderAnthropic: b}},
		Env:       judge.Env{Keys: map[v1alpha1.Provider]bool{v1alpha1.ProviderAnthropic: true}},
		Redactor:  redact.New("hunter2-hunter2"),
	}
}

func answer(question string, score float64) v1alpha1.Judgment {
	return v1alpha1.Judgment{QuestionKey: v1alpha1.QuestionKey{Question: question}, Model: "claude-test", Score: &score, Reason: "from before"}
}

// finish runs a slice to its end and wants no error.
func finish(t testing.TB, o Options) Result {
	t.Helper()
	result, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return result
}
