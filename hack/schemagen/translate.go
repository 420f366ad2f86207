package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/mcptest/mcptest-operator/engine/convert/mcptest"
)

// replaced are the fields, by name, for which a definition stands.
var replaced = map[string]string{"tree": "tree", "scale": "scale", "judge": "judge", "matrix": "matrix"}

// omitted are the fields that mean something in a cluster only, and title, which is called name.
var omitted = []string{"title", "responseFrom", "secretRef"}

// variable is what the values of a fixed list may be instead.
const variable = `\$\{[A-Za-z_]`

// translate writes the schema of a field as these files have it.
func translate(in *apiextensionsv1.JSONSchemaProps) (*schema, error) {
	out := &schema{
		Description: mcptest.Format().Words(in.Description), Type: in.Type,
		MinLength: in.MinLength, MaxLength: in.MaxLength, Minimum: in.Minimum, Maximum: in.Maximum,
		MinItems: in.MinItems, MaxItems: in.MaxItems, MinProperties: in.MinProperties, MaxProperties: in.MaxProperties,
	}
	if in.ExclusiveMinimum {
		out.Minimum, out.ExclusiveMinimum = nil, in.Minimum
	}
	out.UniqueItems = in.XListType != nil && *in.XListType == "set"
	switch in.Type {
	case "string":
		return out, stringValues(out, in)
	case "array":
		items, err := translate(in.Items.Schema)
		if err != nil {
			return nil, err
		}
		items.Description = "" // that of the Go type
		out.Items = items
		return out, nil
	case "object":
		return out, object(out, in)
	case "number", "integer", "boolean":
		return out, nil
	}
	return nil, fmt.Errorf("no translation of the type %q", in.Type)
}

// matches is a rule that a text has to match an expression.
var matches = regexp.MustCompile(`^self\.matches\('([^']*)'\)$`)

// stringValues says which texts a field takes.
func stringValues(out *schema, in *apiextensionsv1.JSONSchemaProps) error {
	for _, rule := range in.XValidations {
		if m := matches.FindStringSubmatch(rule.Rule); m != nil {
			out.Pattern = m[1] + "|" + variable
		}
		if rule.Rule == "self.trim().size() > 0" {
			out.Pattern = `\S`
		}
	}
	out.Type = texts
	if in.Enum == nil {
		return nil
	}
	values := &schema{}
	for _, raw := range in.Enum {
		var value string
		if err := json.Unmarshal(raw.Raw, &value); err != nil {
			return fmt.Errorf("a value of a list: %w", err)
		}
		values.Enum = append(values.Enum, value)
	}
	out.Type, out.AnyOf = nil, []*schema{values, {Type: "string", Pattern: variable}}
	return nil
}

// object translates the fields of a mapping.
func object(out *schema, in *apiextensionsv1.JSONSchemaProps) error {
	if in.AdditionalProperties != nil && in.AdditionalProperties.Schema != nil {
		values, err := translate(in.AdditionalProperties.Schema)
		if err != nil {
			return err
		}
		values.Description = ""
		out.AdditionalProperties = values
		return nil
	}
	out.Properties, out.AdditionalProperties = make(map[string]*schema), false
	for name, field := range in.Properties {
		if slices.Contains(omitted, name) {
			continue
		}
		if definition, ok := replaced[name]; ok {
			out.Properties[mcptest.Key(name)] = described(mcptest.Format().Words(field.Description), refer(definition))
			continue
		}
		translated, err := translate(&field)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		out.Properties[mcptest.Key(name)] = translated
	}
	for _, name := range in.Required {
		out.Required = append(out.Required, mcptest.Key(name))
	}
	return nil
}
