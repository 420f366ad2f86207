package stories

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// budgetRows and budgetQuestions make a run of 420 calls: the work of four pods.
const (
	budgetRows      = 42
	budgetQuestions = 10
	budgetCalls     = budgetRows * budgetQuestions
	// budgetInFlight is how many calls its pods make at once.
	budgetInFlight = 4 * 4
)

// budgetEval is the eval of these stories.
func budgetEval() string { return budgetEvalOf(budgetRows) }

// budgetEvalOf is the same with so many rows.
func budgetEvalOf(rows int) string {
	var b strings.Builder
	b.WriteString(`
apiVersion: eval.mcptest.dev/v1alpha1
kind: Eval
metadata: {name: costly}
spec:
  response: It is round and red.
  judge: {model: gpt-5.4-mini}
  rubric:
    criteria:
`)
	for i := range budgetQuestions {
		fmt.Fprintf(&b, "    - {name: c%d, description: It is good in respect %d.}\n", i, i)
	}
	b.WriteString("  matrix:\n    prompts:\n")
	for i := range rows {
		fmt.Fprintf(&b, "    - Describe thing %02d.\n", i)
	}
	return b.String()
}

func budgetRun(name string, maxCost float64) string {
	return fmt.Sprintf(`
apiVersion: eval.mcptest.dev/v1alpha1
kind: EvalRun
metadata: {name: %s}
spec: {evalRef: {name: costly}, parallelism: 4, concurrency: 4, maxCost: %.9f}
`, name, maxCost)
}

// projected is what a run of a manifest costs at most, as explain tells it, in US dollars.
func projected(ctx SpecContext, manifest string) float64 {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "eval.yaml")
	Expect(os.WriteFile(file, []byte(manifest), 0o600)).To(Succeed())
	out := must(plugin(ctx, "explain", "-f", file))
	found := regexp.MustCompile(`judge calls at most, about \$([0-9.]+)`).FindStringSubmatch(out)
	Expect(found).To(HaveLen(2), out)
	cost, err := strconv.ParseFloat(found[1], 64)
	Expect(err).NotTo(HaveOccurred())
	return cost + 0.00005 // it is rounded to 4 decimals
}

