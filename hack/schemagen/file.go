package main

import (
	"fmt"
	"maps"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/mcptest/mcptest-operator/engine/convert/mcptest"
	"github.com/mcptest/mcptest-operator/engine/preset"
)

// file is the schema of a file, from that of an Eval's spec.
func file(spec *apiextensionsv1.JSONSchemaProps) (*schema, error) {
	definitions, err := define(spec)
	if err != nil {
		return nil, err
	}
	root := &schema{
		Draft:       "http://json-schema.org/draft-07/schema#",
		ID:          "https://raw.githubusercontent.com/mcptest/mcptest-operator/main/engine/convert/mcptest/schema.json",
		Title:       "mcptest YAML",
		Description: "Evals that grade LLM answers with rubrics. Run them with: kubectl mcptest eval -f FILE",
		Type:        "object", Definitions: definitions, AdditionalProperties: false,
		// Where files keep what they anchor, as those of Compose do.
		PatternProperties: map[string]*schema{"^x-": {}},
		Properties: map[string]*schema{
			mcptest.BlockEvals:     {Description: "What is graded, each item a row of the report.", Type: []string{"array", "null"}, Items: refer("eval")},
			mcptest.BlockRubrics:   {Description: "Rubrics by name. Evals use them with rubric: {ref: NAME}.", Type: []string{"object", "null"}, AdditionalProperties: orText(refer("rubric"))},
			mcptest.BlockServers:   {Description: "MCP servers by name, for live evals. Their settings are not read: live evals are deferred.", Type: []string{"object", "null"}},
			mcptest.BlockVariables: {Description: "Texts by name. Any text may hold ${name}; write $${name} for that very text.", Type: []string{"object", "null"}, AdditionalProperties: text("")},
		},
	}
	for _, block := range mcptest.OtherBlocks() {
		root.Properties[block] = &schema{Description: "Not read here: only evals are graded."}
	}
	return root, nil
}

// orText is a mapping or one text.
func orText(s *schema) *schema {
	return &schema{AnyOf: []*schema{{Type: texts, Pattern: `\S`}, s}}
}

// define makes the definitions.
func define(spec *apiextensionsv1.JSONSchemaProps) (map[string]*schema, error) {
	out := make(map[string]*schema)
	add := func(name string, in apiextensionsv1.JSONSchemaProps) error {
		s, err := translate(&in)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		out[name] = s
		return nil
	}
	rubric := spec.Properties["rubric"]
	tree := rubric.Properties["tree"]
	tree.Properties = maps.Clone(tree.Properties)
	maps.DeleteFunc(tree.Properties, func(name string, _ apiextensionsv1.JSONSchemaProps) bool {
		return name != "ask" && name != "score" && name != "reason"
	})
	evalSpec := *spec.DeepCopy()
	delete(evalSpec.Properties, "rubric")
	delete(evalSpec.Properties, "rubrics")
	for name, in := range map[string]apiextensionsv1.JSONSchemaProps{
		"eval": evalSpec, "ruled": rubric, "named": *spec.Properties["rubrics"].Items.Schema,
		"tree": tree, "scale": rubric.Properties["scale"], "judge": spec.Properties["judge"], "matrix": spec.Properties["matrix"],
	} {
		if err := add(name, in); err != nil {
			return nil, err
		}
	}
	ruled, named := out["ruled"], out["named"]
	delete(out, "ruled")
	delete(out, "named")
	out["criterion"] = criterion(ruled.Properties["criteria"].Items)
	out["rubricOfEval"], out["namedRubric"] = rubricOf(ruled), rubricOf(named)
	own := *out["rubricOfEval"]
	own.Properties = maps.Clone(own.Properties)
	delete(own.Properties, "ref")
	own.Description = "How a good answer is told: exactly one of text, criteria, tree or preset. Criteria beside a preset are added to it."
	own.OneOf, own.Dependencies = forms(), dependencies()
	out["rubric"] = &own
	branches(out["tree"])
	oneScale(out["scale"])
	members(out["judge"])
	out["matrix"].MinProperties = new(int64(1))
	evalKeys(out["eval"], spec)
	return out, nil
}

