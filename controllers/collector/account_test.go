package collector

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
)

// budget is one that these accounts, one a slice of pods a, b, c ..., have taken of, with what pods took that are gone.
func budget(gone float64, accounts ...float64) *v1alpha1.BudgetStatus {
	b := &v1alpha1.BudgetStatus{TakenUSD: gone}
	for i, taken := range accounts {
		b.TakenUSD += taken
		b.Accounts = append(b.Accounts, v1alpha1.BudgetAccount{Slice: int32(i), Pod: podName(i), TakenUSD: taken})
	}
	return b
}

func podName(slice int) types.UID { return types.UID(string(rune('a' + slice))) }

func exhausted(b *v1alpha1.BudgetStatus) *v1alpha1.BudgetStatus { b.Exhausted = true; return b }

func TestS42Take(t *testing.T) {
	a := claimant{slice: 0, pod: "a"}
	for name, tc := range map[string]struct {
		before *v1alpha1.BudgetStatus
		who    claimant
		claim  wire.Claim
		after  *v1alpha1.BudgetStatus
	}{
		"the first claim opens an account":                {budget(0), a, wire.Claim{Want: 0.25}, budget(0, 0.25)},
		"a claim is a total, not a sum":                   {budget(0, 0.25), a, wire.Claim{Used: 0.25, Want: 0.5}, budget(0, 0.5)},
		"the same again changes nothing":                  {budget(0, 0.5), a, wire.Claim{Used: 0.25, Want: 0.5}, budget(0, 0.5)},
		"an older one takes nothing back":                 {budget(0, 0.5), a, wire.Claim{Want: 0.25}, budget(0, 0.5)},
		"what others have is gone":                        {budget(0, 0, 0.75), a, wire.Claim{Want: 0.5}, exhausted(budget(0, 0.25, 0.75))},
		"all that is left can be had":                     {budget(0, 0, 0.75), a, wire.Claim{Want: 0.25, Extra: 9}, budget(0, 0.25, 0.75)},
		"extra is a share of what is left after the need": {budget(0), a, wire.Claim{Want: 0.2, Extra: 9}, budget(0, 0.3)},
		"and no more than is of use":                      {budget(0), a, wire.Claim{Want: 0.2, Extra: 0.01}, budget(0, 0.21)},
		"what does not fit is granted as far as it does":  {budget(0.5), a, wire.Claim{Want: 0.75, Extra: 1}, exhausted(budget(0.5, 0.5))},
		"an exhausted budget grants nothing more":         {exhausted(budget(0, 0.25)), a, wire.Claim{Want: 0.5}, exhausted(budget(0, 0.25))},
		"calls that cost more than their estimate count":  {budget(0, 0.25), a, wire.Claim{Used: 1.5, Want: 1.5, Final: true}, budget(0, 1.5)},
		"as well when more is wanted":                     {budget(0, 0.25), a, wire.Claim{Used: 1.25, Want: 1.5}, exhausted(budget(0, 1.25))},
		"and when the budget is exhausted":                {exhausted(budget(0, 0.25)), a, wire.Claim{Used: 0.5, Want: 1.5}, exhausted(budget(0, 0.5))},
		"the final claim gives back":                      {budget(0.125, 0.5, 0.25), a, wire.Claim{Used: 0.25, Want: 0.25, Final: true}, budget(0.125, 0.25, 0.25)},
		"given back, an exhausted budget stays so":        {exhausted(budget(0, 1)), a, wire.Claim{Used: 0.25, Want: 0.25, Final: true}, exhausted(budget(0, 0.25))},
		"a new pod begins anew, the old one's stays taken": {budget(0.125, 0.25), claimant{0, "new"}, wire.Claim{Want: 0.125}, &v1alpha1.BudgetStatus{
			TakenUSD: 0.5, Accounts: []v1alpha1.BudgetAccount{{Slice: 0, Pod: "new", TakenUSD: 0.125}},
		}},
		"more than anybody has":   {budget(0, 0.25), a, wire.Claim{Used: 0.25, Want: 1e300, Extra: 1e300}, exhausted(budget(0, 1))},
		"more extra than anybody": {budget(0), a, wire.Claim{Want: 0.2, Extra: 1e300}, budget(0, 0.3)},
		"more spent than anybody": {budget(0, 0.25, 0.5), a, wire.Claim{Used: 1e300, Want: 1e300, Final: true}, &v1alpha1.BudgetStatus{
			TakenUSD: 1e9, Accounts: []v1alpha1.BudgetAccount{{Slice: 0, Pod: "a", TakenUSD: 1e9}, {Slice: 1, Pod: "b", TakenUSD: 0.5}},
		}},
		"sums are exact": {budget(0, 0, 0.1, 0.2, 0.3, 0.3), a, wire.Claim{Want: 0.1}, budget(0, 0.1, 0.1, 0.2, 0.3, 0.3)},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.before.DeepCopy()
			granted := take(got, nanoOf(1), 2, tc.who, tc.claim)
			rounded := cmp.Transformer("nano", nanoOf)
			if diff := cmp.Diff(tc.after, got, rounded); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if account := got.Accounts[slices.IndexFunc(got.Accounts, func(a v1alpha1.BudgetAccount) bool { return a.Slice == tc.who.slice })]; granted.usd() != account.TakenUSD {
				t.Errorf("granted %v, and the account has %v", granted.usd(), account.TakenUSD)
			}
		})
	}
}

