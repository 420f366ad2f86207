package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// InvalidError lists what is wrong with an eval or a rubric.
type InvalidError struct {
	Problems field.ErrorList
}

// Error names each problem with its field, and what to write instead.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "; ")
}

// ValidateEval checks an eval as it is written: all that admission checks in a cluster, and what only code can check.
// path is where the spec stands. References are not followed.
func ValidateEval(spec *v1alpha1.EvalSpec, path *field.Path) field.ErrorList {
	v := &validator{}
	v.maxLength(path.Child("title"), spec.Title, 256)
	v.maxLength(path.Child("prompt"), spec.Prompt, 65536)
	if spec.Response != nil {
		v.maxLength(path.Child("response"), *spec.Response, 262144)
	}
	if spec.Response != nil && spec.ResponseFrom != nil {
		v.forbidden(path.Child("responseFrom"), "set response or responseFrom, not both")
	}
	if spec.ResponseFrom != nil {
		ref := path.Child("responseFrom", "configMapKeyRef")
		v.required(ref.Child("name"), spec.ResponseFrom.ConfigMapKeyRef.Name, "name the ConfigMap that holds the candidate")
		v.required(ref.Child("key"), spec.ResponseFrom.ConfigMapKeyRef.Key, "name the key of the ConfigMap that holds the candidate")
	}
	v.objectName(path.Child("server"), spec.Server)
	v.maxItems(path.Child("context"), len(spec.Context), 64)
	for i, text := range spec.Context {
		v.maxLength(path.Child("context").Index(i), text, 65536)
	}
	v.rubrics(spec, path)
	if spec.Judge != nil {
		v.judge(spec.Judge, path.Child("judge"))
	}
	if spec.Matrix != nil {
		v.matrix(spec, path)
	}
	v.oneOf(path.Child("onDeferred"), string(spec.OnDeferred), v1alpha1.DeferredPass, v1alpha1.DeferredFail)
	return v.problems
}

// Validate checks a resolved eval whose path is not known: it is told as spec.
func Validate(spec *v1alpha1.EvalSpec) field.ErrorList {
	return ValidateEval(spec, field.NewPath("spec"))
}

func (v *validator) rubrics(spec *v1alpha1.EvalSpec, path *field.Path) {
	switch {
	case spec.Rubric == nil && len(spec.Rubrics) == 0:
		v.add(field.Required(path.Child("rubric"), "set exactly one of rubric (one) or rubrics (several, all must pass)"))
	case spec.Rubric != nil && len(spec.Rubrics) > 0:
		v.forbidden(path.Child("rubrics"), "set exactly one of rubric (one) or rubrics (several, all must pass)")
	}
	if spec.Rubric != nil {
		v.rubricSource(spec.Rubric, path.Child("rubric"))
	}
	list := path.Child("rubrics")
	v.maxItems(list, len(spec.Rubrics), 8)
	names, counts := make(map[string]bool), len(spec.Rubrics) == 0
	for i := range spec.Rubrics {
		r, at := &spec.Rubrics[i], list.Index(i)
		v.required(at.Child("name"), r.Name, "give the rubric a name; the report shows it")
		v.maxLength(at.Child("name"), r.Name, 128)
		v.unique(at.Child("name"), names, r.Name)
		v.weight(at.Child("weight"), r.Weight)
		counts = counts || r.Weight == nil || *r.Weight > 0
		v.rubricSource(&r.RubricSource, at)
	}
	if !counts {
		v.invalid(list, "", "every weight is 0, so no score can be made; give at least one rubric a weight above 0")
	}
}

const exactlyOneSource = "set exactly one of ref (a Rubric of this namespace), text, criteria, tree or preset (criteria beside a preset are added to it)"

func (v *validator) rubricSource(r *v1alpha1.RubricSource, path *field.Path) {
	if r.Ref == "" {
		v.rubric(&r.RubricSpec, path, exactlyOneSource)
		return
	}
	v.fraction(path.Child("threshold"), r.Threshold)
	if forms := formsOf(&r.RubricSpec); len(forms) > 0 {
		v.forbidden(path.Child("ref"), strings.Join(append(forms, "ref"), " and ")+" exclude each other: "+exactlyOneSource)
	}
	if r.Aggregation != "" || r.RequireEvidence || r.RequiredGate != "" || r.Scale != nil || r.Description != "" {
		v.forbidden(path.Child("ref"), "with ref only threshold and strict can be set here; change the rest in the Rubric")
	}
}

