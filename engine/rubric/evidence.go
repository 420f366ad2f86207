package rubric

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// minEvidence is the least number of characters, white space not counted, that a quote needs to be evidence (S-19).
const minEvidence = 3

// EvidenceOccurs tells whether a span that a judge quoted stands in the candidate as the judge was shown it: after
// Unicode NFC and with every run of white space as one space, upper and lower case told apart (S-19).
func EvidenceOccurs(shown, span string) bool {
	span = foldSpace(norm.NFC.String(span))
	visible := 0
	for _, r := range span {
		if !unicode.IsSpace(r) {
			visible++
		}
	}
	return visible >= minEvidence && strings.Contains(foldSpace(norm.NFC.String(shown)), span)
}

// foldSpace trims s and makes one space of each run of white space.
func foldSpace(s string) string { return strings.Join(strings.Fields(s), " ") }
