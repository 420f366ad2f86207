package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestADescriptionIsCutToItsFirstSentence(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"one sentence":                 {"The name.", "The name."},
		"no full stop":                 {"The name", "The name"},
		"two sentences":                {"The name. It is unique.", "The name."},
		"sentences on lines":           {"The name of it\nall.\nIt is unique.", "The name of it all."},
		"a paragraph without a stop":   {"The name\n\nMore about it", "The name."},
		"a list after a colon":         {"One of: \n- A\n- B", "One of."},
		"an abbreviation is no end":    {"A unit, e.g. seconds, i.e. time. More.", "A unit, e.g. seconds, i.e. time."},
		"a version is no end":          {"Since v1.2 of it. More.", "Since v1.2 of it."},
		"nothing":                      {"", ""},
		"white space around and in it": {"  The\n name.  ", "The name."},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := schema{Description: tc.in}
			shorten(&s)
			if s.Description != tc.want {
				t.Errorf("shorten(%q) = %q, want %q", tc.in, s.Description, tc.want)
			}
		})
	}
}

func TestWhatSlimShortensAndWhatItKeeps(t *testing.T) {
	const long, short = "First. Second.", "First."
	object := func(properties map[string]schema) schema { return schema{Type: "object", Properties: properties} }
	leaf := func(text string) schema { return schema{Type: "string", Description: text} }
	preserve := true
	root := func(text string, evalSpec schema) schema {
		listOf := schema{Type: "array", Description: long, Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema{
			Type: "object", Properties: map[string]schema{"x": leaf(text)},
		}}}
		return object(map[string]schema{
			"spec": object(map[string]schema{
				"title": leaf(long),
				"podTemplate": object(map[string]schema{"spec": object(map[string]schema{
					"affinity":          object(map[string]schema{"x": leaf(text)}),
					"tolerations":       listOf,
					"resources":         object(map[string]schema{"x": leaf(text)}),
					"priorityClassName": leaf(long),
				})}),
			}),
			"status": object(map[string]schema{"conditions": listOf, "digest": leaf(long), "evalSpec": evalSpec}),
		})
	}
	got := root(long, schema{Type: "object", Description: "Frozen.", Properties: map[string]schema{"prompt": leaf(long)}})
	slim(&got)
	want := root(short, schema{Type: "object", Description: "Frozen. Its fields are those of the spec of an Eval.", XPreserveUnknownFields: &preserve})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("slim (-want +got):\n%s", diff)
	}
}

func TestUsersSeeNoRuleNumbers(t *testing.T) {
	for in, want := range map[string]string{
		"Judged by a call of its own (S-7).": "Judged by a call of its own.",
		"A gate (S-14, S-20) that failed.":   "A gate that failed.",
		"Votes (S-25 to S-28).":              "Votes.",
		"An S-Bahn (S-shaped) is no rule.":   "An S-Bahn (S-shaped) is no rule.",
	} {
		s := &apiextensionsv1.JSONSchemaProps{Description: in}
		if forUsers(s); s.Description != want {
			t.Errorf("%q became %q, want %q", in, s.Description, want)
		}
	}
}
