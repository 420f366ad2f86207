package manifest

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mcptest/mcptest-operator/engine/convert"
)

// trues and falses are the plain words that YAML 1.1, and so kubectl, takes for booleans.
var (
	trues  = []string{"true", "yes", "on", "y"}
	falses = []string{"false", "no", "off", "n"}
)

// inForms tells whether a word is one of the words in lower case, in upper case or with a capital.
func inForms(word string, words []string) bool {
	lower := strings.ToLower(word)
	if !slices.Contains(words, lower) {
		return false
	}
	return word == lower || word == strings.ToUpper(word) || word == strings.ToUpper(lower[:1])+lower[1:]
}

func isBool(n *yaml.Node) bool {
	return convert.IsPlain(n) && (inForms(n.Value, trues) || inForms(n.Value, falses)) || n.ShortTag() == "!!bool"
}

func isTrue(n *yaml.Node) bool { return inForms(n.Value, trues) }

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
			return nil, fmt.Errorf("%q is not a number that can be read", convert.Clip(n.Value))
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
		return nil, fmt.Errorf("%q is not a number that can be read", convert.Clip(n.Value))
	case "!!binary":
		return nil, errors.New("!!binary is not read here; write the text itself")
	}
	return nil, fmt.Errorf("the tag %s is not read here; remove it", convert.Clip(n.Tag))
}

// kindOf names what a value is, with its article.
func kindOf(v any) string {
	switch v := v.(type) {
	case bool:
		return fmt.Sprintf("a boolean (%v)", v)
	case string:
		return fmt.Sprintf("the text %q", convert.Clip(v))
	case nil:
		return "empty"
	}
	return fmt.Sprintf("the number %v", v)
}

// expected names what a type takes, with its article.
func expected(t reflect.Type) string {
	t = convert.Deref(t)
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
