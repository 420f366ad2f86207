package manifest

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/convert"
	"github.com/mcptest/mcptest-operator/engine/nearest"
)

// maxText bounds the text of one file, what aliases repeat and what the variables of other formats make included.
const maxText = 2 * MaxFileBytes

// checker turns a YAML node into a value that encoding/json can write, and holds it against a Go type on the way: an
// unknown field, a field that is there twice and a value of the wrong type are problems, each with its line.
type checker struct {
	file      string
	nodes     int
	keys      int
	text      *int    // bytes of the scalars of the file
	origin    *origin // nil for a manifest
	positions map[string]Position
	problems  Problems
}

func (c *checker) at(n *yaml.Node) Position {
	return Position{File: c.file, Line: n.Line, Column: n.Column}
}

// remember notes where a field stands. What a mapping says itself comes before what it merges, and stays.
func (c *checker) remember(path string, n *yaml.Node) {
	if _, there := c.positions[path]; !there && len(path) <= convert.MaxPath {
		c.positions[path] = c.at(n)
	}
}

func (c *checker) say(n *yaml.Node, path, format string, args ...any) {
	path = convert.ClipPath(c.origin.path(path))
	if len(c.problems) < convert.MaxProblems {
		c.problems = append(c.problems, Problem{Position: c.at(n), Path: path, Message: fmt.Sprintf(format, args...)})
	}
}

// value checks a node against a type; nil stands for any type.
func (c *checker) value(n *yaml.Node, t reflect.Type, path string, depth int) any {
	c.nodes++
	switch {
	case depth > convert.MaxNesting:
		c.say(n, path, "nested more than %d deep", convert.MaxNesting)
		c.nodes = convert.MaxNodes + 1 // an alias inside its own anchor never ends: stop here
		return nil
	case c.nodes == convert.MaxNodes+1:
		c.say(n, path, "the document has more than %d values, aliases included; split it", convert.MaxNodes)
		return nil
	case c.nodes > convert.MaxNodes:
		return nil
	}
	if n.Kind == yaml.AliasNode {
		return c.value(n.Alias, t, path, depth+1)
	}
	if t != nil {
		if t = convert.Deref(t); convert.DecodesItself(t) {
			t = nil
		}
	}
	switch n.Kind {
	case yaml.MappingNode:
		return c.mapping(n, t, path, depth)
	case yaml.SequenceNode:
		return c.sequence(n, t, path, depth)
	case yaml.ScalarNode:
		return c.scalar(n, t, path)
	}
	return nil
}

// shape says what the entries of a mapping are: the fields of a struct, or values of one type under any key.
type shape struct {
	fields map[string]reflect.Type // nil for any key
	elem   reflect.Type            // of the values, where any key is good; nil for any type
}

func (s shape) typeOf(key string) (reflect.Type, bool) {
	if s.fields == nil {
		return s.elem, true
	}
	t, ok := s.fields[key]
	return t, ok
}

// isTree tells whether the mapping is a node of a tree, where people write yes and no.
func (s shape) isTree() bool { return s.fields["ifYes"] != nil }

// child is the path of an entry: as field paths are written, a.b for a field and a[b] for a key of a map.
func (s shape) child(path, name string) string {
	switch {
	case len(path) > convert.MaxPath:
		return path
	case s.fields == nil:
		return path + "[" + name + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// isEval tells whether the mapping is the spec of an eval.
func (s shape) isEval() bool { return s.fields["responseFrom"] != nil }

// hint says what an unknown field of the mapping at a path may have meant, or what there is.
func (s shape) hint(path, name string) string {
	switch {
	case s.isTree() && (name == "yes" || name == "no"):
		return "; write " + branch(name == "yes")
	case s.isEval() && name == "threshold":
		return "; write it in " + s.child(path, "rubric")
	}
	known := slices.Sorted(maps.Keys(s.fields))
	if h := nearest.Hint(name, known); h != "" {
		return h
	}
	return "; known here: " + strings.Join(known, ", ")
}

func (c *checker) mapping(n *yaml.Node, t reflect.Type, path string, depth int) any {
	var s shape
	switch {
	case t == nil || t.Kind() == reflect.Interface:
	case t.Kind() == reflect.Map:
		s.elem = t.Elem()
	case t.Kind() == reflect.Struct:
		s.fields = convert.Fields(t)
	default:
		c.say(n, path, "is a mapping, where %s is expected", expected(t))
		return nil
	}
	out := c.entries(n, s, path, depth)
	if s.fields != nil {
		c.numbers(n, t, s, path, out)
	}
	return out
}

// numbers asks for the numbers that must be written: without one it would be 0, which may well be valid, and which
// admission in a cluster refuses. Other fields that must be there are told by the validation of the objects.
func (c *checker) numbers(n *yaml.Node, t reflect.Type, s shape, path string, out map[string]any) {
	for _, name := range convert.Required(t) {
		if kind := s.fields[name].Kind(); kind < reflect.Int || kind > reflect.Float64 {
			continue
		}
		_, there := out[name]
		if written := convert.Value(n, name); !there || written != nil && convert.IsNull(written) {
			c.say(n, s.child(path, name), "missing; write %s", expected(s.fields[name]))
		}
	}
}

// entries checks the entries of a mapping. Those behind a merge key (<<) come after its own, which override them, as
// kubectl has it.
func (c *checker) entries(n *yaml.Node, s shape, path string, depth int) map[string]any {
	if c.keys += len(n.Content) / 2; c.keys > convert.MaxNodes { // an alias repeats them
		if c.nodes <= convert.MaxNodes {
			c.say(n, path, "the document has more than %d keys, aliases included; split it", convert.MaxNodes)
			c.nodes = convert.MaxNodes + 1
		}
		return map[string]any{}
	}
	out := make(map[string]any, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" {
			merges = append(merges, val)
			continue
		}
		name, ok := c.key(key, s, path)
		if !ok {
			continue
		}
		at := s.child(path, name)
		if _, twice := out[name]; twice {
			c.say(key, at, "is there twice; remove one of them")
			continue
		}
		t, known := s.typeOf(name)
		if !known {
			if len(c.problems) < convert.MaxProblems {
				c.say(key, at, "unknown field%s", s.hint(path, name))
			}
			continue
		}
		c.remember(at, key)
		out[name] = c.value(val, t, at, depth+1)
	}
	for _, m := range merges {
		c.merge(m, s, path, depth+1, out)
	}
	return out
}

// merge takes over the entries of the mappings behind a merge key; entries that are there stay.
func (c *checker) merge(n *yaml.Node, s shape, path string, depth int, out map[string]any) {
	c.nodes++
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case c.nodes > convert.MaxNodes || depth > convert.MaxNesting:
		c.value(n, nil, path, depth) // says so
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			c.merge(item, s, path, depth+1, out)
		}
	case n.Kind == yaml.MappingNode:
		for name, v := range c.entries(n, s, path, depth+1) {
			if _, there := out[name]; !there {
				out[name] = v
			}
		}
	default:
		c.say(n, path, "<< merges a mapping, or a list of them")
	}
}

