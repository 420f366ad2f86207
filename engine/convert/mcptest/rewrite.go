package mcptest

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/convert"
	"github.com/mcptest/mcptest-operator/engine/nearest"
)

// rewriter makes manifests of one document.
type rewriter struct {
	convert.Walk
	suite     string
	variables *variables
	rubrics   map[string]string // the names of the Rubrics, by the names in the file
	names     map[string]bool   // of evals
	objects   convert.Slugs     // the names of the Evals
	doc       *convert.Document // that is being made
	out       []*convert.Document
}

// place is where a value stands: its path in the file, and in the manifest.
type place struct{ from, to string }

// child is the place of a field, under whatever key it is written.
func (r *rewriter) child(at place, key, field string) place {
	return r.remember(place{convert.Child(at.from, key), convert.Child(at.to, field)})
}

func (r *rewriter) item(at place, i int) place {
	return r.remember(place{convert.Item(at.from, i), convert.Item(at.to, i)})
}

// remember notes which path of the file a path of the manifest comes from.
func (r *rewriter) remember(at place) place {
	if len(at.to) <= convert.MaxPath {
		r.doc.Sources[at.to] = at.from
	}
	return at
}

func rewrite(s convert.Source) convert.Result {
	r := &rewriter{
		suite: s.Suite, rubrics: make(map[string]string), names: make(map[string]bool), objects: make(convert.Slugs),
		variables: &variables{},
	}
	r.file(s.Top)
	return convert.Result{Documents: r.out, Problems: r.Problems, Notes: r.Notes}
}

// file reads the blocks: variables and the names of the rubrics first, because the others use them.
func (r *rewriter) file(n *yaml.Node) {
	if n = r.Enter(n, "", 0); n == nil {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.Say(n, "", "not mcptest YAML; write the blocks %s and %s", BlockEvals, BlockRubrics)
		return
	}
	blocks := make(map[string]*yaml.Node)
	for _, e := range r.Entries(n, "", 0) {
		known := []string{BlockEvals, BlockRubrics, BlockServers, BlockVariables}
		switch {
		case slices.Contains(known, e.Name):
			if blocks[e.Name] = r.Enter(e.Value, e.Name, 1); blocks[e.Name] == nil {
				return
			}
		case slices.Contains(OtherBlocks(), e.Name):
			r.Note(e.Key, "%s is not read here: only evals are graded", e.Name)
		default:
			r.Say(e.Key, convert.Clip(e.Name), "unknown field%s", nearestOr(e.Name, append(known, OtherBlocks()...)))
		}
	}
	if b := blocks[BlockVariables]; b != nil {
		r.define(b)
	}
	if b := blocks[BlockServers]; b != nil && r.isMapping(b, BlockServers, "a mapping of names to servers") {
		r.Note(b, "servers belong to live evals, which this version defers: their settings are not read")
	}
	if b := blocks[BlockRubrics]; b != nil && r.isMapping(b, BlockRubrics, "a mapping of names to rubrics") {
		r.rubricBlock(b)
	}
	if b := blocks[BlockEvals]; b != nil {
		r.evalBlock(b)
	}
}

// isMapping tells whether a block that is there is a mapping; an empty block is none, and no problem.
func (r *rewriter) isMapping(n *yaml.Node, path, expected string) bool {
	if n.Kind != yaml.MappingNode && !convert.IsNull(n) {
		r.Say(n, path, "is %s, where %s is expected", kindOf(n), expected)
	}
	return n.Kind == yaml.MappingNode
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return "a single value"
}

// rubricBlock makes a Rubric of each entry of rubrics.
func (r *rewriter) rubricBlock(n *yaml.Node) {
	entries := r.Entries(n, BlockRubrics, 1)
	slugs := make(convert.Slugs)
	for _, e := range entries {
		r.rubrics[e.Name] = slugs.Unique(e.Name, "rubric")
	}
	for _, e := range entries {
		at := place{from: convert.Entered(BlockRubrics, e.Name)}
		r.document("Rubric", at, e.Key, func() {
			r.meta(e.Key, at.from, r.rubrics[e.Name])
			spec := r.remember(place{at.from, "spec"})
			if v := r.value(e.Value, rubricType, spec, 2); v != nil {
				convert.Put(r.doc.Node, e.Key, "spec", v)
			}
		})
	}
}

