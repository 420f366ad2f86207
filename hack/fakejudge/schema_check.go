package fakejudge

import (
	"fmt"
	"maps"
	"slices"
)

var schemaTypes = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// malformedSchema says what is wrong with the keywords that every schema may have,
// or "" when they are well-formed.
func malformedSchema(node any, depth int) string {
	if depth > maxSchemaDepth {
		return fmt.Sprintf("it is more than %d levels deep", maxSchemaDepth)
	}
	m, ok := node.(map[string]any)
	if !ok {
		if _, isBool := node.(bool); isBool {
			return ""
		}
		return "a schema is an object or a boolean"
	}
	if t, ok := m["type"]; ok && !validType(t) {
		return fmt.Sprintf("%.60q is not a type", fmt.Sprint(t))
	}
	if r, ok := m["required"]; ok {
		list, isList := r.([]any)
		if !isList || slices.ContainsFunc(list, func(v any) bool { _, ok := v.(string); return !ok }) {
			return "required is a list of strings"
		}
	}
	for _, k := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems"} {
		if v, ok := m[k]; ok {
			if _, isNumber := v.(float64); !isNumber {
				return k + " is a number"
			}
		}
	}
	if e, ok := m["enum"]; ok {
		if _, isList := e.([]any); !isList {
			return "enum is a list"
		}
	}
	for _, k := range []string{"properties", "$defs", "definitions"} {
		if v, ok := m[k]; ok {
			if _, isMap := v.(map[string]any); !isMap {
				return k + " is an object"
			}
		}
	}
	for _, child := range children(m) {
		if problem := malformedSchema(child.node, depth+1); problem != "" {
			return problem
		}
	}
	return ""
}

func validType(t any) bool {
	switch t := t.(type) {
	case string:
		return slices.Contains(schemaTypes, t)
	case []any:
		return len(t) > 0 && !slices.ContainsFunc(t, func(v any) bool {
			s, ok := v.(string)
			return !ok || !slices.Contains(schemaTypes, s)
		})
	}
	return false
}

type child struct {
	path string // as OpenAI words it: "'properties', 'score'"
	node any
}

// children are the schemas directly inside a schema, in a stable order.
func children(m map[string]any) []child {
	var out []child
	for _, k := range []string{"properties", "$defs", "definitions"} {
		inner, _ := m[k].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(inner)) {
			out = append(out, child{fmt.Sprintf("'%s', '%s'", k, clip(name, 60)), inner[name]})
		}
	}
	for _, k := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := m[k].([]any)
		for i, n := range list {
			out = append(out, child{fmt.Sprintf("'%s', '%d'", k, i), n})
		}
	}
	if n, ok := m["items"]; ok {
		out = append(out, child{"'items'", n})
	}
	return out
}

// walkSchema visits every schema object, parents first, until visit returns false.
func walkSchema(node any, path string, visit func(path string, m map[string]any) bool) bool {
	m, ok := node.(map[string]any)
	if !ok {
		return true
	}
	if !visit(path, m) {
		return false
	}
	for _, c := range children(m) {
		at := c.path
		if path != "" {
			at = path + ", " + c.path
		}
		if !walkSchema(c.node, at, visit) {
			return false
		}
	}
	return true
}
