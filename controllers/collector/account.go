package collector

import (
	"math"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
)

// nano is money in billionths of a US dollar: sums of it are exact, so that a thousand takings and givings back leave
// no trace.
type nano int64

// maxNano keeps sums finite: a billion US dollars. A maxCost is a million at most.
const maxNano nano = 1e18

// nanoOf rounds US dollars to billionths.
func nanoOf(usd float64) nano {
	return nano(math.Round(min(max(usd, 0), float64(maxNano)/1e9) * 1e9))
}

func (n nano) usd() float64 { return float64(n) / 1e9 }

// claimant is whose claim it is.
type claimant struct {
	slice int32
	pod   types.UID
}

// extraShare is the part of what is left that all pods together are given in advance, in one round of claims. A quarter: n
// claims of each pod leave (3/4)^n of the budget, so that a pod comes some 30 times while 99.99% of the money goes, and
// less often when there is enough for all; and near the end, where a quarter of what is left is no call any more,
// nothing is held back.
const extraShare = 4

// take decides a claim (S-42): it enters into the budget what the pod has of it from now on, and returns that, and
// whether the pod is to wait. pods is how many pods claim at once.
//
//   - What was used is entered whatever the limit is, so that the record stays true.
//   - What is wanted is granted when it fits, with some extra. A pod asks for no more of that than it may still need,
//     which is more than it will where criteria do not apply or a walk through a tree is short.
//   - When it does not fit, enough for the call that waits first is granted; never a part of a call, which would be of
//     use to nobody.
//   - When that does not fit either, the pod waits while calls are under way anywhere: they mostly cost less than was
//     reserved for them. A pod that waits gives back what it holds and cannot use.
//   - The budget is exhausted, once and for all, when the call would not fit if nothing were reserved, or when nothing
//     is under way that could be waited for.
//   - A claim that was sent again, or comes late, takes nothing away that its pod was granted since and may be spending.
//   - Another pod of the same slice begins anew. What its predecessor had stays taken, and counts as spent: its calls
//     under way may have been billed.
func take(b *v1alpha1.BudgetStatus, limit nano, pods int32, who claimant, c wire.Claim) (granted nano, wait bool) {
	account := accountOf(b, who)
	has := nanoOf(account.TakenUSD)
	if c.Number < account.Claim {
		return has, false // nobody waits for the answer
	}
	newer := c.Number > account.Claim
	others := max(0, nanoOf(b.TakenUSD)-has)
	used, want, first := nanoOf(c.Used), nanoOf(c.Want), nanoOf(c.Used+c.Least)
	if c.Least == 0 {
		first = want
	}
	spent := used - min(used, nanoOf(c.Reserved))
	room := max(has, limit-others) // what was granted fits, also when others have spent too much since
	spentByOthers, underWay := standing(b, who)
	after := *account
	switch {
	case c.Final:
		has = used
	case b.Exhausted:
		has = max(has, used)
	case want <= room:
		has = max(has, used, want+extra(limit-others-want, pods, c))
	case first <= room:
		has = max(has, used, first)
	case spentByOthers+spent+(first-used) <= limit && (underWay || spent < used) && !c.Impatient:
		wait = true
		if newer {
			has = used
		}
		has = max(has, used)
	default:
		b.Exhausted = true
		has = max(has, used)
	}
	reserved := has - spent
	if c.Final || spent == used && has < first {
		reserved = 0 // no call is under way, and none begins
	}
	after.TakenUSD, after.ReservedUSD = has.usd(), reserved.usd()
	if !wait || after != *account { // one that only asks again is not worth a write
		after.Claim = c.Number
	}
	*account = after
	b.TakenUSD = min(maxNano, others+has).usd()
	return has, wait
}

// extra is what a pod is granted beside what its calls need that wait, of what is left then: nothing when that would be
// no call.
func extra(left nano, pods int32, c wire.Claim) nano {
	share := max(0, min(nanoOf(c.Extra), left/nano(extraShare*max(1, pods))))
	if share < nanoOf(c.Least) {
		return 0
	}
	return share
}

// standing is what all but one pod have spent, pods that are gone included, and whether they have calls under way, as
// far as they said.
func standing(b *v1alpha1.BudgetStatus, who claimant) (spent nano, underWay bool) {
	spent = nanoOf(b.TakenUSD)
	for i := range b.Accounts {
		account := &b.Accounts[i]
		if account.Slice == who.slice {
			spent -= nanoOf(account.TakenUSD)
			continue
		}
		reserved := nanoOf(account.ReservedUSD)
		spent -= reserved
		underWay = underWay || reserved > 0
	}
	return max(0, spent), underWay
}

// accountOf finds the account of a pod, or opens it in the place of its predecessor's.
func accountOf(b *v1alpha1.BudgetStatus, who claimant) *v1alpha1.BudgetAccount {
	for i := range b.Accounts {
		account := &b.Accounts[i]
		if account.Slice != who.slice {
			continue
		}
		if account.Pod != who.pod {
			*account = v1alpha1.BudgetAccount{Slice: who.slice, Pod: who.pod}
		}
		return account
	}
	b.Accounts = append(b.Accounts, v1alpha1.BudgetAccount{Slice: who.slice, Pod: who.pod})
	return &b.Accounts[len(b.Accounts)-1]
}
