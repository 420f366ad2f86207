package preset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// released are the digests of the criteria of every version that was released. A version that is here never changes;
// to better a preset, write the next version.
var released = map[v1alpha1.PresetName]string{
	"conciseness@1":      "80d17730cccbade6",
	"format-adherence@1": "e559afa05687e8bb",
	"groundedness@1":     "c53b8a9b397cd0d4",
	"helpfulness@1":      "8274bbf693e47a23",
	"safety@1":           "0621b8a2097df852",
}

func TestS36AReleasedVersionNeverChanges(t *testing.T) {
	for _, p := range All() {
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		if got := hex.EncodeToString(sum[:8]); got != released[p.Pinned()] {
			t.Errorf("%s has the digest %s, want %q: write a new version instead of changing one", p.Pinned(), got, released[p.Pinned()])
		}
	}
	if len(released) != len(All()) {
		t.Errorf("%d versions were released, %d are there", len(released), len(All()))
	}
}

func TestS36ThePresets(t *testing.T) {
	want := []string{"conciseness", "format-adherence", "groundedness", "helpfulness", "safety"}
	if diff := cmp.Diff(want, Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	for _, p := range All() {
		guards := 0
		for _, c := range p.Criteria {
			if c.Guard {
				guards++
			}
			if strings.Contains(c.Description, "\n") || strings.TrimSpace(c.Description) != c.Description {
				t.Errorf("%s: the description of %q is not one line", p.Pinned(), c.Name)
			}
		}
		if guards == 0 || guards == len(p.Criteria) || p.Description == "" {
			t.Errorf("%s: %d guards in %d criteria, description %q", p.Pinned(), guards, len(p.Criteria), p.Description)
		}
	}
}

func TestS36Find(t *testing.T) {
	for name, tc := range map[string]struct {
		name v1alpha1.PresetName
		want v1alpha1.PresetName
		says string
	}{
		"the bare name is the newest": {name: "safety", want: "safety@1"},
		"a version":                   {name: "safety@1", want: "safety@1"},
		"a version that is not there": {name: "safety@7", says: `preset safety has no version "7"; write safety@1`},
		"no version":                  {name: "safety@", says: "write safety@1"},
		"a slip":                      {name: "groundednes", says: `did you mean "groundedness"?`},
		"anything":                    {name: "beauty", says: "known are conciseness, format-adherence, groundedness, helpfulness, safety"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Find(tc.name)
			if tc.says == "" && (err != nil || p.Pinned() != tc.want) {
				t.Errorf("%s, %v", p.Pinned(), err)
			}
			if tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestS36Expand(t *testing.T) {
	own := v1alpha1.Criterion{Name: "brief", Description: "States the answer without filler."}
	high := 0.9
	r, err := Expand(v1alpha1.RubricSpec{Preset: "groundedness", Threshold: &high, Criteria: []v1alpha1.Criterion{own}}, WithMaterial)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Find("groundedness@1")
	if err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.RubricSpec{
		Description: "groundedness@1: " + p.Description, Threshold: &high, Criteria: append(append([]v1alpha1.Criterion{}, p.Criteria...), own),
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Criteria[0].Description = "changed"
	if again, _ := Find("groundedness"); again.Criteria[0].Description == "changed" {
		t.Error("the preset shares its criteria with what it was expanded to")
	}
	_, err = Expand(v1alpha1.RubricSpec{Preset: "groundedness", Criteria: []v1alpha1.Criterion{{Name: "supported"}}}, WithMaterial)
	if err == nil || !strings.Contains(err.Error(), `groundedness@1 has a criterion "supported" already`) {
		t.Errorf("a name that collides: %v", err)
	}
}

func TestS35GroundednessSaysThatNoMaterialWasGiven(t *testing.T) {
	const sentence = "No supporting material was given"
	for _, name := range Names() {
		for _, material := range []Material{WithMaterial, WithoutMaterial} {
			r, err := Expand(v1alpha1.RubricSpec{Preset: v1alpha1.PresetName(name)}, material)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range r.Criteria {
				want := name == "groundedness" && material == WithoutMaterial
				if got := strings.Contains(c.Description, sentence); got != want {
					t.Errorf("%s with material %v: criterion %q says it: %v", name, material, c.Name, got)
				}
			}
		}
	}
}

// Find takes the first of a name, so the order is what makes the bare name the newest.
func TestS36TheNewestVersionComesFirst(t *testing.T) {
	file := &fstest.MapFile{Data: []byte("description: x")}
	presets, err := read(fstest.MapFS{"presets/b@2.yaml": file, "presets/b@10.yaml": file, "presets/b@1.yaml": file, "presets/a@1.yaml": file})
	if err != nil {
		t.Fatal(err)
	}
	var got []v1alpha1.PresetName
	for _, p := range presets {
		got = append(got, p.Pinned())
	}
	if diff := cmp.Diff([]v1alpha1.PresetName{"a@1", "b@10", "b@2", "b@1"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestS36WhatARubricSaysItselfStays(t *testing.T) {
	for name, rubric := range map[string]v1alpha1.RubricSpec{
		"S-36 a rubric without a preset is left alone": {Text: "t", Description: "d"},
		"S-36 strict, aggregation and scale":           {Preset: "safety", Strict: true, Aggregation: v1alpha1.AggregationMin, Scale: &v1alpha1.Scale{Letter: &v1alpha1.LetterScale{}}, Description: "ours"},
	} {
		t.Run(name, func(t *testing.T) {
			before := *rubric.DeepCopy()
			got, err := Expand(rubric, WithMaterial)
			if err != nil {
				t.Fatal(err)
			}
			got.Criteria, got.Preset = before.Criteria, before.Preset
			if diff := cmp.Diff(before, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, rubric); diff != "" {
				t.Errorf("the rubric was changed:\n%s", diff)
			}
		})
	}
}

func TestReadRefusesWhatIsNoPreset(t *testing.T) {
	for name, tc := range map[string]struct{ file, text string }{
		"a key that is not known": {"presets/a@1.yaml", "critera: []"},
		"no version":              {"presets/a.yaml", "description: x"},
		"a version that is none":  {"presets/a@x.yaml", "description: x"},
		"a version before 1":      {"presets/a@0.yaml", "description: x"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(fstest.MapFS{tc.file: {Data: []byte(tc.text)}}); err == nil {
				t.Error("it was read")
			}
		})
	}
}
