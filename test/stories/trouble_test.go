package stories

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// oneQuestion is a run of one row with one question.
const oneQuestion = `
apiVersion: eval.mcptest.dev/v1alpha1
kind: EvalRun
metadata: {name: one}
spec:
  backoffLimitPerIndex: 0
  eval:
    prompt: What is the capital of France?
    response: Paris.
    judge: {model: claude-sonnet-5-5}
    rubric: {text: The answer is right.}
`

var _ = Describe("Trouble", func() {
	// note polls the note of the only row of the run.
	note := func(ctx SpecContext, b *bench) func() string {
		return func() string {
			if report := b.run(ctx, "one").Status.Report; report != nil {
				return string(report.Outcome) + ": " + report.Note
			}
			return ""
		}
	}

	DescribeTable("with the judge ends the row with a note that says what to do",
		func(ctx SpecContext, rules string, want ...string) {
			b := newBench(ctx, rules)
			b.apply(ctx, oneQuestion)
			Eventually(note(ctx, b)).Should(HavePrefix("Error: "))
			for _, text := range want {
				Expect(note(ctx, b)()).To(ContainSubstring(text))
			}
			Expect(b.run(ctx, "one").Status.Outcome).To(Or(BeEmpty(), Equal(v1alpha1.OutcomeError)))
			Eventually(b.outcome(ctx, "one")).Should(Equal(v1alpha1.OutcomeError))
			r := plugin(ctx, "report", "one", "-n", b.namespace)
			Expect(r.stdout).To(ContainSubstring(want[0]))
		},
		Entry("nonsense", "rules: [{when: {contains: right}, fault: malformed}]", "no valid verdict"),
		Entry("out of range", "rules: [{when: {contains: right}, fault: outOfRange}]", "no valid verdict"),
		Entry("refused", "rules: [{when: {contains: right}, fault: refusal}]", "no valid verdict"),
		Entry("no such model", "rules: [{when: {contains: right}, fault: status, status: 404}]", "404", "judge.model"),
		Entry("forbidden", "rules: [{when: {contains: right}, fault: status, status: 403}]", "403", "ANTHROPIC_API_KEY"),
	)

	It("with a fault that passes is not seen", func(ctx SpecContext) {
		b := newBench(ctx, "rules: [{when: {contains: right}, fault: status, status: 529, times: 1, score: 0.9, reason: fine}]")
		b.apply(ctx, oneQuestion)
		Eventually(b.outcome(ctx, "one")).Should(Equal(v1alpha1.OutcomePassed))
	})

	It("with a wrong key names the variable that holds it", func(ctx SpecContext) {
		b := newBenchWithoutKeys(ctx, everythingIsGood)
		Expect(api.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: v1alpha1.DefaultJudgeSecret},
			StringData: map[string]string{"ANTHROPIC_API_KEY": "sk-wrong", "ANTHROPIC_BASE_URL": b.judge.URL},
		})).To(Succeed())
		b.apply(ctx, oneQuestion)
		Eventually(note(ctx, b)).Should(And(HavePrefix("Error: "), ContainSubstring("401"), ContainSubstring("ANTHROPIC_API_KEY")))
		Expect(note(ctx, b)()).NotTo(ContainSubstring("sk-wrong"))
	})

	It("with a judge that is down ends as an error", func(ctx SpecContext) {
		b := newBench(ctx, "rules: [{when: {contains: right}, fault: drop}]")
		b.apply(ctx, oneQuestion)
		Eventually(note(ctx, b)).Should(And(HavePrefix("Error: "), ContainSubstring("6 attempts"), ContainSubstring("ANTHROPIC_BASE_URL")))
	})

	It("without a key defers, and says which key to give", func(ctx SpecContext) {
		b := newBenchWithoutKeys(ctx, everythingIsGood)
		b.apply(ctx, oneQuestion)
		Eventually(b.outcome(ctx, "one")).Should(Equal(v1alpha1.OutcomeDeferred))
		Expect(note(ctx, b)()).To(ContainSubstring("ANTHROPIC_API_KEY"))
		r := plugin(ctx, "report", "one", "-n", b.namespace)
		Expect(r.code).To(BeZero(), r.stdout+r.stderr)
		Expect(r.stdout).To(ContainSubstring("1 deferred"))
	})

	It("with a missing Rubric waits, says so, and goes on when the Rubric comes", func(ctx SpecContext) {
		b := newBench(ctx, everythingIsGood)
		b.apply(ctx, `
apiVersion: eval.mcptest.dev/v1alpha1
kind: Eval
metadata: {name: waits}
spec: {prompt: p, response: an answer, judge: {model: gpt-5.4-mini}, rubric: {ref: late}}
---
apiVersion: eval.mcptest.dev/v1alpha1
kind: EvalRun
metadata: {name: one}
spec: {evalRef: {name: waits}}
`)
		Eventually(b.condition(ctx, "one", v1alpha1.ConditionReady)).Should(And(HavePrefix("False RubricNotFound:"), ContainSubstring(`"late"`)))
		b.apply(ctx, `
apiVersion: eval.mcptest.dev/v1alpha1
kind: Rubric
metadata: {name: late}
spec: {text: The answer is right.}
`)
		Eventually(b.outcome(ctx, "one")).Should(Equal(v1alpha1.OutcomePassed))
	})

	It("with a missing Secret waits, says so, and goes on when the Secret comes", func(ctx SpecContext) {
		b := newBenchWithoutKeys(ctx, everythingIsGood)
		b.apply(ctx, `
apiVersion: eval.mcptest.dev/v1alpha1
kind: EvalRun
metadata: {name: one}
spec:
  eval: {prompt: p, response: an answer, rubric: {text: The answer is right.}, judge: {model: gpt-5.4-mini, secretRef: {name: team-keys}}}
`)
		Eventually(b.condition(ctx, "one", v1alpha1.ConditionReady)).Should(And(HavePrefix("False SecretNotFound:"), ContainSubstring("team-keys")))
		b.giveKeys(ctx, "team-keys")
		Eventually(b.outcome(ctx, "one")).Should(Equal(v1alpha1.OutcomePassed))
	})

	It("with pods that fit on no node is a condition", func(ctx SpecContext) {
		b := newBench(ctx, everythingIsGood)
		b.apply(ctx, `
apiVersion: eval.mcptest.dev/v1alpha1
kind: EvalRun
metadata: {name: one}
spec:
  podTemplate: {spec: {nodeSelector: {no-such: node}}}
  eval: {prompt: p, response: an answer, rubric: {text: The answer is right.}, judge: {model: gpt-5.4-mini}}
`)
		Eventually(b.condition(ctx, "one", v1alpha1.ConditionReady)).Should(HavePrefix("False PodsBlocked:"))
	})
})
