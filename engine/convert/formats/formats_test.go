package formats

import (
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestRecognise(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"evals":                       {"evals: []", "mcptest"},
		"rubrics":                     {"name: x\nrubrics: {}", "mcptest"},
		"servers only":                {"servers: {}", "mcptest"},
		"tests only":                  {"version: 1\ntests: []", "mcptest"},
		"what other tools have too":   {"name: x\nversion: 1\nconfig: {}", ""},
		"JSON":                        {`{"evals": []}`, "mcptest"},
		"a manifest":                  {"kind: Eval\nevals: []", ""},
		"a manifest without its kind": {"apiVersion: v1\nevals: []", ""},
		"something else":              {"spec: {}", ""},
		"a list":                      {"- evals", ""},
		"a text":                      {"evals", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var doc yaml.Node
			if err := yaml.Unmarshal([]byte(test.text), &doc); err != nil {
				t.Fatal(err)
			}
			got := ""
			if f := Recognise(doc.Content[0]); f != nil {
				got = f.Name
			}
			if got != test.want {
				t.Errorf("Recognise = %q, want %q", got, test.want)
			}
		})
	}
}

func TestFind(t *testing.T) {
	for _, name := range Names() {
		if f, err := Find(name); err != nil || f.Name != name {
			t.Errorf("Find(%q) = %v, %v", name, f, err)
		}
	}
	if _, err := Find("mcptst"); err == nil || err.Error() != `unknown format "mcptst"; did you mean "mcptest"?; the formats are mcptest` {
		t.Errorf("Find of an unknown name: %v", err)
	}
}
