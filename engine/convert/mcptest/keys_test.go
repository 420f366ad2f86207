package mcptest

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/engine/convert"
)

// node is a JSON Schema, as far as its keys go.
type node struct {
	Ref                  string           `json:"$ref"`
	Properties           map[string]*node `json:"properties"`
	AdditionalProperties json.RawMessage  `json:"additionalProperties"`
	Items                *node            `json:"items"`
	AllOf                []*node          `json:"allOf"`
	AnyOf                []*node          `json:"anyOf"`
	Definitions          map[string]*node `json:"definitions"`
}

// walk compares the keys of the loader with those of the schema, from a type and a schema down.
type walk struct {
	root *node
	seen map[string]bool
	got  map[string][]string // the keys of the schema, by path
	want map[string][]string // those of the loader
}

// mapping finds the mapping that a schema describes: behind references, and among its alternatives.
func (w *walk) mapping(n *node) (*node, string) {
	if n == nil {
		return nil, ""
	}
	if name, ok := strings.CutPrefix(n.Ref, "#/definitions/"); ok {
		return w.root.Definitions[name], name
	}
	if n.Properties != nil {
		return n, ""
	}
	for _, s := range slices.Concat(n.AllOf, n.AnyOf) {
		if m, name := w.mapping(s); m != nil {
			return m, name
		}
	}
	return nil, ""
}

// list finds the items of a list, which may be one of several alternatives.
func (w *walk) list(n *node) *node {
	if n.Items != nil {
		return n.Items
	}
	for _, s := range n.AnyOf {
		if items := w.list(s); items != nil {
			return items
		}
	}
	return nil
}

func (w *walk) compare(t reflect.Type, n *node, path string) {
	t = convert.Deref(t)
	switch t.Kind() {
	case reflect.Slice:
		w.compare(t.Elem(), w.list(n), path+"[]")
		return
	case reflect.Struct:
	default:
		return
	}
	if t.NumField() == 0 {
		return
	}
	m, name := w.mapping(n)
	if m == nil {
		w.want[path] = slices.Sorted(maps.Keys(keysOf(t)))
		return
	}
	if m.AnyOf != nil && m.Properties == nil { // scale: a name or a mapping
		m, _ = w.mapping(&node{AnyOf: m.AnyOf})
	}
	if name != "" && w.seen[name+t.Name()] {
		return
	}
	w.seen[name+t.Name()] = true
	want := maps.Clone(keysOf(t))
	if t == evalType {
		want["threshold"] = &key{goType: reflect.TypeFor[float64]()}
	}
	w.want[path] = slices.Sorted(maps.Keys(want))
	w.got[path] = slices.Sorted(maps.Keys(m.Properties))
	if string(m.AdditionalProperties) != "false" {
		w.got[path] = append(w.got[path], "and any other")
	}
	for _, name := range w.want[path] {
		if next := m.Properties[name]; next != nil {
			w.compare(want[name].goType, next, path+"."+name)
		}
	}
}

func TestSchemaHasTheKeysOfTheLoader(t *testing.T) {
	w := &walk{root: &node{}, seen: make(map[string]bool), got: make(map[string][]string), want: make(map[string][]string)}
	if err := json.Unmarshal(Schema(), w.root); err != nil {
		t.Fatal(err)
	}
	w.compare(evalType, &node{Ref: "#/definitions/eval"}, "eval")
	w.compare(rubricType, &node{Ref: "#/definitions/rubric"}, "rubric")
	w.got["file"], w.want["file"] = slices.Sorted(maps.Keys(w.root.Properties)), slices.Sorted(slices.Values(append(OtherBlocks(), BlockEvals, BlockRubrics, BlockServers, BlockVariables)))
	if diff := cmp.Diff(w.want, w.got); diff != "" {
		t.Errorf("keys (-loader +schema):\n%s", diff)
	}
	for _, path := range []string{"eval.rubric.criteria[].when", "eval.rubric.criteria[].examples[]", "eval.rubric.scale.likert", "eval.rubric.tree", "eval.rubrics[]", "eval.judge.jury", "eval.matrix", "rubric"} {
		if w.got[path] == nil {
			t.Errorf("%s was not walked; walked were %v", path, slices.Sorted(maps.Keys(w.got)))
		}
	}
}

func TestWordsAreThoseOfTheFile(t *testing.T) {
	for in, want := range map[string]string{
		"aggregate and tieBreak belong to a panel": "aggregate and tie_break belong to a panel",
		"requireEvidence, scoreRanges, ifYes":      "require_evidence, score_ranges, yes",
		"threshold stays":                          "threshold stays",
		"ifYesterday is a word":                    "ifYesterday is a word",
	} {
		if got := words(in); got != want {
			t.Errorf("words(%q) = %q, want %q", in, got, want)
		}
	}
}
