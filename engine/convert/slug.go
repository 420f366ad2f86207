package convert

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// maxSlug is how long a slug is at most: as long as a label's value may be.
const maxSlug = 63

// Slug makes the name of an object, or the value of a label, of a name that people read: "Grounded & brief" becomes
// grounded-brief, remote_api becomes remote-api. A name of which nothing is left becomes otherwise and a hash of the name.
func Slug(name, otherwise string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(clipTo(name, 4*maxSlug)) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case r >= 'A' && r <= 'Z':
			b.WriteRune(r - 'A' + 'a')
		case r >= 0x300 && r < 0x370 || r == '\'': // accents, and the apostrophe of don't
		default:
			b.WriteByte('-')
		}
		if b.Len() > 4*maxSlug {
			break
		}
	}
	words := strings.FieldsFunc(b.String(), func(r rune) bool { return r == '-' })
	slug := strings.Join(words, "-")
	if slug = strings.Trim(slug[:min(len(slug), maxSlug)], "-"); slug != "" {
		return slug
	}
	sum := sha256.Sum256([]byte(name))
	return otherwise + "-" + hex.EncodeToString(sum[:4])
}

// Slugs makes slugs that differ from each other: the second of the same name ends in -2.
type Slugs map[string]int

// Unique is the slug of a name that no name had before.
func (s Slugs) Unique(name, otherwise string) string {
	slug := Slug(name, otherwise)
	unique := slug
	for s[unique] != 0 {
		s[slug]++ // the number that was tried last
		suffix := "-" + strconv.Itoa(s[slug])
		unique = strings.TrimRight(slug[:min(len(slug), maxSlug-len(suffix))], "-") + suffix
	}
	s[unique] = 1
	return unique
}
