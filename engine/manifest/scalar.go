package manifest

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// trues and falses are the plain words that YAML 1.1, and so kubectl, takes for booleans.
var (
	trues  = []string{"true", "yes", "on", "y"}
	falses = []string{"false", "no", "off", "n"}
)

// isPlain tells whether a scalar stands without quotes, block marks or tags.
func isPlain(n *yaml.Node) bool {
	const styled = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.TaggedStyle
	return n.Kind == yaml.ScalarNode && n.Style&styled == 0
}

// inForms tells whether a word is one of the words in lower case, in upper case or with a capital.
func inForms(word string, words []string) bool {
	lower := strings.ToLower(word)
	if !slices.Contains(words, lower) {
		return false
	}
	return word == lower || word == strings.ToUpper(word) || word == strings.ToUpper(lower[:1])+lower[1:]
}

func isBool(n *yaml.Node) bool {
	return isPlain(n) && (inForms(n.Value, trues) || inForms(n.Value, falses)) || n.ShortTag() == "!!bool"
}

func isTrue(n *yaml.Node) bool { return inForms(n.Value, trues) }

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// scalarValue is what a scalar means to kubectl: nil, a bool, an int64, uint64 or float64, or a string.
func scalarValue(n *yaml.Node) (any, error) {
	if isBool(n) {
		return isTrue(n), nil
	}
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!str", "!!timestamp":
		return n.Value, nil
	case "!!int", "!!float":
		var v any
		if err := n.Decode(&v); err != nil {
			return nil, fmt.Errorf("%q is not a number that can be read", clip(n.Value))
		}
		switch v := v.(type) {
		case int:
			return int64(v), nil
		case int64, uint64:
			return v, nil
		case float64:
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("%s is not a number that JSON knows", n.Value)
			}
			return v, nil
		}
		return nil, fmt.Errorf("%q is not a number that can be read", clip(n.Value))
	case "!!binary":
		return nil, errors.New("!!binary is not read here; write the text itself")
	}
	return nil, fmt.Errorf("the tag %s is not read here; remove it", clip(n.Tag))
}

// kindOf names what a value is, with its article.
func kindOf(v any) string {
	switch v := v.(type) {
	case bool:
		return fmt.Sprintf("a boolean (%v)", v)
	case string:
		return fmt.Sprintf("the text %q", clip(v))
	case nil:
		return "empty"
	}
	return fmt.Sprintf("the number %v", v)
}

// expected names what a type takes, with its article.
func expected(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a text in base64"
		}
		return "a list"
	}
	return "a mapping"
}

var fieldCache sync.Map // reflect.Type -> map[string]reflect.Type

// fieldsOf are the JSON fields of a struct with their types, those of embedded structs included.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if known, ok := fieldCache.Load(t); ok {
		return known.(map[string]reflect.Type)
	}
	fields := make(map[string]reflect.Type)
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		for inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && f.Anonymous && inner.Kind() == reflect.Struct:
			for n, ft := range fieldsOf(inner) {
				if _, there := fields[n]; !there {
					fields[n] = ft
				}
			}
		case name != "":
			fields[name] = f.Type
		}
	}
	fieldCache.Store(t, fields)
	return fields
}
