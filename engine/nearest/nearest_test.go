package nearest

import "testing"

func TestName(t *testing.T) {
	fields := []string{"criteria", "tree", "text", "threshold", "requireEvidence", "ifYes"}
	for name, test := range map[string]struct{ name, want string }{
		"a letter is missing":           {"critera", "criteria"},
		"another case":                  {"Threshold", "threshold"},
		"snake case is camel case":      {"require_evidence", "requireEvidence"},
		"nothing is near":               {"colour", ""},
		"a short name is not any other": {"x", ""},
		"the name itself is no hint":    {"tree", ""},
		"a very long name is no typo":   {string(make([]byte, 10000)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Name(test.name, fields); got != test.want {
				t.Errorf("Name(%.20q) = %q, want %q", test.name, got, test.want)
			}
		})
	}
}
