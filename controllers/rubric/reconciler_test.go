package rubric

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

func TestAValidRubricIsReadyAndSaysWhatItCosts(t *testing.T) {
	leaf := func(score float64) *v1alpha1.TreeNode { return &v1alpha1.TreeNode{Score: &score} }
	for name, tc := range map[string]struct {
		spec  v1alpha1.RubricSpec
		kind  v1alpha1.RubricKind
		calls int32
	}{
		"a text is one call":              {v1alpha1.RubricSpec{Text: "Is it kind?"}, v1alpha1.RubricKindText, 1},
		"criteria are a call each (S-30)": {v1alpha1.RubricSpec{Criteria: []v1alpha1.Criterion{{Name: "a", Description: "A?"}, {Name: "b", Description: "B?"}}}, v1alpha1.RubricKindCriteria, 2},
		"a tree is its depth (S-30)": {v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{
			Ask: "Kind?", IfYes: &v1alpha1.TreeNode{Ask: "Short?", IfYes: leaf(1), IfNo: leaf(0.5)}, IfNo: leaf(0),
		}, Threshold: new(float64)}, v1alpha1.RubricKindTree, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.Rubric{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: tc.spec}
			now := time.Unix(1700000000, 0)
			assess(r, now)
			want := v1alpha1.RubricStatus{
				ObservedGeneration: 3, Digest: plan.RubricDigest(&tc.spec), Kind: tc.kind, JudgeCalls: tc.calls,
				Conditions: []metav1.Condition{{
					Type: "Ready", Status: "True", Reason: "Valid", Message: "the rubric can be used",
					ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(now),
				}},
			}
			if diff := cmp.Diff(want, r.Status); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnInvalidRubricIsStalledAndNamesTheField(t *testing.T) {
	r := &v1alpha1.Rubric{Spec: v1alpha1.RubricSpec{Criteria: []v1alpha1.Criterion{
		{Name: "a", Description: "A?", When: &v1alpha1.When{Regex: "("}},
	}}}
	r.Status.Digest, r.Status.JudgeCalls = "sha256:old", 9
	assess(r, time.Unix(1, 0))
	stalled := meta.FindStatusCondition(r.Status.Conditions, "Stalled")
	if stalled == nil || stalled.Reason != "InvalidSpec" || !strings.Contains(stalled.Message, "spec.criteria[0].when") {
		t.Errorf("stalled = %+v, want InvalidSpec that names the field", stalled)
	}
	if !meta.IsStatusConditionFalse(r.Status.Conditions, "Ready") || r.Status.Digest != "" || r.Status.JudgeCalls != 0 {
		t.Errorf("status = %+v, want it not ready, without a digest", r.Status)
	}
}

// The newer object may differ in nothing that the watch of Rubrics lets through.
func TestAStatusThatMetANewerRubricIsWrittenAgain(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	rubric := &v1alpha1.Rubric{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "kind"}, Spec: v1alpha1.RubricSpec{Text: "Kind?"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(rubric).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return apierrors.NewConflict(schema.GroupResource{Resource: "rubrics"}, "kind", errors.New("newer"))
		}}).Build()
	r := &Reconciler{Client: c, Clock: clocktesting.NewFakePassiveClock(time.Unix(1, 0))}
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(rubric)})
	if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > time.Second {
		t.Errorf("result = %+v, %v; want another look soon", result, err)
	}
}
