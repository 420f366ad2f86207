package controllers_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

var _ = Describe("An EvalRun", func() {
	var s *stage
	BeforeEach(func(ctx SpecContext) { s = newStage(ctx) })

	Describe("while it is resolved", func() {
		It("waits for a Rubric, names the nearest one, and goes on when it appears", func(ctx SpecContext) {
			s.rubric(ctx, "kindly", "Is it kindly?")
			s.eval(ctx, "weather")
			s.start(ctx, "run", "weather")
			Expect(s.condition(ctx, "run", "Ready", "False RubricNotFound")).To(And(ContainSubstring(`Rubric "kind" not found`), ContainSubstring(`did you mean "kindly"?`)))
			Expect(s.condition(ctx, "run", "Reconciling", "True RubricNotFound")).NotTo(BeEmpty())
			s.condition(ctx, "run", "Stalled", "absent")
			s.noJob(ctx)

			s.rubric(ctx, "kind", "Is it kind?")
			s.job(ctx, "run")
			s.condition(ctx, "run", "Ready", "Unknown Pending")
			Eventually(ctx, func() []string { return s.events(ctx, "run") }).Should(Equal([]string{"JobCreated", "Resolved", "RubricNotFound"}))
		})

		It("waits for its Eval, and names the nearest one", func(ctx SpecContext) {
			s.rubric(ctx, "kind", "Is it kind?")
			s.eval(ctx, "weather")
			s.start(ctx, "run", "wether")
			Expect(s.condition(ctx, "run", "Ready", "False EvalNotFound")).To(ContainSubstring(`did you mean "weather"?`))
			s.eval(ctx, "wether")
			s.job(ctx, "run")
		})

		It("waits for a ConfigMap", func(ctx SpecContext) {
			s.rubric(ctx, "kind", "Is it kind?")
			s.eval(ctx, "weather", func(e *v1alpha1.Eval) {
				e.Spec.Response = nil
				e.Spec.ResponseFrom = &v1alpha1.ResponseSource{ConfigMapKeyRef: v1alpha1.ConfigMapKey{Name: "answers", Key: "weather"}}
			})
			s.start(ctx, "run", "weather")
			s.condition(ctx, "run", "Ready", "False ConfigMapNotFound")
			Expect(api.Create(ctx, &corev1.ConfigMap{ObjectMeta: s.meta("answers"), Data: map[string]string{"weather": "Rain."}})).To(Succeed())
			s.touch(ctx, "run")
			s.job(ctx, "run")
			Expect(*s.run(ctx, "run").Status.EvalSpec.Response).To(Equal("Rain."))
		})

		It("is stalled by an invalid Rubric, and goes on when that is mended", func(ctx SpecContext) {
			r := &v1alpha1.Rubric{ObjectMeta: s.meta("kind"), Spec: v1alpha1.RubricSpec{Criteria: []v1alpha1.Criterion{
				{Name: "c", Description: "Kind?", When: &v1alpha1.When{Regex: "("}},
			}}}
			Expect(api.Create(ctx, r)).To(Succeed())
			s.eval(ctx, "weather")
			s.start(ctx, "run", "weather")
			Expect(s.condition(ctx, "run", "Stalled", "True InvalidSpec")).To(ContainSubstring("criteria[0].when"))
			change(ctx, r, func(r *v1alpha1.Rubric) { r.Spec.Criteria[0].When = nil })
			s.job(ctx, "run")
			s.condition(ctx, "run", "Stalled", "absent")
		})

		It("is refused when its rows need different Secrets", func(ctx SpecContext) {
			s.rubric(ctx, "kind", "Is it kind?")
			for _, name := range []string{"a", "b"} {
				s.eval(ctx, name, func(e *v1alpha1.Eval) {
					e.Labels = map[string]string{"suite": "x"}
					e.Spec.Judge = &v1alpha1.JudgeSpec{SecretRef: &v1alpha1.SecretReference{Name: "keys-" + name}}
				})
			}
			s.start(ctx, "run", "", bySuite("x"))
			Expect(s.condition(ctx, "run", "Stalled", "True InvalidSpec")).To(And(ContainSubstring("keys-a"), ContainSubstring("keys-b"), ContainSubstring("separately")))
			s.noJob(ctx)
		})

		It("waits until something has the labels that it selects", func(ctx SpecContext) {
			s.rubric(ctx, "kind", "Is it kind?")
			a, b := s.eval(ctx, "a"), s.eval(ctx, "b")
			s.start(ctx, "run", "", bySuite("x"))
			s.condition(ctx, "run", "Ready", "False NothingSelected")
			s.noJob(ctx)
			label := func(e *v1alpha1.Eval) { e.Labels = map[string]string{"suite": "x"} }
			change(ctx, a, label)
			s.job(ctx, "run")
			change(ctx, b, label) // too late: it is frozen
			Expect(s.run(ctx, "run").Status.Row.Name).To(Equal("a"))
		})

		It("is refused when it claims to be a row that nobody controls", func(ctx SpecContext) {
			s.start(ctx, "run", "", func(r *v1alpha1.EvalRun) {
				r.Spec.Eval = &v1alpha1.EvalSpec{Response: ptr.To("x"), Rubric: &v1alpha1.RubricSource{RubricSpec: v1alpha1.RubricSpec{Text: "?"}}}
				r.Spec.Row = &v1alpha1.Row{Name: "r", Eval: "r"}
			})
			Expect(s.condition(ctx, "run", "Stalled", "True InvalidSpec")).To(ContainSubstring("spec.row"))
		})
	})

	Describe("of a 2x2 matrix", func() {
		BeforeEach(func(ctx SpecContext) {
			s.rubric(ctx, "kind", "Is it kind?")
			s.eval(ctx, "weather", twoByTwo)
		})

		It("has four children and one Job, and ends when each child has its report", func(ctx SpecContext) {
			s.start(ctx, "run", "weather")
			job := s.job(ctx, "run")
			Expect(*job.Spec.Completions).To(Equal(int32(1)), "four calls are one pod's work")
			children := s.children(ctx, "run")
			Expect(children).To(HaveLen(4))
			for _, child := range children {
				Expect(metav1.IsControlledBy(&child, s.run(ctx, "run"))).To(BeTrue())
				Expect(child.Labels).To(HaveKeyWithValue(v1alpha1.LabelEval, "weather"))
				Expect(child.Spec.Eval.Rubric.Text).To(Equal("Is it kind?"), "the reference is filled in")
				Expect(child.Spec.Eval.Matrix).To(BeNil())
			}
			Expect(children[0].Name).To(Equal("run-0"))
			Expect(children[0].Spec.Row.Cell).To(Equal(&v1alpha1.Cell{Model: "claude-a", Prompt: "one"}))
			s.condition(ctx, "run", "Ready", "Unknown Pending")

			for leaf, score := range map[string]float64{"run-0": 0.9, "run-1": 0.1, "run-3": 0.8} {
				s.collect(ctx, leaf, score)
			}
			Eventually(ctx, func() int32 { return s.run(ctx, "run").Status.Summary.Passed }).Should(Equal(int32(2)), "progress is shown")
			Expect(s.run(ctx, "run").Status.Outcome).To(BeEmpty())
			s.collect(ctx, "run-2", 0.7)

			Expect(s.condition(ctx, "run", "Complete", "True Finished")).To(HavePrefix("3 of 4 rows passed, 1 failed; 4 judge calls"))
			s.condition(ctx, "run", "Passed", "False Failed")
			s.condition(ctx, "run", "Ready", "True Finished")
			s.condition(ctx, "run", "Reconciling", "absent")
			done := s.run(ctx, "run")
			Expect(done.Status.Outcome).To(Equal(v1alpha1.OutcomeFailed))
			Expect(done.Status.Summary.Calls).To(Equal(int32(4)))
			Expect(done.Status.ProjectedCalls).To(Equal(int32(4)))
			Expect(done.Status.CompletionTime).NotTo(BeNil())
			Expect(done.Status.Rows).To(HaveLen(4))
			Expect(done.Status.Rows[0].Run).To(Equal("run-1"), "the bad one is first")
			Eventually(ctx, func() []string { return s.events(ctx, "run") }).Should(Equal([]string{"ChildrenCreated", "Failed", "JobCreated", "Resolved"}))

			By("the Eval shows how its newest run ended")
			Eventually(ctx, func() string {
				e := &v1alpha1.Eval{}
				Expect(api.Get(ctx, s.key("weather"), e)).To(Succeed())
				if e.Status.LastRun == nil {
					return ""
				}
				Expect(e.Status.LastRun.Digest).To(Equal(e.Status.Digest), "nothing was edited since")
				text, _ := conditionText(e.Status.Conditions, "Passed")
				return e.Status.LastRun.Name + " " + text
			}).Should(Equal("run False Failed"))
		})

		It("is frozen once its Job is there: edits change nothing, and a deleted Job is made anew", func(ctx SpecContext) {
			s.start(ctx, "run", "weather")
			job := s.job(ctx, "run")
			s.condition(ctx, "run", "Ready", "Unknown Pending")
			s.collect(ctx, "run-0", 0.9)
			before := toJSON(specs(s.children(ctx, "run")))
			change(ctx, &v1alpha1.Eval{ObjectMeta: s.meta("weather")}, func(e *v1alpha1.Eval) {
				e.Spec.Matrix.Models = []v1alpha1.ModelName{"claude-c"}
				e.Spec.Response = ptr.To("edited")
			})
			Expect(api.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
			Eventually(ctx, func() bool {
				again := &batchv1.Job{}
				return api.Get(ctx, s.key("run"), again) == nil && again.UID != job.UID
			}).Should(BeTrue())
			Expect(toJSON(specs(s.children(ctx, "run")))).To(Equal(before))
			Expect(s.run(ctx, "run-0").Status.Report).NotTo(BeNil(), "what was judged is kept")
		})

		It("remakes the children of an older plan when it was stopped before its Job was made", func(ctx SpecContext) {
			s.start(ctx, "run", "weather", func(r *v1alpha1.EvalRun) { r.Spec.Suspend, r.Spec.QueueName = true, "q" })
			s.condition(ctx, "run", "Ready", "Unknown Suspended")
			root := s.run(ctx, "run")
			By("an operator that was killed half-way left two children of the plan before the edit")
			for _, name := range []string{"run-0", "run-1"} {
				stale := &v1alpha1.EvalRun{ObjectMeta: s.meta(name), Spec: v1alpha1.EvalRunSpec{
					Eval: &v1alpha1.EvalSpec{Response: ptr.To("old"), Rubric: &v1alpha1.RubricSource{RubricSpec: v1alpha1.RubricSpec{Text: "old?"}}},
					Row:  &v1alpha1.Row{Name: "old " + name, Eval: "old"},
				}}
				stale.Labels = map[string]string{v1alpha1.LabelParent: "run", v1alpha1.LabelPlan: "0ldp1an"}
				stale.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(root, v1alpha1.GroupVersion.WithKind("EvalRun"))}
				Expect(api.Create(ctx, stale)).To(Succeed())
			}
			change(ctx, &v1alpha1.Eval{ObjectMeta: s.meta("weather")}, func(e *v1alpha1.Eval) { e.Spec.Response = ptr.To("new") })
			change(ctx, root, func(r *v1alpha1.EvalRun) { r.Spec.Suspend = false })

			job := s.job(ctx, "run")
			Expect(*job.Spec.Suspend).To(BeTrue(), "Kueue starts it")
			Expect(job.Labels).To(HaveKeyWithValue("kueue.x-k8s.io/queue-name", "q"))
			children := s.children(ctx, "run")
			Expect(children).To(HaveLen(4))
			for _, child := range children {
				Expect(*child.Spec.Eval.Response).To(Equal("new"))
				Expect(child.Labels[v1alpha1.LabelPlan]).To(Equal(children[0].Labels[v1alpha1.LabelPlan]))
			}
			Expect(s.condition(ctx, "run", "Ready", "Unknown Pending")).To(ContainSubstring("waits in queue q"))

			By("suspended with a queue, its Job is deleted, and made again when it is resumed")
			change(ctx, root, func(r *v1alpha1.EvalRun) { r.Spec.Suspend = true })
			Eventually(ctx, func() bool { return !s.job(ctx, "run").DeletionTimestamp.IsZero() }).Should(BeTrue())
			s.condition(ctx, "run", "Ready", "Unknown Suspended")
			Expect(s.job(ctx, "run").Finalizers).To(ConsistOf(metav1.FinalizerDeleteDependents), "its pods go first, and post what they have")
			change(ctx, s.job(ctx, "run"), func(j *batchv1.Job) { j.Finalizers = nil }) // as the garbage collector does then
			Eventually(ctx, func() bool { return apierrors.IsNotFound(api.Get(ctx, s.key("run"), &batchv1.Job{})) }).Should(BeTrue())
			change(ctx, root, func(r *v1alpha1.EvalRun) { r.Spec.Suspend = false })
			Expect(s.job(ctx, "run").UID).NotTo(Equal(job.UID))
			Expect(s.children(ctx, "run")).To(HaveLen(4))
			Eventually(ctx, func() []string { return s.events(ctx, "run") }).Should(ContainElements("Suspended", "Resumed"))
		})

		It("ends rows that have no report as Error when the Job failed, and says why", func(ctx SpecContext) {
			s.serviceAccount(ctx)
			s.start(ctx, "run", "weather")
			job := s.job(ctx, "run")
			s.collect(ctx, "run-0", 0.9)
			pod := s.pod(ctx, job, 0)
			pod.Status.Phase = corev1.PodFailed
			containerState(pod, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 78, Reason: "Error", Message: "the collector does not know this pod", FinishedAt: metav1.Now(),
			}})
			Expect(api.Status().Update(ctx, pod)).To(Succeed())
			cached := &corev1.Pod{}
			Eventually(ctx, func() corev1.PodPhase {
				_ = mgr.GetClient().Get(ctx, client.ObjectKeyFromObject(pod), cached)
				return cached.Status.Phase
			}).Should(Equal(corev1.PodFailed))
			s.endJob(ctx, job, batchv1.JobFailureTarget, batchv1.JobFailed, "FailedIndexes", "Job has failed indexes")

			s.condition(ctx, "run", "Passed", "False Error")
			done := s.run(ctx, "run")
			Expect(*done.Status.Summary).To(And(HaveField("Passed", int32(1)), HaveField("Errored", int32(3))))
			Expect(s.run(ctx, "run-0").Status.Report.Outcome).To(Equal(v1alpha1.OutcomePassed))
			child := s.run(ctx, "run-1")
			Expect(child.Status.Outcome).To(Equal(v1alpha1.OutcomeError))
			Expect(child.Status.Report.Note).To(And(ContainSubstring("Job has failed indexes"), ContainSubstring("exit code 78: the collector does not know this pod")))
		})

		It("keeps the reports of children that were written although the Job failed", func(ctx SpecContext) {
			s.start(ctx, "run", "weather")
			job := s.job(ctx, "run")
			for _, leaf := range []string{"run-0", "run-1", "run-2", "run-3"} {
				s.collect(ctx, leaf, 0.9)
			}
			s.condition(ctx, "run", "Passed", "True Passed")
			version := s.run(ctx, "run").ResourceVersion
			s.endJob(ctx, job, batchv1.JobFailureTarget, batchv1.JobFailed, "DeadlineExceeded", "late")
			Consistently(ctx, func() string { return s.run(ctx, "run").ResourceVersion }).Should(Equal(version))
		})

		It("changes nothing when the operator is started again", func(ctx SpecContext) {
			s.start(ctx, "working", "weather")
			s.job(ctx, "working")
			s.start(ctx, "done", "weather")
			s.job(ctx, "done")
			for _, leaf := range []string{"done-0", "done-1", "done-2", "done-3"} {
				s.collect(ctx, leaf, 0.9)
			}
			s.start(ctx, "lacking", "nothing")
			s.condition(ctx, "working", "Ready", "Unknown Pending")
			Eventually(ctx, func() []v1alpha1.RowResult { return s.run(ctx, "working").Status.Rows }).Should(HaveLen(4))
			s.condition(ctx, "done", "Passed", "True Passed")
			s.condition(ctx, "lacking", "Ready", "False EvalNotFound")
			s.settled(ctx)
			before := s.versions(ctx)
			fresh := newRunReconciler()
			for range 2 {
				for _, name := range []string{"working", "done", "lacking", "done-0"} {
					_, err := fresh.Reconcile(ctx, ctrl.Request{NamespacedName: s.key(name)})
					Expect(err).NotTo(HaveOccurred())
				}
			}
			Expect(s.versions(ctx)).To(Equal(before))
		})

		It("counts a child that was deleted as a row that ended as Error", func(ctx SpecContext) {
			s.start(ctx, "run", "weather")
			s.job(ctx, "run")
			s.collect(ctx, "run-0", 0.9)
			Expect(api.Delete(ctx, s.run(ctx, "run-3"))).To(Succeed())
			s.collect(ctx, "run-1", 0.9)
			s.collect(ctx, "run-2", 0.9)
			Expect(s.condition(ctx, "run", "Complete", "True Finished")).To(ContainSubstring("1 child run was deleted before the run ended"))
			Expect(*s.run(ctx, "run").Status.Summary).To(And(HaveField("Rows", int32(4)), HaveField("Passed", int32(3)), HaveField("Errored", int32(1))))
			s.condition(ctx, "run", "Passed", "False Error")
		})

		It("ends as Error when its children were deleted", func(ctx SpecContext) {
			s.start(ctx, "run", "weather")
			s.job(ctx, "run")
			s.condition(ctx, "run", "Ready", "Unknown Pending")
			Expect(api.DeleteAllOf(ctx, &v1alpha1.EvalRun{}, client.InNamespace(s.namespace), client.MatchingLabels{v1alpha1.LabelParent: "run"})).To(Succeed())
			Expect(s.condition(ctx, "run", "Complete", "True Finished")).To(ContainSubstring("child runs of this run were deleted"))
			s.condition(ctx, "run", "Passed", "False Error")
		})
	})

	Describe("with one row", func() {
		BeforeEach(func(ctx SpecContext) {
			s.rubric(ctx, "kind", "Is it kind?")
			s.eval(ctx, "weather")
		})

		It("is its own leaf: frozen in its status, and ended when the collector wrote its report", func(ctx SpecContext) {
			s.start(ctx, "run", "weather")
			s.job(ctx, "run")
			frozen := s.run(ctx, "run").Status.EvalSpec
			Expect(frozen.Rubric.Text).To(Equal("Is it kind?"))
			change(ctx, &v1alpha1.Rubric{ObjectMeta: s.meta("kind")}, func(r *v1alpha1.Rubric) { r.Spec.Text = "edited" })
			s.collect(ctx, "run", 0.9)
			s.condition(ctx, "run", "Passed", "True Passed")
			done := s.run(ctx, "run")
			Expect(done.Status.EvalSpec).To(Equal(frozen))
			Expect(done.Status.Rows).To(BeEmpty())
			Expect(*done.Status.Summary.Score).To(Equal(0.9))
			Expect(s.children(ctx, "run")).To(BeEmpty())
		})

		It("ends as Error when the deadline passed", func(ctx SpecContext) {
			s.start(ctx, "run", "weather")
			s.endJob(ctx, s.job(ctx, "run"), batchv1.JobFailureTarget, batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded, "too long")
			s.condition(ctx, "run", "Passed", "False Error")
			Expect(s.run(ctx, "run").Status.Report.Note).To(HavePrefix("DeadlineExceeded:"))
		})

		It("stops and resumes its Job with spec.suspend", func(ctx SpecContext) {
			run := s.start(ctx, "run", "weather", func(r *v1alpha1.EvalRun) { r.Spec.Suspend = true })
			held := func() bool { return *s.job(ctx, "run").Spec.Suspend }
			Expect(held()).To(BeTrue())
			s.condition(ctx, "run", "Ready", "Unknown Suspended")
			change(ctx, run, func(r *v1alpha1.EvalRun) { r.Spec.Suspend = false })
			Eventually(ctx, held).Should(BeFalse())
			s.condition(ctx, "run", "Ready", "Unknown Pending")
			change(ctx, run, func(r *v1alpha1.EvalRun) { r.Spec.Suspend = true })
			Eventually(ctx, held).Should(BeTrue())
			s.condition(ctx, "run", "Ready", "Unknown Suspended")
		})

		It("says that a Secret is missing as the kubelet does, and heals", func(ctx SpecContext) {
			s.serviceAccount(ctx)
			s.start(ctx, "run", "weather")
			pod := s.pod(ctx, s.job(ctx, "run"), 0)
			pod.Status.Phase = corev1.PodPending
			containerState(pod, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: `secret "keys" not found`}})
			Expect(api.Status().Update(ctx, pod)).To(Succeed())
			Expect(s.condition(ctx, "run", "Ready", "False SecretNotFound")).To(ContainSubstring(`secret "keys" not found`))
			s.condition(ctx, "run", "Stalled", "absent")
			pod.Status.Phase = corev1.PodRunning
			containerState(pod, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
			Expect(api.Status().Update(ctx, pod)).To(Succeed())
			s.condition(ctx, "run", "Ready", "Unknown Running")
		})

		It("does not touch a Job of its name that is somebody else's", func(ctx SpecContext) {
			other := &batchv1.Job{ObjectMeta: s.meta("run"), Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}},
			}}}}
			Expect(api.Create(ctx, other)).To(Succeed())
			s.start(ctx, "run", "weather")
			Expect(s.condition(ctx, "run", "Ready", "False PodsBlocked")).To(ContainSubstring("does not belong to this run"))
			Expect(api.Delete(ctx, other, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
			s.touch(ctx, "run")
			Eventually(ctx, func() bool { return metav1.IsControlledBy(s.job(ctx, "run"), s.run(ctx, "run")) }).Should(BeTrue())
		})

		It("is deleted when its time is over, and not before", func(ctx SpecContext) {
			s.start(ctx, "run", "weather", func(r *v1alpha1.EvalRun) { r.Spec.TTLSecondsAfterFinished = ptr.To(int32(3600)) })
			s.job(ctx, "run")
			s.collect(ctx, "run", 0.9)
			s.condition(ctx, "run", "Passed", "True Passed")
			s.touch(ctx, "run")
			Consistently(ctx, func() error { return api.Get(ctx, s.key("run"), &v1alpha1.EvalRun{}) }).Should(Succeed())
			now.shift.Store(int64(2 * time.Hour))
			DeferCleanup(func() { now.shift.Store(0) })
			s.touch(ctx, "run")
			Eventually(ctx, func() bool { return apierrors.IsNotFound(api.Get(ctx, s.key("run"), &v1alpha1.EvalRun{})) }).Should(BeTrue())
			By("the Eval still knows how it ended")
			e := &v1alpha1.Eval{}
			Expect(api.Get(ctx, s.key("weather"), e)).To(Succeed())
			Expect(e.Status.LastRun.Name).To(Equal("run"))
		})
	})

	Describe("without a candidate", func() {
		deferred := func(e *v1alpha1.Eval) { e.Spec.Response = nil }

		It("is deferred without a Job", func(ctx SpecContext) {
			s.rubric(ctx, "kind", "Is it kind?")
			s.eval(ctx, "weather", deferred)
			s.start(ctx, "run", "weather")
			s.condition(ctx, "run", "Passed", "Unknown Deferred")
			Expect(s.run(ctx, "run").Status.Report.Note).NotTo(BeEmpty())
			s.noJob(ctx)
			Eventually(ctx, func() []string { return s.events(ctx, "run") }).Should(Equal([]string{"Deferred", "Resolved"}))
		})

		It("has deferred children without a Job", func(ctx SpecContext) {
			s.rubric(ctx, "kind", "Is it kind?")
			s.eval(ctx, "weather", twoByTwo, deferred)
			s.start(ctx, "run", "weather")
			s.condition(ctx, "run", "Passed", "Unknown Deferred")
			s.noJob(ctx)
			children := s.children(ctx, "run")
			Expect(children).To(HaveLen(4))
			for _, child := range children {
				Expect(child.Status.Outcome).To(Equal(v1alpha1.OutcomeDeferred))
			}
			Expect(s.run(ctx, "run").Status.Summary.Deferred).To(Equal(int32(4)))
		})

		It("fails without a Job when the response is blank (S-34)", func(ctx SpecContext) {
			s.rubric(ctx, "kind", "Is it kind?")
			s.eval(ctx, "weather", func(e *v1alpha1.Eval) { e.Spec.Response = ptr.To("  ") })
			s.start(ctx, "run", "weather")
			s.condition(ctx, "run", "Passed", "False Failed")
			s.noJob(ctx)
		})

		It("leaves its row to the Job of a run that needs a judge for another", func(ctx SpecContext) {
			s.rubric(ctx, "kind", "Is it kind?")
			x := func(e *v1alpha1.Eval) { e.Labels = map[string]string{"suite": "x"} }
			s.eval(ctx, "a", x)
			s.eval(ctx, "b", x, deferred)
			s.start(ctx, "run", "", bySuite("x"))
			s.job(ctx, "run")
			children := s.children(ctx, "run")
			Expect(children).To(HaveLen(2))
			Expect(children[0].Labels).To(HaveKeyWithValue(v1alpha1.LabelEval, "a"))
			Expect(children[1].Labels).To(HaveKeyWithValue(v1alpha1.LabelEval, "b"))
			Expect(s.run(ctx, "run").Status.ProjectedCalls).To(Equal(int32(1)))
		})
	})
})

