package convert

import (
	"testing"

	"go.yaml.in/yaml/v3"
)

// The values are those of the core schema of YAML 1.2.2, section 10.3.2.
func TestCore(t *testing.T) {
	for name, test := range map[string]struct{ text, tag, value string }{
		"true":                     {"true", "!!bool", "true"},
		"True":                     {"True", "!!bool", "True"},
		"yes is text":              {"yes", "!!str", "yes"},
		"Off is text":              {"Off", "!!str", "Off"},
		"y is text":                {"y", "!!str", "y"},
		"null":                     {"null", "!!null", "null"},
		"~ is null":                {"~", "!!null", "~"},
		"a whole number":           {"-12", "!!int", "-12"},
		"010 is ten":               {"010", "!!int", "10"},
		"00 is 0":                  {"00", "!!int", "0"},
		"octal":                    {"0o17", "!!int", "0o17"},
		"hexadecimal":              {"0x1F", "!!int", "0x1F"},
		"0b1 is text":              {"0b1", "!!str", "0b1"},
		"1_000 is text":            {"1_000", "!!str", "1_000"},
		"a fraction":               {".5", "!!float", ".5"},
		"an exponent":              {"1e3", "!!float", "1e3"},
		"01.5 is 1.5":              {"01.5", "!!float", "1.5"},
		"0.5 stays":                {"0.5", "!!float", "0.5"},
		"infinity":                 {"-.inf", "!!float", "-.inf"},
		"a date is text":           {"2026-01-02", "!!str", "2026-01-02"},
		"<< is text":               {"<<", "!!str", "<<"},
		"a quoted number is text":  {`"1"`, "!!str", "1"},
		"a quoted boolean is text": {"'true'", "!!str", "true"},
		"a tag holds":              {"!!str 1", "!!str", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			var doc yaml.Node
			if err := yaml.Unmarshal([]byte(test.text), &doc); err != nil {
				t.Fatal(err)
			}
			n := Core(doc.Content[0])
			if n.ShortTag() != test.tag || n.Value != test.value {
				t.Errorf("Core(%s) = %s %q, want %s %q", test.text, n.ShortTag(), n.Value, test.tag, test.value)
			}
			if n.Line != 1 {
				t.Errorf("Core(%s) is on line %d, want 1", test.text, n.Line)
			}
		})
	}
}
