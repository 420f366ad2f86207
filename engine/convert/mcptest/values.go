package mcptest

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mcptest/mcptest-operator/engine/convert"
	"github.com/mcptest/mcptest-operator/engine/nearest"
)

// value rewrites a value for a field of a type; nil when it was told what is wrong. What has not the shape that the type
// has is kept: the check of the manifest says so.
func (r *rewriter) value(n *yaml.Node, t reflect.Type, at place, depth int) *yaml.Node {
	if n = r.Enter(n, at.from, depth); n == nil {
		return nil
	}
	switch t = convert.Deref(t); {
	case (t == rubricType || t == rubricSourceType) && convert.IsText(n):
		out := convert.Empty(n, yaml.MappingNode)
		convert.Put(out, n, "text", r.text(n, r.remember(place{at.from, convert.Child(at.to, "text")})))
		return out
	case t == scaleType && convert.IsText(n):
		return r.scale(n, at)
	case t.Kind() == reflect.Struct && n.Kind == yaml.MappingNode:
		return r.fields(n, r.Entries(n, at.from, depth), t, at, depth)
	case t.Kind() == reflect.Map && n.Kind == yaml.MappingNode:
		return r.entered(n, t, at, depth)
	case t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode:
		return r.list(n, t, at, depth)
	case t.Kind() == reflect.String && convert.IsText(n):
		return r.text(n, at)
	case n.Kind == yaml.ScalarNode:
		return convert.Core(n)
	}
	return convert.Empty(n, n.Kind)
}

// fields rewrites a mapping that stands for a struct.
func (r *rewriter) fields(n *yaml.Node, entries []convert.Entry, t reflect.Type, at place, depth int) *yaml.Node {
	out := convert.Empty(n, yaml.MappingNode)
	keys := keysOf(t)
	said := false // one message a node of a tree: what its other branch is called goes without saying
	for _, e := range entries {
		k, ok := keys[e.Name]
		if branch := branches[e.Name]; !ok && t == treeType && branch != "" && convert.Value(n, branch) == nil {
			if !said {
				r.Say(e.Key, convert.Child(at.from, e.Name), "unknown field; write %s", branch)
			}
			k, ok, said = keys[branch], true, true
		}
		if !ok {
			if r.Full() {
				r.Say(e.Key, at.from, "unknown field") // counted only
				continue
			}
			known := slices.Collect(maps.Keys(keys))
			if t == evalType {
				known = append(known, "threshold")
			}
			r.Say(e.Key, convert.Child(at.from, e.Name), "unknown field%s", hint(e.Name, t, known))
			continue
		}
		into := r.child(at, e.Name, k.field)
		var v *yaml.Node
		if k.rewrite != nil {
			v = k.rewrite(r, e.Value, into, depth+1)
		} else {
			v = r.value(e.Value, k.goType, into, depth+1)
		}
		if v != nil {
			convert.Put(out, e.Key, k.field, v)
		}
	}
	return out
}

// entered rewrites a mapping with keys of any name.
func (r *rewriter) entered(n *yaml.Node, t reflect.Type, at place, depth int) *yaml.Node {
	out := convert.Empty(n, yaml.MappingNode)
	for _, e := range r.Entries(n, at.from, depth) {
		into := r.remember(place{convert.Entered(at.from, e.Name), convert.Entered(at.to, e.Name)})
		if v := r.value(e.Value, t.Elem(), into, depth+1); v != nil {
			convert.Put(out, e.Key, e.Name, v)
		}
	}
	return out
}

func (r *rewriter) list(n *yaml.Node, t reflect.Type, at place, depth int) *yaml.Node {
	out := convert.Empty(n, yaml.SequenceNode)
	// Without documents and examples an eval means the same; an empty list of anything else was meant to hold something.
	if len(n.Content) == 0 && !strings.HasSuffix(at.to, ".context") && !strings.HasSuffix(at.to, ".examples") {
		r.Say(n, at.from, "is empty; write at least one")
		return nil
	}
	for i, item := range n.Content {
		if v := r.value(item, t.Elem(), r.item(at, i), depth+1); v != nil {
			out.Content = append(out.Content, v)
		}
	}
	return out
}

// text is the text of a scalar, with its variables replaced.
func (r *rewriter) text(n *yaml.Node, at place) *yaml.Node {
	return convert.Text(n, r.expand(n, at.from))
}

// server names the server as the object of that name is named.
func (r *rewriter) server(n *yaml.Node, at place, depth int) *yaml.Node {
	v := r.value(n, reflect.TypeFor[string](), at, depth)
	if v != nil && v.Kind == yaml.ScalarNode && v.Value != "" && !convert.IsNull(v) {
		v = convert.Text(v, convert.Slug(v.Value, "server"))
	}
	return v
}

// context takes one text for a list of one.
func (r *rewriter) context(n *yaml.Node, at place, depth int) *yaml.Node {
	if one := aliased(n); convert.IsText(one) {
		list := convert.Empty(one, yaml.SequenceNode)
		list.Content = []*yaml.Node{r.text(one, r.remember(place{at.from, convert.Item(at.to, 0)}))}
		return list
	}
	return r.value(n, reflect.TypeFor[[]string](), at, depth)
}

// ref refers to a Rubric that was made of the rubrics of the file (S-52).
func (r *rewriter) ref(n *yaml.Node, at place, depth int) *yaml.Node {
	v := r.value(n, reflect.TypeFor[string](), at, depth)
	if v == nil || v.Kind != yaml.ScalarNode || convert.IsNull(v) {
		return v
	}
	name, ok := r.rubrics[v.Value]
	if !ok {
		if r.Full() {
			r.Say(n, at.from, "unknown ref") // counted only
			return nil
		}
		say := nearest.Hint(v.Value, slices.Collect(maps.Keys(r.rubrics)))
		if say == "" {
			say = "; write it there"
		}
		r.Say(n, at.from, "rubric %q is not among the rubrics of this file%s", convert.Clip(v.Value), say)
		return nil
	}
	return convert.Text(v, name)
}

// scale rewrites a scale that is named only.
func (r *rewriter) scale(n *yaml.Node, at place) *yaml.Node {
	name := r.expand(n, at.from)
	t, ok := convert.Fields(scaleType)[name]
	switch {
	case !ok:
		r.Say(n, at.from, "unknown scale %q%s", convert.Clip(name), nearestOr(name, slices.Collect(maps.Keys(convert.Fields(scaleType)))))
		return nil
	case convert.Deref(t).NumField() > 0:
		r.Say(n, at.from, "%s needs its ends; write {likert: {min: 1, max: 5}}", name)
		return nil
	}
	out := convert.Empty(n, yaml.MappingNode)
	convert.Put(out, n, name, convert.Empty(n, yaml.MappingNode))
	return out
}
