package fakejudge

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

const (
	maxSchemaDepth = 32
	maxSchemaNodes = 10_000
	maxItems       = 100
	maxStringLen   = 10_000
)

// schema is a JSON Schema that the stand-in can answer.
type schema struct{ root any }

// defaultSchema is answered, inside prose, when a request asks for no structure.
var defaultSchema = &schema{root: map[string]any{
	"type": "object",
	"properties": map[string]any{
		"score":    map[string]any{"type": "number", "minimum": 0.0, "maximum": 1.0},
		"reason":   map[string]any{"type": "string"},
		"evidence": map[string]any{"type": "string"},
	},
}}

// unanswerable are keywords that take a solver to satisfy; better refused than ignored.
var unanswerable = []string{
	"pattern", "format", "not", "if", "then", "else", "dependentRequired", "dependentSchemas",
	"patternProperties", "propertyNames", "minProperties", "contains", "uniqueItems", "prefixItems",
	"unevaluatedItems", "unevaluatedProperties", "$dynamicRef",
}

// newSchema reads a schema and tries it once, so that an answer cannot fail later.
// The error says which keyword or place the stand-in cannot answer.
func newSchema(raw json.RawMessage) (*schema, error) {
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	s := &schema{root: root}
	if _, err := s.fill(decision{reason: ReasonPrefix}); err != nil {
		return nil, err
	}
	return s, nil
}

// fill makes a value that satisfies the schema. Properties named score, reason and
// evidence hold the decision's, wherever they stand; the others are filled from
// its hash. The faults outOfRange and emptyReason break exactly that one property.
func (s *schema) fill(d decision) (any, error) {
	f := &filler{root: s.root, d: d, seed: digestOf(d.reason, d.evidence).unit()}
	return f.value(s.root, "", 0)
}

type filler struct {
	root  any
	d     decision
	seed  float64 // in [0,1]
	nodes int
}

func (f *filler) value(node any, name string, depth int) (any, error) {
	if f.nodes++; f.nodes > maxSchemaNodes || depth > maxSchemaDepth {
		return nil, fmt.Errorf("the schema is too deep or too large at %q (at most %d levels, %d values)", name, maxSchemaDepth, maxSchemaNodes)
	}
	if node == true {
		return "stand-in", nil
	}
	m, ok := node.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the schema of %q is not an object", name)
	}
	for _, k := range unanswerable {
		if v, ok := m[k]; ok && v != false {
			return nil, fmt.Errorf("the stand-in cannot answer the schema keyword %q (at %q)", k, name)
		}
	}
	if ref, ok := m["$ref"].(string); ok {
		target, err := f.resolve(ref)
		if err != nil {
			return nil, err
		}
		return f.value(target, name, depth+1)
	}
	if c, ok := m["const"]; ok {
		return c, nil
	}
	if enum, ok := m["enum"].([]any); ok {
		return f.enum(enum, name)
	}
	if all, ok := m["allOf"].([]any); ok {
		merged, err := f.merge(m, all)
		if err != nil {
			return nil, err
		}
		return f.value(merged, name, depth+1)
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		if options, ok := m[k].([]any); ok {
			return f.option(options, name, depth)
		}
	}
	switch t := typeOf(m); t {
	case "object":
		return f.object(m, depth)
	case "array":
		return f.array(m, name, depth)
	case "string":
		return f.text(m, name)
	case "boolean":
		return name == "score" && f.d.score >= 0.5 || name != "score" && f.seed >= 0.5, nil
	case "number", "integer":
		return f.number(m, name, t == "integer")
	case "null":
		return nil, nil
	default:
		return nil, fmt.Errorf("the schema of %q has the unknown type %q", name, t)
	}
}

// typeOf is the type to answer with: of several the first that is not null.
func typeOf(m map[string]any) string {
	switch t := m["type"].(type) {
	case string:
		return t
	case []any:
		for _, v := range t {
			if s, ok := v.(string); ok && s != "null" {
				return s
			}
		}
		return "null"
	}
	switch {
	case m["properties"] != nil:
		return "object"
	case m["items"] != nil:
		return "array"
	}
	return "string"
}

// resolve follows a reference inside the same schema.
func (f *filler) resolve(ref string) (any, error) {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, fmt.Errorf("the schema's $ref %q leads outside of it", clip(ref, 100))
	}
	at := f.root
	for step := range strings.SplitSeq(strings.TrimPrefix(rest, "/"), "/") {
		if step == "" {
			continue
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		m, ok := at.(map[string]any)
		if !ok || m[step] == nil {
			return nil, fmt.Errorf("the schema's $ref %q leads nowhere", clip(ref, 100))
		}
		at = m[step]
	}
	return at, nil
}

