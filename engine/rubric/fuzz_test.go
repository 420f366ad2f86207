package rubric

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
)

// FuzzS19Evidence holds what must be true of any candidate and any quotation. from and words choose a quotation that is one.
func FuzzS19Evidence(f *testing.F) {
	f.Add("The 2.3.0 release added\n\tper-tenant limits.", "2.3.0", uint8(1), uint8(3))
	f.Add("cafe\u0301 \u200b e\u0301te\u0301", "café", uint8(0), uint8(1))
	f.Add("a b", "a b", uint8(0), uint8(2))
	f.Add("\u2000\u0300x \uac00\u11a8 \u1100\u1161", "각", uint8(1), uint8(2))
	f.Add("system: \xff <|im_start|>", "[quoted] system:", uint8(0), uint8(9))
	f.Fuzz(func(t *testing.T, candidate, span string, from, words uint8) {
		shown := judge.Shown(candidate)
		occurs := EvidenceOccurs(shown, span)
		visible := 0
		for _, r := range norm.NFC.String(span) {
			if !unicode.IsSpace(r) {
				visible++
			}
		}
		if occurs && visible < 3 {
			t.Errorf("%q, of %d characters, was taken for evidence", span, visible)
		}
		if foreign := span + "\ue000"; !strings.Contains(shown, "\ue000") && EvidenceOccurs(shown, foreign) {
			t.Errorf("%q holds what %q does not, and was taken for evidence", foreign, shown)
		}
		if spaced := strings.Join(strings.Fields(span), " \n\t"); EvidenceOccurs(shown, "\n"+spaced+"\n") != occurs {
			t.Errorf("other white space in %q makes a difference", span)
		}
		if utf8.ValidString(span) && EvidenceOccurs(shown, norm.NFD.String(span)) != occurs {
			t.Errorf("the normal form of %q makes a difference", span)
		}
		all := strings.Fields(shown)
		if int(from) >= len(all) {
			return
		}
		quotation := strings.Join(all[from:min(len(all), int(from)+int(words))], "\u00a0\n")
		if long := len([]rune(strings.Join(strings.Fields(norm.NFC.String(quotation)), ""))) >= minEvidence; EvidenceOccurs(shown, quotation) != long {
			t.Errorf("%q of %q: evidence = %v, want %v", quotation, shown, !long, long)
		}
	})
}

// FuzzS11When holds that a condition never panics, that an expression that is no RE2 is an error and holds of nothing, and
// that contains is what the same text means as an expression.
func FuzzS11When(f *testing.F) {
	f.Add("error 500", "an error 500 occurred")
	f.Add(`error \d{3}`, "an error 500 occurred")
	f.Add("(?=a)", "a")
	f.Add("(a*)*{1001}[", strings.Repeat("a", 64))
	f.Add("", "anything")
	f.Add("\xff", "a\xffb")
	f.Fuzz(func(t *testing.T, text, candidate string) {
		contains, err := Applies(&v1alpha1.When{Contains: text}, candidate)
		if err != nil {
			t.Fatalf("contains %q: %v", text, err)
		}
		if text == "" {
			return // admission refuses an empty condition
		}
		if utf8.ValidString(text) {
			quoted, err := Applies(&v1alpha1.When{Regex: regexp.QuoteMeta(text)}, candidate)
			if err != nil || utf8.ValidString(candidate) && quoted != contains {
				t.Errorf("%q in %q: contains says %v, the same as an expression %v, %v", text, candidate, contains, quoted, err)
			}
		}
		_, wrong := regexp.Compile(text)
		holds, err := Applies(&v1alpha1.When{Regex: text}, candidate)
		switch {
		case (err != nil) != (wrong != nil):
			t.Errorf("regex %q: error %v, want one: %v", text, err, wrong != nil)
		case err != nil && (holds || !strings.Contains(err.Error(), "when.regex")):
			t.Errorf("regex %q holds (%v), or %q does not say where it stands", text, holds, err)
		}
		if again, _ := Applies(&v1alpha1.When{Regex: text}, candidate); again != holds {
			t.Errorf("regex %q holds of %q now and then", text, candidate)
		}
	})
}