// player is a pod of the property test: it spends what it was granted, and its claims may be lost, doubled and late.
type player struct {
	claimant
	used, need float64 // need is what its calls are estimated at together
	granted    nano
	sent       []wire.Claim
	ended      bool
}

func (p *player) claim(r *rand.Rand) wire.Claim {
	call := r.Float64() * 0.05
	return wire.Claim{Used: p.used, Want: p.used + call, Extra: r.Float64() * p.need}
}

// Whatever becomes of claims and answers on their way: pods together never have more than the limit, calls that cost more
// than their estimate aside, and what they have is in the record.
func TestS42NoOrderOfClaimsGrantsMoreThanTheLimit(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 42))
		limit, b := nanoOf(0.1+r.Float64()*2), &v1alpha1.BudgetStatus{}
		pods := make([]*player, 1+r.IntN(6))
		for i := range pods {
			pods[i] = &player{claimant: claimant{int32(i), types.UID(fmt.Sprint("pod-", i))}, need: r.Float64()}
		}
		var overshoot, gone nano
		for step := range 200 {
			p := pods[r.IntN(len(pods))]
			switch what := r.IntN(20); {
			case what < 4 && p.ended && len(p.sent) > 0: // one that comes after the final one: granted to nobody
				take(b, limit, int32(len(pods)), p.claimant, p.sent[r.IntN(len(p.sent))])
			case p.ended:
			case what < 8: // a claim whose answer arrives, or does not
				c := p.claim(r)
				p.sent = append(p.sent, c)
				granted := take(b, limit, int32(len(pods)), p.claimant, c)
				if r.IntN(4) > 0 {
					p.granted = granted
				}
			case what < 12 && len(p.sent) > 0: // one of those before, once more; nobody waits for the answer
				take(b, limit, int32(len(pods)), p.claimant, p.sent[r.IntN(len(p.sent))])
			case what < 17: // calls within what was granted
				p.used += r.Float64() * max(0, p.granted.usd()-p.used)
			case what == 17: // a call that cost more than was granted
				more := r.Float64() * 0.01
				overshoot += max(0, nanoOf(p.used+more)-max(p.granted, nanoOf(p.used)))
				p.used += more
			case what == 18: // killed: the slice goes on in another pod
				gone += max(p.granted, nanoOf(p.used))
				*p = player{claimant: claimant{p.slice, p.pod + "+"}, need: p.need}
			default: // ended
				p.granted = take(b, limit, int32(len(pods)), p.claimant, wire.Claim{Used: p.used, Want: p.used, Final: true})
				p.ended = true
			}
			has := gone
			for _, p := range pods {
				has += p.granted
			}
			if slack := nano(len(pods) + 1); has > limit+overshoot+slack {
				t.Fatalf("seed %d step %d: pods have %v of %v, of which %v are overshoot", seed, step, has.usd(), limit.usd(), overshoot.usd())
			}
			if nanoOf(b.TakenUSD) > limit+overshoot+200 {
				t.Fatalf("seed %d step %d: %v of %v are taken, of which %v are overshoot", seed, step, b.TakenUSD, limit.usd(), overshoot.usd())
			}
			sum := nano(0)
			for _, a := range b.Accounts {
				sum += nanoOf(a.TakenUSD)
			}
			if sum > nanoOf(b.TakenUSD) {
				t.Fatalf("seed %d step %d: accounts have %v, and %v are taken", seed, step, sum.usd(), b.TakenUSD)
			}
		}
	}
}

// A pod asks in advance for no more than it will need. So a budget that is enough for all is enough in every order.
func TestS42ABudgetThatIsEnoughIsNeverExhausted(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		const call = nano(3_333_333)
		pods, left := make([]*player, 1+r.IntN(8)), 0
		calls := make([]int, len(pods))
		for i := range pods {
			pods[i] = &player{claimant: claimant{int32(i), podName(i)}}
			calls[i] = r.IntN(60)
			left += calls[i]
		}
		limit, b, claims := call*nano(left), &v1alpha1.BudgetStatus{}, 0
		for left > 0 {
			i := r.IntN(len(pods))
			p := pods[i]
			if calls[i] == 0 {
				continue
			}
			if nanoOf(p.used)+call > p.granted {
				claims++
				c := wire.Claim{Used: p.used, Want: p.used + call.usd(), Extra: call.usd() * float64(calls[i]-1)}
				p.granted = take(b, limit, int32(len(pods)), p.claimant, c)
			}
			if b.Exhausted {
				t.Fatalf("seed %d: exhausted with %d calls left", seed, left)
			}
			p.used += call.usd()
			calls[i]--
			left--
		}
		if got := nanoOf(b.TakenUSD); got != limit {
			t.Errorf("seed %d: %v taken, want all of %v", seed, got, limit)
		}
	}
}

// While there is plenty a pod comes seldom.
func TestS42ClaimsAreRareWhileThereIsPlenty(t *testing.T) {
	const pods, calls = 4, 10_000
	limit, b, claims := nanoOf(10*pods*calls), &v1alpha1.BudgetStatus{}, 0
	var players [pods]player
	for i := range players {
		players[i].claimant = claimant{int32(i), podName(i)}
	}
	for n := range calls {
		for i := range players {
			p := &players[i]
			if nanoOf(p.used+1) > p.granted {
				claims++
				p.granted = take(b, limit, pods, p.claimant, wire.Claim{Used: p.used, Want: p.used + 1, Extra: float64(calls - n - 1)})
			}
			p.used++
		}
	}
	if claims > pods {
		t.Errorf("%d claims, want one a pod of a budget of ten times the need", claims)
	}
}
