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

// reserving says what of the accounts is not spent.
func reserving(b *v1alpha1.BudgetStatus, reserved ...float64) *v1alpha1.BudgetStatus {
	for i, usd := range reserved {
		b.Accounts[i].ReservedUSD = usd
	}
	return b
}

// numbered says which claim of the first account was entered last.
func numbered(b *v1alpha1.BudgetStatus, claim int64) *v1alpha1.BudgetStatus {
	b.Accounts[0].Claim = claim
	return b
}

func TestS42Take(t *testing.T) {
	a := claimant{slice: 0, pod: "a"}
	for name, tc := range map[string]struct {
		before *v1alpha1.BudgetStatus
		who    claimant
		claim  wire.Claim
		after  *v1alpha1.BudgetStatus
		wait   bool
	}{
		"the first claim opens an account": {budget(0), a, wire.Claim{Number: 1, Want: 0.25}, numbered(reserving(budget(0, 0.25), 0.25), 1), false},
		"a claim is a total, not a sum":    {budget(0, 0.25), a, wire.Claim{Used: 0.25, Want: 0.5}, reserving(budget(0, 0.5), 0.25), false},
		"the same again changes nothing": {
			numbered(reserving(budget(0, 0.5), 0.25), 2), a, wire.Claim{Number: 2, Used: 0.25, Want: 0.5},
			numbered(reserving(budget(0, 0.5), 0.25), 2), false,
		},
		"the same again is granted also when others spent too much since": {
			numbered(reserving(budget(1, 0.5), 0.25), 2), a, wire.Claim{Number: 2, Used: 0.25, Want: 0.5, Extra: 1},
			numbered(reserving(budget(1, 0.5), 0.25), 2), false,
		},
		"an older one takes nothing back": {
			numbered(reserving(budget(0, 0.5), 0.25), 2), a, wire.Claim{Number: 1, Want: 0.25},
			numbered(reserving(budget(0, 0.5), 0.25), 2), false,
		},
		"an older one takes nothing after the final one": {
			numbered(budget(0, 0.5), 3), a, wire.Claim{Number: 2, Used: 0.25, Want: 0.75}, numbered(budget(0, 0.5), 3), false,
		},
		"all that is left can be had": {
			budget(0, 0, 0.75), a, wire.Claim{Want: 0.25, Extra: 9}, reserving(budget(0, 0.25, 0.75), 0.25), false,
		},
		"extra is a share of what is left after the need": {budget(0), a, wire.Claim{Want: 0.2, Extra: 9}, reserving(budget(0, 0.3), 0.3), false},
		"and no more than is of use":                      {budget(0), a, wire.Claim{Want: 0.2, Extra: 0.01}, reserving(budget(0, 0.21), 0.21), false},
		"and nothing when it would be no call":            {budget(0), a, wire.Claim{Want: 0.2, Least: 0.15, Extra: 9}, reserving(budget(0, 0.2), 0.2), false},
		"(1) what does not fit together is granted as far as the first call": {
			budget(0.5), a, wire.Claim{Want: 0.75, Least: 0.25, Extra: 1}, reserving(budget(0.5, 0.25), 0.25), false,
		},
		"(1) also while others have calls under way": {
			reserving(budget(0, 0, 0.5), 0, 0.5), a, wire.Claim{Want: 1.25, Least: 0.5}, reserving(budget(0, 0.5, 0.5), 0.5, 0.5), false,
		},
		"(2) what would not fit if nothing were reserved exhausts the budget": {
			reserving(budget(0, 0.25, 0.75), 0, 0.25), a, wire.Claim{Used: 0.25, Want: 0.75, Least: 0.5},
			exhausted(reserving(budget(0, 0.25, 0.75), 0, 0.25)), false,
		},
		"(2) what pods had that are gone is spent": {
			reserving(budget(0.75, 0, 0.125), 0, 0.125), a, wire.Claim{Want: 0.5, Least: 0.5},
			exhausted(reserving(budget(0.75, 0, 0.125), 0, 0.125)), false,
		},
		"(2) granting no part of a call": {budget(0.75), a, wire.Claim{Want: 0.5, Least: 0.5}, exhausted(budget(0.75, 0)), false},
		"(3) what would fit then waits for a call of another pod": {
			reserving(budget(0, 0.25, 0.75), 0, 0.5), a, wire.Claim{Used: 0.25, Want: 1, Least: 0.5},
			reserving(budget(0, 0.25, 0.75), 0, 0.5), true,
		},
		"(3) or for one of its own": {
			reserving(budget(0, 0.75), 0.75), a, wire.Claim{Number: 1, Used: 0.75, Reserved: 0.5, Want: 1.25, Least: 0.5},
			numbered(reserving(budget(0, 0.75), 0.5), 1), true,
		},
		"(3) and gives back what it holds meanwhile": {
			reserving(budget(0, 0.5, 0.5), 0.25, 0.5), a, wire.Claim{Number: 1, Used: 0.25, Want: 0.75, Least: 0.5},
			numbered(reserving(budget(0, 0.25, 0.5), 0, 0.5), 1), true,
		},
		"(3) but not when the claim was sent again": {
			numbered(reserving(budget(0, 0.5, 0.5), 0.25, 0.5), 1), a, wire.Claim{Number: 1, Used: 0.25, Want: 0.875, Least: 0.625},
			numbered(reserving(budget(0, 0.5, 0.5), 0, 0.5), 1), true,
		},
		"(3) asking again changes nothing": {
			numbered(reserving(budget(0, 0.25, 0.75), 0, 0.75), 4), a, wire.Claim{Number: 5, Used: 0.25, Want: 0.75, Least: 0.5},
			numbered(reserving(budget(0, 0.25, 0.75), 0, 0.75), 4), true,
		},
		"(3) a pod that does not say which call is first waits for all": {
			reserving(budget(0, 0.25, 0.5), 0, 0.5), a, wire.Claim{Used: 0.25, Want: 1}, reserving(budget(0, 0.25, 0.5), 0, 0.5), true,
		},
		"(4) what does not fit exhausts the budget when nothing is under way": {
			budget(0, 0.25, 0.5), a, wire.Claim{Used: 0.25, Want: 0.75, Least: 0.5}, exhausted(budget(0, 0.25, 0.5)), false,
		},
		"(4) or when it waited long enough": {
			reserving(budget(0, 0.25, 0.5), 0, 0.5), a, wire.Claim{Used: 0.25, Want: 0.75, Least: 0.5, Impatient: true},
			exhausted(reserving(budget(0, 0.25, 0.5), 0, 0.5)), false,
		},
		"(4) though what fits is granted however long it waited": {
			reserving(budget(0, 0.25, 0.5), 0, 0.5), a, wire.Claim{Used: 0.25, Want: 0.5, Least: 0.25, Impatient: true},
			reserving(budget(0, 0.5, 0.5), 0.25, 0.5), false,
		},
		"an exhausted budget grants nothing more": {exhausted(budget(0, 0.25)), a, wire.Claim{Want: 0.5}, exhausted(budget(0, 0.25)), false},
		"calls that cost more than their estimate count": {
			budget(0, 0.25), a, wire.Claim{Used: 1.5, Want: 1.5, Final: true}, budget(0, 1.5), false,
		},
		"as well when more is wanted":      {budget(0, 0.25), a, wire.Claim{Used: 1.25, Want: 1.5}, exhausted(budget(0, 1.25)), false},
		"and when the budget is exhausted": {exhausted(budget(0, 0.25)), a, wire.Claim{Used: 0.5, Want: 1.5}, exhausted(budget(0, 0.5)), false},
		"the final claim gives back, and reserves nothing": {
			reserving(budget(0.125, 0.5, 0.25), 0.5), a, wire.Claim{Number: 9, Used: 0.25, Want: 0.25, Final: true},
			numbered(budget(0.125, 0.25, 0.25), 9), false,
		},
		"given back, an exhausted budget stays so": {
			exhausted(budget(0, 1)), a, wire.Claim{Used: 0.25, Want: 0.25, Final: true}, exhausted(budget(0, 0.25)), false,
		},
		"a new pod begins anew, the old one's stays taken": {
			numbered(reserving(budget(0.125, 0.25), 0.25), 7), claimant{0, "new"}, wire.Claim{Number: 1, Want: 0.125}, &v1alpha1.BudgetStatus{
				TakenUSD: 0.5, Accounts: []v1alpha1.BudgetAccount{{Slice: 0, Pod: "new", TakenUSD: 0.125, ReservedUSD: 0.125, Claim: 1}},
			}, false,
		},
		"more than anybody has":   {budget(0, 0.25), a, wire.Claim{Used: 0.25, Want: 1e300, Extra: 1e300}, exhausted(budget(0, 0.25)), false},
		"more extra than anybody": {budget(0), a, wire.Claim{Want: 0.2, Extra: 1e300}, reserving(budget(0, 0.3), 0.3), false},
		"more reserved than used": {budget(0), a, wire.Claim{Used: 0.25, Reserved: 1e300, Want: 0.5}, reserving(budget(0, 0.5), 0.5), false},
		"more spent than anybody": {budget(0, 0.25, 0.5), a, wire.Claim{Used: 1e300, Want: 1e300, Final: true}, &v1alpha1.BudgetStatus{
			TakenUSD: 1e9, Accounts: []v1alpha1.BudgetAccount{{Slice: 0, Pod: "a", TakenUSD: 1e9}, {Slice: 1, Pod: "b", TakenUSD: 0.5}},
		}, false},
		"sums are exact": {budget(0, 0, 0.1, 0.2, 0.3, 0.3), a, wire.Claim{Want: 0.1}, reserving(budget(0, 0.1, 0.1, 0.2, 0.3, 0.3), 0.1), false},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.before.DeepCopy()
			granted, wait := take(got, nanoOf(1), 2, tc.who, tc.claim)
			rounded := cmp.Transformer("nano", nanoOf)
			if diff := cmp.Diff(tc.after, got, rounded); diff != "" || wait != tc.wait {
				t.Errorf("wait %v, want %v; (-want +got):\n%s", wait, tc.wait, diff)
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
	number     int64
	sent       []wire.Claim
	ended      bool
}

func (p *player) claim(r *rand.Rand) wire.Claim {
	call := r.Float64() * 0.05
	p.number++
	p.granted = min(p.granted, nanoOf(p.used)) // until it has the answer
	return wire.Claim{
		Number: p.number, Used: p.used, Reserved: r.Float64() * p.used, Want: p.used + call*float64(1+r.IntN(3)), Least: call,
		Extra: r.Float64() * p.need, Impatient: r.IntN(50) == 0,
	}
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
				granted, wait := take(b, limit, int32(len(pods)), p.claimant, c)
				if !wait && !b.Exhausted && granted < nanoOf(c.Used+c.Least) {
					t.Fatalf("seed %d step %d: granted %v, and the first call of %+v does not fit", seed, step, granted.usd(), c)
				}
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
				p.number++
				p.granted, _ = take(b, limit, int32(len(pods)), p.claimant, wire.Claim{Number: p.number, Used: p.used, Want: p.used, Final: true})
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
				if a.ReservedUSD < 0 || a.ReservedUSD > a.TakenUSD {
					t.Fatalf("seed %d step %d: %v of %v are reserved", seed, step, a.ReservedUSD, a.TakenUSD)
				}
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
				p.number++
				c := wire.Claim{Number: p.number, Used: p.used, Want: p.used + call.usd(), Least: call.usd(), Extra: call.usd() * float64(calls[i]-1)}
				p.granted, _ = take(b, limit, int32(len(pods)), p.claimant, c)
			}
			if b.Exhausted || nanoOf(p.used)+call > p.granted {
				t.Fatalf("seed %d: %+v with %d calls left", seed, b, left)
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
				p.number++
				p.granted, _ = take(b, limit, pods, p.claimant, wire.Claim{Number: p.number, Used: p.used, Want: p.used + 1, Least: 1, Extra: float64(calls - n - 1)})
			}
			p.used++
		}
	}
	if claims > pods {
		t.Errorf("%d claims, want one a pod of a budget of ten times the need", claims)
	}
}

