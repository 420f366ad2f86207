package main

// schema is a JSON Schema, draft-07, as far as it is needed here.
type schema struct {
	Draft                string             `json:"$schema,omitempty"`
	ID                   string             `json:"$id,omitempty"`
	Ref                  string             `json:"$ref,omitempty"`
	Title                string             `json:"title,omitempty"`
	Description          string             `json:"description,omitempty"`
	Type                 any                `json:"type,omitempty"` // a string, or a list of them
	Enum                 []string           `json:"enum,omitempty"`
	Const                any                `json:"const,omitempty"`
	Pattern              string             `json:"pattern,omitempty"`
	MinLength            *int64             `json:"minLength,omitempty"`
	MaxLength            *int64             `json:"maxLength,omitempty"`
	Minimum              *float64           `json:"minimum,omitempty"`
	ExclusiveMinimum     *float64           `json:"exclusiveMinimum,omitempty"`
	Maximum              *float64           `json:"maximum,omitempty"`
	Items                *schema            `json:"items,omitempty"`
	MinItems             *int64             `json:"minItems,omitempty"`
	MaxItems             *int64             `json:"maxItems,omitempty"`
	UniqueItems          bool               `json:"uniqueItems,omitempty"`
	Properties           map[string]*schema `json:"properties,omitempty"`
	PropertyNames        *schema            `json:"propertyNames,omitempty"`
	PatternProperties    map[string]*schema `json:"patternProperties,omitempty"`
	AdditionalProperties any                `json:"additionalProperties,omitempty"` // false, or a schema
	MinProperties        *int64             `json:"minProperties,omitempty"`
	MaxProperties        *int64             `json:"maxProperties,omitempty"`
	Required             []string           `json:"required,omitempty"`
	Dependencies         map[string]any     `json:"dependencies,omitempty"` // lists of keys, or schemas
	AllOf                []*schema          `json:"allOf,omitempty"`
	AnyOf                []*schema          `json:"anyOf,omitempty"`
	OneOf                []*schema          `json:"oneOf,omitempty"`
	Not                  *schema            `json:"not,omitempty"`
	Definitions          map[string]*schema `json:"definitions,omitempty"`
}

// texts are the types that are taken where a text is expected: 42 and true are read as they are written.
var texts = []string{"string", "number", "boolean"}

func text(description string) *schema { return &schema{Description: description, Type: texts} }

func refer(definition string) *schema { return &schema{Ref: "#/definitions/" + definition} }

// described is a reference with a description of its own, which draft-07 ignores beside $ref.
func described(description string, s *schema) *schema {
	return &schema{Description: description, AllOf: []*schema{s}}
}

// has holds for a mapping with a key.
func has(key string) *schema { return &schema{Required: []string{key}} }

// without holds for a mapping that has none of the keys.
func without(keys ...string) *schema {
	var any []*schema
	for _, key := range keys {
		any = append(any, has(key))
	}
	return &schema{Not: &schema{AnyOf: any}}
}
