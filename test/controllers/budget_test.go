package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/utils/ptr"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// costing at most so many US dollars.
func costing(usd float64) func(*v1alpha1.EvalRun) {
	return func(r *v1alpha1.EvalRun) { r.Spec.MaxCost = &usd }
}

func judgedBy(models ...v1alpha1.ModelName) func(*v1alpha1.Eval) {
	return func(e *v1alpha1.Eval) {
		if len(models) == 1 {
			e.Spec.Judge = &v1alpha1.JudgeSpec{Model: models[0]}
			return
		}
		e.Spec.Judge = &v1alpha1.JudgeSpec{Panel: models}
	}
}

var _ = Describe("S-42 maxCost", func() {
	var s *stage
	BeforeEach(func(ctx SpecContext) {
		s = newStage(ctx)
		s.rubric(ctx, "kind", "Is it kind?")
	})

	DescribeTable("needs a price for each judge model that is named",
		func(ctx SpecContext, model string, change ...func(*v1alpha1.Eval)) {
			s.eval(ctx, "weather", change...)
			s.start(ctx, "run", "weather", costing(0.5))
			Expect(s.condition(ctx, "run", "Stalled", "True InvalidSpec")).To(And(
				HavePrefix("maxCost: the model "+model), ContainSubstring("prices: {"+model+": ")))
			s.noJob(ctx)
		},
		Entry("of an eval", "gpt-of-our-own", judgedBy("gpt-of-our-own")),
		Entry("of a panel", "claude-secret", judgedBy("gpt-5.4-mini", "claude-secret")),
		Entry("of a matrix", "claude-a", twoByTwo),
	)

	It("lets a run go on when its Eval names a model with a price", func(ctx SpecContext) {
		e := s.eval(ctx, "weather", judgedBy("gpt-of-our-own"))
		s.start(ctx, "run", "weather", costing(0.5))
		s.condition(ctx, "run", "Stalled", "True InvalidSpec")
		change(ctx, e, judgedBy("gpt-5.4-mini"))
		s.job(ctx, "run")
		s.condition(ctx, "run", "Stalled", "absent")
	})

	It("leaves a model that only the keys name to the runner, and asks for no price without maxCost", func(ctx SpecContext) {
		s.eval(ctx, "weather")
		s.start(ctx, "run", "weather", costing(0.5))
		s.job(ctx, "run")
		s.eval(ctx, "other", judgedBy("gpt-of-our-own"))
		s.start(ctx, "free", "other")
		s.job(ctx, "free")
	})

	It("is told by the conditions when it was used up, and what pods took of it is kept", func(ctx SpecContext) {
		s.eval(ctx, "weather", func(e *v1alpha1.Eval) {
			e.Spec.Judge = &v1alpha1.JudgeSpec{Model: "gpt-5.4-mini"}
			e.Spec.Matrix = &v1alpha1.Matrix{Prompts: []string{"one", "two", "three"}}
		})
		s.start(ctx, "run", "weather", costing(0.5))
		s.job(ctx, "run")
		s.condition(ctx, "run", "Ready", "Unknown Pending")
		spent := &v1alpha1.BudgetStatus{TakenUSD: 0.49, Exhausted: true, Accounts: []v1alpha1.BudgetAccount{{Slice: 0, Pod: "uid", TakenUSD: 0.49}}}
		s.status(ctx, "run", func(status *v1alpha1.EvalRunStatus) { status.Budget = spent })

		s.collect(ctx, "run-0", 0.9)
		for _, leaf := range []string{"run-1", "run-2"} {
			s.overBudget(ctx, leaf)
			Expect(s.condition(ctx, leaf, "Passed", "False BudgetExceeded")).NotTo(BeEmpty())
		}
		Expect(s.condition(ctx, "run", "Passed", "False BudgetExceeded")).To(
			Equal("1 of 3 rows passed, 2 errored; 1 judge call, $0.0000; maxCost $0.50 was used up: 2 rows were not judged"))
		s.condition(ctx, "run", "Complete", "True Finished")
		run := s.run(ctx, "run")
		Expect(run.Status.Outcome).To(Equal(v1alpha1.OutcomeError))
		Expect(run.Status.Budget).To(Equal(spent), "the reconciler does not touch it")
	})

	It("is told by the conditions of a run that grades its only row itself", func(ctx SpecContext) {
		s.eval(ctx, "weather", judgedBy("gpt-5.4-mini"))
		s.start(ctx, "run", "weather", costing(0.0125))
		s.job(ctx, "run")
		s.overBudget(ctx, "run")
		Expect(s.condition(ctx, "run", "Passed", "False BudgetExceeded")).To(HaveSuffix("; maxCost $0.0125 was used up: 1 row was not judged"))
		Expect(ptr.Deref(s.run(ctx, "run").Spec.MaxCost, 0)).To(Equal(0.0125))
	})
})
