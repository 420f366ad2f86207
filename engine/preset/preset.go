// Package preset holds the criteria that come with the operator (S-36). They are versioned: the criteria of a version
// never change once it was released, so that an upgrade moves no score in silence.
package preset

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/nearest"
)

// Preset is one version of a preset.
type Preset struct {
	// Name is the name without the version, such as groundedness.
	Name string `json:"-"`
	// Version counts from 1.
	Version int `json:"-"`
	// Description says in a sentence what a candidate must be to pass.
	Description string `json:"description"`
	// WithoutMaterial is added to the description of each criterion when there is nothing that the candidate may rest
	// on (S-35); empty where that makes no difference.
	WithoutMaterial string `json:"withoutMaterial,omitempty"`
	// Criteria are what is judged.
	Criteria []v1alpha1.Criterion `json:"criteria"`
}

// Pinned is the name with the version: groundedness@1.
func (p Preset) Pinned() v1alpha1.PresetName {
	return v1alpha1.PresetName(p.Name + "@" + strconv.Itoa(p.Version))
}

// All returns every version of every preset: by name, the newest version of each first.
func All() []Preset { return slices.Clone(all()) }

// Names returns the names of the presets, without versions, in alphabetical order.
func Names() []string {
	var names []string
	for _, p := range all() {
		if !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}

// Find returns the preset of a name: of the bare name the newest version. The error says what to write instead.
func Find(name v1alpha1.PresetName) (Preset, error) {
	bare, version, pinned := strings.Cut(string(name), "@")
	var versions []string
	for _, p := range all() {
		if p.Name != bare {
			continue
		}
		if !pinned || strconv.Itoa(p.Version) == version {
			return p, nil
		}
		versions = append(versions, string(p.Pinned()))
	}
	if len(versions) > 0 {
		return Preset{}, fmt.Errorf("preset %s has no version %q; write %s", bare, version, strings.Join(versions, " or "))
	}
	hint := "; known are " + strings.Join(Names(), ", ")
	if near := nearest.Name(bare, Names()); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return Preset{}, fmt.Errorf("unknown preset %q%s", name, hint)
}

// Material says whether there is something that the candidate may rest on: documents, or the tool results of a live run.
type Material bool

// With it, and without.
const (
	WithMaterial    Material = true
	WithoutMaterial Material = false
)

// Expand returns a rubric with the criteria of its preset in the place of the preset, and its own after them. A rubric
// without a preset is returned as it is. The errors are that of Find, and that a criterion has the name of one of the preset's.
func Expand(r v1alpha1.RubricSpec, material Material) (v1alpha1.RubricSpec, error) {
	if r.Preset == "" {
		return r, nil
	}
	p, err := Find(r.Preset)
	if err != nil {
		return r, err
	}
	var criteria []v1alpha1.Criterion
	for i := range p.Criteria {
		c := *p.Criteria[i].DeepCopy()
		if material == WithoutMaterial && p.WithoutMaterial != "" {
			c.Description += "\n" + p.WithoutMaterial
		}
		criteria = append(criteria, c)
	}
	for _, own := range r.Criteria {
		if p.Has(own.Name) {
			return r, fmt.Errorf("the preset %s has a criterion %q already; rename this one", p.Pinned(), own.Name)
		}
		criteria = append(criteria, own)
	}
	if r.Description == "" {
		r.Description = fmt.Sprintf("%s: %s", p.Pinned(), p.Description)
	}
	r.Preset, r.Criteria = "", criteria
	return r, nil
}

// Has tells whether the preset has a criterion of this name.
func (p Preset) Has(criterion string) bool {
	return slices.ContainsFunc(p.Criteria, func(c v1alpha1.Criterion) bool { return c.Name == criterion })
}

//go:embed presets/*.yaml
var files embed.FS

// all reads the files, whose names are NAME@VERSION.yaml. They are part of the binary, and a test reads them: an error
// cannot happen at run time.
var all = sync.OnceValue(func() []Preset {
	presets, err := read(files)
	if err != nil {
		panic(err)
	}
	return presets
})

func read(from fs.FS) ([]Preset, error) {
	paths, err := fs.Glob(from, "presets/*.yaml")
	if err != nil {
		return nil, err
	}
	var presets []Preset
	for _, file := range paths {
		data, err := fs.ReadFile(from, file)
		if err != nil {
			return nil, err
		}
		var p Preset
		if err := yaml.UnmarshalStrict(data, &p); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		name, version, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".yaml"), "@")
		if p.Version, err = strconv.Atoi(version); err != nil || p.Version < 1 {
			return nil, fmt.Errorf("%s: the name is not NAME@VERSION.yaml", file)
		}
		p.Name = name
		presets = append(presets, p)
	}
	slices.SortFunc(presets, func(a, b Preset) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return b.Version - a.Version
	})
	return presets, nil
}
