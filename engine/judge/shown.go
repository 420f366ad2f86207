package judge

import "strings"

// Shown returns the candidate exactly as a judge is shown it (S-45); evidence is verified against this text (S-19).
//
// It is the candidate with the least change that keeps it from passing for something else:
//   - characters that cannot be seen (controls, bidirectional marks, zero-width and tag characters) are written out,
//     as [U+200B]; those that emoji, Arabic and Indic scripts need stay;
//   - tags like those of the prompt's blocks, tags of roles such as <system>, and the tokens of chat templates such as
//     <|im_start|> and [INST] lose the bracket, a full-width one too;
//   - lines that begin like a chat message ("System:") get [quoted] before them;
//   - record_verdict, and the score key of JSON that looks like a verdict, lose the character that makes them one.
//
// It is pure, and deterministic; Shown(Shown(s)) is Shown(s); it takes linear time. Bytes that are no UTF-8 become U+FFFD.
func Shown(candidate string) string {
	s := visible(candidate)
	verdict := looksLikeVerdict(s)
	w := writer{src: s}
	for i := 0; i < len(s); {
		if (i == 0 || s[i-1] == '\n') && isRoleLine(s[i:]) {
			w.replace(i, 0, quotedMark)
		}
		i += w.neutralise(i, verdict)
		for i < len(s) && !notable[s[i]] && s[i-1] != '\n' {
			i++
		}
	}
	return w.String()
}

// notable are the bytes that neutralise looks at; 0xef is the first one of full-width forms.
var notable = [256]bool{'<': true, '[': true, 'r': true, 'R': true, '"': true, '\'': true, 0xef: true}

// The substitutes. None of them can be part of anything that is looked for.
const (
	quotedMark = "[quoted] "
	angle      = "‹"
	square     = "⁅"
	underscore = "·"
)

// writer copies src with replacements; without any it makes no copy.
type writer struct {
	src  string
	out  strings.Builder
	done int // how much of src is in out
}

// replace puts text in the place of n bytes at i.
func (w *writer) replace(i, n int, text string) {
	if w.out.Len() == 0 {
		w.out.Grow(len(w.src) + len(w.src)/8 + len(text))
	}
	w.out.WriteString(w.src[w.done:i])
	w.out.WriteString(text)
	w.done = i + n
}

// String returns the result.
func (w *writer) String() string {
	if w.out.Len() == 0 && w.done == 0 {
		return w.src
	}
	w.out.WriteString(w.src[w.done:])
	return w.out.String()
}

// neutralise looks at what begins at i, and returns how far to go on.
func (w *writer) neutralise(i int, verdict bool) int {
	s := w.src
	c, size := fold(s[i:])
	switch c {
	case '<':
		if isTag(s[i+size:]) {
			w.replace(i, size, angle)
		}
	case '[':
		if isBracketToken(s[i+size:]) {
			w.replace(i, size, square)
		}
	case 'r':
		if n := hasFold(s[i:], ToolName); n > 0 {
			at := i + hasFold(s[i:], "record")
			_, size := fold(s[at:])
			w.replace(at, size, underscore)
			return n
		}
	case '"', '\'':
		if !verdict || size > 1 { // JSON knows no other quotation marks
			break
		}
		if name, open, end := keyAt(s[i:]); name == "score" {
			left, right := "“", "”"
			if c == '\'' {
				left, right = "‘", "’"
			}
			w.replace(i, 1, left)
			w.replace(i+open, end-open, right)
			return end
		}
	}
	return size
}

// looksLikeVerdict reports whether text has both keys of a verdict, as JSON or as Python writes them: quoted, with
// a colon behind, perhaps escaped.
func looksLikeVerdict(s string) bool {
	score, reason := false, false
	for i := 0; i < len(s); i++ {
		if s[i] != '"' && s[i] != '\'' {
			continue
		}
		switch name, _, _ := keyAt(s[i:]); name {
		case "score":
			score = true
		case "reason":
			reason = true
		default:
			continue
		}
		if score && reason {
			return true
		}
	}
	return false
}

// maxKey bounds a quoted key with all its characters written as \u escapes.
const maxKey = len("reason")*len(`\u0000`) + 2

// keyAt reads a quoted key at the start of s: its name, score or reason, where the closing quote with the backslashes
// before it begins, and where it ends. The name is empty for any other text, and when no colon is behind it.
func keyAt(s string) (name string, open, end int) {
	quote := s[0]
	var letters [len("reason")]byte
	n := 0
	i := 1
	for i < len(s) && i < maxKey {
		c := s[i]
		switch {
		case c == '\\' && i+5 < len(s) && (s[i+1] == 'u' || s[i+1] == 'U') && s[i+2] == '0' && s[i+3] == '0':
			c = unhex(s[i+4])<<4 | unhex(s[i+5])
			i += 6
		case c == '\\' || c == quote:
			open = i
			for i < len(s) && s[i] == '\\' && i-open < 8 {
				i++
			}
			if i >= len(s) || s[i] != quote || !colonFollows(s[i+1:]) {
				return "", 0, 0
			}
			switch string(letters[:n]) {
			case "score":
				return "score", open, i + 1
			case "reason":
				return "reason", open, i + 1
			default:
				return "", 0, 0
			}
		default:
			i++
		}
		c |= 0x20
		if c < 'a' || c > 'z' || n == len(letters) {
			return "", 0, 0
		}
		letters[n] = c
		n++
	}
	return "", 0, 0
}

// colonFollows reports whether a colon comes next, spaces and a few escaped line breaks aside.
func colonFollows(s string) bool {
	for i := 0; i < len(s) && i < 64; i++ {
		switch s[i] {
		case ':':
			return true
		case ' ', '\t', '\n', '\r':
		default:
			return false
		}
	}
	return false
}

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	default:
		return 0
	}
}

// hasFold returns how much of s is a prefix of lower-case ASCII, folded; 0 when s does not begin with it.
func hasFold(s, prefix string) int {
	n := 0
	for i := range len(prefix) {
		if n == len(s) {
			return 0
		}
		r, size := fold(s[n:])
		if r != rune(prefix[i]) {
			return 0
		}
		n += size
	}
	return n
}
