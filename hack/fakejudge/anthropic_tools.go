package fakejudge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// tools reads the tools and the choice among them. Only the tool that will be
// called needs a schema that the stand-in can answer.
func (d *anthropicDecoder) tools() *refusal {
	var list []json.RawMessage
	if d.f.has("tools") {
		var ok bool
		if list, ok = listOf(d.f["tools"]); !ok {
			return d.bad("tools", "Input should be a valid list")
		}
	}
	var names []string
	schemas := map[string]json.RawMessage{}
	for i, raw := range list {
		name, sc, ref := d.toolAt(i, raw)
		if ref != nil {
			return ref
		}
		if _, twice := schemas[name]; twice {
			return d.bad("tools", "Tool names must be unique.")
		}
		names = append(names, name)
		schemas[name] = sc
	}
	chosen, ref := d.choice(names)
	if ref != nil || chosen == "" {
		return ref
	}
	sc, err := newSchema(schemas[chosen])
	if err != nil {
		return d.bad(fmt.Sprintf("tools.%d.custom.input_schema", slices.Index(names, chosen)), "%s %v", ReasonPrefix, err)
	}
	d.req.tool, d.req.schema = chosen, sc
	return nil
}

func (d *anthropicDecoder) toolAt(i int, raw json.RawMessage) (string, json.RawMessage, *refusal) {
	place := fmt.Sprintf("tools.%d", i)
	f, ok := objectOf(raw)
	if !ok {
		return "", nil, d.bad(place, "Input should be a valid dictionary")
	}
	if kind, _ := stringOf(f["type"]); f.has("type") && kind != "custom" {
		return "", nil, d.bad(place, "the tool type '%s' is not supported by the stand-in judge; write a custom tool", clip(kind, 50))
	}
	place += ".custom"
	known := []string{"type", "name", "description", "input_schema", "cache_control", "strict", "defer_loading", "eager_input_streaming", "allowed_callers", "input_examples"}
	if k, ok := f.unknown(known); ok {
		return "", nil, d.bad(place+"."+k, "Extra inputs are not permitted")
	}
	name, ok := stringOf(f["name"])
	switch {
	case f["name"] == nil:
		return "", nil, d.bad(place+".name", "Field required")
	case !ok:
		return "", nil, d.bad(place+".name", "Input should be a valid string")
	case !anthropicToolName.MatchString(name):
		return "", nil, d.bad(place+".name", "String should match pattern '%s'", anthropicToolName)
	}
	if f.has("description") && kindOf(f["description"]) != "string" {
		return "", nil, d.bad(place+".description", "Input should be a valid string")
	}
	strict := strings.TrimSpace(string(f["strict"])) == "true"
	if ref := d.inputSchema(place, f, strict); ref != nil {
		return "", nil, ref
	}
	marked, ref := d.mark(place, f)
	d.req.segments = append(d.req.segments, segment{text: string(raw), breakpoint: marked})
	return name, f["input_schema"], ref
}

func (d *anthropicDecoder) inputSchema(place string, f fields, strict bool) *refusal {
	place += ".input_schema"
	if f["input_schema"] == nil {
		return d.bad(place, "Field required")
	}
	sc, ok := objectOf(f["input_schema"])
	if !ok {
		return d.bad(place, "Input should be a valid dictionary")
	}
	kind, _ := stringOf(sc["type"])
	switch {
	case sc["type"] == nil:
		return d.bad(place+".type", "Field required")
	case kind != "object":
		return d.bad(place+".type", "Input should be 'object'")
	}
	var root any
	if err := json.Unmarshal(f["input_schema"], &root); err != nil {
		return d.bad(place, "JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12).")
	}
	if problem := malformedSchema(root, 0); problem != "" {
		return d.bad(place, "JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12). %s", problem)
	}
	if strict {
		if problem := anthropicStrict(root); problem != "" {
			return d.bad(strings.TrimSuffix(place, ".input_schema"), "%s", problem)
		}
	}
	return nil
}

// anthropicStrict is what strict tools refuse: open objects, and bounds.
func anthropicStrict(root any) string {
	var problem string
	walkSchema(root, "", func(_ string, m map[string]any) bool {
		kind := typeOf(m)
		if kind == "object" && m["additionalProperties"] != false {
			problem = "For 'object' type, 'additionalProperties' must be explicitly set to false"
			return false
		}
		for _, k := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"} {
			if _, ok := m[k]; ok {
				problem = fmt.Sprintf("For '%s' type, property '%s' is not supported", kind, k)
				return false
			}
		}
		return true
	})
	return problem
}

// choice returns the tool that will be called, "" for none.
func (d *anthropicDecoder) choice(names []string) (string, *refusal) {
	first := ""
	if len(names) > 0 {
		first = names[0]
	}
	if !d.f.has("tool_choice") {
		return first, nil
	}
	f, ok := objectOf(d.f["tool_choice"])
	if !ok {
		return "", d.bad("tool_choice", "Input should be a valid dictionary")
	}
	kind, _ := stringOf(f["type"])
	name, _ := stringOf(f["name"])
	known := []string{"type", "disable_parallel_tool_use"}
	switch kind {
	case "tool":
		known = append(known, "name")
	case "none":
		known = known[:1]
	}
	switch {
	case f["type"] == nil:
		return "", d.bad("tool_choice.type", "Field required")
	case !slices.Contains([]string{"auto", "any", "tool", "none"}, kind):
		return "", d.bad("tool_choice", "Input tag '%s' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'", clip(kind, 50))
	}
	if k, extra := f.unknown(known); extra {
		return "", d.bad("tool_choice."+kind+"."+k, "Extra inputs are not permitted")
	}
	switch {
	case kind == "tool" && f["name"] == nil:
		return "", d.bad("tool_choice.tool.name", "Field required")
	case kind == "none":
		return "", nil
	case len(names) == 0:
		return "", d.bad("tool_choice", "may only be specified while providing tools")
	case kind != "tool":
		return first, nil
	case !slices.Contains(names, name):
		return "", d.bad("tool_choice", "Tool '%s' not found in provided tools", clip(name, 128))
	}
	return name, nil
}
