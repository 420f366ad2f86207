package collector

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
)

func TestOnlyThePodOfARunIsLetIn(t *testing.T) {
	type scene struct {
		*world
		pod  *corev1.Pod
		job  *batchv1.Job
		root *v1alpha1.EvalRun
		says authenticationv1.TokenReviewStatus
	}
	for name, tc := range map[string]struct {
		change func(s *scene)
		token  string
		want   int
		reason string
	}{
		"the pod itself": {func(*scene) {}, "token", 200, ""},
		"a pod that is being deleted may still post": {func(s *scene) {
			s.pod.DeletionTimestamp, s.pod.Finalizers = new(s.root.CreationTimestamp), []string{"batch.kubernetes.io/job-tracking"}
		}, "token", 200, ""},
		"no token":                    {func(*scene) {}, "", 401, reasonToken},
		"a token of nobody":           {func(*scene) {}, "forged", 401, reasonToken},
		"a token that is huge":        {func(*scene) {}, string(make([]byte, maxToken+1)), 401, reasonToken},
		"a token not good":            {func(s *scene) { s.says.Authenticated = false }, "token", 401, reasonToken},
		"another audience":            {func(s *scene) { s.says.Audiences = []string{"https://kubernetes.default.svc"} }, "token", 401, reasonToken},
		"no audience at all":          {func(s *scene) { s.says.Audiences = nil }, "token", 401, reasonToken},
		"a person":                    {func(s *scene) { s.says.User.Username = "alice" }, "token", 401, reasonToken},
		"a token without a pod":       {func(s *scene) { s.says.User.Extra = nil }, "token", 401, reasonToken},
		"a token of two pods":         {func(s *scene) { s.says.User.Extra[extraPodUID] = []string{"uid-pod", "uid-other"} }, "token", 401, reasonToken},
		"a pod that is gone":          {func(s *scene) { s.says.User.Extra[extraPodName] = []string{"gone"} }, "token", 401, reasonPod},
		"a pod made anew":             {func(s *scene) { s.pod.UID = "uid-of-another" }, "token", 401, reasonPod},
		"a pod elsewhere":             {func(s *scene) { s.says.User.Username = "system:serviceaccount:other:default" }, "token", 401, reasonPod},
		"a pod that succeeded":        {func(s *scene) { s.pod.Status.Phase = corev1.PodSucceeded }, "token", 403, reasonPod},
		"a pod that failed":           {func(s *scene) { s.pod.Status.Phase = corev1.PodFailed }, "token", 403, reasonPod},
		"a pod of no Job":             {func(s *scene) { s.pod.OwnerReferences = nil }, "token", 403, reasonPod},
		"a pod of a ReplicaSet":       {func(s *scene) { s.pod.OwnerReferences = controller("ReplicaSet", "apps/v1", "run", "uid-run") }, "token", 403, reasonPod},
		"a pod owned, not controlled": {func(s *scene) { s.pod.OwnerReferences[0].Controller = nil }, "token", 403, reasonPod},
		"a Job made anew":             {func(s *scene) { s.job.UID = "uid-of-another" }, "token", 403, reasonPod},
		"a Job of no run":             {func(s *scene) { s.job.OwnerReferences = nil }, "token", 403, reasonPod},
		"a Job of another kind":       {func(s *scene) { s.job.OwnerReferences[0].Kind = "CronJob" }, "token", 403, reasonPod},
		"a second Job of a run":       {func(s *scene) { s.job.OwnerReferences[0].Name = "other" }, "token", 403, reasonPod},
		"a run made anew":             {func(s *scene) { s.root.UID = "uid-of-another" }, "token", 403, reasonPod},
		"no index":                    {func(s *scene) { s.pod.Annotations, s.pod.Labels = nil, nil }, "token", 403, reasonSlice},
		"an index that is none":       {func(s *scene) { s.pod.Annotations[batchv1.JobCompletionIndexAnnotation] = "-1"; s.pod.Labels = nil }, "token", 403, reasonSlice},
		"an index of no slice":        {func(s *scene) { s.pod.Annotations[batchv1.JobCompletionIndexAnnotation] = "1"; s.pod.Labels = nil }, "token", 403, reasonSlice},
		"two different indexes":       {func(s *scene) { s.pod.Labels[batchv1.JobCompletionIndexAnnotation] = "1" }, "token", 403, reasonSlice},
		"the child of a run": {func(s *scene) {
			s.root.OwnerReferences = controller("EvalRun", v1alpha1.GroupVersion.String(), "parent", "uid-parent")
			s.root.Spec.Row, s.root.Spec.Eval = &v1alpha1.Row{Name: "r", Eval: "e"}, evalOf("clear")
		}, "token", 403, reasonPod},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scene{pod: podOfJob("pod", "run", "0"), job: jobOfRun("run", 1), root: rootRun("run"), says: bound("pod")}
			s.root.CreationTimestamp.Time = epoch
			tc.change(s)
			s.world = newWorld(t, s.pod, s.job, s.root, childRun("run", 0, 2, evalOf("clear")), childRun("run", 1, 2, evalOf("clear")))
			s.tokens["token"] = s.says
			a := s.ask(tc.token, http.MethodGet, "/v1/slice", nil)
			s.want(a, tc.want, "")
			if tc.reason != "" && metricOf(t, s.world, "mcptest_collector_rejections_total", "reason", tc.reason) != 1 {
				t.Errorf("the refusal (%s) was not counted as %q", a.problem, tc.reason)
			}
		})
	}
}

