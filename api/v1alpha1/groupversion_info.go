// Package v1alpha1 is the schema of mcptest-operator: Rubric, Eval, EvalRun and the canonical Report.
// It holds types, defaults and validation markers, and no behaviour.
//
// Scores and thresholds are JSON numbers in 0..1 (S-1): people write `threshold: 0.7`.
//
// +kubebuilder:object:generate=true
// +groupName=eval.mcptest.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "eval.mcptest.dev", Version: "v1alpha1"}

var (
	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the kinds of this package to a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Rubric{}, &RubricList{},
		&Eval{}, &EvalList{},
		&EvalRun{}, &EvalRunList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