func bySuite(value v1alpha1.LabelValue) func(*v1alpha1.EvalRun) {
	return func(r *v1alpha1.EvalRun) {
		r.Spec.EvalSelector = &v1alpha1.EvalSelector{MatchLabels: map[string]v1alpha1.LabelValue{"suite": value}}
	}
}

func specs(runs []v1alpha1.EvalRun) map[string]v1alpha1.EvalRunSpec {
	out := make(map[string]v1alpha1.EvalRunSpec, len(runs))
	for _, run := range runs {
		out[run.Name] = run.Spec
	}
	return out
}

// settled waits until the caches of the manager show what the API server has, and nothing is written any more.
func (s *stage) settled(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		live := &v1alpha1.EvalRunList{}
		g.Expect(api.List(ctx, live, client.InNamespace(s.namespace))).To(Succeed())
		for _, run := range live.Items {
			cached := &v1alpha1.EvalRun{}
			g.Expect(mgr.GetClient().Get(ctx, client.ObjectKeyFromObject(&run), cached)).To(Succeed())
			g.Expect(cached.ResourceVersion).To(Equal(run.ResourceVersion))
		}
	}).Should(Succeed())
	before := s.versions(ctx)
	Consistently(ctx, func() map[string]string { return s.versions(ctx) }).Should(Equal(before))
}
