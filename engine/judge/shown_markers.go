package judge

import (
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

// tagRoles are those of roles that are taken for one as a tag too. Others, such as <user>, are more often data or code.
var tagRoles = map[string]bool{
	"system": true, "system prompt": true, "system message": true, "system instruction": true, "system instructions": true,
	"developer message": true, "human": true, "assistant": true, "assistant message": true, "user message": true,
	"tool result": true, "instructions": true, "new instructions": true,
}

// maxRole is the length of the longest of roles.
const maxRole = len("system instructions")

// roleWords gathers the words of a role: lower case, one space between two of them.
type roleWords struct {
	text  [maxRole]byte
	n     int
	space bool
}

// add takes a letter; it returns false when there are too many for a role.
func (w *roleWords) add(letter rune) bool {
	if w.space && w.n > 0 && w.n < len(w.text) {
		w.text[w.n] = ' '
		w.n++
	}
	w.space = false
	if w.n == len(w.text) {
		return false
	}
	w.text[w.n] = byte(letter)
	w.n++
	return true
}

func (w *roleWords) isIn(set map[string]bool) bool { return set[string(w.text[:w.n])] }

// isRoleLine reports whether a line begins like a chat message: a role and a colon, with or without decoration around the
// words, such as "### ", "**" and "【】": whatever is no letter and no number. Full-width letters and colons count as what they look like.
func isRoleLine(line string) bool {
	var w roleWords
	for i := 0; i < len(line); {
		r, size := fold(line[i:])
		i += size
		switch {
		case r == ':' && w.n > 0:
			return w.isIn(roles)
		case 'a' <= r && r <= 'z':
			if !w.add(r) {
				return false
			}
		case r == ' ' || r == '_' || r == '\t':
			w.space = true
		case r == '\n', unicode.IsLetter(r), unicode.IsNumber(r):
			return false
		}
	}
	return false
}

// isRoleTag reports whether s, which stands behind a <, goes on like system> or /assistant>.
func isRoleTag(s string) bool {
	var w roleWords
	for i := 0; i < len(s); {
		r, size := fold(s[i:])
		i += size
		switch {
		case r == '>':
			return w.isIn(tagRoles)
		case 'a' <= r && r <= 'z':
			if !w.add(r) {
				return false
			}
		case r == '_' || r == '-' || isTagSpace(r):
			w.space = true
		case r != '/':
			return false
		}
	}
	return false
}

// isTagSpace reports whether a character may stand in a tag before and behind its name.
func isTagSpace(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '\r' }

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

// chatTags are the tags with which chat templates mark turns, without the bracket before them.
var chatTags = []string{"start_of_turn>", "end_of_turn>", "bos>", "eos>", "s>", "/s>", "<sys>>", "</sys>>"}

// isTag reports whether s, which stands behind a <, makes it a tag like those of the prompt's blocks, the tag of a role, or a
// token of a chat template.
func isTag(s string) bool {
	body := s
	for body != "" {
		r, size := fold(body)
		if r != '/' && !isTagSpace(r) {
			break
		}
		body = body[size:]
	}
	if hasFold(body, tagPrefix) > 0 {
		return true
	}
	for _, t := range chatTags {
		if hasFold(s, t) > 0 {
			return true
		}
	}
	if n := hasFold(s, "|"); n > 0 {
		return isPipeToken(s[n:])
	}
	return isRoleTag(body)
}

// isPipeToken reports whether s goes on like im_start|>: a word, and a bar with a bracket.
func isPipeToken(s string) bool {
	const most = 64
	for i := 0; i < len(s) && i <= most; {
		r, size := fold(s[i:])
		switch {
		case r == '|':
			return i > 0 && hasFold(s[i+size:], ">") > 0
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' && r != '.' && r != '▁' && r != '/':
			return false
		}
		i += size
	}
	return false
}

// bracketTokens are the tokens of chat templates in square brackets, without the first one.
var bracketTokens = []string{
	"inst]", "/inst]", "system_prompt]", "/system_prompt]", "tool_calls]", "tool_results]", "/tool_results]",
	"available_tools]", "/available_tools]",
}

// isBracketToken reports whether s, which stands behind a [, makes it a token of a chat template.
func isBracketToken(s string) bool {
	for _, t := range bracketTokens {
		if hasFold(s, t) > 0 {
			return true
		}
	}
	return false
}
