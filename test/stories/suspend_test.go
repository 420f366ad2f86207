package stories

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

var _ = Describe("A suspended run", func() {
	suspend := func(ctx SpecContext, b *bench, kind, value string) {
		must(kubectl(ctx, "patch", kind, "ten", "-n", b.namespace, "--type=merge", "-p", `{"spec":{"suspend":`+value+`}}`))
	}
	// toldToStop polls whether a runner was told to stop, by its own log.
	toldToStop := func(b *bench) func() string {
		return func() string {
			var all strings.Builder
			logs, _ := filepath.Glob(filepath.Join(clusterDir, "pods", b.namespace+"_*", "runner", "log"))
			for _, name := range logs {
				data, err := os.ReadFile(name)
				if err == nil {
					all.Write(data)
				}
			}
			return all.String()
		}
	}

	It("goes on where it stopped, although it has no further tries, and buys nothing twice", func(ctx SpecContext) {
		b := newBench(ctx, everythingIsGood)
		b.judge.Hold(2)
		b.apply(ctx, strings.Replace(tenCriteria, "concurrency: 4", "concurrency: 4\n  backoffLimitPerIndex: 0", 1))
		Eventually(func() int64 { return b.judge.Stats().Held }).Should(BeEquivalentTo(4))
		suspend(ctx, b, "er", "true")
		Eventually(b.condition(ctx, "ten", v1alpha1.ConditionReady)).Should(HavePrefix("Unknown Suspended"))
		Eventually(toldToStop(b)).Should(ContainSubstring("told to stop"))
		b.judge.Release()
		Eventually(func() []int { return runnerProcesses(b.namespace) }).Should(BeEmpty())
		Expect(b.judge.Stats().Answered).To(BeEquivalentTo(6), "the calls under way were let end, and no other was made")
		suspend(ctx, b, "er", "false")
		Eventually(b.outcome(ctx, "ten")).Should(Equal(v1alpha1.OutcomePassed))
		Expect(b.judge.Stats().Answered).To(BeEquivalentTo(10))
		Expect(b.judge.Stats().AnsweredTwice).To(BeZero())
	})

	It("with a queue gives its quota back, and goes on in another Job", func(ctx SpecContext) {
		b := newBench(ctx, everythingIsGood)
		b.judge.Hold(2)
		b.apply(ctx, strings.Replace(tenCriteria, "concurrency: 4", "concurrency: 4\n  queueName: q", 1))
		job := &batchv1.Job{}
		there := func() error { return api.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: "ten"}, job) }
		Eventually(there).Should(Succeed())
		suspend(ctx, b, "job", "false") // what Kueue does when it admits a Job
		Eventually(func() int64 { return b.judge.Stats().Held }).Should(BeEquivalentTo(4))
		first := job.UID
		suspend(ctx, b, "er", "true")
		Eventually(toldToStop(b)).Should(ContainSubstring("told to stop"))
		b.judge.Release()
		Eventually(there).ShouldNot(Succeed())
		Expect(b.judge.Stats().Answered).To(BeEquivalentTo(6))
		suspend(ctx, b, "er", "false")
		Eventually(there).Should(Succeed())
		Expect(job.UID).NotTo(Equal(first))
		suspend(ctx, b, "job", "false")
		Eventually(b.outcome(ctx, "ten")).Should(Equal(v1alpha1.OutcomePassed))
		Expect(b.judge.Stats().Answered).To(BeEquivalentTo(10))
		Expect(b.judge.Stats().AnsweredTwice).To(BeZero())
	})
})
