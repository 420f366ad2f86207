package convert

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// IsNull tells whether a node is an empty value, ~ or null.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// IsPlain tells whether a scalar stands without quotes, block marks or tags.
func IsPlain(n *yaml.Node) bool {
	const styled = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.TaggedStyle
	return n.Kind == yaml.ScalarNode && n.Style&styled == 0
}

// IsText tells whether a scalar can be taken as text as it is written: text, and plain numbers, booleans and dates.
func IsText(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode {
		return false
	}
	switch n.ShortTag() {
	case "!!str", "!!int", "!!float", "!!bool", "!!timestamp", "!!merge":
		return true
	}
	return false
}

// Text is a text, where at stands. Being quoted it is text in every version of YAML.
func Text(at *yaml.Node, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: value, Line: at.Line, Column: at.Column}
}

// Empty is a mapping or list without entries, where at stands.
func Empty(at *yaml.Node, kind yaml.Kind) *yaml.Node {
	return &yaml.Node{Kind: kind, Line: at.Line, Column: at.Column}
}

// Put adds an entry to a mapping, whose key stands where at stands.
func Put(mapping *yaml.Node, at *yaml.Node, key string, value *yaml.Node) {
	mapping.Content = append(mapping.Content, Text(at, key), value)
}

var (
	coreInt   = regexp.MustCompile(`^[-+]?[0-9]+$|^0o[0-7]+$|^0x[0-9a-fA-F]+$`)
	coreFloat = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	coreOther = regexp.MustCompile(`^(|~|null|Null|NULL|true|True|TRUE|false|False|FALSE|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
	zeros     = regexp.MustCompile(`^([-+]?)0+([0-9])`)
)

// Core is a scalar as the core schema of YAML 1.2 has it: yes, no, on, off, 1_000, 0b1 and dates are text, and 010 is ten.
// Scalars that are not plain stay as they are.
func Core(n *yaml.Node) *yaml.Node {
	switch {
	case !IsPlain(n), coreOther.MatchString(n.Value):
	case coreInt.MatchString(n.Value), coreFloat.MatchString(n.Value):
		if strings.HasPrefix(n.Value, "0x") || strings.HasPrefix(n.Value, "0o") {
			break
		}
		if decimal := zeros.ReplaceAllString(n.Value, "$1$2"); decimal != n.Value {
			return &yaml.Node{Kind: yaml.ScalarNode, Value: decimal, Line: n.Line, Column: n.Column}
		}
	default:
		return Text(n, n.Value)
	}
	return n
}
