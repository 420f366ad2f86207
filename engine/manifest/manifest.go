// Package manifest reads Rubric, Eval, EvalRun and ConfigMap manifests from files, strictly: every problem of every file
// is told with its line, and with what to write instead. It means by YAML what kubectl means by it. Files of other formats
// (engine/convert) are rewritten into manifests first.
package manifest

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/convert"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

// Set is what some files hold.
type Set struct {
	// Files are the names of the files that were read, in order.
	Files []string
	// Evals in the order of the files.
	Evals []plan.NamedEval
	// Rubrics and ConfigMaps by name.
	Rubrics    map[string]v1alpha1.RubricSpec
	ConfigMaps map[string]map[string]string
	// Runs in the order of the files.
	Runs []v1alpha1.EvalRun
	// Namespace is the namespace that the manifests name; empty when none does.
	Namespace string
	// Notes tell what was skipped, a line each, in the order of files and lines. Selected adds which evals are left out.
	Notes []string

	labels    map[string]map[string]string // of evals, by name
	documents map[objectKey]*document
	ordered   []*document // as they stand in the files
	problems  Problems
	notes     Problems // what Notes are made of
}

// objectKey names an object of a set.
type objectKey struct{ kind, name string }

// Load reads files, directories (the .yaml, .yml and .json files in them, in alphabetical order, sub-directories too) and
// "-", which is stdin. The error is Problems: all of them, in the order of files and lines. References from one object
// to another are not followed: Check and Plan do.
func Load(paths []string, stdin io.Reader) (*Set, error) {
	return LoadOptions{}.Load(paths, stdin)
}

// LoadOptions say how files are read.
type LoadOptions struct {
	// Format is that of all documents. nil: manifests, and any document of a format that is recognised.
	Format *convert.Format
}

// Load is Load with options.
func (o LoadOptions) Load(paths []string, stdin io.Reader) (*Set, error) {
	s := &Set{
		Rubrics:    make(map[string]v1alpha1.RubricSpec),
		ConfigMaps: make(map[string]map[string]string),
		labels:     make(map[string]map[string]string),
		documents:  make(map[objectKey]*document),
	}
	sources, problems := readAll(paths, stdin)
	s.problems = problems
	for _, source := range sources {
		s.Files = append(s.Files, source.name)
		p := parse(source, o.Format)
		s.problems = append(s.problems, p.problems...)
		s.notes = append(s.notes, p.notes...)
		for _, d := range p.documents {
			s.add(d)
		}
	}
	if err := s.problems.orNil(); err != nil {
		return nil, err
	}
	s.note()
	return s, nil
}

// note adds notes that are not there yet.
func (s *Set) note(notes ...Problem) {
	for _, n := range notes {
		if !slices.Contains(s.notes, n) {
			s.notes = append(s.notes, n)
		}
	}
	s.Notes = nil
	for _, n := range s.notes.sorted() {
		s.Notes = append(s.Notes, n.Error())
	}
}

// Name is what a run of the set is called: its only EvalRun's name, else that of its only file, without the extension.
func (s *Set) Name() string {
	switch {
	case len(s.Runs) == 1 && s.Runs[0].Name != "":
		return s.Runs[0].Name
	case len(s.Files) == 1 && s.Files[0] != stdinName:
		return baseName(s.Files[0])
	case len(s.Files) > 1:
		if dir := filepath.Base(filepath.Dir(s.Files[0])); dir != "." && dir != string(filepath.Separator) {
			return dir
		}
	}
	return "local"
}

// baseName is the name of a file without its directory and its extension.
func baseName(file string) string {
	base := filepath.Base(file)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// Position is where a field of an object stands, or the nearest one around it; false for an object that is not there.
func (s *Set) Position(kind, name, path string) (Position, bool) {
	d, ok := s.documents[objectKey{kind, name}]
	if !ok {
		return Position{}, false
	}
	return d.position(path), true
}

func (s *Set) say(d *document, path, format string, args ...any) {
	s.problems = append(s.problems, problemAt(d, path, format, args...))
}

func problemAt(d *document, path, format string, args ...any) Problem {
	return Problem{Position: d.position(path), Path: d.origin.path(path), Message: fmt.Sprintf(d.origin.words(format), args...)}
}

// invalidField is a problem that engine/plan found.
func invalidField(d *document, path string, e *field.Error) Problem {
	told := *e
	told.Detail = d.origin.words(e.Detail)
	return problemAt(d, path, "%s", fieldMessage(&told))
}

// add takes an object into the set, once it is checked.
func (s *Set) add(d *document) {
	var problems field.ErrorList
	spec := field.NewPath("spec")
	switch o := d.object.(type) {
	case *v1alpha1.Rubric:
		if s.enter(d, &o.ObjectMeta) {
			s.Rubrics[o.Name] = o.Spec
		}
		problems = plan.ValidateRubric(&o.Spec, spec)
	case *v1alpha1.Eval:
		if s.enter(d, &o.ObjectMeta) {
			s.Evals = append(s.Evals, plan.NamedEval{Name: o.Name, Spec: o.Spec})
			s.labels[o.Name] = o.Labels
		}
		problems = plan.ValidateEval(&o.Spec, spec)
	case *v1alpha1.EvalRun:
		if s.enter(d, &o.ObjectMeta) {
			s.Runs = append(s.Runs, *o)
		}
		problems = validateRun(o, spec)
	case *corev1.ConfigMap:
		if s.enter(d, &o.ObjectMeta) {
			s.ConfigMaps[o.Name] = o.Data
		}
	}
	for _, e := range problems {
		s.problems = append(s.problems, invalidField(d, e.Field, e))
	}
}

// enter checks the name and the namespace of an object and remembers where it stands; false for one that has no place.
func (s *Set) enter(d *document, meta *metav1.ObjectMeta) bool {
	name := meta.Name
	if name == "" && d.kind == KindEvalRun && meta.GenerateName != "" {
		name = meta.GenerateName // unique enough to find it again
	}
	if name == "" {
		s.say(d, "metadata.name", "missing; give the %s a name", d.kind)
		return false
	}
	if problems := validation.IsDNS1123Subdomain(strings.TrimSuffix(name, "-")); len(problems) > 0 {
		s.say(d, "metadata.name", "%q is no name for an object: write lower-case letters, digits and dashes, such as my-eval", convert.Clip(name))
		return false
	}
	if d.kind == KindEvalRun && (len(name) > maxRunName || strings.Contains(name, ".")) {
		s.say(d, "metadata.name", "the name of an EvalRun has at most %d characters and no dots: its children and pods are named after it", maxRunName)
		return false
	}
	if ns := meta.Namespace; ns != "" && s.Namespace != "" && ns != s.Namespace {
		s.say(d, "metadata.namespace", "the files hold objects of the namespaces %q and %q; load one namespace at a time", s.Namespace, convert.Clip(ns))
		return false
	}
	if meta.Namespace != "" {
		s.Namespace = meta.Namespace
	}
	key := objectKey{d.kind, name}
	if before, twice := s.documents[key]; twice {
		s.say(d, "metadata.name", "%s %q is there twice: it stands in %s too; rename one of them", d.kind, name, before.position("metadata.name"))
		return false
	}
	s.documents[key] = d
	s.ordered = append(s.ordered, d)
	return true
}

// evalNames are the names of the evals, sorted.
func (s *Set) evalNames() []string { return slices.Sorted(maps.Keys(s.labels)) }
