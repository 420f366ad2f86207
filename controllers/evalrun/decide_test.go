package evalrun

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/condition"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

func TestThePhaseFollowsFromWhatIsThere(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.EvalRun)
		job    *batchv1.Job
		want   phase
	}{
		"a new run is resolved":                            {func(*v1alpha1.EvalRun) {}, nil, phaseResolve},
		"a resolved run with several rows is expanded":     {func(r *v1alpha1.EvalRun) { r.Status.Digest = "d" }, nil, phaseExpand},
		"one frozen row is started":                        {func(r *v1alpha1.EvalRun) { r.Status.Digest, r.Status.EvalSpec = "d", &v1alpha1.EvalSpec{} }, nil, phaseStart},
		"a deleted Job is made anew, nothing is resolved":  {func(r *v1alpha1.EvalRun) { r.Status.Digest, r.Status.Job = "d", "j" }, nil, phaseStart},
		"a Job is followed":                                {func(r *v1alpha1.EvalRun) { r.Status.Job = "j" }, job(), phaseFollow},
		"a Job that the status does not name is, as well":  {func(*v1alpha1.EvalRun) {}, job(), phaseFollow},
		"a run that ended is done, whatever its Job is at": {func(r *v1alpha1.EvalRun) { conclude(r, v1alpha1.Summary{}) }, job(), phaseDone},
		"a row without a parent is refused":                {func(r *v1alpha1.EvalRun) { r.Spec.Row = &v1alpha1.Row{} }, nil, phaseRefused},
	} {
		t.Run(name, func(t *testing.T) {
			if got := phaseOf(root(tc.change), tc.job); got != tc.want {
				t.Errorf("phase = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestWhatAPlanLacksIsToldByReason(t *testing.T) {
	mixed := planned(1, 1)
	withSecret(mixed.Rows[1:])
	unjudged := planned(1, 0)
	withSecret(unjudged.Rows[1:])
	big := planned(1)
	big.Rows[0].Spec.Context = []string{strings.Repeat("x", maxEvalBytes)}
	for name, tc := range map[string]struct {
		plan *plan.Plan
		err  error
		want string
	}{
		"nothing":                             {plan: planned(1, 1), want: ""},
		"a Rubric":                            {err: fmt.Errorf("eval: %w", &plan.NotFoundError{Kind: plan.KindRubric, Name: "a"}), want: "2 RubricNotFound"},
		"a ConfigMap":                         {err: &plan.NotFoundError{Kind: plan.KindConfigMap, Name: "a"}, want: "2 ConfigMapNotFound"},
		"a key":                               {err: &plan.NotFoundError{Kind: plan.KindConfigMapKey, Name: "a/b"}, want: "2 ConfigMapNotFound"},
		"validity":                            {err: errors.New("spec: bad"), want: "3 InvalidSpec"},
		"one Secret for all":                  {plan: mixed, want: "3 InvalidSpec"},
		"no Secret where nobody is asked":     {plan: unjudged, want: ""},
		"room, when the eval is far too long": {plan: big, want: "3 InvalidSpec"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if problem := problemOf(root(), tc.plan, judge.DefaultPrices(), tc.err); problem != nil {
				got = fmt.Sprintf("%d %s", problem.State, problem.Reason)
			}
			if got != tc.want {
				t.Errorf("problem = %q, want %q", got, tc.want)
			}
		})
	}
	if text := secretConflict(mixed.Rows); !strings.Contains(text, `"team-keys"`) || !strings.Contains(text, `"mcptest-judge"`) || !strings.Contains(text, "separately") {
		t.Errorf("%q does not name both Secrets and what to do", text)
	}
}

func TestS42ARunWithMaxCostNeedsThePriceOfEachNamedModel(t *testing.T) {
	judged := func(specs ...*v1alpha1.JudgeSpec) *plan.Plan {
		calls := make([]int, len(specs))
		for i := range calls {
			calls[i] = 1
		}
		p := planned(calls...)
		for i := range specs {
			p.Rows[i].Spec.Judge = specs[i]
		}
		return p
	}
	model := func(name v1alpha1.ModelName) *v1alpha1.JudgeSpec { return &v1alpha1.JudgeSpec{Model: name} }
	unjudged := judged(model("gpt-unheard-of"))
	unjudged.Rows[0].Calls = 0
	for name, tc := range map[string]struct {
		plan *plan.Plan
		free bool
		want string
	}{
		"a model with a price":             {plan: judged(model("gpt-5.4-mini"), model("claude-sonnet-5-5-20261101"))},
		"a model without":                  {plan: judged(model("gpt-5.4-mini"), model("gpt-unheard-of")), want: `gpt-unheard-of of row "row-1"`},
		"a model without, and no maxCost":  {plan: judged(model("gpt-unheard-of")), free: true},
		"a panel with one without":         {plan: judged(&v1alpha1.JudgeSpec{Panel: []v1alpha1.ModelName{"gpt-5.4-mini", "claude-x"}}), want: "claude-x"},
		"a server's own model":             {plan: judged(&v1alpha1.JudgeSpec{Model: "llama-9", Provider: v1alpha1.ProviderOpenAI}), want: "prices: {llama-9: {"},
		"no model: the keys decide":        {plan: judged(nil, &v1alpha1.JudgeSpec{}, &v1alpha1.JudgeSpec{Provider: v1alpha1.ProviderOpenAI})},
		"a model of nobody: it costs none": {plan: judged(model("llama-9"))},
		"a row that needs no judge":        {plan: unjudged},
	} {
		t.Run(name, func(t *testing.T) {
			run := root(func(r *v1alpha1.EvalRun) {
				if !tc.free {
					r.Spec.MaxCost = ptr.To(0.5)
				}
			})
			got := ""
			if problem := problemOf(run, tc.plan, judge.DefaultPrices(), nil); problem != nil {
				got = fmt.Sprintf("%s: %s", problem.Reason, problem.Message)
			}
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) || tc.want != "" && !strings.HasPrefix(got, "InvalidSpec: maxCost: the model ") {
				t.Errorf("problem = %q, want one that says %q", got, tc.want)
			}
		})
	}
}

func TestASingleRowIsFrozenInTheStatusAndSeveralAreNot(t *testing.T) {
	one := root()
	freeze(one, planned(3))
	if one.Status.EvalSpec == nil || one.Status.Row.Name != "row-0" || one.Status.ProjectedCalls != 3 || one.Status.Summary.Rows != 1 {
		t.Errorf("status = %+v, want the row and its eval", one.Status)
	}
	several := root()
	freeze(several, planned(1, 2))
	if several.Status.EvalSpec != nil || several.Status.Row != nil || several.Status.ProjectedCalls != 3 || several.Status.Summary.Rows != 2 {
		t.Errorf("status = %+v, want the numbers only", several.Status)
	}
}

func TestChildrenOfAnotherPlanAreRemadeAndThoseOfThisOneKept(t *testing.T) {
	want := childrenOf(root(), planned(1, 1, 1), nil)
	have := func(name, label string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelPlan: label}}}
	}
	const this = "0123456789"
	for name, tc := range map[string]struct {
		have   []metav1.PartialObjectMetadata
		create []string
		remove []string
	}{
		"none are there":       {nil, []string{"nightly-0", "nightly-1", "nightly-2"}, nil},
		"killed half-way":      {[]metav1.PartialObjectMetadata{have("nightly-0", this)}, []string{"nightly-1", "nightly-2"}, nil},
		"edited since":         {[]metav1.PartialObjectMetadata{have("nightly-0", "old"), have("nightly-1", "old")}, []string{"nightly-0", "nightly-1", "nightly-2"}, []string{"nightly-0", "nightly-1"}},
		"more rows before":     {[]metav1.PartialObjectMetadata{have("nightly-00", this)}, []string{"nightly-0", "nightly-1", "nightly-2"}, []string{"nightly-00"}},
		"all are there":        {[]metav1.PartialObjectMetadata{have("nightly-0", this), have("nightly-1", this), have("nightly-2", this)}, nil, nil},
		"one is being deleted": {[]metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "nightly-0", Labels: map[string]string{v1alpha1.LabelPlan: this}, DeletionTimestamp: &metav1.Time{}}}}, []string{"nightly-0", "nightly-1", "nightly-2"}, []string{"nightly-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := arrange(want, tc.have)
			var create, remove []string
			for _, c := range got.create {
				create = append(create, c.Name)
			}
			for _, c := range got.remove {
				remove = append(remove, c.Name)
			}
			if diff := cmp.Diff([][]string{tc.create, tc.remove}, [][]string{create, remove}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChildrenSayWhoseTheyAre(t *testing.T) {
	long := strings.Repeat("x", 64)
	children := childrenOf(root(), planned(1, 1), map[string]string{"row-0": "weather", "row-1": long})
	want := map[string]string{v1alpha1.LabelParent: "nightly", v1alpha1.LabelPlan: "0123456789", v1alpha1.LabelEval: "weather"}
	if diff := cmp.Diff(want, children[0].Labels); diff != "" {
		t.Error(diff)
	}
	if _, set := children[1].Labels[v1alpha1.LabelEval]; set {
		t.Error("a name that is no label value became one")
	}
	if !metav1.IsControlledBy(children[0], root()) || children[0].Spec.Row.Name != "row-0" || children[0].Spec.Eval == nil {
		t.Errorf("child = %+v, want it controlled by the root, with its row and eval", children[0])
	}
	if childrenOf(root(), planned(1), nil) != nil {
		t.Error("a run with one row has children; it is its own leaf")
	}
}

func TestTheJobFollowsTheRunsSuspend(t *testing.T) {
	for name, tc := range map[string]struct {
		suspend, held bool
		queue         string
		want          suspension
	}{
		"running":                            {want: leaveJob},
		"to be suspended":                    {suspend: true, want: suspendJob},
		"suspended":                          {suspend: true, held: true, want: leaveJob},
		"to be resumed":                      {held: true, want: resumeJob},
		"waiting in a queue: Kueue's to say": {held: true, queue: "q", want: leaveJob},
		"admitted by a queue":                {queue: "q", want: leaveJob},
		"to be suspended, with a queue":      {suspend: true, queue: "q", want: deleteJob},
		"waiting, to be suspended":           {suspend: true, held: true, queue: "q", want: deleteJob},
	} {
		t.Run(name, func(t *testing.T) {
			run := root(func(r *v1alpha1.EvalRun) { r.Spec.Suspend, r.Spec.QueueName = tc.suspend, tc.queue })
			j := job(func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(tc.held) })
			if got := suspensionOf(run, j); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func waitingFor(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: containerName, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}
	}
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func TestARunWithAJobTellsWhereItStands(t *testing.T) {
	unschedulable := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes"}}
	}
	started := func(ago time.Duration) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Status.StartTime = ptr.To(metav1.NewTime(epoch.Add(-ago))) }
	}
	held := func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }
	queued := func(r *v1alpha1.EvalRun) { r.Spec.QueueName = "q" }
	suspend := func(r *v1alpha1.EvalRun) { r.Spec.Suspend = true }
	plain := func(*v1alpha1.EvalRun) {}
	for name, tc := range map[string]struct {
		run  func(*v1alpha1.EvalRun)
		job  *batchv1.Job
		pods []corev1.Pod
		want string
	}{
		"no pods yet":                     {plain, job(), nil, "1 Pending Job nightly waits for its pods"},
		"no pods for long":                {plain, job(started(time.Minute)), nil, "2 PodsBlocked Job nightly has made no pod for 30s; `kubectl describe job nightly` says why (a quota, a LimitRange or pod security)"},
		"no pods for a moment":            {plain, job(started(time.Second)), nil, "1 Pending Job nightly waits for its pods"},
		"a pod runs":                      {plain, job(), []corev1.Pod{pod("p", inPhase(corev1.PodRunning))}, "1 Running Job nightly is grading the rows"},
		"a Secret is missing":             {plain, job(), []corev1.Pod{pod("p", waitingFor("CreateContainerConfigError", `secret "team-keys" not found`))}, `2 SecretNotFound pod p: secret "team-keys" not found`},
		"another mistake in the pod":      {plain, job(), []corev1.Pod{pod("p", waitingFor("CreateContainerConfigError", "container has runAsNonRoot"))}, "2 PodsBlocked pod p: container has runAsNonRoot"},
		"no image":                        {plain, job(), []corev1.Pod{pod("p", waitingFor("ImagePullBackOff", "back-off"))}, "2 PodsBlocked pod p: ImagePullBackOff: back-off"},
		"being created is no trouble":     {plain, job(), []corev1.Pod{pod("p", waitingFor("ContainerCreating", ""))}, "1 Pending Job nightly waits for its pods"},
		"no node":                         {plain, job(), []corev1.Pod{pod("p", unschedulable)}, "2 PodsBlocked pod p cannot be scheduled: 0/1 nodes"},
		"a pod that failed holds nothing": {plain, job(), []corev1.Pod{pod("p", waitingFor("ErrImagePull", "x"), inPhase(corev1.PodFailed)), pod("q", inPhase(corev1.PodRunning))}, "1 Running Job nightly is grading the rows"},
		"suspended":                       {suspend, job(held), nil, "1 Suspended the run is suspended; set spec.suspend to false to go on"},
		"in a queue":                      {queued, job(held), nil, "1 Pending Job nightly waits in queue q"},
	} {
		t.Run(name, func(t *testing.T) {
			s := standing(root(tc.run), tc.job, tc.pods, epoch)
			if got := fmt.Sprintf("%d %s %s", s.State, s.Reason, s.Message); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestPodsAreDueHalfAMinuteAfterTheJobStarted(t *testing.T) {
	j := job(func(j *batchv1.Job) { j.Status.StartTime = ptr.To(metav1.NewTime(epoch)) })
	if got := podsDue(j, nil, epoch.Add(10*time.Second)); got != 20*time.Second {
		t.Errorf("due in %s, want 20s", got)
	}
	if got := podsDue(j, []corev1.Pod{pod("p")}, epoch); got != 0 {
		t.Errorf("due in %s although one is there", got)
	}
}

func TestARunIsDeletedWhenItsTimeIsOver(t *testing.T) {
	ttl := func(seconds int32) func(*v1alpha1.EvalRun) {
		return func(r *v1alpha1.EvalRun) { r.Spec.TTLSecondsAfterFinished = &seconds }
	}
	over := func(r *v1alpha1.EvalRun) { conclude(r, v1alpha1.Summary{}) }
	for name, tc := range map[string]struct {
		run  *v1alpha1.EvalRun
		left time.Duration
		want bool
	}{
		"never without a ttl":       {root(over), 0, false},
		"never while it goes on":    {root(ttl(5)), 0, false},
		"later":                     {root(ttl(60), over), 50 * time.Second, true},
		"now":                       {root(ttl(10), over), 0, true},
		"at once when the ttl is 0": {root(ttl(0), over), -10 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			if left, bounded := timeLeft(tc.run, epoch.Add(10*time.Second)); left != tc.left || bounded != tc.want {
				t.Errorf("got %s %v, want %s %v", left, bounded, tc.left, tc.want)
			}
		})
	}
}

func TestTheBadRowsComeFirst(t *testing.T) {
	var got []string
	for _, row := range rowsOf(kids("Passed", "", "Failed", "Error", "Deferred", "Failed", "Passed")) {
		got = append(got, fmt.Sprintf("%s %s", row.Run, row.Outcome))
	}
	want := []string{"nightly-3 Error", "nightly-2 Failed", "nightly-5 Failed", "nightly-4 Deferred", "nightly-1 ", "nightly-0 Passed", "nightly-6 Passed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRowsAreListedAsFarAsTheyFitIntoAStatus(t *testing.T) {
	many := make([]v1alpha1.RowResult, 1500)
	if got := len(listed(root(), many)); got != 1000 {
		t.Errorf("%d small rows are listed, want 1000", got)
	}
	for i := range many {
		many[i].Cell = &v1alpha1.Cell{Prompt: strings.Repeat("p", 16384)}
	}
	if got := len(listed(root(), many)); got < 25 || got > 32 {
		t.Errorf("%d rows of 16 KiB are listed, want about 31", got)
	}
	// Its spec takes the place: without room for its rows such a run would never end.
	long := root(func(r *v1alpha1.EvalRun) { r.Spec.Eval = &v1alpha1.EvalSpec{Matrix: &v1alpha1.Matrix{}} })
	for range 80 {
		long.Spec.Eval.Matrix.Prompts = append(long.Spec.Eval.Matrix.Prompts, strings.Repeat("p", 16384))
	}
	if got := len(listed(long, many)); got < 5 || got > 8 {
		t.Errorf("%d rows of 16 KiB are listed beside 1.25 MiB of spec, want those that fit into 1408 KiB", got)
	}
}

func TestProgressIsWrittenEveryTwoSeconds(t *testing.T) {
	var th throttle
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	steps := []struct {
		run  types.NamespacedName
		at   time.Duration
		want time.Duration
	}{
		{a, 0, 0}, {a, 500 * time.Millisecond, 1500 * time.Millisecond}, {b, 600 * time.Millisecond, 0}, {a, 2 * time.Second, 0}, {a, 2100 * time.Millisecond, 1900 * time.Millisecond},
	}
	for i, s := range steps {
		got := th.wait(s.run, epoch.Add(s.at))
		if got != s.want {
			t.Errorf("step %d: wait %s, want %s", i, got, s.want)
		}
		if got == 0 {
			th.written(s.run, epoch.Add(s.at))
		}
	}
	th.forget(a)
	if got := th.wait(a, epoch.Add(2200*time.Millisecond)); got != 0 {
		t.Errorf("a forgotten run waits %s", got)
	}
}

func terminated(index string, code int32, reason, message string, at time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels[batchv1.JobCompletionIndexAnnotation] = index
		p.Status.Phase = corev1.PodFailed
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message, FinishedAt: metav1.NewTime(epoch.Add(at))},
		}}}
	}
}

