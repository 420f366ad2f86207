package manifest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

// maxRunName is how long the name of an EvalRun may be, as its schema has it.
const maxRunName = 57

// validateRun checks an EvalRun as admission does, as far as a run from files goes.
func validateRun(run *v1alpha1.EvalRun, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	spec := &run.Spec
	forms := 0
	for _, has := range []bool{spec.EvalRef != nil, spec.EvalSelector != nil, spec.Eval != nil} {
		if has {
			forms++
		}
	}
	if forms != 1 {
		problems = append(problems, field.Invalid(path, "", "set exactly one of evalRef (one Eval), evalSelector (the Evals with these labels) or eval (the eval itself)"))
	}
	if spec.EvalRef != nil && spec.EvalRef.Name == "" {
		problems = append(problems, field.Required(path.Child("evalRef", "name"), "name the Eval to run"))
	}
	if spec.EvalSelector != nil && len(spec.EvalSelector.MatchLabels) == 0 {
		problems = append(problems, field.Required(path.Child("evalSelector", "matchLabels"), "write the labels of the Evals to run"))
	}
	if spec.Row != nil {
		problems = append(problems, field.Forbidden(path.Child("row"), "the operator sets row on the children of a run; remove it"))
	}
	switch {
	case spec.Judge == nil:
	case spec.Judge.Model == "":
		problems = append(problems, field.Required(path.Child("judge", "model"), "name the model that judges, or remove judge"))
	default: // the name is checked as that of any eval
		judged := &v1alpha1.EvalSpec{Rubric: &v1alpha1.RubricSource{RubricSpec: v1alpha1.RubricSpec{Text: "any"}}, Judge: &v1alpha1.JudgeSpec{Model: spec.Judge.Model}}
		problems = append(problems, plan.ValidateEval(judged, path)...)
	}
	problems = append(problems, outOfBounds(spec, path)...)
	if spec.Eval != nil {
		problems = append(problems, plan.ValidateEval(spec.Eval, path.Child("eval"))...)
	}
	return problems
}

// More limits of the schema: of the name of a queue, the labels of a selector, and a budget in US dollars.
const (
	maxQueueName   = 63
	maxMatchLabels = 16
	maxRunCost     = 1_000_000
)

// outOfBounds are the numbers and names of an EvalRun that its schema refuses.
func outOfBounds(spec *v1alpha1.EvalRunSpec, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if c := spec.MaxCost; c != nil && (*c <= 0 || *c > maxRunCost) {
		problems = append(problems, field.Invalid(path.Child("maxCost"), *c, "must be above 0 and at most 1000000 US dollars; remove it for no limit"))
	}
	wide := func(n *int32) *int64 {
		if n == nil {
			return nil
		}
		w := int64(*n)
		return &w
	}
	for _, f := range []struct {
		name     string
		value    *int64
		min, max int64
	}{
		{"parallelism", wide(spec.Parallelism), 1, 256},
		{"concurrency", wide(spec.Concurrency), 1, 256},
		{"activeDeadlineSeconds", spec.ActiveDeadlineSeconds, 1, 604_800},
		{"ttlSecondsAfterFinished", wide(spec.TTLSecondsAfterFinished), 0, 31_536_000},
		{"backoffLimitPerIndex", wide(spec.BackoffLimitPerIndex), 0, 100},
	} {
		if f.value != nil && (*f.value < f.min || *f.value > f.max) {
			problems = append(problems, field.Invalid(path.Child(f.name), *f.value, fmt.Sprintf("must be from %d to %d", f.min, f.max)))
		}
	}
	if len(spec.QueueName) > maxQueueName {
		problems = append(problems, field.Invalid(path.Child("queueName"), fmt.Sprintf("%d characters", len(spec.QueueName)), fmt.Sprintf("may have at most %d characters", maxQueueName)))
	}
	if s := spec.EvalSelector; s != nil && len(s.MatchLabels) > maxMatchLabels {
		problems = append(problems, field.Invalid(path.Child("evalSelector", "matchLabels"), fmt.Sprintf("%d labels", len(s.MatchLabels)), fmt.Sprintf("may have at most %d labels", maxMatchLabels)))
	}
	return problems
}
