package mcptest

import (
	"fmt"
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
	entries := r.Entries(n, "", 0)
	if !hasEvals(n) && !slices.ContainsFunc(entries, misspelled) {
		r.Note(n, "holds no evals: not read")
		return
	}
	blocks := make(map[string]*yaml.Node)
	for _, e := range entries {
		switch {
		case strings.HasPrefix(e.Name, "x-"): // a place for anchors
		case slices.Contains(readBlocks, e.Name):
			if blocks[e.Name] = r.Enter(e.Value, e.Name, 1); blocks[e.Name] == nil {
				return
			}
		case slices.Contains(OtherBlocks(), e.Name):
			r.Note(e.Key, "%s is not read here: only evals are graded", e.Name)
		default:
			r.Say(e.Key, convert.Clip(e.Name), "unknown field%s", blockHint(e.Name))
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

// readBlocks are the blocks that are read.
var readBlocks = []string{BlockEvals, BlockRubrics, BlockServers, BlockVariables}

// misspelled tells whether a block may have been meant to be one of evals.
func misspelled(e convert.Entry) bool {
	near := nearest.Name(e.Name, slices.Concat(readBlocks, OtherBlocks()))
	return !slices.Contains(OtherBlocks(), e.Name) && slices.Contains([]string{BlockEvals, BlockRubrics}, near)
}

// blockHint says what an unknown block may have meant.
func blockHint(name string) string {
	if strings.HasPrefix(name, "-") {
		return dashHint(name)
	}
	return nearestOr(name, slices.Concat(readBlocks, OtherBlocks()))
}

// dashHint says how an item of a list is written, for a key that begins with its dash.
func dashHint(name string) string {
	return fmt.Sprintf("; a dash needs a blank after it: write \"- %s:\"", convert.Clip(name[1:]))
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
		name := r.expand(e.Key, BlockRubrics)
		if r.rubrics[name] != "" {
			r.Say(e.Key, convert.Named(BlockRubrics, name), "is there twice; remove one of them")
		}
		r.rubrics[name] = slugs.Unique(name, "rubric")
	}
	for _, e := range entries {
		at := place{from: convert.Named(BlockRubrics, e.Name)}
		r.document("Rubric", at, e.Key, func() {
			if isBlankText(e.Value) {
				r.Say(e.Key, at.from, emptyRubric)
				return
			}
			r.meta(e.Key, at.from, r.rubrics[r.expand(e.Key, at.from)])
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
	case convert.IsNull(n), n.Kind == yaml.SequenceNode && len(n.Content) == 0:
		r.Note(n, "holds no evals")
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
	before := r.Said()
	r.doc = &convert.Document{Kind: kind, Node: convert.Empty(n, yaml.MappingNode), Sources: make(map[string]string)}
	r.remember(at)
	convert.Put(r.doc.Node, n, "apiVersion", convert.Text(n, v1alpha1.GroupVersion.String()))
	convert.Put(r.doc.Node, n, "kind", convert.Text(n, kind))
	write()
	r.doc.Incomplete = r.Said() > before || r.Ended()
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
	var name, rubric, threshold *convert.Entry
	several := false
	for i := range entries {
		switch e := &entries[i]; e.Name {
		case "name":
			name = e
		case "rubric":
			rubric = e
		case "rubrics":
			several = true
		case "threshold":
			threshold = e
		}
	}
	if rubric != nil && isBlankText(rubric.Value) && !several {
		r.Say(rubric.Key, convert.Child(at.from, "rubric"), emptyRubric)
		threshold = nil // belongs to what is not there
		entries = slices.DeleteFunc(entries, func(e convert.Entry) bool { return e.Name == "rubric" })
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

// emptyRubric is said of a rubric without anything in it.
const emptyRubric = "is empty; write what the judge must look for"

// isBlankText tells whether a value is empty, or a text of blanks.
func isBlankText(n *yaml.Node) bool {
	n = aliased(n)
	return n.Kind == yaml.ScalarNode && (convert.IsNull(n) || strings.TrimSpace(n.Value) == "")
}

func aliased(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