// evalKeys adds to an eval the keys that are written otherwise than in a manifest.
func evalKeys(s *schema, spec *apiextensionsv1.JSONSchemaProps) {
	s.Description = "One candidate, and how it is graded."
	one := int64(1)
	title := spec.Properties["title"]
	s.Properties["name"] = &schema{Description: "The name of the row in the report, unique in the file.", Type: texts, MinLength: &one, MaxLength: title.MaxLength, Pattern: `\S`}
	s.Properties["response"].Description = "The candidate: exactly this text is graded. Without it the eval is deferred: nothing is there to grade."
	s.Properties["server"].Description = "The MCP server that the prompt is run against, when there is no response. This version runs no agents: such an eval is deferred."
	s.Properties["server"].Pattern, s.Properties["server"].MaxLength = "", nil // it is made the name of an object
	list := s.Properties["context"]
	s.Properties["context"] = &schema{Description: list.Description, AnyOf: []*schema{{Type: texts, MaxLength: list.Items.MaxLength}, list}}
	list.Description = ""
	s.Properties["rubric"] = orText(refer("rubricOfEval"))
	s.Properties["rubric"].Description = "The rubric: one text, a mapping, or {ref: NAME} for one of the rubrics of this file."
	several := spec.Properties["rubrics"]
	s.Properties["rubrics"] = &schema{Description: several.Description, Type: "array", MinItems: several.MinItems, MaxItems: several.MaxItems, Items: refer("namedRubric")}
	threshold := spec.Properties["rubric"].Properties["threshold"]
	s.Properties["threshold"] = &schema{
		Description: "The score, 0 to 1, that the eval must reach to pass. Default 0.7. Only beside a rubric in one text; else write it inside the rubric.",
		Type:        "number", Minimum: threshold.Minimum, Maximum: threshold.Maximum,
	}
	s.Required = []string{"name"}
	s.OneOf = []*schema{has("rubric"), has("rubrics")}
	s.Dependencies = map[string]any{
		"threshold": &schema{Required: []string{"rubric"}, Properties: map[string]*schema{"rubric": {Type: texts}}},
		"matrix":    &schema{Not: modelsAndJudge()},
	}
}

// modelsAndJudge holds for an eval whose judge model is chosen twice.
func modelsAndJudge() *schema {
	return &schema{
		Required: []string{"judge", "matrix"},
		Properties: map[string]*schema{
			"matrix": {Required: []string{"models"}},
			"judge":  {AnyOf: []*schema{has("model"), has("panel")}},
		},
	}
}

// rubricOf finishes a rubric of an eval.
func rubricOf(in *schema) *schema {
	out := *in
	out.Description = "How a good answer is told: exactly one of ref, text, criteria, tree or preset. Criteria beside a preset are added to it."
	out.Properties = maps.Clone(in.Properties)
	criteria := *in.Properties["criteria"]
	criteria.Items = refer("criterion")
	out.Properties["criteria"] = &criteria
	out.Properties["tree"] = described(in.Properties["tree"].Description, &schema{AllOf: []*schema{refer("tree"), has("ask")}})
	p := *in.Properties["preset"]
	out.Properties["preset"] = &schema{Description: p.Description, AnyOf: []*schema{{Enum: preset.Names()}, {Type: "string", Pattern: p.Pattern}}}
	ref := *in.Properties["ref"]
	ref.Description = "The name of one of the rubrics of this file. threshold and strict beside it override its own."
	ref.MaxLength = nil
	out.Properties["ref"] = &ref
	out.OneOf = append(forms(), has("ref"))
	out.Dependencies = dependencies()
	out.Dependencies["ref"] = without("aggregation", "require_evidence", "required_gate", "scale", "description")
	return &out
}

// forms are the forms of a rubric, of which it has one.
func forms() []*schema {
	return []*schema{has("text"), {Required: []string{"criteria"}, Not: has("preset")}, has("tree"), has("preset")}
}

// dependencies refuse what has a meaning for criteria only (S-18, S-23).
func dependencies() map[string]any {
	evidence := &schema{Required: []string{"require_evidence"}, Properties: map[string]*schema{"require_evidence": {Const: true}}}
	criteriaOnly := &schema{Not: &schema{AnyOf: []*schema{has("aggregation"), has("required_gate"), evidence}}}
	return map[string]any{"tree": criteriaOnly, "text": criteriaOnly}
}

func criterion(s *schema) *schema {
	s.Description = "One question, judged by a call of its own."
	s.Properties["when"].OneOf = []*schema{has("contains"), has("regex")}
	s.Properties["indicators"].MinProperties = new(int64(1))
	ranges := s.Properties["score_ranges"]
	ranges.PropertyNames, ranges.Required = &schema{Pattern: "^([0-9]|10)$"}, []string{"0"}
	for _, name := range []string{"name", "description"} {
		s.Properties[name].Pattern = `\S`
	}
	return s
}

// branches makes a tree of questions out of its first node (S-21).
func branches(s *schema) {
	s.Description = "A question with a way on after yes and after no, or a score that ends the walk."
	s.Properties["yes"] = described("The way on after yes.", refer("tree"))
	s.Properties["no"] = described("The way on after no.", refer("tree"))
	s.Properties["ask"].Pattern = `\S`
	question, leaf := without("score", "reason"), without("ask", "yes", "no")
	question.Required, leaf.Required = []string{"ask", "yes", "no"}, []string{"score"}
	s.OneOf = []*schema{question, leaf}
}

// oneScale lets a scale without settings be named only.
func oneScale(s *schema) {
	mapping := *s
	mapping.Description = ""
	mapping.MinProperties, mapping.MaxProperties = new(int64(1)), new(int64(1))
	*s = schema{Description: s.Description, AnyOf: []*schema{{Enum: []string{"unit", "boolean", "letter"}}, {Type: "string", Pattern: variable}, &mapping}}
}

// members says which judges exclude each other.
func members(s *schema) {
	s.Dependencies = map[string]any{
		"panel": without("jury", "model", "provider"), "aggregate": []string{"panel"}, "tie_break": []string{"panel"},
	}
}
