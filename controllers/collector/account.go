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

// take decides a claim (S-42): it enters into the budget what the pod has of it from now on, and returns that. pods is
// how many pods claim at once.
//
//   - What was used is entered whatever the limit is, so that the record stays true.
//   - What is wanted is granted as far as it fits. When it does not fit, the budget is exhausted, once and for all.
//   - Some extra comes on top. A pod asks for no more of it than it will need: a budget that is enough is never
//     exhausted because of what another pod holds.
//   - Only a final claim lowers what a pod has: one that was sent again, or comes late, must not take away what its pod
//     was granted since and may be spending.
//   - Another pod of the same slice begins anew. What its predecessor had stays taken: its calls under way may have
//     been billed.
func take(b *v1alpha1.BudgetStatus, limit nano, pods int32, who claimant, c wire.Claim) nano {
	account := accountOf(b, who)
	has := nanoOf(account.TakenUSD)
	others := max(0, nanoOf(b.TakenUSD)-has)
	used, want := nanoOf(c.Used), nanoOf(c.Want)
	left := limit - others - want
	switch {
	case c.Final:
		has = used
	case b.Exhausted:
		has = max(has, used)
	case left < 0:
		b.Exhausted = true
		has = max(has, used, limit-others)
	default:
		has = max(has, used, want+min(nanoOf(c.Extra), left/nano(extraShare*max(1, pods))))
	}
	account.TakenUSD = has.usd()
	b.TakenUSD = min(maxNano, others+has).usd()
	return has
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
