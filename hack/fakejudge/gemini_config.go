package fakejudge

import (
	"encoding/json"
	"fmt"
	"strings"
)

var (
	geminiConfigFields = []string{
		"audioTimestamp", "candidateCount", "enableEnhancedCivicAnswers", "frequencyPenalty", "imageConfig", "logprobs", "maxOutputTokens",
		"mediaResolution", "presencePenalty", "responseJsonSchema", "responseLogprobs", "responseMimeType", "responseModalities",
		"responseSchema", "seed", "speechConfig", "stopSequences", "temperature", "thinkingConfig", "topK", "topP",
	}
	// geminiConfigUnserved are fields that would change the answer in a way that the stand-in does not imitate.
	geminiConfigUnserved = []string{
		"audioTimestamp", "imageConfig", "logprobs", "responseLogprobs", "responseModalities", "speechConfig", "stopSequences", "thinkingConfig",
	}
)

// geminiMaxOutput is the most that a model writes.
const geminiMaxOutput = 65536

func (d *geminiDecoder) config() *refusal {
	if !d.f.has("generationConfig") {
		return nil
	}
	f, ok := objectOf(d.f["generationConfig"])
	if !ok {
		return d.wrongType("generation_config", "type.googleapis.com/google.ai.generativelanguage.v1beta.GenerationConfig", d.f["generationConfig"])
	}
	f = camelCase(f)
	if k, ok := f.unknown(geminiConfigFields); ok {
		return d.unknownField("generation_config", k)
	}
	for _, name := range geminiConfigUnserved {
		if f.has(name) && strings.TrimSpace(string(f[name])) != "false" {
			return d.badField("generation_config."+name, "%s is not supported by the stand-in judge; leave it out", name)
		}
	}
	for _, step := range []func(fields) *refusal{d.sampling, d.limits, d.format} {
		if ref := step(f); ref != nil {
			return ref
		}
	}
	return nil
}

func (d *geminiDecoder) sampling(f fields) *refusal {
	for _, p := range []struct {
		name, field string
		hi          float64
	}{{"temperature", "temperature", 2}, {"topP", "top_p", 1}} {
		if !f.has(p.name) {
			continue
		}
		v, ok := numberOf(f[p.name])
		switch {
		case !ok:
			return d.wrongType("generation_config."+p.field, "TYPE_FLOAT", f[p.name])
		case v < 0 || v > p.hi:
			return d.badField("generation_config."+p.field, "%s must be in the range [0.0, %.1f].", p.field, p.hi)
		case p.name == "temperature" && d.policy.RefusesTemperature:
			return d.bad("The model %s does not support the temperature parameter.", clip(d.model, 200))
		}
	}
	return nil
}

func (d *geminiDecoder) limits(f fields) *refusal {
	for _, name := range []string{"candidateCount", "maxOutputTokens"} {
		if !f.has(name) {
			continue
		}
		v, ok := numberOf(f[name])
		switch {
		case !ok || v != float64(int(v)):
			return d.wrongType("generation_config."+name, "TYPE_INT32", f[name])
		case name == "candidateCount" && v != 1:
			return d.badField("generation_config.candidate_count", "candidateCount other than 1 is not supported by the stand-in judge")
		case name == "candidateCount":
		case v < 1 || v > geminiMaxOutput:
			return d.bad("Unable to submit request because it has a maxOutputTokens value of %v but the supported range is from 1 (inclusive) to %d (exclusive). "+
				"Update the value and try again.", v, geminiMaxOutput+1)
		default:
			d.req.maxTokens = int(v)
		}
	}
	return nil
}

// format reads the type of the response and the schema of it, in one of its two forms.
func (d *geminiDecoder) format(f fields) *refusal {
	kind, isText := stringOf(f["responseMimeType"])
	open, strict := f.has("responseSchema"), f.has("responseJsonSchema")
	switch {
	case f.has("responseMimeType") && !isText:
		return d.wrongType("generation_config.response_mime_type", "TYPE_STRING", f["responseMimeType"])
	case kind != "" && kind != "text/plain" && kind != "application/json":
		return d.badField("generation_config.response_mime_type", "allowed mimetypes are `text/plain`, `application/json`.")
	case open && strict:
		return d.badField("generation_config.response_json_schema", "response_schema must not be set with response_json_schema.")
	case (open || strict) && kind != "application/json":
		return d.badField("generation_config.response_schema", "a schema needs response_mime_type `application/json`.")
	case open:
		return d.schema("response_schema", f["responseSchema"], lowerTypes)
	case strict:
		return d.schema("response_json_schema", f["responseJsonSchema"], func(node any) any { return node })
	case kind == "application/json":
		d.req.schema = defaultSchema
	}
	return nil
}

func (d *geminiDecoder) schema(field string, raw json.RawMessage, normal func(any) any) *refusal {
	field = "generation_config." + field
	var root any
	if _, ok := objectOf(raw); !ok || json.Unmarshal(raw, &root) != nil {
		return d.wrongType(field, "type.googleapis.com/google.ai.generativelanguage.v1beta.Schema", raw)
	}
	root = normal(root)
	if problem := malformedSchema(root, 0); problem != "" {
		return d.badField(field, "%s", problem)
	}
	if problem := geminiOrdering(root); problem != "" {
		return d.badField(field, "%s", problem)
	}
	data, err := json.Marshal(root)
	if err != nil {
		return d.badField(field, "%v", err)
	}
	sc, err := newSchema(data)
	if err != nil {
		return d.badField(field, "%s %v.", ReasonPrefix, err)
	}
	d.req.schema = sc
	return nil
}

// lowerTypes turns the types of Google's own schemas (OBJECT) into those of JSON Schema (object), in place.
func lowerTypes(root any) any {
	walkSchema(root, "", func(_ string, m map[string]any) bool {
		if t, ok := m["type"].(string); ok {
			m["type"] = strings.ToLower(t)
		}
		return true
	})
	return root
}

// geminiOrdering says what is wrong with propertyOrdering: it names properties that there are.
func geminiOrdering(root any) string {
	var problem string
	walkSchema(root, "", func(_ string, m map[string]any) bool {
		order, _ := m["propertyOrdering"].([]any)
		props, _ := m["properties"].(map[string]any)
		for _, name := range order {
			if n, _ := name.(string); props[n] == nil {
				problem = fmt.Sprintf("property_ordering: property %q is not defined", clip(fmt.Sprint(name), 100))
			}
		}
		return problem == ""
	})
	return problem
}
