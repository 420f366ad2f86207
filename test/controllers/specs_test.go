package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

var _ = Describe("A Rubric", func() {
	It("tells that it is valid, what identifies it, and what it costs", func(ctx SpecContext) {
		s := newStage(ctx)
		r := s.rubric(ctx, "kind", "Is it kind?")
		ready := func() string {
			Expect(api.Get(ctx, s.key("kind"), r)).To(Succeed())
			text, _ := conditionText(r.Status.Conditions, "Ready")
			return text
		}
		Eventually(ctx, ready).Should(Equal("True Valid"))
		Expect(r.Status.ObservedGeneration).To(Equal(r.Generation))
		Expect(r.Status.Kind).To(Equal(v1alpha1.RubricKindText))
		Expect(r.Status.JudgeCalls).To(Equal(int32(1)))
		Expect(r.Status.Digest).To(HavePrefix("sha256:"))

		change(ctx, r, func(r *v1alpha1.Rubric) {
			r.Spec.Text = ""
			r.Spec.Criteria = []v1alpha1.Criterion{{Name: "c", Description: "Kind?", When: &v1alpha1.When{Regex: "("}}}
		})
		Eventually(ctx, ready).Should(Equal("False InvalidSpec"))
		text, message := conditionText(r.Status.Conditions, "Stalled")
		Expect(text).To(Equal("True InvalidSpec"))
		Expect(message).To(ContainSubstring("spec.criteria[0].when"))
		Expect(r.Status.Digest).To(BeEmpty())
	})
})

var _ = Describe("An Eval", func() {
	It("waits for its Rubric, and tells then how many rows and calls a run of it has", func(ctx SpecContext) {
		s := newStage(ctx)
		e := s.eval(ctx, "weather", twoByTwo)
		ready := func() string {
			Expect(api.Get(ctx, s.key("weather"), e)).To(Succeed())
			text, _ := conditionText(e.Status.Conditions, "Ready")
			return text
		}
		Eventually(ctx, ready).Should(Equal("False RubricNotFound"))
		rubric := s.rubric(ctx, "kind", "Is it kind?")
		Eventually(ctx, ready).Should(Equal("True Valid"))
		Expect(e.Status.Rows).To(Equal(int32(4)))
		Expect(e.Status.JudgeCalls).To(Equal(int32(4)))
		Expect(e.Status.ObservedGeneration).To(Equal(e.Generation))
		passed, _ := conditionText(e.Status.Conditions, "Passed")
		Expect(passed).To(Equal("Unknown NeverRun"))

		By("its digest changes with its Rubric")
		digest := e.Status.Digest
		change(ctx, rubric, func(r *v1alpha1.Rubric) { r.Spec.Text = "Is it very kind?" })
		Eventually(ctx, func() string { ready(); return e.Status.Digest }).ShouldNot(Equal(digest))
	})
})