// Calls cost a part of their estimate, in every order: a budget is exhausted only when no pod has a call under way, and
// then not even the cheapest of the calls that are left fits beside what was spent.
func TestS42ABudgetIsNotExhaustedByWhatIsReserved(t *testing.T) {
	const estimate, cost = nano(3_000_000), nano(1_000_000)
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 11))
		pods := make([]*player, 1+r.IntN(6))
		left, underWay := make([]int, len(pods)), make([]int, len(pods))
		total := 0
		for i := range pods {
			pods[i] = &player{claimant: claimant{int32(i), podName(i)}}
			left[i] = 1 + r.IntN(40)
			total += left[i]
		}
		// What all of it costs, and what the last call needs beside.
		limit, b := cost*nano(total)+estimate-cost, &v1alpha1.BudgetStatus{}
		for open, steps := total, 0; open > 0; steps++ {
			i := r.IntN(len(pods))
			p := pods[i]
			used := nanoOf(p.used)
			switch {
			case steps > 1000*total:
				t.Fatalf("seed %d: %d calls of %d wait for ever: %+v", seed, open, total, b)
			case underWay[i] > 0 && r.IntN(2) == 0: // a call ends
				underWay[i]--
				open--
				p.used = (used - estimate + cost).usd()
			case left[i] == 0 && underWay[i] == 0 && !p.ended:
				p.number++
				take(b, limit, int32(len(pods)), p.claimant, wire.Claim{Number: p.number, Used: p.used, Want: p.used, Final: true})
				p.ended = true
			case left[i] == 0 || underWay[i] == 5:
			case used+estimate > p.granted:
				p.number++
				c := wire.Claim{
					Number: p.number, Used: p.used, Reserved: (estimate * nano(underWay[i])).usd(), Least: estimate.usd(),
					Want:  (used + estimate*nano(min(left[i], 5-underWay[i]))).usd(),
					Extra: (estimate * nano(max(0, left[i]-5+underWay[i]))).usd(),
				}
				p.granted, _ = take(b, limit, int32(len(pods)), p.claimant, c)
				if b.Exhausted {
					t.Fatalf("seed %d: exhausted with %d calls of %d open: %+v", seed, open, total, b)
				}
			default: // a call begins
				p.used = (used + estimate).usd()
				underWay[i]++
				left[i]--
			}
		}
	}
}
