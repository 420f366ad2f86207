package fakejudge

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"unicode"
)

// nonceRun is the length from which a run of hex digits is taken for a nonce.
const nonceRun = 8

// turn is one message: who said it, and its text blocks.
type turn struct {
	role   string
	blocks []string
}

// prompt is a request's text, taken apart as a judge's prompt is built (S-46):
// what stays the same first, the criterion last.
type prompt struct {
	// last is the final text block of the user's turn: the criterion.
	last string
	// tail is everything after the candidate's block: the criterion, and what a
	// repeated question adds to it. It equals last when no candidate block is found.
	tail string
	// rest is everything else: instructions, context, candidate.
	rest string
	// candidate is the text inside the nonce-delimited block; "" when there is none.
	candidate string
	// all is the whole text.
	all string
}

// newPrompt takes a conversation apart. The question is what the user said before
// the assistant's first turn: later turns are a verdict handed back for correction.
func newPrompt(system []string, turns []turn) prompt {
	var before, user, after []string
	before = append(before, system...)
	answered := false
	for _, t := range turns {
		answered = answered || t.role == "assistant"
		switch {
		case answered:
			after = append(after, t.blocks...)
		case t.role == "user":
			user = append(user, t.blocks...)
		default:
			before = append(before, t.blocks...)
		}
	}
	p := prompt{all: strings.Join(append(append(append([]string(nil), before...), user...), after...), "\n")}
	if len(user) == 0 {
		p.rest = strings.Join(before, "\n")
		return p
	}
	p.last = user[len(user)-1]
	stable := strings.Join(append(before, user[:len(user)-1]...), "\n")
	p.rest, p.tail = stable, p.last

	joined := stable + "\n" + p.last
	if body, end, ok := delimited(joined); ok {
		p.candidate = body
		p.tail = strings.TrimSpace(joined[end:])
		p.rest = joined[:end]
		if len(user) == 1 && end > len(stable) {
			p.last = p.tail // everything came in one block: the criterion is its tail
		}
	}
	return p
}

// evidence returns a span of the candidate: the start of its first line with
// three letters or more, at most twelve words, exactly as it is written there.
func (p prompt) evidence() string {
	text := p.candidate
	if text == "" {
		text = p.rest
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if letters := strings.IndexFunc(line, unicode.IsLetter); letters < 0 || len([]rune(line)) < 3 {
			continue
		}
		words := 0
		for i, r := range line {
			if unicode.IsSpace(r) {
				if words++; words == 12 {
					return line[:i]
				}
			}
			if i > 300 {
				return line[:i]
			}
		}
		return line
	}
	return ""
}

// delimited finds the block whose two delimiter lines hold the same nonce. When
// the nonce stands on more lines (the instructions name it too), the last two of
// them count. It returns the text between the lines and where the second one ends.
func delimited(text string) (body string, end int, ok bool) {
	type place struct{ start, end int } // a line
	seen := map[string][2]place{}
	var found string
	offset := 0
	for line := range strings.Lines(text) {
		at := place{offset, offset + len(line)}
		offset += len(line)
		for _, n := range nonces(line) {
			pair := seen[n]
			if pair[1] == at {
				continue // twice in one line
			}
			again := pair[1].end > 0
			seen[n] = [2]place{pair[1], at}
			if again {
				found = n
			}
		}
	}
	if found == "" {
		return "", 0, false
	}
	pair := seen[found]
	return strings.Trim(text[pair[0].end:pair[1].start], "\n"), pair[1].end, true
}

// nonces returns the hex runs of a line that can be nonces: of even length, and,
// when they are short, with both a letter and a digit, so that neither words nor
// dates count.
func nonces(line string) []string {
	var out []string
	for i := 0; i < len(line); {
		j, letter, digit := i, false, false
		for j < len(line) && isHex(line[j]) {
			digit = digit || line[j] <= '9'
			letter = letter || line[j] > '9'
			j++
		}
		long := j-i >= 2*nonceRun
		if j-i >= nonceRun && (j-i)%2 == 0 && (long || letter && digit) {
			out = append(out, line[i:j])
		}
		i = max(j, i+1)
	}
	return out
}

// withoutNonces removes every run of 8 and more hex digits, so that what differs
// only in a nonce is equal.
func withoutNonces(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); {
		j := i
		for j < len(text) && isHex(text[j]) {
			j++
		}
		if j-i < nonceRun {
			b.WriteString(text[i:max(j, i+1)])
		}
		i = max(j, i+1)
	}
	return b.String()
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// digest is a hash of texts, cut to 128 bits: enough for counting, half the memory.
type digest [16]byte

// digestOf hashes texts with their nonces removed. Each text's length is part of
// the hash, so that moving a border between two texts changes it.
func digestOf(texts ...string) digest {
	h := sha256.New()
	var n [8]byte
	for _, t := range texts {
		t = withoutNonces(t)
		binary.BigEndian.PutUint64(n[:], uint64(len(t)))
		h.Write(n[:])
		h.Write([]byte(t))
	}
	return digest(h.Sum(nil)[:16])
}

// unit maps a digest to [0,1], in steps of a thousandth, the same on every machine.
func (d digest) unit() float64 {
	return float64(binary.BigEndian.Uint64(d[:8])%1001) / 1000
}