var _ = Describe("A budget", func() {
	// reports are those of the rows of a run that ended.
	reports := func(ctx SpecContext, b *bench, name string) []*v1alpha1.Report {
		GinkgoHelper()
		children := &v1alpha1.EvalRunList{}
		Expect(api.List(ctx, children, client.InNamespace(b.namespace), client.MatchingLabels{v1alpha1.LabelParent: name})).To(Succeed())
		Expect(children.Items).To(HaveLen(budgetRows))
		var all []*v1alpha1.Report
		for i := range children.Items {
			Expect(children.Items[i].Status.Report).NotTo(BeNil(), children.Items[i].Name)
			all = append(all, children.Items[i].Status.Report)
		}
		return all
	}
	// settled waits until every pod gave back what it did not spend.
	settled := func(ctx SpecContext, b *bench, name string) *v1alpha1.BudgetStatus {
		GinkgoHelper()
		job := &batchv1.Job{}
		Eventually(func() int32 {
			Expect(api.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: name}, job)).To(Succeed())
			return job.Status.Succeeded
		}).Should(BeEquivalentTo(4), "the run has four pods")
		budget := b.run(ctx, name).Status.Budget
		Expect(budget).NotTo(BeNil())
		Expect(budget.Accounts).To(HaveLen(4))
		return budget
	}
	// wantHalf checks a run whose budget was not enough.
	wantHalf := func(ctx SpecContext, b *bench, name string, answered int64) {
		GinkgoHelper()
		run := b.run(ctx, name)
		summary := run.Status.Summary
		Expect(summary.Rows).To(BeEquivalentTo(budgetRows))
		Expect(summary.Passed + summary.Errored).To(BeEquivalentTo(budgetRows))
		Expect(summary.Passed).To(BeNumerically(">", 0))
		Expect(summary.Errored).To(BeNumerically(">", 0))
		Expect(run.Status.Budget.Exhausted).To(BeTrue())

		calls, exceeded := int32(0), int32(0)
		for _, r := range reports(ctx, b, name) {
			calls += r.Usage.Calls
			if r.Outcome == v1alpha1.OutcomeError {
				Expect(r.Reason).To(Equal(v1alpha1.RowBudgetExceeded), r.Note)
				Expect(r.Usage.Calls).To(BeNumerically("<", budgetQuestions))
				exceeded++
			} else {
				Expect(r.Usage.Calls).To(BeEquivalentTo(budgetQuestions), "what was judged is kept")
			}
		}
		Expect(calls).To(Equal(summary.Calls), "rows sum up")
		Expect(exceeded).To(Equal(summary.Errored))
		Expect(int64(calls)).To(BeNumerically("<=", answered))
		Expect(b.condition(ctx, name, v1alpha1.ConditionPassed)()).To(And(HavePrefix("False BudgetExceeded:"),
			ContainSubstring("was used up: %d row", exceeded)))
		Eventually(func() string {
			return must(kubectl(ctx, "get", "events", "-n", b.namespace, "--field-selector", "involvedObject.name="+name+",reason=BudgetExceeded", "-o", "name"))
		}).Should(HavePrefix("event/"))
	}

	It("is kept by four pods together, also when one of them is killed", func(ctx SpecContext) {
		b := newBench(ctx, everythingIsGood)
		b.apply(ctx, budgetEval())

		By("judging everything when it is what explain says, and counting what was spent")
		b.apply(ctx, budgetRun("enough", projected(ctx, budgetEval())))
		Eventually(b.outcome(ctx, "enough")).Should(Equal(v1alpha1.OutcomePassed))
		whole := b.run(ctx, "enough").Status.Summary
		Expect(whole.Calls).To(BeEquivalentTo(budgetCalls))
		Expect(whole.UnpricedCalls).To(BeZero())
		taken := settled(ctx, b, "enough")
		Expect(taken.Exhausted).To(BeFalse())
		Expect(math.Abs(taken.TakenUSD-whole.CostUSD)).To(BeNumerically("<", 1e-6), "taken %v, cost %v", taken.TakenUSD, whole.CostUSD)

		By("stopping at the limit when it is not")
		half := whole.CostUSD / 2
		before := b.judge.Stats().Answered
		b.apply(ctx, budgetRun("half", half))
		Eventually(b.outcome(ctx, "half")).Should(Equal(v1alpha1.OutcomeError))
		taken = settled(ctx, b, "half")
		answered := b.judge.Stats().Answered - before
		wantHalf(ctx, b, "half", answered)
		spent := b.run(ctx, "half").Status.Summary.CostUSD
		GinkgoWriter.Printf("%d calls for %v of %v\n", answered, spent, half)
		// The stand-in bills no more than is estimated: there is no overshoot.
		Expect(spent).To(BeNumerically("<=", half+1e-9))
		Expect(math.Abs(taken.TakenUSD-spent)).To(BeNumerically("<", 1e-6), "taken %v, cost %v", taken.TakenUSD, spent)
		Expect(answered).To(BeNumerically(">", budgetCalls/4), "the money was there for more")

		By("losing track of no money when a pod is killed")
		before = b.judge.Stats().Answered
		aborted := b.judge.Stats().Aborted
		b.judge.Hold(60)
		b.apply(ctx, budgetRun("killed", half))
		Eventually(func() int64 { return b.judge.Stats().Held }).Should(BeEquivalentTo(budgetInFlight))
		var pids []int
		Eventually(func() []int { pids = runnerProcesses(b.namespace); return pids }).Should(HaveLen(4))
		Expect(syscall.Kill(pids[0], syscall.SIGKILL)).To(Succeed())
		Eventually(func() int64 { return b.judge.Stats().Aborted - aborted }).Should(BeEquivalentTo(4))
		b.judge.Release()
		Eventually(b.outcome(ctx, "killed")).Should(Equal(v1alpha1.OutcomeError))
		taken = settled(ctx, b, "killed")
		answered = b.judge.Stats().Answered - before
		wantHalf(ctx, b, "killed", answered)
		perCall := whole.CostUSD / budgetCalls
		GinkgoWriter.Printf("%d calls for %v taken of %v\n", answered, taken.TakenUSD, half)
		Expect(float64(answered)*perCall).To(BeNumerically("<=", half*1.1), "what the prompt cache saves differs from run to run")
		Expect(taken.TakenUSD).To(BeNumerically("<=", half+1e-9))
		Expect(taken.TakenUSD).To(BeNumerically(">=", b.run(ctx, "killed").Status.Summary.CostUSD-1e-9))
	})

	It("is enough when it is a little more than what the calls cost, however many are made at once", func(ctx SpecContext) {
		const rows = 12
		b := newBench(ctx, everythingIsGood)
		b.apply(ctx, budgetEvalOf(rows))
		run := func(name, limit string) string {
			return fmt.Sprintf("apiVersion: eval.mcptest.dev/v1alpha1\nkind: EvalRun\nmetadata: {name: %s}\n"+
				"spec: {evalRef: {name: costly}, parallelism: 1, concurrency: 16%s}\n", name, limit)
		}
		b.apply(ctx, run("unlimited", ""))
		Eventually(b.outcome(ctx, "unlimited")).Should(Equal(v1alpha1.OutcomePassed))
		cost := b.run(ctx, "unlimited").Status.Summary.CostUSD
		Expect(cost).To(BeNumerically(">", 0))
		b.apply(ctx, run("limited", fmt.Sprintf(", maxCost: %.9f", cost*1.05)))
		Eventually(b.outcome(ctx, "limited")).Should(Equal(v1alpha1.OutcomePassed))
		ended := b.run(ctx, "limited").Status
		Expect(ended.Summary.Passed).To(BeEquivalentTo(rows))
		Expect(ended.Summary.Calls).To(BeEquivalentTo(rows * budgetQuestions))
		Expect(ended.Budget.Exhausted).To(BeFalse())
		GinkgoWriter.Printf("%v of %v\n", ended.Summary.CostUSD, cost*1.05)
	})

	It("outlives the manager, and a run that is suspended and resumed", func(ctx SpecContext) {
		b := newBench(ctx, everythingIsGood)
		limited := strings.Replace(tenCriteria, "concurrency: 4", "concurrency: 4\n  maxCost: %.9f", 1)
		limited = fmt.Sprintf(limited, projected(ctx, tenCriteria))
		held := func() int64 { return b.judge.Stats().Held }

		By("having calls wait while nobody can grant them")
		b.judge.Hold(0)
		b.apply(ctx, limited)
		Eventually(held).Should(BeNumerically(">", 0))
		before := b.run(ctx, "ten").Status.Budget
		Expect(before).NotTo(BeNil(), "it is granted before the call is made")
		Expect(operator.Kill()).To(Succeed())
		b.judge.Release()
		b.judge.Hold(1)
		Expect(operator.Start(ctx)).To(Succeed())
		Eventually(held).Should(BeNumerically(">", 0))

		By("giving back when it is told to stop")
		must(kubectl(ctx, "patch", "er", "ten", "-n", b.namespace, "--type=merge", "-p", `{"spec":{"suspend":true}}`))
		Eventually(b.condition(ctx, "ten", v1alpha1.ConditionReady)).Should(HavePrefix("Unknown Suspended"))
		b.judge.Release()
		Eventually(func() []int { return runnerProcesses(b.namespace) }).Should(BeEmpty())

		By("going on with what is left")
		must(kubectl(ctx, "patch", "er", "ten", "-n", b.namespace, "--type=merge", "-p", `{"spec":{"suspend":false}}`))
		Eventually(b.outcome(ctx, "ten")).Should(Equal(v1alpha1.OutcomePassed))
		Expect(b.judge.Stats().Answered).To(BeEquivalentTo(10))
		Expect(b.judge.Stats().AnsweredTwice).To(BeZero())
		Eventually(func() float64 {
			run := b.run(ctx, "ten")
			return math.Abs(run.Status.Budget.TakenUSD - run.Status.Summary.CostUSD)
		}).Should(BeNumerically("<", 1e-6))
	})

	It("refuses a run whose judge has no price, and says how to give it one", func(ctx SpecContext) {
		b := newBench(ctx, everythingIsGood)
		b.apply(ctx, strings.Replace(budgetEval(), "gpt-5.4-mini", "gpt-of-our-own", 1))
		b.apply(ctx, budgetRun("one", 1))
		Eventually(b.condition(ctx, "one", v1alpha1.ConditionStalled)).Should(And(HavePrefix("True InvalidSpec: maxCost:"),
			ContainSubstring("gpt-of-our-own"), ContainSubstring("prices")))
		Expect(b.judge.Stats().Calls).To(BeZero())
	})
})
