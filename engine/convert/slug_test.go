package convert

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestSlug(t *testing.T) {
	for name, test := range map[string]struct{ in, want string }{
		"words":                        {"Grounded & brief!", "grounded-brief"},
		"snake case":                   {"remote_api", "remote-api"},
		"an apostrophe":                {"doesn't lie", "doesnt-lie"},
		"accents":                      {"Café à la carte", "cafe-a-la-carte"},
		"no letters":                   {"!?", "eval-8faf838e"},
		"other letters":                {"天気", "eval-bc79d84d"},
		"a long name":                  {strings.Repeat("word ", 100), strings.TrimSuffix(strings.Repeat("word-", 12)+"wor", "-")},
		"a cut that ends in a dash":    {strings.Repeat("a", 62) + " b", strings.Repeat("a", 62)},
		"the name of standard input":   {"<stdin>", "stdin"},
		"a slug stays what it is":      {"a-1", "a-1"},
		"a name that begins in digits": {"42 things", "42-things"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Slug(test.in, "eval"); got != test.want {
				t.Errorf("Slug(%q) = %q, want %q", test.in, got, test.want)
			}
		})
	}
}

func TestSlugsDiffer(t *testing.T) {
	slugs := make(Slugs)
	long := strings.Repeat("x", 80)
	for _, test := range []struct{ in, want string }{
		{"a b", "a-b"}, {"a_b", "a-b-2"}, {"a b 2", "a-b-2-2"}, {"A B", "a-b-3"},
		{long, long[:63]}, {long + "y", long[:61] + "-2"},
	} {
		if got := slugs.Unique(test.in, "eval"); got != test.want {
			t.Errorf("Unique(%q) = %q, want %q", test.in, got, test.want)
		}
	}
}

func FuzzSlug(f *testing.F) {
	f.Add("Grounded & brief")
	f.Add("\xff--")
	f.Add(strings.Repeat("é", 300))
	f.Fuzz(func(t *testing.T, name string) {
		got := Slug(name, "eval")
		if problems := append(validation.IsDNS1123Label(got), validation.IsValidLabelValue(got)...); len(problems) > 0 {
			t.Errorf("Slug(%q) = %q: %v", name, got, problems)
		}
	})
}

func TestSnake(t *testing.T) {
	for in, want := range map[string]string{"requireEvidence": "require_evidence", "name": "name", "tieBreak": "tie_break"} {
		if got := Snake(in); got != want {
			t.Errorf("Snake(%q) = %q, want %q", in, got, want)
		}
	}
}
