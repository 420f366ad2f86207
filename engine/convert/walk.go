package convert

import (
	"fmt"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Walk goes through the nodes of a document within limits, and gathers what is wrong with them.
type Walk struct {
	Problems []Problem
	Notes    []Note

	nodes int
	keys  int
	said  int  // problems, those past MaxProblems included
	text  int  // bytes of the scalars
	ended bool // past a limit, which was told
}

// Say tells a problem of a node. path is that of the source.
func (w *Walk) Say(n *yaml.Node, path, format string, args ...any) {
	w.said++
	if len(w.Problems) < MaxProblems {
		w.Problems = append(w.Problems, Problem{Line: n.Line, Column: n.Column, Path: ClipPath(path), Message: fmt.Sprintf(format, args...)})
	}
}

// Said is how many problems were found, those that are not told included.
func (w *Walk) Said() int { return w.said }

// Full tells whether further problems are not told: what they would say need not be made.
func (w *Walk) Full() bool { return len(w.Problems) >= MaxProblems }

// Ended tells whether a limit was passed.
func (w *Walk) Ended() bool { return w.ended }

// Note tells something that is no problem.
func (w *Walk) Note(n *yaml.Node, format string, args ...any) {
	if len(w.Notes) < MaxProblems {
		w.Notes = append(w.Notes, Note{Line: n.Line, Message: fmt.Sprintf(format, args...)})
	}
}

// Enter counts a node and returns it, or what it is an alias of; nil past the limits, which it tells once.
func (w *Walk) Enter(n *yaml.Node, path string, depth int) *yaml.Node {
	w.nodes++
	switch {
	case w.ended:
		return nil
	case w.nodes > MaxNodes:
		w.Say(n, path, "the document has more than %d values, aliases included; split it", MaxNodes)
		w.ended = true
		return nil
	case depth > MaxNesting:
		w.Say(n, path, "nested more than %d deep", MaxNesting)
		w.ended = true // an alias inside its own anchor never ends: stop here
		return nil
	case n.Kind == yaml.AliasNode:
		return w.Enter(n.Alias, path, depth+1)
	case n.Kind == yaml.ScalarNode:
		if w.text += len(n.Value); w.text > MaxFileBytes {
			w.Say(n, path, "the document has more than %d MiB of text, aliases included", MaxFileBytes>>20)
			w.ended = true
			return nil
		}
	}
	return n
}

// Entry is one entry of a mapping.
type Entry struct {
	Name       string
	Key, Value *yaml.Node
}

// Entries are the entries of a mapping: its own, then those behind merge keys (<<) that it has not itself. A key that is
// there twice, or that is no name, is a problem.
func (w *Walk) Entries(n *yaml.Node, path string, depth int) []Entry {
	var out []Entry
	if w.keys += len(n.Content) / 2; w.keys > MaxNodes { // an alias repeats them
		if !w.ended {
			w.Say(n, path, "the document has more than %d keys, aliases included; split it", MaxNodes)
			w.ended = true
		}
		return nil
	}
	w.entries(n, path, depth, make(map[string]bool), &out)
	return out
}

func (w *Walk) entries(n *yaml.Node, path string, depth int, before map[string]bool, out *[]Entry) {
	own := make(map[string]bool, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" {
			merges = append(merges, val)
			continue
		}
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch {
		case key.Kind != yaml.ScalarNode:
			w.Say(key, path, "a key must be a name, not a mapping or a list")
		case len(key.Value) > MaxKey:
			w.Say(key, path, "a key has at most %d characters", MaxKey)
		case own[key.Value]:
			w.Say(key, Child(path, key.Value), "is there twice; remove one of them")
		case !before[key.Value]:
			*out = append(*out, Entry{Name: key.Value, Key: key, Value: val})
			fallthrough
		default:
			own[key.Value], before[key.Value] = true, true
		}
	}
	for _, m := range merges {
		w.merge(m, path, depth+1, before, out)
	}
}

func (w *Walk) merge(n *yaml.Node, path string, depth int, before map[string]bool, out *[]Entry) {
	switch n = w.Enter(n, path, depth); {
	case n == nil:
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			w.merge(item, path, depth+1, before, out)
		}
	case n.Kind == yaml.MappingNode:
		w.nodes += len(n.Content) / 2
		w.entries(n, path, depth+1, before, out)
	default:
		w.Say(n, path, "<< merges a mapping, or a list of them")
	}
}

// Value is the value under a key of a mapping; nil when there is none.
func Value(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// Child is the path of a field, Item that of an item of a list, Entered that of a key of a map, and Named that of what
// has a name. A path past MaxPath stays
// as it is.
func Child(path, name string) string {
	switch {
	case len(path) > MaxPath:
		return path
	case path == "":
		return name
	}
	return path + "." + name
}

// Item is the path of an item of a list.
func Item(path string, i int) string { return Entered(path, strconv.Itoa(i)) }

// Entered is the path of a key of a map.
func Entered(path, key string) string {
	if len(path) > MaxPath {
		return path
	}
	return path + "[" + key + "]"
}

var word = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// Named is the path of what has a name: a.b, and a["b c"] when the name is no plain word.
func Named(path, name string) string {
	if word.MatchString(name) {
		return Child(path, name)
	}
	return Entered(path, strconv.Quote(name))
}
