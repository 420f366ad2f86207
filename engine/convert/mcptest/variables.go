package mcptest

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mcptest/mcptest-operator/engine/convert"
	"github.com/mcptest/mcptest-operator/engine/nearest"
)

// reference is ${name}, or $${name}, which stands for the text ${name}.
var reference = regexp.MustCompile(`(\$?)\$\{([A-Za-z_][A-Za-z0-9_.-]*)\}`)

// variables are what ${name} stands for.
type variables struct {
	defined map[string]string // nil: the file has no such block
	noted   map[string]bool   // names that were kept as they stand, and said to be
	made    map[*yaml.Node]string
	written int // bytes of text that were made
}

// define reads the block variables.
func (r *rewriter) define(n *yaml.Node) {
	r.variables.defined = make(map[string]string)
	if !r.isMapping(n, BlockVariables, "a mapping of names to texts") {
		return
	}
	for _, e := range r.Entries(n, BlockVariables, 1) {
		path := convert.Named(BlockVariables, e.Name)
		r.variables.defined[e.Name] = "" // known, whatever is wrong with it
		switch v := r.Enter(e.Value, path, 2); {
		case v == nil:
		case convert.IsText(v):
			r.variables.defined[e.Name] = v.Value
		case convert.IsNull(v):
			r.Say(e.Key, path, `is empty; write a text, or "" for none`)
		default:
			r.Say(v, path, "is %s, where a text is expected", kindOf(v))
		}
	}
}

// expand is the text of a scalar with the values of its variables, made once for all its aliases. Values are not expanded
// again. Without a block of variables they stay as they stand.
func (r *rewriter) expand(n *yaml.Node, path string) string {
	if !strings.Contains(n.Value, "${") {
		return n.Value
	}
	v := r.variables
	text, ok := v.made[n]
	if !ok {
		if v.made == nil {
			v.made = make(map[*yaml.Node]string)
		}
		text = r.expanded(n, path)
		v.made[n] = text
	}
	return text
}

func (r *rewriter) expanded(n *yaml.Node, path string) string {
	v := r.variables
	switch {
	case v.written > convert.MaxFileBytes:
		return n.Value // said
	case v.defined == nil: // exactly this text is meant (S-33), also where it says $${name}
		for _, m := range reference.FindAllStringSubmatch(n.Value, -1) {
			if m[1] == "" {
				r.kept(n, m[2])
			}
		}
		return n.Value
	}
	var b strings.Builder
	rest := n.Value
	for {
		m := reference.FindStringSubmatchIndex(rest)
		if m == nil {
			break
		}
		name := rest[m[4]:m[5]]
		value, ok := v.defined[name]
		switch {
		case m[3] > m[2]: // $${name}
			value = rest[m[3]:m[1]]
		case !ok:
			r.Say(n, path, "variable %q is not among the variables of this file%s", convert.Clip(name), r.orWrite(name))
		}
		if v.written += m[0] + len(value); v.written > convert.MaxFileBytes {
			r.Say(n, path, "the variables make more than %d MiB of text; shorten them", convert.MaxFileBytes>>20)
			return n.Value
		}
		r.unread(n, rest[:m[0]])
		b.WriteString(rest[:m[0]])
		b.WriteString(value)
		rest = rest[m[1]:]
	}
	r.unread(n, rest)
	b.WriteString(rest)
	return b.String()
}

// unread notes a ${ between references that begins none, in a file with variables.
func (r *rewriter) unread(n *yaml.Node, between string) {
	i := strings.Index(between, "${")
	if i < 0 || r.variables.defined == nil {
		return
	}
	line, _, _ := strings.Cut(between[i:], "\n")
	r.Note(n, "%q stands as text: it is no variable; one is written ${name}", convert.Clip(line))
}

// orWrite says which variable may have been meant, and else how ${name} is written as a text.
func (r *rewriter) orWrite(name string) string {
	if r.Full() {
		return ""
	}
	if h := nearest.Hint(name, slices.Collect(maps.Keys(r.variables.defined))); h != "" {
		return h
	}
	return "; add it there, or write $${" + convert.Clip(name) + "} for that very text"
}

// kept notes once that a name is kept as it stands.
func (r *rewriter) kept(n *yaml.Node, name string) {
	if r.variables.noted == nil {
		r.variables.noted = make(map[string]bool)
	}
	if !r.variables.noted[name] && len(r.variables.noted) < convert.MaxProblems {
		r.variables.noted[name] = true
		r.Note(n, "${%s} stays as it stands: the file has no %s", convert.Clip(name), BlockVariables)
	}
}
