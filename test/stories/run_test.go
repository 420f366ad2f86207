package stories

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

const everythingIsGood = "default: {score: 0.9}"

var _ = Describe("A run with a matrix", func() {
	It("becomes children and one Job, and ends with the report of each row", func(ctx SpecContext) {
		rules, err := os.ReadFile(filepath.Join(repo, "hack/demo-rules.yaml"))
		Expect(err).NotTo(HaveOccurred())
		quickstart, err := os.ReadFile(filepath.Join(repo, "examples/quickstart.yaml"))
		Expect(err).NotTo(HaveOccurred())
		b := newBench(ctx, string(rules))
		b.apply(ctx, string(quickstart))
		Eventually(b.outcome(ctx, "demo")).Should(Equal(v1alpha1.OutcomePassed))

		children := &v1alpha1.EvalRunList{}
		Expect(api.List(ctx, children, client.InNamespace(b.namespace), client.MatchingLabels{v1alpha1.LabelParent: "demo"})).To(Succeed())
		Expect(children.Items).To(HaveLen(4))
		jobs := &batchv1.JobList{}
		Expect(api.List(ctx, jobs, client.InNamespace(b.namespace))).To(Succeed())
		Expect(jobs.Items).To(HaveLen(1))

		By("printing the canonical report")
		out := must(plugin(ctx, "report", "demo", "-n", b.namespace, "-o", "json"))
		var report v1alpha1.RunReport
		Expect(json.Unmarshal([]byte(out), &report)).To(Succeed())
		Expect(report.Rows).To(HaveLen(4))
		Expect(report.Summary.Passed).To(BeEquivalentTo(4))
		Expect(report.Summary.Calls).To(BeEquivalentTo(b.judge.Stats().Answered))
		Expect(b.judge.Stats().AnsweredTwice).To(BeZero())

		By("reading well in kubectl")
		Expect(must(kubectl(ctx, "get", "er", "demo", "-n", b.namespace))).To(MatchRegexp(`NAME\s+OUTCOME\s+SCORE\s+ROWS\s+COST\s+AGE\ndemo\s+Passed`))
		described := must(kubectl(ctx, "describe", "er", "demo", "-n", b.namespace))
		Expect(described).To(ContainSubstring("JobCreated"))
		Expect(described).To(ContainSubstring("4 of 4 rows passed"))

		By("keeping the key to itself")
		everything := must(kubectl(ctx, "get", "er,jobs,pods,events", "-n", b.namespace, "-o", "yaml"))
		Expect(everything + operator.Log() + out).NotTo(ContainSubstring(theKey))

		By("needing no credential of the API server in its pods")
		pods := &corev1.PodList{}
		Expect(api.List(ctx, pods, client.InNamespace(b.namespace))).To(Succeed())
		Expect(pods.Items).NotTo(BeEmpty())
		for _, pod := range pods.Items {
			Expect(pod.Spec.AutomountServiceAccountToken).To(HaveValue(BeFalse()))
			for _, volume := range pod.Spec.Volumes {
				for _, source := range volume.Projected.Sources {
					Expect(source.ServiceAccountToken.Audience).NotTo(BeEmpty())
				}
			}
		}
	})

	It("is made, followed and judged by one command", func(ctx SpecContext) {
		b := newBench(ctx, "rules: [{when: {contains: polite}, score: 0.2, reason: rude}]\ndefault: {score: 0.9}")
		b.apply(ctx, `
apiVersion: eval.mcptest.dev/v1alpha1
kind: Eval
metadata: {name: greeting}
spec:
  prompt: Greet the user.
  response: What do you want?
  judge: {model: claude-sonnet-5-5}
  rubric: {criteria: [{name: polite, description: The greeting is polite.}, {name: short, description: The greeting is short.}]}
`)
		r := plugin(ctx, "run", "greeting", "-n", b.namespace)
		Expect(r.code).To(Equal(1), r.stdout+r.stderr)
		Expect(r.stdout).To(ContainSubstring("greeting"))
		Expect(r.stdout).To(ContainSubstring("rude"))
		Eventually(func() string {
			return must(kubectl(ctx, "get", "eval", "greeting", "-n", b.namespace, "-o", "jsonpath={.status.lastRun.outcome}"))
		}).Should(Equal("Failed"))
	})
})

