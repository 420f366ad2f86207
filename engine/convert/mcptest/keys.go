package mcptest

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/convert"
	"github.com/mcptest/mcptest-operator/engine/nearest"
)

// The types that are written otherwise than their fields are.
var (
	evalType         = reflect.TypeFor[v1alpha1.EvalSpec]()
	rubricType       = reflect.TypeFor[v1alpha1.RubricSpec]()
	rubricSourceType = reflect.TypeFor[v1alpha1.RubricSource]()
	namedRubricType  = reflect.TypeFor[v1alpha1.NamedRubric]()
	judgeType        = reflect.TypeFor[v1alpha1.JudgeSpec]()
	treeType         = reflect.TypeFor[v1alpha1.TreeNode]()
	scaleType        = reflect.TypeFor[v1alpha1.Scale]()
)

// key is one key of a mapping: the field that it is rewritten to.
type key struct {
	field   string
	goType  reflect.Type
	rewrite func(r *rewriter, n *yaml.Node, at place, depth int) *yaml.Node // nil: as the type says
}

// exceptions are the keys of a type that do not follow from its fields by name; nil for a field that has no key.
func exceptions(t reflect.Type) map[string]*key {
	text := reflect.TypeFor[string]()
	switch t {
	case evalType:
		return map[string]*key{
			"title": nil, "response_from": nil,
			"name":    {field: "title", goType: text},
			"server":  {field: "server", goType: text, rewrite: (*rewriter).server},
			"context": {field: "context", goType: reflect.TypeFor[[]string](), rewrite: (*rewriter).context},
		}
	case rubricSourceType, namedRubricType:
		return map[string]*key{"ref": {field: "ref", goType: text, rewrite: (*rewriter).ref}}
	case judgeType:
		return map[string]*key{"secret_ref": nil}
	case treeType:
		return map[string]*key{
			"if_yes": nil, "if_no": nil,
			"yes": {field: "ifYes", goType: treeType},
			"no":  {field: "ifNo", goType: treeType},
		}
	}
	return nil
}

// foreign says what to write for keys that people may expect, where they are unknown.
var foreign = map[reflect.Type]map[string]string{
	evalType: {
		"title": "write name: it is the name of the row",
		"ref":   "write rubric: {ref: ...}",
	},
	rubricType: {"ref": "a rubric of this file stands on its own; write it out, and refer to it in an eval"},
}

// branches are the keys yes and no of a tree, by what people may write for them.
var branches = map[string]string{
	"ifYes": "yes", "if_yes": "yes", "if-yes": "yes", "true": "yes",
	"ifNo": "no", "if_no": "no", "if-no": "no", "false": "no",
}

// clusterOnly are fields of manifests that mean something in a cluster only.
var clusterOnly = []struct{ field, say string }{
	{"responseFrom", "it names a ConfigMap of a cluster; write the candidate in response"},
	{"secretRef", "it names a Secret of a cluster; keys come from the environment, as ANTHROPIC_API_KEY does"},
}

var keyCache sync.Map // reflect.Type -> map[string]*key

// keysOf are the keys of a mapping that stands for a struct.
func keysOf(t reflect.Type) map[string]*key {
	if known, ok := keyCache.Load(t); ok {
		return known.(map[string]*key)
	}
	keys := make(map[string]*key)
	for field, goType := range convert.Fields(t) {
		keys[convert.Snake(field)] = &key{field: field, goType: goType}
	}
	for name, k := range exceptions(t) {
		if keys[name] = k; k == nil {
			delete(keys, name)
		}
	}
	keyCache.Store(t, keys)
	return keys
}

// hint says what an unknown key may have meant, or what there is.
func hint(name string, t reflect.Type, known []string) string {
	if say, ok := foreign[t][name]; ok {
		return "; " + say
	}
	for _, c := range clusterOnly {
		_, there := convert.Fields(t)[c.field]
		if there && (name == c.field || name == convert.Snake(c.field)) {
			return "; " + c.say
		}
	}
	return nearestOr(name, known)
}

// nearestOr says which of the known names may have been meant, or what they are.
func nearestOr(name string, known []string) string {
	if h := nearest.Hint(name, known); h != "" {
		return h
	}
	return "; known here: " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}

// Key is how a field is written in these files: requireEvidence becomes require_evidence, ifYes becomes yes.
func Key(field string) string {
	switch field {
	case "ifYes":
		return "yes"
	case "ifNo":
		return "no"
	}
	return convert.Snake(field)
}

// phrases are what messages about manifests say that does not hold for these files, and what does.
var phrases = strings.NewReplacer(
	" (write ifYes and ifNo, not yes and no: YAML reads an unquoted yes as true)", "",
	"ref (a Rubric of this namespace)", "ref (a rubric under rubrics:)",
	"change the rest in the Rubric", "change the rest under rubrics:",
	"remove it from the Rubric", "remove it under rubrics:",
	"rename one of them", "rename one of them: each becomes an object of its own",
)

// camel matches the names of fields that these files write otherwise.
var camel = sync.OnceValue(func() *regexp.Regexp {
	names := make(map[string]bool)
	gather(evalType, names, make(map[reflect.Type]bool))
	return regexp.MustCompile(`\b(` + strings.Join(slices.Sorted(maps.Keys(names)), "|") + `)\b`)
})

// gather finds the fields below a type whose keys have another name.
func gather(t reflect.Type, names map[string]bool, seen map[reflect.Type]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return
	}
	seen[t] = true
	for field, goType := range convert.Fields(t) {
		if Key(field) != field {
			names[field] = true
		}
		gather(goType, names, seen)
	}
}

// words puts a message about manifests into the words of these files.
func words(message string) string {
	return camel().ReplaceAllStringFunc(phrases.Replace(message), Key)
}
