package main

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// tooDeep is what a question in the place of the last leaf is answered with.
const tooDeep = "a tree is at most 6 questions deep: end it here with a score"

// yamlBool is what an unquoted yes or no in the place of ifYes and ifNo is answered with: a YAML 1.1 client sends
// it as true or false.
const yamlBool = "write ifYes and ifNo, not yes and no: YAML reads an unquoted yes as true and no as false"

// questionDescription and nodeDescriptions are the sentences of the question under the root, which has longer ones. The
// fields of deeper nodes have none: they are the same, and they are 60 nodes a tree.
const questionDescription = "The next question, or a leaf."

var nodeDescriptions = map[string]string{
	"ask":    "A yes/no question.",
	"ifYes":  "The way on after yes.",
	"ifNo":   "The way on after no.",
	"score":  "The score, 0 to 1.",
	"reason": "Why this score.",
}

// unroll gives every tree below a schema its nodes, MaxTreeDepth questions deep, and returns how many trees it found.
func unroll(s *apiextensionsv1.JSONSchemaProps) int {
	if isNode(s) {
		unrollTree(s)
		return 1
	}
	n := 0
	for name, p := range s.Properties {
		n += unroll(&p)
		s.Properties[name] = p
	}
	if s.Items != nil && s.Items.Schema != nil {
		n += unroll(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		n += unroll(s.AdditionalProperties.Schema)
	}
	return n
}

// isNode tells whether a schema is that of a tree whose branches are still open.
func isNode(s *apiextensionsv1.JSONSchemaProps) bool {
	for _, name := range []string{"ask", "ifYes", "ifNo", "score", "reason"} {
		if _, ok := s.Properties[name]; !ok {
			return false
		}
	}
	yes, no := s.Properties["ifYes"], s.Properties["ifNo"]
	return isOpen(yes) && isOpen(no)
}

// isOpen tells whether a branch is as controller-gen leaves it: without a type, which no finished field is. A field
// of the last leaf, which takes any object, is not open; unrolling it would never end.
func isOpen(s apiextensionsv1.JSONSchemaProps) bool {
	return s.Type == "" && s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields && len(s.Properties) == 0
}

// unrollTree turns the schema of a node into that of a root: the node itself with its branches filled in, and two
// rules that only a root needs.
func unrollTree(root *apiextensionsv1.JSONSchemaProps) {
	inner := root.DeepCopy()
	inner.Description = questionDescription
	for name, text := range nodeDescriptions {
		p := inner.Properties[name]
		p.Description = text
		inner.Properties[name] = p
	}

	yes, no := root.Properties["ifYes"].Description, root.Properties["ifNo"].Description
	bare := inner.DeepCopy()
	for name, p := range bare.Properties {
		p.Description = ""
		bare.Properties[name] = p
	}
	next := grow(inner, branches(bare, v1alpha1.MaxTreeDepth-2))
	root.Properties["ifYes"] = described(next, yes)
	root.Properties["ifNo"] = described(next, no)

	root.Properties["true"] = anyObject("Not a field, but what YAML makes of an unquoted yes: write ifYes.")
	root.Properties["false"] = anyObject("Not a field, but what YAML makes of an unquoted no: write ifNo.")
	root.XValidations = append(apiextensionsv1.ValidationRules{
		{Rule: "!has(self.__true__) && !has(self.__false__)", Message: yamlBool},
		{Rule: "has(self.ask) || !has(self.score)", Message: "the first node of a tree is a question: write ask, ifYes and ifNo; for a fixed score no tree is needed"},
	}, root.XValidations...)
}

// branches returns the schema of a node under which at most so many questions follow, itself included.
func branches(node *apiextensionsv1.JSONSchemaProps, questions int) *apiextensionsv1.JSONSchemaProps {
	if questions == 0 {
		return lastLeaf(node)
	}
	return grow(node, branches(node, questions-1))
}

// grow returns a node with next on both of its ways.
func grow(node, next *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	out := node.DeepCopy()
	out.Properties["ifYes"] = described(next, node.Properties["ifYes"].Description)
	out.Properties["ifNo"] = described(next, node.Properties["ifNo"].Description)
	return out
}

// lastLeaf returns the schema of what stands under the last question: a leaf. A question there is a known field
// that is refused, so that its author reads why: an unknown field would be refused without a reason, or pruned.
func lastLeaf(node *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	return &apiextensionsv1.JSONSchemaProps{
		Type: "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"score":  node.Properties["score"],
			"reason": node.Properties["reason"],
			"ask":    {Type: "string"},
			"ifYes":  anyObject(""),
			"ifNo":   anyObject(""),
		},
		XValidations: apiextensionsv1.ValidationRules{{
			Rule:    "has(self.score) && !(has(self.ask) || has(self.ifYes) || has(self.ifNo))",
			Message: tooDeep,
		}},
	}
}

// anyObject returns the schema of a field that takes any object.
func anyObject(description string) apiextensionsv1.JSONSchemaProps {
	preserve := true
	return apiextensionsv1.JSONSchemaProps{Type: "object", Description: description, XPreserveUnknownFields: &preserve}
}

func described(s *apiextensionsv1.JSONSchemaProps, description string) apiextensionsv1.JSONSchemaProps {
	out := s.DeepCopy()
	out.Description = description
	return *out
}
