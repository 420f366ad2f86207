package judge

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxHiddenRun is how many hidden characters in a row are written out one by one; of more only the number is, so
// that a candidate cannot make the prompt many times longer than itself.
const maxHiddenRun = 4

// visible writes out the characters of a text that cannot be seen, and makes it valid UTF-8.
func visible(s string) string {
	if firstSpecial(s) == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/8)
	last := rune(0)
	for i := 0; i < len(s); {
		if plain := firstSpecial(s[i:]); plain > 0 {
			b.WriteString(s[i : i+plain])
			i += plain
			last = rune(s[i-1])
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if !isHidden(r) || staysHidden(r, last, s[i+size:]) {
			b.WriteRune(r) // U+FFFD for a byte that is no UTF-8
			last = r
			i += size
			continue
		}
		n, end := 0, i
		for end < len(s) {
			next, size := utf8.DecodeRuneInString(s[end:])
			if !isHidden(next) || n > 0 && staysHidden(next, ']', s[end+size:]) {
				break
			}
			n++
			end += size
		}
		writeHidden(&b, s[i:end], n)
		last = ']'
		i = end
	}
	return b.String()
}

// firstSpecial returns where the first byte stands that may need a look: beyond ASCII, or a control.
func firstSpecial(s string) int {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= utf8.RuneSelf || c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return i
		}
	}
	return len(s)
}

// writeHidden writes a run of n hidden characters so that it can be seen.
func writeHidden(b *strings.Builder, run string, n int) {
	if n > maxHiddenRun {
		first, _ := utf8.DecodeRuneInString(run)
		fmt.Fprintf(b, "[%d hidden characters from %U]", n, first)
		return
	}
	for _, r := range run {
		fmt.Fprintf(b, "[%U]", r)
	}
}

// isHidden reports whether a character cannot be seen, or changes how others are seen.
func isHidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, 0x7f <= r && r <= 0x9f: // C0 and C1 controls
		return true
	case r < 0xad:
		return false
	case r == 0x034f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0: // fillers
		return true
	case r == 0x2028, r == 0x2029: // separators of lines and paragraphs
		return true
	case isSelector(r), 0x180b <= r && r <= 0x180f:
		return true
	case 0x0600 <= r && r <= 0x0605, r == 0x06dd, r == 0x070f, r == 0x0890, r == 0x0891, r == 0x08e2, r == 0x110bd, r == 0x110cd:
		return false // of category Cf, and seen
	case 0xe0000 <= r && r <= 0xe0fff: // tags, and what is reserved beside them
		return true
	default:
		return unicode.Is(unicode.Cf, r)
	}
}

// isSelector reports whether r is a variation selector.
func isSelector(r rune) bool { return 0xfe00 <= r && r <= 0xfe0f || 0xe0100 <= r && r <= 0xe01ef }

const (
	zwnj = 0x200c
	zwj  = 0x200d
)

// staysHidden reports whether a hidden character is at home where it stands, after last and before rest: the carriage
// return of a line break, a joiner inside an emoji or a word of a script that joins, one selector after a character that has variants.
func staysHidden(r, last rune, rest string) bool {
	switch {
	case r == '\r':
		return strings.HasPrefix(rest, "\n")
	case r == zwj || r == zwnj:
		next, _ := utf8.DecodeRuneInString(rest)
		return joins(last) && joins(next) && !isHidden(next)
	case isSelector(r):
		return !isSelector(last) && (last == '#' || last == '*' || '0' <= last && last <= '9' || joins(last))
	default:
		return false
	}
}

// joins reports whether a character can be part of an emoji or of a script whose letters join: not of the Latin, Greek and
// Cyrillic scripts, in which a hidden character only hides a word.
func joins(r rune) bool {
	switch {
	case r == utf8.RuneError:
		return false
	case isSelector(r):
		return true
	case r < 0x0590:
		return r == '©' || r == '®'
	case r == zwj || r == zwnj:
		return false
	case unicode.Is(unicode.Latin, r), unicode.Is(unicode.Cyrillic, r):
		return false
	default:
		return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsSymbol(r)
	}
}
