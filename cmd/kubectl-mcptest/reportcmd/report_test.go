package reportcmd

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

func TestNoteOfAnUnfinishedRun(t *testing.T) {
	found := &v1alpha1.RunReport{Rows: []v1alpha1.Report{{}}, Summary: v1alpha1.Summary{Rows: 3}}
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"it goes on": {nil, "the run goes on: 1 of 3 rows are there"},
		"it waits": {
			[]metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "SecretNotFound", Message: `secret "k" not found`}},
			`the run goes on: 1 of 3 rows are there; it waits: SecretNotFound: secret "k" not found`,
		},
		"it is stalled": {
			[]metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "InvalidSpec", Message: "no"}},
			"the run cannot go on: InvalidSpec: no",
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := &v1alpha1.EvalRun{Status: v1alpha1.EvalRunStatus{Conditions: test.conditions}}
			if got := unfinished(run, found); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