func (v *validator) judge(j *v1alpha1.JudgeSpec, path *field.Path) {
	v.oneOf(path.Child("provider"), string(j.Provider), v1alpha1.ProviderAnthropic, v1alpha1.ProviderOpenAI, v1alpha1.ProviderGemini, v1alpha1.ProviderMistral)
	v.model(path.Child("model"), j.Model)
	if t := j.Temperature; t != nil && !(*t >= 0 && *t <= 2) {
		v.invalid(path.Child("temperature"), *t, "must be from 0 to 2")
	}
	if j.SecretRef != nil {
		v.required(path.Child("secretRef", "name"), j.SecretRef.Name, "name the Secret that holds the keys of the judges")
	}
	if j.Jury != nil {
		if size := j.Jury.Size; size < 1 || size > 15 {
			v.invalid(path.Child("jury", "size"), size, "must be from 1 to 15")
		}
		if c := j.Jury.Consensus; c != nil && !(*c > 0 && *c <= 1) {
			v.invalid(path.Child("jury", "consensus"), *c, "must be above 0 and at most 1, such as 0.66")
		}
	}
	v.oneOf(path.Child("aggregate"), string(j.Aggregate), v1alpha1.PanelMean, v1alpha1.PanelMedian, v1alpha1.PanelMajority)
	v.oneOf(path.Child("tieBreak"), string(j.TieBreak), v1alpha1.TieBreakFail, v1alpha1.TieBreakPass)
	if len(j.Panel) == 0 {
		if j.Aggregate != "" || j.TieBreak != "" {
			v.forbidden(path, "aggregate and tieBreak belong to a panel; add panel, or remove them")
		}
		return
	}
	if n := len(j.Panel); n < 2 || n > 9 {
		v.invalid(path.Child("panel"), n, "a panel has from 2 to 9 models; for one model use judge.model, or a jury")
	}
	seen := make(map[string]bool)
	for i, m := range j.Panel {
		v.model(path.Child("panel").Index(i), m)
		v.unique(path.Child("panel").Index(i), seen, string(m))
	}
	switch {
	case j.Jury != nil:
		v.forbidden(path.Child("jury"), "a panel (several models) and a jury (one model several times) exclude each other; remove one of them")
	case j.Model != "":
		v.forbidden(path.Child("model"), "panel and model both choose the judge model; remove model, or put it into the panel")
	case j.Provider != "":
		v.forbidden(path.Child("provider"), "each model of a panel finds its provider by its name; remove provider")
	}
}

// maxCells is how many cells a matrix can have.
const maxCells = 1024

func (v *validator) matrix(spec *v1alpha1.EvalSpec, path *field.Path) {
	m, at := spec.Matrix, path.Child("matrix")
	if len(m.Models) == 0 && len(m.Prompts) == 0 {
		v.add(field.Required(at, "give the matrix models or prompts, or remove it"))
	}
	v.maxItems(at.Child("models"), len(m.Models), 64)
	v.maxItems(at.Child("prompts"), len(m.Prompts), 256)
	models, prompts := make(map[string]bool), make(map[string]bool)
	for i, model := range m.Models {
		v.model(at.Child("models").Index(i), model)
		v.unique(at.Child("models").Index(i), models, string(model))
	}
	for i, prompt := range m.Prompts {
		v.required(at.Child("prompts").Index(i), prompt, "write the prompt, or remove it")
		v.maxLength(at.Child("prompts").Index(i), prompt, 16384)
		v.unique(at.Child("prompts").Index(i), prompts, prompt)
	}
	if max(1, len(m.Models))*max(1, len(m.Prompts)) > maxCells {
		v.invalid(at, fmt.Sprintf("%d x %d cells", len(m.Models), len(m.Prompts)), "the matrix has more than 1024 cells; shorten an axis, or split the eval")
	}
	if len(m.Models) == 0 || spec.Judge == nil {
		return
	}
	switch {
	case len(spec.Judge.Panel) > 0:
		v.forbidden(at.Child("models"), "judge.panel and matrix.models both choose the judge model; remove one of them")
	case spec.Judge.Model != "":
		v.forbidden(at.Child("models"), "judge.model and matrix.models both choose the judge model; remove one of them")
	}
}