func TestARowWithoutAReportSaysWhatBecameOfItsPod(t *testing.T) {
	two := func(j *batchv1.Job) { j.Spec.Completions = ptr.To(int32(2)) }
	for name, tc := range map[string]struct {
		job  *batchv1.Job
		pods []corev1.Pod
		want []string
	}{
		"the Job completed": {job(withCondition(batchv1.JobComplete, "", "")), nil, []string{
			"RunnerFailed: the pods ended without a report of this row", "RunnerFailed: the pods ended without a report of this row",
		}},
		"the deadline passed": {job(withCondition(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")), nil, []string{
			"DeadlineExceeded: the run was stopped before this row was graded; activeDeadlineSeconds is 3600",
			"DeadlineExceeded: the run was stopped before this row was graded; activeDeadlineSeconds is 3600",
		}},
		"each slice has its own pod, the newest counts": {
			job(two, withCondition(batchv1.JobFailed, "FailedIndexes", "Job has failed indexes")),
			[]corev1.Pod{
				pod("new", terminated("0", 78, "Error", "the collector does not know this pod\n", time.Minute)),
				pod("old", terminated("0", 1, "Error", "old", 0)),
				pod("killed", terminated("1", 137, "OOMKilled", "", 0)),
			},
			[]string{
				"RunnerFailed: the Job failed: Job has failed indexes; pod new: exit code 78: the collector does not know this pod",
				"RunnerFailed: the Job failed: Job has failed indexes; pod killed: exit code 137 (OOMKilled)",
			},
		},
		"what a pod says is redacted (S-48)": {
			job(withCondition(batchv1.JobFailed, "FailedIndexes", "m")),
			[]corev1.Pod{pod("p", terminated("0", 1, "Error", "key sk-"+"ant-REDACTME0123456789abcdefABCDEF", 0))},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := causes(tc.job, tc.pods, kids("", ""))
			if tc.want == nil {
				if strings.Contains(strings.Join(got, ""), "REDACTME") {
					t.Errorf("a key got through: %q", got)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAJobHasEndedOnlyWhenNoPodOfItRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		job  *batchv1.Job
		want bool
	}{
		"new":                       {job(), false},
		"about to fail":             {job(withCondition(batchv1.JobFailureTarget, "", "")), false},
		"failed":                    {job(withCondition(batchv1.JobFailed, "", "")), true},
		"complete":                  {job(withCondition(batchv1.JobComplete, "", "")), true},
		"suspended has not to come": {job(withCondition(batchv1.JobSuspended, "", "")), false},
	} {
		if got := ended(tc.job); got != tc.want {
			t.Errorf("%s: ended = %v, want %v", name, got, tc.want)
		}
	}
}

func TestTheConditionsOfARunThatGoesOn(t *testing.T) {
	run := root(func(r *v1alpha1.EvalRun) { r.Generation = 4 })
	report(run, condition.Missing("RubricNotFound", "m"), epoch)
	got := map[string]string{}
	for _, c := range run.Status.Conditions {
		got[c.Type] = fmt.Sprintf("%s %s %d", c.Status, c.Reason, c.ObservedGeneration)
	}
	want := map[string]string{"Complete": "False RubricNotFound 4", "Ready": "False RubricNotFound 4", "Reconciling": "True RubricNotFound 4"}
	if diff := cmp.Diff(want, got); diff != "" || run.Status.ObservedGeneration != 4 {
		t.Errorf("generation %d: %s", run.Status.ObservedGeneration, diff)
	}
}
