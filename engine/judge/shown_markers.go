package judge

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// roles are what the first word or words of a line are taken for the beginning of a chat message, when a colon follows.
var roles = map[string]bool{
	"system": true, "system prompt": true, "system message": true, "system instruction": true, "system instructions": true,
	"developer": true, "developer message": true, "user": true, "user message": true, "human": true,
	"assistant": true, "assistant message": true, "ai": true, "tool": true, "tool result": true, "function": true,
	"judge": true, "grader": true, "evaluator": true, "instruction": true, "instructions": true, "new instructions": true,
}

// maxRole is the length of the longest of roles; maxDecoration bounds what may stand before it.
const (
	maxRole       = len("system instructions")
	maxDecoration = 64
)

// isRoleLine reports whether a line begins like a chat message: a role, with or without decoration such as "### " and "**",
// and a colon. Full-width letters and colons count as what they look like.
func isRoleLine(line string) bool {
	i := 0
	for i < len(line) && i < maxDecoration && isDecoration(line[i]) {
		i++
	}
	var word [maxRole]byte
	n, space := 0, false
	for steps := 0; i < len(line) && steps < maxRole+maxDecoration; steps++ {
		r, size := fold(line[i:])
		i += size
		switch {
		case r == ':':
			return roles[string(word[:n])]
		case 'a' <= r && r <= 'z':
			if space && n > 0 && n < len(word) {
				word[n] = ' '
				n++
			}
			space = false
			if n == len(word) {
				return false
			}
			word[n] = byte(r)
			n++
		case r == ' ' || r == '_' || r == '\t':
			space = true
		case r < utf8.RuneSelf && r != '\n' && isDecoration(byte(r)):
			// as in **System**: and <system>:
		default:
			return false
		}
	}
	return false
}

// isDecoration reports whether a byte may stand around a role.
func isDecoration(c byte) bool { return strings.IndexByte(" \t#*_>-|<=~`(){}/+.\"'", c) >= 0 }

// fold returns the first character of s in lower case, full-width forms as their ASCII counterparts.
func fold(s string) (rune, int) {
	r, size := utf8.DecodeRuneInString(s)
	if '\uff01' <= r && r <= '\uff5e' {
		r -= '\uff01' - '!'
	}
	if r == '\u3000' || r == '\u00a0' {
		r = ' '
	}
	if 'A' <= r && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r, size
}

// chatTags are the tags with which chat templates mark turns.
var chatTags = []string{
	"start_of_turn>", "end_of_turn>", "bos>", "eos>", "s>", "/s>", "<sys>>", "</sys>>", "|", "｜",
}

// isTag reports whether s, which begins with <, is like a tag of the prompt's blocks, or a token of a chat template.
func isTag(s string) bool {
	rest := s[1:]
	body := rest
	for len(body) > 0 && (body[0] == '/' || body[0] == ' ' || body[0] == '\t') && len(rest)-len(body) < 8 {
		body = body[1:]
	}
	if hasFold(body, tagPrefix) {
		return true
	}
	for _, t := range chatTags {
		switch {
		case !hasFold(rest, t):
		case t == "|" || t == "｜":
			return isPipeToken(rest[len(t):])
		default:
			return true
		}
	}
	return false
}

// isPipeToken reports whether s goes on like im_start|>: a word, and a bar with a bracket.
func isPipeToken(s string) bool {
	const most = 64
	for i, r := range s {
		switch {
		case i > most:
			return false
		case r == '|' || r == '｜':
			return i > 0 && strings.HasPrefix(s[i+utf8.RuneLen(r):], ">")
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' && r != '.' && r != '▁' && r != '/':
			return false
		}
	}
	return false
}

// bracketTokens are the tokens of chat templates in square brackets.
var bracketTokens = []string{
	"inst]", "/inst]", "system_prompt]", "/system_prompt]", "tool_calls]", "tool_results]", "/tool_results]",
	"available_tools]", "/available_tools]",
}

// isBracketToken reports whether s, which begins with [, is a token of a chat template.
func isBracketToken(s string) bool {
	for _, t := range bracketTokens {
		if hasFold(s[1:], t) {
			return true
		}
	}
	return false
}
