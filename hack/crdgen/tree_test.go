package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

type schema = apiextensionsv1.JSONSchemaProps

// openNode is a TreeNode as controller-gen writes it.
func openNode() schema {
	open := func(description string) schema {
		preserve := true
		return schema{Description: description, XPreserveUnknownFields: &preserve}
	}
	maxLength, zero, one := int64(8192), 0.0, 1.0
	return schema{
		Type:        "object",
		Description: "A tree of questions, told at length.",
		Properties: map[string]schema{
			"ask":    {Type: "string", Description: "The question, told at length.", MaxLength: &maxLength},
			"ifYes":  open("After yes, told at length."),
			"ifNo":   open("After no, told at length."),
			"score":  {Type: "number", Description: "The score, told at length.", Minimum: &zero, Maximum: &one},
			"reason": {Type: "string", Description: "The reason, told at length."},
		},
		XValidations: apiextensionsv1.ValidationRules{{Rule: "has(self.ask) != has(self.score)", Message: "either"}},
	}
}

// specWith is a spec with a tree in a field, in the items of a list and in the values of a map.
func specWith(tree schema) *schema {
	return &schema{Type: "object", Properties: map[string]schema{
		"tree":    tree,
		"rubrics": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema{Type: "object", Properties: map[string]schema{"tree": *tree.DeepCopy()}}}},
		"named":   {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: tree.DeepCopy()}},
	}}
}

func TestEveryTreeOfASpecIsUnrolled(t *testing.T) {
	spec := specWith(openNode())
	if got, want := unroll(spec), 3; got != want {
		t.Errorf("unroll found %d trees, want %d: of a field, of the items of a list, of the values of a map", got, want)
	}
	if got := unroll(spec); got != 0 {
		t.Errorf("unrolling again found %d trees, want none left", got)
	}
}

func TestATreeIsMaxTreeDepthQuestionsDeep(t *testing.T) {
	spec := specWith(openNode())
	unroll(spec)
	for _, branch := range []string{"ifYes", "ifNo"} {
		node := spec.Properties["tree"]
		for depth := 1; depth <= v1alpha1.MaxTreeDepth; depth++ {
			if got, want := node.Properties["ask"].MaxLength, int64(8192); got == nil || *got != want {
				t.Errorf("question %d along %s: maxLength of ask is %v, want %d", depth, branch, got, want)
			}
			if !slices.ContainsFunc(node.XValidations, func(r apiextensionsv1.ValidationRule) bool { return r.Message == "either" }) {
				t.Errorf("question %d along %s lost the node's rule", depth, branch)
			}
			if node.XPreserveUnknownFields != nil {
				t.Errorf("question %d along %s takes unknown fields", depth, branch)
			}
			node = node.Properties[branch]
		}
		want := apiextensionsv1.ValidationRules{{
			Rule:    "has(self.score) && !(has(self.ask) || has(self.ifYes) || has(self.ifNo))",
			Message: "a tree is at most 6 questions deep: end it here with a score",
		}}
		if diff := cmp.Diff(want, node.XValidations); diff != "" {
			t.Errorf("rules of the last leaf along %s (-want +got):\n%s", branch, diff)
		}
		if diff := cmp.Diff([]string{"ask", "ifNo", "ifYes", "reason", "score"}, slices.Sorted(maps.Keys(node.Properties))); diff != "" {
			t.Errorf("fields of the last leaf along %s (-want +got):\n%s", branch, diff)
		}
		if node.Properties["score"].Maximum == nil {
			t.Errorf("the score of the last leaf along %s has no bounds", branch)
		}
	}
}

func TestTheDepthInTheMessageIsMaxTreeDepth(t *testing.T) {
	if want := "at most 6 questions"; v1alpha1.MaxTreeDepth != 6 || !strings.Contains(tooDeep, want) {
		t.Errorf("MaxTreeDepth is %d, and the message says %q", v1alpha1.MaxTreeDepth, tooDeep)
	}
}

func TestOnlyTheRootHasTheLongDescriptions(t *testing.T) {
	spec := specWith(openNode())
	unroll(spec)
	root := spec.Properties["tree"]
	texts := func(s schema) map[string]string {
		out := map[string]string{"": s.Description}
		for name, p := range s.Properties {
			out[name] = p.Description
		}
		return out
	}
	tests := map[string]struct {
		node schema
		want map[string]string
	}{
		"root": {root, map[string]string{
			"": "A tree of questions, told at length.", "ask": "The question, told at length.",
			"ifYes": "After yes, told at length.", "ifNo": "After no, told at length.",
			"score": "The score, told at length.", "reason": "The reason, told at length.",
			"true":  "Not a field, but what YAML makes of an unquoted yes: write ifYes.",
			"false": "Not a field, but what YAML makes of an unquoted no: write ifNo.",
		}},
		"second question": {root.Properties["ifNo"], map[string]string{
			"": "After no, told at length.", "ask": "A yes/no question.",
			"ifYes": "The way on after yes.", "ifNo": "The way on after no.",
			"score": "The score, 0 to 1.", "reason": "Why this score.",
		}},
		"third question": {root.Properties["ifNo"].Properties["ifYes"], map[string]string{
			"": "The way on after yes.", "ask": "", "ifYes": "", "ifNo": "", "score": "", "reason": "",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, texts(tc.node)); diff != "" {
				t.Errorf("descriptions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsNoNode(t *testing.T) {
	lacking := openNode()
	delete(lacking.Properties, "score")
	preserve := true
	refused := openNode()
	refused.Properties["ifYes"] = schema{Type: "object", XPreserveUnknownFields: &preserve}
	refused.Properties["ifNo"] = refused.Properties["ifYes"]
	closed := openNode()
	closed.Properties["ifYes"] = schema{Type: "object", Properties: map[string]schema{"ask": {Type: "string"}}}
	tests := map[string]schema{
		"a field of a node is missing": lacking,
		"a branch is closed already":   closed,
		"the last leaf":                refused,
		"a text":                       {Type: "string"},
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) {
			if isNode(&s) {
				t.Error("isNode says yes")
			}
		})
	}
}
