package main

import (
	"regexp"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// slim shortens what nobody reads or checks, so that each CRD stays below MaxBytes of JSON.
//
//   - The types that come from Kubernetes itself, and conditions, keep the first sentence of each description.
//   - status.evalSpec is a copy, made by the operator, of a spec that was checked on its way in: it takes any object.
func slim(root *apiextensionsv1.JSONSchemaProps) {
	for _, name := range []string{"affinity", "tolerations", "resources"} {
		edit(root, []string{"spec", "podTemplate", "spec", name}, func(s *apiextensionsv1.JSONSchemaProps) { walkBelow(s, shorten) })
	}
	edit(root, []string{"status", "conditions"}, func(s *apiextensionsv1.JSONSchemaProps) { walkBelow(s, shorten) })
	edit(root, []string{"status", "evalSpec"}, func(s *apiextensionsv1.JSONSchemaProps) {
		*s = anyObject(s.Description + " Its fields are those of the spec of an Eval.")
	})
}

// sentenceEnd is a full stop that ends a sentence, as those of "e.g." and "v1.2" do not.
var sentenceEnd = regexp.MustCompile(`[.:]\s+(?:[A-Z*-]|$)|\n\s*\n`)

// shorten cuts the description of one schema to its first sentence.
func shorten(s *apiextensionsv1.JSONSchemaProps) {
	text := strings.TrimSpace(s.Description)
	if at := sentenceEnd.FindStringIndex(text); at != nil {
		text = text[:at[0]] + "."
	}
	s.Description = strings.Join(strings.Fields(text), " ")
}

// ruleNumbers are the rules that a comment in Go cites, as (S-7) or (S-14, S-20).
var ruleNumbers = regexp.MustCompile(`\s*\(S-\d+(?:(?:, | to )S-\d+)*\)`)

// forUsers takes out of the description of one schema what only readers of the code need: kubectl explain shows it.
func forUsers(s *apiextensionsv1.JSONSchemaProps) {
	s.Description = ruleNumbers.ReplaceAllString(s.Description, "")
}

// edit applies f to the schema at a path of field names, if there is one.
func edit(s *apiextensionsv1.JSONSchemaProps, path []string, f func(*apiextensionsv1.JSONSchemaProps)) {
	if len(path) == 0 {
		f(s)
		return
	}
	p, ok := s.Properties[path[0]]
	if !ok {
		return
	}
	edit(&p, path[1:], f)
	s.Properties[path[0]] = p
}

// walkBelow applies f to every schema under this one.
func walkBelow(s *apiextensionsv1.JSONSchemaProps, f func(*apiextensionsv1.JSONSchemaProps)) {
	visit := func(c *apiextensionsv1.JSONSchemaProps) {
		f(c)
		walkBelow(c, f)
	}
	for name, p := range s.Properties {
		visit(&p)
		s.Properties[name] = p
	}
	if s.Items != nil && s.Items.Schema != nil {
		visit(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		visit(s.AdditionalProperties.Schema)
	}
}
