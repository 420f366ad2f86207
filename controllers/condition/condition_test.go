package condition_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcptest/mcptest-operator/controllers/condition"
)

func TestConditionsFollowFromTheSituation(t *testing.T) {
	for name, tc := range map[string]struct {
		situation condition.Situation
		want      map[string]string
	}{
		"valid":       {condition.Valid("ok"), map[string]string{"Ready": "True Valid"}},
		"in progress": {condition.InProgress("Running", "m"), map[string]string{"Ready": "Unknown Running", "Reconciling": "True Running"}},
		"missing":     {condition.Missing("RubricNotFound", "m"), map[string]string{"Ready": "False RubricNotFound", "Reconciling": "True RubricNotFound"}},
		"invalid":     {condition.Invalid("m"), map[string]string{"Ready": "False InvalidSpec", "Stalled": "True InvalidSpec"}},
	} {
		t.Run(name, func(t *testing.T) {
			// Whatever held before does not linger.
			conditions := []metav1.Condition{{Type: "Stalled", Status: "True"}, {Type: "Reconciling", Status: "True"}}
			condition.Apply(&conditions, 7, tc.situation, time.Unix(1, 0))
			got := map[string]string{}
			for _, c := range conditions {
				got[c.Type] = string(c.Status) + " " + c.Reason
				if c.ObservedGeneration != 7 {
					t.Errorf("%s.observedGeneration = %d, want 7", c.Type, c.ObservedGeneration)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestClipCutsBetweenCharacters(t *testing.T) {
	got := condition.Clip(strings.Repeat("ä", 100), 50)
	if len(got) > 50 || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
		t.Errorf("got %d bytes: %q", len(got), got)
	}
	if got := condition.Clip("short", 50); got != "short" {
		t.Errorf("got %q, want it as it was", got)
	}
}
