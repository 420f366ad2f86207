package fakejudge

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	openAIFormatName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	// openAIForbidden are keywords that strict mode does not permit.
	openAIForbidden = []string{
		"allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties", "propertyNames",
		"minProperties", "maxProperties", "minLength", "maxLength", "contains", "minContains", "maxContains", "uniqueItems",
		"unevaluatedItems", "unevaluatedProperties",
	}
)

const openAIMaxFormatName = 64

// responseFormat reads text, json_object or json_schema.
func (d *openAIDecoder) responseFormat() *refusal {
	if !d.f.has("response_format") {
		return nil
	}
	f, ok := objectOf(d.f["response_format"])
	if !ok {
		return d.wrongType("response_format", "an object")
	}
	kind, _ := stringOf(f["type"])
	known := []string{"type"}
	switch {
	case !f.has("type"):
		return d.missing("response_format.type")
	case !slices.Contains([]string{"json_object", "json_schema", "text"}, kind):
		return d.bad("response_format.type", "invalid_value", "Invalid value: '%s'. Supported values are: 'json_object', 'json_schema', and 'text'.", clip(kind, 50))
	case kind == "json_schema":
		known = append(known, "json_schema")
	}
	if k, ok := f.unknown(known); ok {
		k = "response_format." + clip(k, 200)
		return d.bad(k, "unknown_parameter", "Unknown parameter: '%s'.", k)
	}
	switch kind {
	case "json_object":
		if !strings.Contains(strings.ToLower(d.text.String()), "json") {
			return d.bad("messages", "", "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")
		}
		d.req.schema = defaultSchema
	case "json_schema":
		return d.jsonSchema(f["json_schema"])
	}
	return nil
}

func (d *openAIDecoder) missing(param string) *refusal {
	return d.bad(param, "missing_required_parameter", "Missing required parameter: '%s'.", param)
}

func (d *openAIDecoder) jsonSchema(raw json.RawMessage) *refusal {
	const place = "response_format.json_schema"
	f, ok := objectOf(raw)
	if !ok {
		return d.missing(place)
	}
	if k, ok := f.unknown([]string{"name", "description", "schema", "strict"}); ok {
		k = place + "." + clip(k, 200)
		return d.bad(k, "unknown_parameter", "Unknown parameter: '%s'.", k)
	}
	name, ok := stringOf(f["name"])
	switch {
	case !f.has("name"):
		return d.missing(place + ".name")
	case !ok:
		return d.bad(place+".name", "invalid_type", "Invalid type for '%s.name': expected a string, but got a %s instead.", place, kindOf(f["name"]))
	case len(name) > openAIMaxFormatName:
		return d.bad(place+".name", "string_above_max_length", "Invalid '%s.name': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", place, openAIMaxFormatName, len(name))
	case !openAIFormatName.MatchString(name):
		return d.bad(place+".name", "invalid_value", "Invalid '%s.name': string does not match pattern. Expected a string that matches the pattern '%s'.", place, openAIFormatName)
	case !f.has("schema"):
		return d.missing(place + ".schema")
	}
	var root any
	if _, ok := objectOf(f["schema"]); !ok || json.Unmarshal(f["schema"], &root) != nil {
		return d.bad(place+".schema", "invalid_type", "Invalid type for '%s.schema': expected an object, but got a %s instead.", place, kindOf(f["schema"]))
	}
	invalid := func(problem string) *refusal {
		return d.bad("response_format", "", "Invalid schema for response_format '%s': %s", name, problem)
	}
	if problem := malformedSchema(root, 0); problem != "" {
		return invalid(problem + ".")
	}
	switch strict := strings.TrimSpace(string(f["strict"])); strict {
	case "true":
		if problem := openAIStrict(root); problem != "" {
			return invalid(problem)
		}
	case "", "null", "false":
	default:
		return d.bad(place+".strict", "invalid_type", "Invalid type for '%s.strict': expected a boolean, but got a %s instead.", place, kindOf(f["strict"]))
	}
	sc, err := newSchema(f["schema"])
	if err != nil {
		return invalid(fmt.Sprintf("%s %v.", ReasonPrefix, err))
	}
	d.req.schema = sc
	return nil
}

// openAIStrict says what strict mode refuses in a schema, in the real service's words.
func openAIStrict(root any) string {
	m, _ := root.(map[string]any)
	if m["anyOf"] != nil || m["type"] != "object" {
		return fmt.Sprintf("schema must be a JSON Schema of 'type: \"object\"', got 'type: \"%v\"'.", firstOf[any](m["type"], "None"))
	}
	var problem string
	walkSchema(root, "", func(path string, m map[string]any) bool {
		if p := strictNode(m); p != "" {
			problem = fmt.Sprintf("In context=(%s), %s", path, p)
		}
		return problem == ""
	})
	return problem
}

func strictNode(m map[string]any) string {
	for _, k := range openAIForbidden {
		if _, ok := m[k]; ok {
			return fmt.Sprintf("'%s' is not permitted.", k)
		}
	}
	hasShape := m["type"] != nil || m["$ref"] != nil || m["anyOf"] != nil || m["enum"] != nil || m["const"] != nil
	switch {
	case !hasShape:
		return "schema must have a 'type' key."
	case m["type"] == nil || typeOf(m) == "array" && m["items"] != nil:
		return ""
	case typeOf(m) == "array":
		return "array schema missing items."
	case typeOf(m) != "object":
		return ""
	case m["additionalProperties"] != false:
		return "'additionalProperties' is required to be supplied and to be false."
	}
	props, _ := m["properties"].(map[string]any)
	required, _ := m["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if !slices.Contains(required, any(name)) {
			return fmt.Sprintf("'required' is required to be supplied and to be an array including every key in properties. Missing '%s'.", clip(name, 100))
		}
	}
	for _, r := range required {
		if name, _ := r.(string); props[name] == nil {
			return fmt.Sprintf("'required' is required to be supplied and to be an array including every key in properties. Extra required key '%s' supplied.", clip(name, 100))
		}
	}
	return ""
}