// evalBlock makes an Eval of each item of evals.
func (r *rewriter) evalBlock(n *yaml.Node) {
	switch {
	case convert.IsNull(n):
		return
	case n.Kind != yaml.SequenceNode:
		r.Say(n, BlockEvals, "is %s, where a list of evals is expected: begin each with a dash, as in \"- name: ...\"", kindOf(n))
		return
	}
	for i, item := range n.Content {
		at := place{from: convert.Item(BlockEvals, i)}
		if item = r.Enter(item, at.from, 2); item == nil {
			return
		}
		if item.Kind != yaml.MappingNode {
			r.Say(item, at.from, "is %s, where an eval is expected: a mapping with a name and a rubric", kindOf(item))
			continue
		}
		r.document("Eval", at, item, func() { r.eval(item, at) })
	}
}

// document makes one manifest: write fills it in.
func (r *rewriter) document(kind string, at place, n *yaml.Node, write func()) {
	before := len(r.Problems)
	r.doc = &convert.Document{Kind: kind, Node: convert.Empty(n, yaml.MappingNode), Sources: make(map[string]string)}
	r.remember(at)
	convert.Put(r.doc.Node, n, "apiVersion", convert.Text(n, v1alpha1.GroupVersion.String()))
	convert.Put(r.doc.Node, n, "kind", convert.Text(n, kind))
	write()
	r.doc.Incomplete = len(r.Problems) > before
	r.out = append(r.out, r.doc)
}

// meta writes the metadata; n is the name in the file, which stands at the path from.
func (r *rewriter) meta(n *yaml.Node, from, name string) {
	labels := convert.Empty(n, yaml.MappingNode)
	convert.Put(labels, n, convert.LabelSuite, convert.Text(n, r.suite))
	metadata := convert.Empty(n, yaml.MappingNode)
	r.remember(place{from, "metadata.name"})
	convert.Put(metadata, n, "name", convert.Text(n, name))
	convert.Put(metadata, n, "labels", labels)
	convert.Put(r.doc.Node, n, "metadata", metadata)
}

// eval rewrites one eval.
func (r *rewriter) eval(n *yaml.Node, at place) {
	spec := r.remember(place{at.from, "spec"})
	entries := r.Entries(n, at.from, 2)
	var name, threshold *convert.Entry
	for i := range entries {
		switch e := &entries[i]; e.Name {
		case "name":
			name = e
		case "threshold":
			threshold = e
		}
	}
	entries = slices.DeleteFunc(slices.Clone(entries), func(e convert.Entry) bool { return e.Name == "threshold" })
	out := r.fields(n, entries, evalType, spec, 2)
	r.nameEval(n, name, out, at)
	if threshold != nil {
		r.threshold(threshold, entries, out, at)
	}
	convert.Put(r.doc.Node, n, "spec", out)
}

// nameEval names the Eval after its title.
func (r *rewriter) nameEval(n *yaml.Node, e *convert.Entry, spec *yaml.Node, at place) {
	path := convert.Child(at.from, "name")
	title := convert.Value(spec, "title")
	switch {
	case e == nil || title == nil || convert.IsNull(title) || title.Kind == yaml.ScalarNode && strings.TrimSpace(title.Value) == "":
		if e == nil || title != nil { // else it was told what is wrong with it
			r.Say(n, path, "missing: give the eval a name; the report shows it")
		}
	case title.Kind != yaml.ScalarNode: // the types are checked later
	case r.names[title.Value]:
		r.Say(e.Key, path, "%q is there twice; every eval has a name of its own", convert.Clip(title.Value))
	default:
		r.names[title.Value] = true
		r.meta(e.Key, path, r.objects.Unique(title.Value, "eval"))
	}
}

// threshold puts the threshold that stands beside a rubric in one text into that rubric (S-53).
func (r *rewriter) threshold(e *convert.Entry, entries []convert.Entry, spec *yaml.Node, at place) {
	i := slices.IndexFunc(entries, func(e convert.Entry) bool { return e.Name == "rubric" })
	rubric := convert.Value(spec, "rubric")
	if i < 0 || rubric == nil || rubric.Kind != yaml.MappingNode || aliased(entries[i].Value).Kind != yaml.ScalarNode {
		r.Say(e.Key, convert.Child(at.from, e.Name), "a threshold beside rubric belongs to a rubric in one text; write it inside the rubric, as in rubric: {threshold: 0.7, criteria: [...]}")
		return
	}
	into := r.remember(place{convert.Child(at.from, e.Name), "spec.rubric.threshold"})
	if v := r.value(e.Value, convert.Fields(rubricType)["threshold"], into, 3); v != nil {
		convert.Put(rubric, e.Key, "threshold", v)
	}
}

func aliased(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

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
	for _, e := range entries {
		k, ok := keys[e.Name]
		if !ok {
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
		known := slices.Collect(maps.Keys(r.rubrics))
		say := nearest.Hint(v.Value, known)
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
