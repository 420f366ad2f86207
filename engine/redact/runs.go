package redact

import "strings"

// minRun is the length from which a run of hex or base64 digits is a secret.
const minRun = 32

// privateKeys removes PEM blocks with a private key; one without an end goes to the end of the text.
func privateKeys(s string) string {
	const begin, end, dashes = "-----BEGIN ", "-----END ", "-----"
	e := editor{src: s}
	for i := 0; i < len(s); {
		at := strings.Index(s[i:], begin)
		if at < 0 {
			break
		}
		from := i + at
		i = from + len(begin)
		label := s[i:min(len(s), i+64)]
		stop := strings.Index(label, dashes)
		if stop < 0 || !strings.Contains(label[:stop], "PRIVATE KEY") {
			continue
		}
		to := len(s)
		if at := strings.Index(s[i:], end); at >= 0 {
			to = i + at + len(end)
			if at := strings.Index(s[to:min(len(s), to+64)], dashes); at >= 0 {
				to += at + len(dashes)
			}
		}
		e.redact(from, to, kindPrivateKey)
		i = to
	}
	return e.String()
}

// prefixes are how tokens of known services begin, and how many characters must follow.
var prefixes = []struct {
	text string
	min  int
}{
	{"sk-", 8}, {"pk-", 8},
	{"ghp_", 8}, {"gho_", 8}, {"ghs_", 8}, {"ghu_", 8}, {"ghr_", 8}, {"github_pat_", 8}, {"glpat-", 8},
	{"xoxb-", 8}, {"xoxp-", 8}, {"xoxa-", 8}, {"xoxr-", 8}, {"xoxs-", 8},
	{"AKIA", 12}, {"ASIA", 12},
}

// tokens removes tokens that their prefix gives away, and JSON web tokens.
func tokens(s string) string {
	e := editor{src: s}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case 's', 'p', 'g', 'x', 'A', 'e':
		default:
			continue
		}
		if !beginsWord(s, i) {
			continue
		}
		kind := kindToken
		n := tokenAt(s[i:])
		if n == 0 {
			kind, n = kindJWT, jwtAt(s[i:])
		}
		if n > 0 {
			e.redact(i, i+n, kind)
			i += n - 1
		}
	}
	return e.String()
}

// beginsWord reports whether a word may begin at i: behind no letter and no digit, but for those of an escape, as in "\nsk-...",
// "\u0022sk-..." and "%22sk-...".
func beginsWord(s string, i int) bool {
	switch {
	case i == 0 || !isAlnum(s[i-1]):
		return true
	case i >= 2 && s[i-2] == '\\':
		return strings.IndexByte("nrtbf", s[i-1]) >= 0
	case i >= 3 && s[i-3] == '%':
		return isHex(s[i-2]) && isHex(s[i-1])
	case i >= 6 && s[i-6:i-4] == `\u`:
		return isHex(s[i-4]) && isHex(s[i-3]) && isHex(s[i-2]) && isHex(s[i-1])
	}
	return false
}

// tokenAt returns the length of the token that s begins with; 0 when there is none.
func tokenAt(s string) int {
	for _, p := range prefixes {
		if !strings.HasPrefix(s, p.text) {
			continue
		}
		n, digits, upper := len(p.text), 0, 0
		for n < len(s) && (isAlnum(s[n]) || s[n] == '_' || s[n] == '-') {
			digits += count('0' <= s[n] && s[n] <= '9')
			upper += count('A' <= s[n] && s[n] <= 'Z')
			n++
		}
		tail := n - len(p.text)
		word := len(p.text) == 3 && digits == 0 && upper == 0 // as in sk-learn-contrib
		if tail >= p.min && (!word || tail >= minRun) {
			return n
		}
	}
	return 0
}

// jwtAt returns the length of the JSON web token that s begins with, whole or cut off; 0 when there is none.
func jwtAt(s string) int {
	const least = 12
	if !strings.HasPrefix(s, "eyJ") {
		return 0
	}
	n, dots := 0, 0
	for n < len(s) && (isAlnum(s[n]) || s[n] == '_' || s[n] == '-' || s[n] == '.' && dots < 4) {
		dots += count(s[n] == '.')
		n++
	}
	for n > 0 && s[n-1] == '.' {
		n-- // the full stop of a sentence
	}
	if n < least {
		return 0
	}
	return n
}

// hexRuns removes runs of 32 and more hex digits. A UUID with its dashes is none.
func hexRuns(s string) string {
	e := editor{src: s}
	for i := 0; i < len(s); i++ {
		j := i
		for j < len(s) && isHex(s[j]) {
			j++
		}
		if j-i >= minRun {
			e.redact(i, j, kindHex)
		}
		i = j
	}
	return e.String()
}

// base64Runs removes runs of 32 and more characters of base64, either alphabet, with at least 2 digits, 2 upper-case and 2
// lower-case letters.
func base64Runs(s string) string {
	e := editor{src: s}
	for i := 0; i < len(s); i++ {
		j, digits, upper, lower := i, 0, 0, 0
		for j < len(s) && isBase64(s[j]) {
			c := s[j]
			digits += count('0' <= c && c <= '9')
			upper += count('A' <= c && c <= 'Z')
			lower += count('a' <= c && c <= 'z')
			j++
		}
		end := j
		for end < len(s) && s[end] == '=' && end-j < 2 {
			end++
		}
		if j-i >= minRun && digits >= 2 && upper >= 2 && lower >= 2 {
			e.redact(i, end, kindBase64)
		}
		i = j
	}
	return e.String()
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func isBase64(c byte) bool {
	return isAlnum(c) || c == '+' || c == '/' || c == '_' || c == '-'
}

// count is 1 for what holds, for adding up.
func count(holds bool) int {
	if holds {
		return 1
	}
	return 0
}