// key is the name that a key has for kubectl, which reads YAML 1.1 and makes JSON of it.
func (c *checker) key(n *yaml.Node, s shape, path string) (string, bool) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Kind != yaml.ScalarNode:
		c.say(n, path, "a key must be a name, not a mapping or a list")
		return "", false
	case len(n.Value) > convert.MaxKey:
		c.say(n, path, "a key has at most %d characters", convert.MaxKey)
		return "", false
	case !isBool(n):
		return n.Value, true
	case s.isTree():
		c.say(n, s.child(path, n.Value), "YAML reads an unquoted %s as %v; write %s", n.Value, isTrue(n), branch(isTrue(n)))
	default:
		c.say(n, s.child(path, n.Value), "YAML reads an unquoted %s as %v; put it in quotes: %q", n.Value, isTrue(n), n.Value)
	}
	return "", false
}

func branch(yes bool) string {
	if yes {
		return "ifYes"
	}
	return "ifNo"
}

func (c *checker) sequence(n *yaml.Node, t reflect.Type, path string, depth int) any {
	var elem reflect.Type
	if t != nil && t.Kind() != reflect.Interface {
		if t.Kind() != reflect.Slice || t.Elem().Kind() == reflect.Uint8 {
			c.say(n, path, "is a list, where %s is expected", expected(t))
			return nil
		}
		elem = t.Elem()
	}
	out := make([]any, 0, len(n.Content))
	for i, item := range n.Content {
		at := shape{}.child(path, strconv.Itoa(i))
		c.remember(at, item)
		if convert.IsNull(item) && elem != nil {
			c.say(item, at, "is empty; write %s, or remove it", expected(elem))
			continue
		}
		out = append(out, c.value(item, elem, at, depth+1))
	}
	return out
}

func (c *checker) scalar(n *yaml.Node, t reflect.Type, path string) any {
	if *c.text += len(n.Value); *c.text > maxText {
		if *c.text-len(n.Value) <= maxText {
			c.say(n, path, "the file has more than %d MiB of text, aliases included; split it", maxText>>20)
		}
		return nil
	}
	v, err := scalarValue(n)
	if err != nil {
		c.say(n, path, "%v", err)
		return nil
	}
	if t == nil || v == nil || t.Kind() == reflect.Interface {
		return v // null is as good as not there, for kubectl too
	}
	ok := false
	switch t.Kind() {
	case reflect.String:
		_, ok = v.(string)
	case reflect.Bool:
		_, ok = v.(bool)
	case reflect.Float32, reflect.Float64:
		ok = isNumber(v)
	case reflect.Int, reflect.Int32, reflect.Int64:
		ok = c.integer(n, t, v, path)
		if !ok && isNumber(v) {
			return nil // said
		}
	case reflect.Slice:
		_, ok = v.(string)
		ok = ok && t.Elem().Kind() == reflect.Uint8
	}
	if ok {
		return v
	}
	switch text, isText := v.(string); {
	case isText && (t == reflect.TypeFor[v1alpha1.RubricSource]() || t == reflect.TypeFor[v1alpha1.RubricSpec]()):
		c.say(n, path, "is a text, where a mapping is expected; a rubric in one text is written {text: %q}", convert.Clip(text))
	case t.Kind() == reflect.String && !isText:
		c.say(n, path, "is %s, where a text is expected; put it in quotes: %q", kindOf(v), n.Value)
	default:
		c.say(n, path, "is %s, where %s is expected%s", kindOf(v), expected(t), instead(n.Value, v, t))
	}
	return nil
}

func isNumber(v any) bool {
	switch v.(type) {
	case int64, uint64, float64:
		return true
	}
	return false
}

// integer tells whether a value is a whole number that the type can hold; a number that is none is a problem.
func (c *checker) integer(n *yaml.Node, t reflect.Type, v any, path string) bool {
	limit := int64(math.MaxInt64)
	if t.Kind() == reflect.Int32 {
		limit = math.MaxInt32
	}
	switch v := v.(type) {
	case int64:
		if v <= limit && v >= -limit {
			return true
		}
	case uint64, float64:
	default:
		return false
	}
	c.say(n, path, "%s is not a whole number from %d to %d", n.Value, -limit, limit)
	return false
}
