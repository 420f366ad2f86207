package report

import (
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
)

// unsafe tells whether a terminal may obey a character instead of showing it: control characters, and those that turn
// the direction of writing.
func unsafe(r rune) bool {
	switch {
	case r < 0x20, 0x7f <= r && r <= 0x9f,
		r == 0x061c, r == 0x200e, r == 0x200f,
		0x2028 <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069,
		0xe0000 <= r && r <= 0xe007f, r == 0xfeff:
		return true
	}
	return false
}

// clean makes a text from outside safe to show on one line: white space is folded, control characters are shown as
// pictures, and what is not UTF-8 as U+FFFD.
func clean(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	return strings.Map(func(r rune) rune {
		switch {
		case !unsafe(r):
			return r
		case r < 0x20:
			return 0x2400 + r // ␛ and its like
		case r == 0x7f:
			return '␡'
		}
		return utf8.RuneError
	}, s)
}

// width is how many columns a text takes.
func width(s string) int { return text.StringWidthWithoutEscSequences(s) }

// cut shortens a text to n columns, with an ellipsis.
func cut(s string, n int) string {
	if width(s) <= n {
		return s
	}
	if n <= 1 {
		return "…"
	}
	head, _ := split(s, n-1)
	return strings.TrimRight(head, " ") + "…"
}

// split cuts a text so that its head takes n columns at most.
func split(s string, n int) (head, tail string) {
	columns := 0
	for i, r := range s {
		columns += text.RuneWidth(r)
		if columns > n {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// pad fills a text with spaces up to n columns.
func pad(s string, n int) string { return s + spaces(n-width(s)) }

// padLeft puts spaces before a text up to n columns.
func padLeft(s string, n int) string { return spaces(n-width(s)) + s }

func spaces(n int) string { return strings.Repeat(" ", max(n, 0)) }

// wrap breaks a text between words into lines of n columns; a word that is longer is broken.
func wrap(s string, n int) []string {
	n = max(n, 8)
	var lines []string
	line := ""
	flush := func() {
		lines = append(lines, line)
		line = ""
	}
	for _, word := range strings.Fields(s) {
		if line != "" && width(line)+1+width(word) > n {
			flush()
		}
		if line != "" {
			line += " " + word
			continue
		}
		for width(word) > n {
			head, tail := split(word, n)
			if head == "" { // a character wider than a line
				break
			}
			lines, word = append(lines, head), tail
		}
		line = word
	}
	if line != "" {
		flush()
	}
	return lines
}
