package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/convert"
	"github.com/mcptest/mcptest-operator/engine/convert/formats"
	"github.com/mcptest/mcptest-operator/engine/nearest"
)

// The kinds that are read.
const (
	KindRubric    = "Rubric"
	KindEval      = "Eval"
	KindEvalRun   = "EvalRun"
	KindConfigMap = "ConfigMap"
)

// kindTypes are the Go types of the kinds that are read, and their apiVersion.
var kindTypes = map[string]struct {
	apiVersion string
	goType     reflect.Type
}{
	KindRubric:    {v1alpha1.GroupVersion.String(), reflect.TypeFor[v1alpha1.Rubric]()},
	KindEval:      {v1alpha1.GroupVersion.String(), reflect.TypeFor[v1alpha1.Eval]()},
	KindEvalRun:   {v1alpha1.GroupVersion.String(), reflect.TypeFor[v1alpha1.EvalRun]()},
	KindConfigMap: {"v1", reflect.TypeFor[corev1.ConfigMap]()},
}

var kindNames = []string{KindRubric, KindEval, KindEvalRun, KindConfigMap}

// document is one object of a file.
type document struct {
	Position
	kind string
	// object is a *v1alpha1.Rubric, *v1alpha1.Eval, *v1alpha1.EvalRun or *corev1.ConfigMap.
	object any
	// positions are where the fields stand, by field path.
	positions map[string]Position
	// origin is what the object was made of; nil when it stands in the file as it is.
	origin *origin
}

// position is where a field stands, or the nearest one around it that is written down.
func (d *document) position(path string) Position {
	for path != "" {
		if p, ok := d.positions[path]; ok {
			return p
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return d.Position
}

// parser reads the documents of one file.
type parser struct {
	file      string
	format    *convert.Format // nil: as each document is recognised
	text      int             // bytes of the scalars that were read so far
	documents []*document
	problems  Problems
	notes     Problems
	found     bool // in a directory: what is foreign is skipped with a note
}

// parse reads a file: YAML documents, or JSON.
func parse(s source, format *convert.Format) *parser {
	p := &parser{file: s.name, format: format, found: s.found}
	// One document is checked while the next one is read: that halves the wait for files of a thousand evals.
	read := make(chan *yaml.Node, 64)
	var broken error
	go func() {
		defer close(read)
		dec := yaml.NewDecoder(bytes.NewReader(asYAML(s.data)))
		for {
			doc := &yaml.Node{}
			if broken = dec.Decode(doc); broken != nil {
				return
			}
			read <- doc
		}
	}()
	empty := true
	for doc := range read {
		if len(doc.Content) > 0 && !convert.IsNull(doc.Content[0]) {
			p.document(doc.Content[0])
			empty = false
		}
	}
	switch {
	case !errors.Is(broken, io.EOF):
		p.problems = append(p.problems, p.syntax(s.data, broken))
	case empty:
		p.note(0, "holds no evals")
	}
	return p
}

// document reads one document: an object, or one of another format, which is rewritten first.
func (p *parser) document(n *yaml.Node) {
	format := p.format
	if format == nil {
		format = formats.Recognise(n)
	}
	if format == nil {
		p.object(n)
		return
	}
	p.rewrite(n, format)
}

func (p *parser) note(line int, format string, args ...any) {
	p.notes = append(p.notes, Problem{Position: Position{File: p.file, Line: line}, Message: fmt.Sprintf(format, args...)})
}

func (p *parser) say(n *yaml.Node, path, format string, args ...any) {
	at := Position{File: p.file, Line: n.Line, Column: n.Column}
	p.problems = append(p.problems, Problem{Position: at, Path: path, Message: fmt.Sprintf(format, args...)})
}

// object reads one object.
func (p *parser) object(n *yaml.Node) {
	if convert.IsNull(n) {
		return // an empty document
	}
	if n.Kind != yaml.MappingNode {
		p.foreign(n, "", fmt.Sprintf("not a manifest; write apiVersion: %s, a kind and a spec", v1alpha1.GroupVersion))
		return
	}
	apiVersion, kind := convert.Value(n, "apiVersion"), convert.Value(n, "kind")
	if kind == nil || kind.Kind != yaml.ScalarNode || kind.Value == "" {
		p.foreign(n, "kind", fmt.Sprintf("missing; write one of %s (and apiVersion: %s), or the evals of another format: %s", strings.Join(kindNames, ", "), v1alpha1.GroupVersion, formatTitles()))
		return
	}
	version := ""
	if apiVersion != nil {
		version = apiVersion.Value
	}
	if items := convert.Value(n, "items"); strings.HasSuffix(kind.Value, "List") && items != nil && items.Kind == yaml.SequenceNode {
		for _, item := range items.Content { // as kubectl get -o yaml prints them
			p.object(item)
		}
		return
	}
	if p.known(n, version, apiVersion, kind) {
		p.decode(n, kind.Value, nil)
	}
}

// known tells whether an object is of a kind that is read. An object of another API group is skipped with a note.
func (p *parser) known(n *yaml.Node, version string, apiVersion, kind *yaml.Node) bool {
	group, _, _ := strings.Cut(version, "/")
	ours := version == "" || strings.EqualFold(group, v1alpha1.GroupVersion.Group)
	t, ok := kindTypes[kind.Value]
	switch {
	case ok && version == t.apiVersion:
		return true
	case ok && apiVersion == nil:
		p.say(n, "apiVersion", "missing; write apiVersion: %s", t.apiVersion)
	case ok && (ours || group == t.apiVersion || kind.Value != KindConfigMap && near(version)):
		p.say(apiVersion, "apiVersion", "%q is not known; write apiVersion: %s", convert.Clip(version), t.apiVersion)
	case ours:
		p.say(kind, "kind", "unknown kind %q%s", convert.Clip(kind.Value), hintOr(kind.Value, kindNames, "; known are "+strings.Join(kindNames, ", ")))
	default:
		p.note(n.Line, "%s of %s is not read here: skipped", convert.Clip(kind.Value), convert.Clip(version))
	}
	return false
}

// near tells whether an apiVersion may have been meant to be ours.
func near(version string) bool {
	return !strings.Contains(version, "/") || nearest.Name(version, []string{v1alpha1.GroupVersion.String()}) != ""
}

func hintOr(name string, among []string, otherwise string) string {
	if h := nearest.Hint(name, among); h != "" {
		return h
	}
	return otherwise
}

// decode reads an object of a known kind strictly.
func (p *parser) decode(n *yaml.Node, kind string, from *origin) {
	c := &checker{file: p.file, text: &p.text, origin: from, positions: make(map[string]Position)}
	v := c.value(n, kindTypes[kind].goType, "", 0)
	p.problems = append(p.problems, c.problems...)
	if len(c.problems) > 0 || from.incomplete() {
		return
	}
	object := reflect.New(kindTypes[kind].goType).Interface()
	data, err := json.Marshal(v)
	if err == nil {
		var strict []error
		if strict, err = kjson.UnmarshalStrict(data, object); err == nil {
			err = errors.Join(strict...)
		}
	}
	if err != nil {
		p.say(n, "", "cannot be read as %s: %s", kind, strings.TrimPrefix(err.Error(), "json: "))
		return
	}
	d := &document{Position: c.at(n), kind: kind, object: object, positions: c.positions, origin: from}
	p.documents = append(p.documents, d)
}