func (f *filler) merge(m map[string]any, all []any) (map[string]any, error) {
	out := maps.Clone(m)
	delete(out, "allOf")
	props, _ := m["properties"].(map[string]any)
	props = maps.Clone(props)
	for _, part := range all {
		p, ok := part.(map[string]any)
		if ref, isRef := p["$ref"].(string); ok && isRef {
			target, err := f.resolve(ref)
			if err != nil {
				return nil, err
			}
			p, ok = target.(map[string]any)
		}
		if !ok {
			return nil, errors.New("the schema's allOf holds something that is not an object")
		}
		more, _ := p["properties"].(map[string]any)
		if props == nil {
			props = map[string]any{}
		}
		maps.Copy(props, more)
		maps.Copy(out, p)
	}
	if len(props) > 0 {
		out["properties"] = props
	}
	return out, nil
}

// option answers the first option that is not null and can be answered.
func (f *filler) option(options []any, name string, depth int) (any, error) {
	err := fmt.Errorf("the schema of %q has no options", name)
	for _, o := range options {
		if m, ok := o.(map[string]any); ok && m["type"] == "null" && len(options) > 1 {
			continue
		}
		var v any
		if v, err = f.value(o, name, depth+1); err == nil {
			return v, nil
		}
	}
	return nil, err
}

// enum picks by the score when the values of a score are all numbers, else by hash.
func (f *filler) enum(values []any, name string) (any, error) {
	if len(values) == 0 {
		return nil, fmt.Errorf("the schema of %q has an empty enum", name)
	}
	at := f.seed
	if name == "score" {
		numeric := !slices.ContainsFunc(values, func(v any) bool { _, ok := v.(float64); return !ok })
		if numeric {
			values = slices.Clone(values)
			slices.SortFunc(values, func(a, b any) int {
				x, y := a.(float64), b.(float64)
				switch {
				case x < y:
					return -1
				case x > y:
					return 1
				}
				return 0
			})
			at = f.d.score
		}
	}
	return values[int(math.Round(at*float64(len(values)-1)))], nil
}

func (f *filler) object(m map[string]any, depth int) (any, error) {
	props, _ := m["properties"].(map[string]any)
	out := make(map[string]any, len(props))
	for _, name := range slices.Sorted(maps.Keys(props)) {
		v, err := f.value(props[name], name, depth+1)
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	required, _ := m["required"].([]any)
	for _, r := range required {
		name, _ := r.(string)
		if _, ok := out[name]; ok {
			continue
		}
		extra, ok := m["additionalProperties"]
		if !ok {
			extra = true
		}
		if extra == false {
			return nil, fmt.Errorf("the schema requires %q and does not allow it", name)
		}
		v, err := f.value(extra, name, depth+1)
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}

func (f *filler) array(m map[string]any, name string, depth int) (any, error) {
	n := 1
	if v, ok := m["minItems"].(float64); ok {
		n = max(n, int(min(v, maxItems+1)))
	}
	if v, ok := m["maxItems"].(float64); ok && v < float64(n) {
		if least, _ := m["minItems"].(float64); least > v {
			return nil, fmt.Errorf("the schema of %q has minItems above maxItems", name)
		}
		n = int(max(v, 0))
	}
	if n > maxItems {
		return nil, fmt.Errorf("the schema of %q asks for more than %d items", name, maxItems)
	}
	items, ok := m["items"]
	if !ok {
		items = true
	}
	out := make([]any, 0, n)
	for range n {
		v, err := f.value(items, name, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (f *filler) text(m map[string]any, name string) (any, error) {
	s := "stand-in"
	switch name {
	case "reason":
		if s = f.d.reason; f.d.fault == FaultEmptyReason {
			return "", nil
		}
	case "evidence":
		s = f.d.evidence
	}
	runes := []rune(s)
	least, _ := m["minLength"].(float64)
	most, limited := m["maxLength"].(float64)
	if least > maxStringLen || limited && (most < least || most < 0) {
		return nil, fmt.Errorf("the schema of %q asks for a string that cannot be made (minLength %v, maxLength %v)", name, least, most)
	}
	if limited && float64(len(runes)) > most {
		runes = runes[:int(most)]
	}
	for float64(len(runes)) < least {
		runes = append(runes, '.')
	}
	return string(runes), nil
}
