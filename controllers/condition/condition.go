// Package condition computes the conditions Ready, Reconciling and Stalled of all kinds, with the meaning that kstatus
// gives them: tools such as Flux and Argo CD read them.
package condition

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// MaxMessage bounds the message of a condition, in bytes; the schema takes 32768.
const MaxMessage = 4096

// State says who must do something next about an object.
type State int

// The states.
const (
	// Settled: nobody.
	Settled State = iota
	// Working: the operator, or the pods of a run.
	Working
	// Waiting: something is missing; the object goes on by itself when it appears.
	Waiting
	// Stalled: somebody must change something.
	Stalled
)

// Situation is where an object stands: its conditions follow from it.
type Situation struct {
	State   State
	Reason  string
	Message string
}

// Invalid is the situation of an object, or of something that it refers to, that must be changed.
func Invalid(message string) Situation {
	return Situation{Stalled, v1alpha1.ReasonInvalidSpec, message}
}

// Missing is the situation of an object that refers to something that is not there.
func Missing(reason, message string) Situation { return Situation{Waiting, reason, message} }

// InProgress is the situation of an object that is being worked on.
func InProgress(reason, message string) Situation { return Situation{Working, reason, message} }

// Valid is the situation of an object that can be used.
func Valid(message string) Situation { return Situation{Settled, v1alpha1.ReasonValid, message} }

// Apply writes a situation into conditions: Ready always, Reconciling or Stalled where they hold.
func Apply(conditions *[]metav1.Condition, generation int64, s Situation, now time.Time) {
	ready := metav1.ConditionFalse
	switch s.State {
	case Settled:
		ready = metav1.ConditionTrue
	case Working:
		ready = metav1.ConditionUnknown
	}
	Set(conditions, generation, v1alpha1.ConditionReady, ready, s, now)
	if s.State == Working || s.State == Waiting {
		Set(conditions, generation, v1alpha1.ConditionReconciling, metav1.ConditionTrue, s, now)
	} else {
		meta.RemoveStatusCondition(conditions, v1alpha1.ConditionReconciling)
	}
	if s.State == Stalled {
		Set(conditions, generation, v1alpha1.ConditionStalled, metav1.ConditionTrue, s, now)
	} else {
		meta.RemoveStatusCondition(conditions, v1alpha1.ConditionStalled)
	}
}

// Set writes one condition with the reason and the message of a situation.
func Set(conditions *[]metav1.Condition, generation int64, kind string, status metav1.ConditionStatus, s Situation, now time.Time) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: kind, Status: status, Reason: s.Reason, Message: Clip(s.Message, MaxMessage),
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	})
}

// Clip cuts a text to at most limit bytes, between characters.
func Clip(text string, limit int) string {
	const mark = "…"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}