func metricOf(t *testing.T, w *world, name, label, value string) float64 {
	t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() != name {
				continue
			}
			if label == "" {
				sum += m.GetCounter().GetValue()
			}
			for _, l := range m.GetLabel() {
				if l.GetName() == label && l.GetValue() == value {
					sum += m.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}

func TestWhatTheCacheDoesNotHaveYetIsReadLive(t *testing.T) {
	w := newRun(t, 2, 1, "clear")
	for _, name := range []string{"pod-0", "run"} {
		w.cached.hide(name)
	}
	w.want(w.ask("pod-0", http.MethodGet, "/v1/slice", nil), 200, "")
}

func TestAFailingAPIServerIsNotAGoodToken(t *testing.T) {
	w := newRun(t, 1, 1, "clear")
	w.reviewErr = errors.New("etcd is away")
	a := w.ask("pod-0", http.MethodGet, "/v1/slice", nil)
	w.want(a, 503, "come again")
	if a.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After = %q", a.header.Get("Retry-After"))
	}
	w.reviewErr = nil
	w.want(w.ask("pod-0", http.MethodGet, "/v1/slice", nil), 200, "")
}

func TestAReviewIsGoodForAMinute(t *testing.T) {
	w := newRun(t, 1, 1, "clear")
	get := func(want int) {
		t.Helper()
		w.want(w.ask("pod-0", http.MethodGet, "/v1/slice", nil), want, "")
	}
	get(200)
	get(200)
	if w.reviews != 1 {
		t.Fatalf("%d reviews for two requests, want 1", w.reviews)
	}
	w.tokens["pod-0"] = authenticationv1.TokenReviewStatus{}
	w.now = w.now.Add(reviewLife - time.Nanosecond)
	get(200)
	w.now = w.now.Add(time.Nanosecond)
	get(401)
	get(401)
	if w.reviews != 3 {
		t.Errorf("%d reviews, want 3: a refusal is not remembered", w.reviews)
	}
}

func TestAReviewedTokenDoesNotOutliveItsPod(t *testing.T) {
	w := newRun(t, 1, 1, "clear")
	w.want(w.ask("pod-0", http.MethodGet, "/v1/slice", nil), 200, "")
	if err := w.live.Delete(context.Background(), &corev1.Pod{ObjectMeta: meta("pod-0")}); err != nil {
		t.Fatal(err)
	}
	w.want(w.ask("pod-0", http.MethodGet, "/v1/slice", nil), 401, "gone")
}

func TestReviewsAreBounded(t *testing.T) {
	c := newReviewCache()
	for i := range 2 * maxReviews {
		c.put([32]byte{byte(i), byte(i >> 8), 1}, identity{pod: "p"}, epoch)
	}
	if len(c.entries) > maxReviews {
		t.Errorf("%d reviews are remembered", len(c.entries))
	}
	later := epoch.Add(reviewLife)
	c.put([32]byte{0, 0, 2}, identity{pod: "late"}, later)
	if who, ok := c.get([32]byte{0, 0, 2}, later); !ok || who.pod != "late" || len(c.entries) != 1 {
		t.Errorf("reviews that are over were not forgotten: %d are left", len(c.entries))
	}
}

func TestAPodReadsAndWritesItsOwnSliceOnly(t *testing.T) {
	w := newRun(t, 5, 2, "clear", "short")
	owner := map[string]string{}
	for _, pod := range []string{"pod-0", "pod-1"} {
		var s wire.Slice
		a := w.ask(pod, http.MethodGet, "/v1/slice", nil)
		w.want(a, 200, "")
		a.into(t, &s)
		if s.Run != "run" || s.Concurrency != v1alpha1.DefaultConcurrency {
			t.Errorf("slice of %s: run %q, concurrency %d", pod, s.Run, s.Concurrency)
		}
		for _, leaf := range s.Leaves {
			if owner[leaf.Name] != "" {
				t.Errorf("%s is in two slices", leaf.Name)
			}
			owner[leaf.Name] = pod
		}
	}
	if len(owner) != 5 {
		t.Fatalf("the slices hold %d of 5 rows", len(owner))
	}
	for leaf, pod := range owner {
		other := map[string]string{"pod-0": "pod-1", "pod-1": "pod-0"}[pod]
		good := answered("clear", 1, "ok")
		w.want(w.ask(other, http.MethodGet, "/v1/leaves/"+leaf, nil), 403, "slice")
		w.want(w.postJudgments(other, leaf, good), 403, "slice")
		w.want(w.postFindings(other, leaf, findingsOf(good)), 403, "slice")
		w.want(w.ask(pod, http.MethodGet, "/v1/leaves/"+leaf, nil), 200, "")
	}
	if w.writes != 0 {
		t.Errorf("%d writes came of refused posts", w.writes)
	}
}

func TestRowsOfAnotherRunAreRefused(t *testing.T) {
	w := newRun(t, 2, 1, "clear")
	for _, object := range []client.Object{rootRun("victim"), childRun("victim", 0, 2, evalOf("clear")), childRun("victim", 1, 2, evalOf("clear"))} {
		if err := w.live.Create(context.Background(), object); err != nil {
			t.Fatal(err)
		}
	}
	for _, leaf := range []string{"victim", "victim-0", "run", "no-such-row"} {
		w.want(w.postFindings("pod-0", leaf, findingsOf(answered("clear", 1, "forged"))), 403, "slice")
		w.want(w.ask("pod-0", http.MethodGet, "/v1/leaves/"+leaf, nil), 403, "slice")
	}
	// One row of another run among the own ones: nothing is kept.
	body := wire.Judgments{Leaves: []wire.LeafJudgments{
		{Name: "run-0", Judgments: []v1alpha1.Judgment{answered("clear", 1, "ok")}},
		{Name: "victim-0", Judgments: []v1alpha1.Judgment{answered("clear", 1, "forged")}},
	}}
	w.want(w.ask("pod-0", http.MethodPost, "/v1/judgments", body), 403, "slice")
	if w.writes != 0 {
		t.Errorf("%d writes", w.writes)
	}
}

func TestAChildThatOnlyClaimsTheRunIsNoRowOfIt(t *testing.T) {
	w := newRun(t, 2, 1, "clear")
	stray := childRun("run", 7, 10, evalOf("clear"))
	stray.OwnerReferences[0].UID = "uid-of-another"
	if err := w.live.Create(context.Background(), stray); err != nil {
		t.Fatal(err)
	}
	w.want(w.ask("pod-0", http.MethodGet, "/v1/leaves/"+stray.Name, nil), 403, "slice")
}

func TestNoSliceIsCutFromAPartOfTheRows(t *testing.T) {
	w := newRun(t, 4, 2, "clear")
	w.cached.hide("run-3")
	a := w.ask("pod-1", http.MethodGet, "/v1/slice", nil)
	w.want(a, 503, "not seen all rows")
	w.cached.show("run-3")
	var s wire.Slice
	w.ask("pod-1", http.MethodGet, "/v1/slice", nil).into(t, &s)
	if len(s.Leaves) != 2 || s.Leaves[1].Name != "run-3" {
		t.Errorf("slice = %+v", s.Leaves)
	}
	// None of the children is in the cache: the run is not taken for its own leaf.
	w = newRun(t, 2, 1, "clear")
	w.cached.hide("run-0")
	w.cached.hide("run-1")
	w.want(w.ask("pod-0", http.MethodGet, "/v1/slice", nil), 503, "not seen all rows")
}

// A replica that starts after a child was deleted must not give its pods other rows than those they have.
func TestACollectorThatStartsLaterGivesAPodTheSameSlice(t *testing.T) {
	w := newRun(t, 4, 2, "clear")
	job, leaves := &batchv1.Job{}, []*v1alpha1.EvalRun{w.run("run-0"), w.run("run-1"), w.run("run-2"), w.run("run-3")}
	if err := w.live.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "run"}, job); err != nil {
		t.Fatal(err)
	}
	runtree.FreezeSlices(job, leaves)
	if err := w.live.Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if err := w.live.Delete(t.Context(), leaves[3]); err != nil {
		t.Fatal(err)
	}
	for pod, want := range map[string]string{"pod-0": "run-0 run-1", "pod-1": "run-2"} {
		var slice wire.Slice
		w.ask(pod, http.MethodGet, "/v1/slice", nil).into(t, &slice)
		var got []string
		for _, leaf := range slice.Leaves {
			got = append(got, leaf.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s grades %v, want %s", pod, got, want)
		}
	}
}

func TestARunWithOneRowIsItsOwnLeaf(t *testing.T) {
	w := newLeafRun(t, "clear")
	old := w.run("run")
	old.Status.EvalSpec, old.Status.Row = nil, nil
	w.cached.keepOld(old) // the cache has not seen what was frozen
	var s wire.Slice
	a := w.ask("pod-0", http.MethodGet, "/v1/slice", nil)
	w.want(a, 200, "")
	a.into(t, &s)
	if len(s.Leaves) != 1 || s.Leaves[0].Name != "run" {
		t.Errorf("slice = %+v", s.Leaves)
	}
	w = newLeafRun(t, "clear")
	w.updateStatus("run", func(s *v1alpha1.EvalRunStatus) { s.Row, s.EvalSpec = nil, nil })
	w.want(w.ask("pod-0", http.MethodGet, "/v1/slice", nil), 503, "not settled")
}