// tenCriteria is a run of two rows with five criteria each: ten calls.
const tenCriteria = `
apiVersion: eval.mcptest.dev/v1alpha1
kind: EvalRun
metadata: {name: ten}
spec:
  concurrency: 4
  eval:
    prompt: Describe it.
    response: It is round and red.
    matrix: {models: [claude-sonnet-5-5, gpt-5.4-mini]}
    rubric:
      criteria:
      - {name: a, description: It names a shape.}
      - {name: b, description: It names a colour.}
      - {name: c, description: It is a sentence.}
      - {name: d, description: It is short.}
      - {name: e, description: It is true.}
`

var _ = Describe("A kill", func() {
	// judgedSoFar counts the judgments that are kept in the children of the run.
	judgedSoFar := func(ctx SpecContext, b *bench) func() int {
		return func() int {
			children := &v1alpha1.EvalRunList{}
			Expect(api.List(ctx, children, client.InNamespace(b.namespace), client.MatchingLabels{v1alpha1.LabelParent: "ten"})).To(Succeed())
			n := 0
			for _, c := range children.Items {
				n += len(c.Status.Judgments)
				if c.Status.Report != nil {
					n += int(c.Status.Report.Usage.Calls)
				}
			}
			return n
		}
	}

	It("of the runner's pod loses no judgment and buys none twice", func(ctx SpecContext) {
		b := newBench(ctx, everythingIsGood)
		b.judge.Hold(3) // three answers, then the judge is silent
		b.apply(ctx, tenCriteria)
		Eventually(judgedSoFar(ctx, b)).Should(Equal(3))
		Eventually(func() int64 { return b.judge.Stats().Held }).Should(BeEquivalentTo(4))

		var pids []int
		Eventually(func() []int { pids = runnerProcesses(b.namespace); return pids }).Should(HaveLen(1))
		Expect(syscall.Kill(pids[0], syscall.SIGKILL)).To(Succeed())
		Eventually(func() int64 { return b.judge.Stats().Aborted }).Should(BeEquivalentTo(4))
		b.judge.Release()

		Eventually(b.outcome(ctx, "ten")).Should(Equal(v1alpha1.OutcomePassed))
		stats := b.judge.Stats()
		Expect(stats.Answered).To(BeEquivalentTo(10))
		Expect(stats.AnsweredTwice).To(BeZero())
		Expect(b.run(ctx, "ten").Status.Summary.Calls).To(BeEquivalentTo(10))
	})

	It("of the runner's pod by its deletion lets it end the calls under way", func(ctx SpecContext) {
		b := newBench(ctx, everythingIsGood)
		b.judge.Hold(2)
		b.apply(ctx, tenCriteria)
		Eventually(func() int64 { return b.judge.Stats().Held }).Should(BeEquivalentTo(4))
		must(kubectl(ctx, "delete", "pod", "-n", b.namespace, "-l", v1alpha1.LabelRun+"=ten", "--wait=false"))
		b.judge.Release()
		Eventually(b.outcome(ctx, "ten")).Should(Equal(v1alpha1.OutcomePassed))
		stats := b.judge.Stats()
		Expect(stats.Answered).To(BeEquivalentTo(10))
		Expect(stats.AnsweredTwice).To(BeZero())
	})

	It("of the manager stops nothing: it comes back and finishes the run", func(ctx SpecContext) {
		b := newBench(ctx, everythingIsGood)
		b.judge.Hold(3)
		b.apply(ctx, tenCriteria)
		Eventually(judgedSoFar(ctx, b)).Should(Equal(3))
		Expect(operator.Kill()).To(Succeed())
		b.judge.Release() // the runner goes on while nobody listens
		Eventually(func() int64 { return b.judge.Stats().Answered }).Should(BeEquivalentTo(10))
		Expect(operator.Start(ctx)).To(Succeed())
		Eventually(b.outcome(ctx, "ten")).Should(Equal(v1alpha1.OutcomePassed))
		Expect(b.judge.Stats().Answered).To(BeEquivalentTo(10))
		Expect(b.run(ctx, "ten").Status.Summary.Calls).To(BeEquivalentTo(10))
	})

	It("of the manager before the Job is there leaves a run that still ends once", func(ctx SpecContext) {
		b := newBench(ctx, everythingIsGood)
		Expect(operator.Kill()).To(Succeed())
		b.apply(ctx, tenCriteria)
		Expect(operator.Start(ctx)).To(Succeed())
		Eventually(b.outcome(ctx, "ten")).Should(Equal(v1alpha1.OutcomePassed))
		Expect(b.judge.Stats().Answered).To(BeEquivalentTo(10))
	})
})
