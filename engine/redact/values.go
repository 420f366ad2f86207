package redact

import "strings"

// maxName bounds the name of a key or a header.
const maxName = 128

// secretEnds are how the names of keys end whose values are secret, lower case, without dashes, underscores and dots.
var secretEnds = []string{
	"apikey", "token", "password", "passwd", "passphrase", "secret", "secretkey", "accesskey", "privatekey", "signingkey",
	"authorization", "credential", "credentials",
}

// isSecretKey reports whether a key's value is secret.
func isSecretKey(name string) bool {
	var flat [maxName]byte
	n := 0
	for i := 0; i < len(name) && n < maxName; i++ {
		if c := name[i]; c != '-' && c != '_' && c != '.' {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			flat[n] = c
			n++
		}
	}
	for _, end := range secretEnds {
		if strings.HasSuffix(string(flat[:n]), end) {
			return true
		}
	}
	return false
}

// isSecretHeader reports whether an HTTP header's value is secret: Authorization, Cookie, Set-Cookie, *-Token, *-Key, *-Secret.
func isSecretHeader(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "authorization", "proxy-authorization", "cookie", "set-cookie":
		return true
	}
	for _, end := range []string{"-token", "-key", "-secret"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// quotedValues removes the values under quoted keys, as in JSON: "apiKey": "...". The quotes may be escaped, as they are in
// JSON inside of JSON. Strings, numbers, arrays and objects are values; one without an end goes to the end of the text.
func quotedValues(s string) string {
	e := editor{src: s}
	for i := 0; i < len(s); {
		if s[i] != '"' && s[i] != '\'' {
			i++
			continue
		}
		// s[i] is the quote before a key, or any other: then what follows is no name with a quote and a colon behind it.
		name, at := nameAt(s, i+1)
		quote := s[i]
		closing := at
		for at < len(s) && s[at] == '\\' {
			at++
		}
		if name == "" || at >= len(s) || s[at] != quote {
			i++
			continue
		}
		i = at
		value := skipSpace(s, at+1)
		if value >= len(s) || s[value] != ':' || !isSecretKey(name) && !isSecretHeader(name) {
			continue
		}
		value = skipSpace(s, value+1)
		from, to := quotedValue(s, value, s[closing:at+1])
		if to > from && markAt(s[from:to]) == 0 {
			e.redact(from, to, kindValue)
		}
		i = max(i+1, to)
	}
	return e.String()
}

// quotedValue returns where the value of a quoted key stands, without its quotes; an empty range when there is none, or it is
// null, true or false. quote is the quote of the key, with its backslashes.
func quotedValue(s string, i int, quote string) (from, to int) {
	switch {
	case i == len(s):
		return i, i
	case s[i] == '[' || s[i] == '{':
		return i, structureEnd(s, i, quote)
	case quote == "'" && s[i] == '"': // Python, where there is a ' in the value
		quote = "\""
	}
	if !strings.HasPrefix(s[i:], quote) {
		to = i
		for to < len(s) && (isAlnum(s[to]) || s[to] == '-' || s[to] == '+' || s[to] == '.') {
			to++
		}
		switch s[i:to] {
		case "null", "true", "false":
			return i, i
		}
		return i, to
	}
	from = i + len(quote)
	return from, stringEnd(s, from, quote)
}

// stringEnd returns where the text of a string ends that begins at from, before its closing quote with the backslashes of that.
func stringEnd(s string, from int, quote string) int {
	escapes := len(quote) - 1
	run := 0 // of backslashes
	for to := from; to < len(s); to++ {
		switch {
		case s[to] == '\\':
			run++
			continue
		case s[to] == quote[escapes] && (run == escapes || run < escapes || escapes == 0 && run%2 == 0):
			return to - min(run, escapes)
		}
		run = 0
	}
	return len(s)
}

// structureEnd returns where an array or an object ends that begins at from, brackets in strings aside.
func structureEnd(s string, from int, quote string) int {
	depth := 0
	for i := from; i < len(s); {
		switch c := s[i]; {
		case strings.HasPrefix(s[i:], quote):
			i = stringEnd(s, i+len(quote), quote) + len(quote)
			continue
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return len(s)
}

// plainValues removes the values of secret headers ("Authorization: ...", to the end of the line or of the quotes around it),
// and those behind other secret names ("password=...", "token: ...", up to white space or a separator).
func plainValues(s string) string {
	e := editor{src: s}
	for i := 0; i < len(s); {
		if !isAlnum(s[i]) {
			i++
			continue
		}
		start := i
		name, at := nameAt(s, i)
		i = max(at, i+1)
		sign := at
		for sign < len(s) && (s[sign] == ' ' || s[sign] == '\t') && sign-at < 8 {
			sign++
		}
		if name == "" || sign >= len(s) || s[sign] != ':' && s[sign] != '=' {
			continue
		}
		from := skipBlanks(s, sign+1)
		to, kind := from, kindValue
		switch {
		case s[sign] == ':' && isSecretHeader(name):
			to, kind = headerEnd(s, start, from), kindHeader
		case isSecretKey(name):
			from, to = plainValue(s, from)
			if scheme := s[from:to]; authSchemes[strings.ToLower(scheme)] {
				_, to = plainValue(s, skipBlanks(s, to))
			}
		}
		if to > from && markAt(s[from:to]) == 0 {
			e.redact(from, to, kind)
		}
		i = max(i, to)
	}
	return e.String()
}

// authSchemes are what stands before a credential: authorization=Bearer ...
var authSchemes = map[string]bool{"bearer": true, "basic": true, "digest": true, "token": true, "negotiate": true}

// headerEnd returns where a header's value ends: at the end of the line, or at the quote that the header began with.
func headerEnd(s string, start, from int) int {
	stop := "\r\n"
	if start > 0 && strings.IndexByte("\"'`", s[start-1]) >= 0 {
		stop += string(s[start-1])
	}
	if at := strings.IndexAny(s[from:], stop); at >= 0 {
		return from + at
	}
	return len(s)
}

// plainValue returns where a value that stands behind a name stands: inside its quotes, or up to white space or a separator.
func plainValue(s string, from int) (start, end int) {
	if markAt(s[from:]) > 0 {
		return from, from
	}
	if from < len(s) && strings.IndexByte("\"'`", s[from]) >= 0 {
		quote := s[from]
		for at := from + 1; at < len(s); at++ {
			switch s[at] {
			case quote, '\r', '\n':
				return from + 1, at
			case '\\':
				at++
			}
		}
		return from + 1, len(s)
	}
	if at := strings.IndexAny(s[from:], " \t\r\n,;&\"'`<>()[]{}"); at >= 0 {
		return from, from + at
	}
	return from, len(s)
}

// nameAt reads a name of letters, digits, dashes, underscores and dots, and returns where it ends; the name is empty when
// there is none, or it is too long to be one.
func nameAt(s string, i int) (string, int) {
	j := i
	for j < len(s) && (isAlnum(s[j]) || s[j] == '-' || s[j] == '_' || s[j] == '.') {
		j++
	}
	if j-i > maxName {
		return "", j
	}
	return s[i:j], j
}

func skipBlanks(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i
}

func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\r' || s[i] == '\n') {
		i++
	}
	return i
}
