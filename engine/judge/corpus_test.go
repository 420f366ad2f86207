package judge

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Hostile is a text that tries to be something else to a judge; testdata/injection/README.md says more.
type Hostile struct {
	Class, ID, Text string
	// Escapes are the naive prompts that it gets out of.
	Escapes []string
}

// hostileFile is a file of testdata/injection.
type hostileFile struct {
	Class   string
	Escapes []string
	Texts   []struct {
		ID, Text string
		Escapes  []string
		Parts    []hostilePart
	}
}

// hostilePart is a part of a text: as it is, many times over, or in tag characters.
type hostilePart struct {
	Plain  string
	Repeat string
	Times  int
	Tags   string
}

// UnmarshalYAML reads a string or an object.
func (p *hostilePart) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&p.Plain)
	}
	type object hostilePart
	return n.Decode((*object)(p))
}

func (p hostilePart) String() string {
	tags := strings.Map(func(r rune) rune { return r + 0xe0000 }, p.Tags)
	return p.Plain + strings.Repeat(p.Repeat, p.Times) + tags
}

// HostileTexts reads the corpus.
func HostileTexts(t testing.TB) []Hostile {
	t.Helper()
	files, err := filepath.Glob("testdata/injection/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []Hostile
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var file hostileFile
		d := yaml.NewDecoder(f)
		d.KnownFields(true)
		if err := d.Decode(&file); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, text := range file.Texts {
			h := Hostile{Class: file.Class, ID: text.ID, Text: text.Text, Escapes: text.Escapes}
			if h.Escapes == nil {
				h.Escapes = file.Escapes
			}
			for _, p := range text.Parts {
				h.Text += p.String()
			}
			all = append(all, h)
		}
	}
	return all
}

func TestS45TheCorpusIsWhole(t *testing.T) {
	classes, ids := map[string]int{}, map[string]bool{}
	all := HostileTexts(t)
	for _, h := range all {
		classes[h.Class]++
		if ids[h.ID] {
			t.Errorf("%s stands there twice", h.ID)
		}
		ids[h.ID] = true
		seen := strings.Map(func(r rune) rune {
			if r >= 0xe0020 && r <= 0xe007e {
				return r - 0xe0000
			}
			return r
		}, h.Text)
		if !strings.Contains(seen, "PWNED-"+h.ID) {
			t.Errorf("%s does not hold its payload", h.ID)
		}
		if !slices.Contains(h.Escapes, "pasted") {
			t.Errorf("%s does not even get out of a prompt that it is pasted into", h.ID)
		}
	}
	if len(all) < 60 {
		t.Errorf("%d texts, want 60", len(all))
	}
	for _, class := range []string{
		"instruction-override", "forged-delimiter", "closing-tags", "forged-verdict", "fake-roles", "chat-tokens", "hidden-text", "giant", "other-languages",
	} {
		if classes[class] < 5 {
			t.Errorf("class %s has %d texts, want 5", class, classes[class])
		}
	}
}
