// Package nearest finds the name that somebody may have meant.
package nearest

import (
	"slices"
	"strings"
)

// maxLength bounds the names that are compared: the work is the product of two lengths, and a longer name is no typo.
const maxLength = 256

// maxAmong bounds how many names are compared.
const maxAmong = 1000

// Name is the one of among that is most like name: the same but for case, dashes and underscores, or a few letters
// away; empty when none is like it. Of equals it is the first in alphabetical order.
func Name(name string, among []string) string {
	if len(among) > maxAmong {
		return ""
	}
	sorted := slices.Sorted(slices.Values(among))
	folded := fold(name)
	for _, candidate := range sorted {
		if candidate != name && fold(candidate) == folded {
			return candidate
		}
	}
	if len(name) > maxLength {
		return ""
	}
	best, distance := "", max(len(name)/3, 2)+1
	for _, candidate := range sorted {
		if len(candidate) > maxLength || candidate == name {
			continue
		}
		if d := editDistance(folded, fold(candidate)); d < distance {
			best, distance = candidate, d
		}
	}
	if distance >= len(name) {
		return "" // nothing of the name would be left
	}
	return best
}

// Hint is `; did you mean "x"?`, or nothing when no name is near.
func Hint(name string, among []string) string {
	if n := Name(name, among); n != "" {
		return `; did you mean "` + n + `"?`
	}
	return ""
}

var dashes = strings.NewReplacer("_", "", "-", "")

// fold makes snake_case, kebab-case and camelCase of the same words alike.
func fold(s string) string {
	return strings.ToLower(dashes.Replace(s))
}

// editDistance is Levenshtein's: the least number of inserted, deleted and replaced bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
