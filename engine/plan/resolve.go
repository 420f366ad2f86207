package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/nearest"
	"github.com/mcptest/mcptest-operator/engine/preset"
)

// Catalog holds what evals can refer to.
type Catalog struct {
	// Rubrics by name.
	Rubrics map[string]v1alpha1.RubricSpec
	// ConfigMaps by name: their data.
	ConfigMaps map[string]map[string]string
}

// References are the names that an eval refers to.
type References struct {
	Rubrics    []string
	ConfigMaps []string
}

// ReferencesOf lists the names that an eval refers to, each once, in order.
func ReferencesOf(spec *v1alpha1.EvalSpec) References {
	var refs References
	add := func(list []string, name string) []string {
		if name == "" || slices.Contains(list, name) {
			return list
		}
		return append(list, name)
	}
	if spec.Rubric != nil {
		refs.Rubrics = add(refs.Rubrics, spec.Rubric.Ref)
	}
	for _, r := range spec.Rubrics {
		refs.Rubrics = add(refs.Rubrics, r.Ref)
	}
	if spec.ResponseFrom != nil {
		refs.ConfigMaps = add(refs.ConfigMaps, spec.ResponseFrom.ConfigMapKeyRef.Name)
	}
	return refs
}

// NotFoundError says that an eval names something that is not there.
type NotFoundError struct {
	// Kind is Rubric, ConfigMap or ConfigMap key.
	Kind string
	// Name is what was looked for; of a ConfigMap key, NAME/KEY.
	Name string
	// Nearest is the most similar name that is there; empty when none is similar.
	Nearest string
}

// Error implements error.
func (e *NotFoundError) Error() string {
	msg := fmt.Sprintf("%s %q not found", e.Kind, e.Name)
	if name, key, ok := strings.Cut(e.Name, "/"); ok && e.Kind == KindConfigMapKey {
		msg = fmt.Sprintf("ConfigMap %q has no key %q", name, key)
	}
	if e.Nearest != "" {
		msg += fmt.Sprintf("; did you mean %q?", e.Nearest)
	}
	return msg
}

// Kinds of NotFoundError.
const (
	KindRubric       = "Rubric"
	KindConfigMap    = "ConfigMap"
	KindConfigMapKey = "ConfigMap key"
)

// Resolve fills in the rubrics, the presets and the response that an eval refers to. The spec that it is given is not
// changed. The error is a *NotFoundError. A preset that cannot be filled in stays as it is: Validate says why.
func Resolve(spec v1alpha1.EvalSpec, c Catalog) (v1alpha1.EvalSpec, error) {
	out := *spec.DeepCopy()
	material := preset.Material(slices.ContainsFunc(out.Context, func(text string) bool { return strings.TrimSpace(text) != "" }))
	if out.Rubric != nil {
		if err := c.resolveRubric(out.Rubric, material); err != nil {
			return out, err
		}
	}
	for i := range out.Rubrics {
		if err := c.resolveRubric(&out.Rubrics[i].RubricSource, material); err != nil {
			return out, fmt.Errorf("rubrics[%s]: %w", out.Rubrics[i].Name, err)
		}
	}
	if out.ResponseFrom == nil {
		return out, nil
	}
	ref := out.ResponseFrom.ConfigMapKeyRef
	data, ok := c.ConfigMaps[ref.Name]
	if !ok {
		return out, &NotFoundError{Kind: KindConfigMap, Name: ref.Name, Nearest: nearestKey(ref.Name, c.ConfigMaps)}
	}
	text, ok := data[ref.Key]
	if !ok {
		return out, &NotFoundError{Kind: KindConfigMapKey, Name: ref.Name + "/" + ref.Key, Nearest: nearestKey(ref.Key, data)}
	}
	out.Response, out.ResponseFrom = &text, nil
	return out, nil
}

// resolveRubric puts the rubric that a source refers to in its place. threshold and strict beside ref win.
func (c Catalog) resolveRubric(source *v1alpha1.RubricSource, material preset.Material) error {
	if source.Ref == "" {
		source.RubricSpec = expanded(source.RubricSpec, material)
		return nil
	}
	found, ok := c.Rubrics[source.Ref]
	if !ok {
		return &NotFoundError{Kind: KindRubric, Name: source.Ref, Nearest: nearestKey(source.Ref, c.Rubrics)}
	}
	resolved := *found.DeepCopy()
	if source.Threshold != nil {
		resolved.Threshold = source.Threshold
	}
	if source.Strict {
		resolved.Strict = true
	}
	source.Ref, source.RubricSpec = "", expanded(resolved, material)
	return nil
}

// expanded is a rubric with the criteria of its preset; as it is when that has a problem, which Validate tells.
func expanded(r v1alpha1.RubricSpec, material preset.Material) v1alpha1.RubricSpec {
	if r.Text != "" || r.Tree != nil {
		return r
	}
	out, err := preset.Expand(r, material)
	if err != nil {
		return r
	}
	return out
}

// ResolveRubric is a rubric with the criteria of its preset, as it is used for a candidate with supporting material.
func ResolveRubric(r v1alpha1.RubricSpec) v1alpha1.RubricSpec {
	return expanded(r, preset.WithMaterial)
}

// nearestKey is the key that is most like name; empty when none is like it.
func nearestKey[V any](name string, among map[string]V) string {
	return nearest.Name(name, slices.Collect(maps.Keys(among)))
}
