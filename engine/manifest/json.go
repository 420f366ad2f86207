package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"unicode/utf16"
	"unicode/utf8"
)

// directive is a YAML 1.2 directive, which the reader refuses though it reads such files: it stands before a document, where a
// line that begins so is never text.
var directive = regexp.MustCompile(`\A((?:\x{FEFF})?(?:[ \t]*(?:#[^\n]*)?\r?\n)*%YAML[ \t]+)1\.[0-9]+`)

// asYAML makes what JSON allows and YAML does not readable as YAML: tabs between values, and characters written as a
// pair of surrogates. Lines stay where they are. What is not JSON is returned as it is.
func asYAML(data []byte) []byte {
	data = directive.ReplaceAll(data, []byte("${1}1.1"))
	trimmed := bytes.TrimSpace(data)
	if len(trimmed) == 0 || (trimmed[0] != '{' && trimmed[0] != '[') || !json.Valid(data) {
		return data
	}
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); i++ {
		switch {
		case data[i] == '\t': // valid JSON has tabs between values only
			out = append(out, ' ')
		case data[i] == '\\':
			if r, ok := surrogates(data[i:]); ok {
				out = append(out, string(r)...)
				i += len(`\ud83d\ude00`) - 1
				continue
			}
			if r, ok := escaped(data[i:]); ok && utf16.IsSurrogate(r) {
				out = append(out, `\uFFFD`...) // half a pair means nothing
				i += len(`\ud83d`) - 1
				continue
			}
			if data[i+1] == '/' { // YAML has this escape from 1.2 on only
				out = append(out, '/')
			} else {
				out = append(out, data[i], data[i+1])
			}
			i++
		case data[i] >= 0x7f: // breaks of lines and controls for YAML, text for JSON
			r, size := utf8.DecodeRune(data[i:])
			switch {
			case r == utf8.RuneError && size == 1: // encoding/json has U+FFFD for it
				out = append(out, `\uFFFD`...)
			case r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u2028' || r == '\u2029' || r == 0xfffe || r == 0xffff:
				out = fmt.Appendf(out, `\u%04x`, r)
			default:
				out = append(out, data[i:i+size]...)
			}
			i += size - 1
		default:
			out = append(out, data[i])
		}
	}
	return out
}

// surrogates reads a character that is written as two escapes.
func surrogates(s []byte) (rune, bool) {
	high, ok := escaped(s)
	if !ok {
		return 0, false
	}
	low, ok := escaped(s[6:])
	if !ok {
		return 0, false
	}
	r := utf16.DecodeRune(high, low)
	return r, r != '\uFFFD'
}

// escaped reads an escape such as \u00e4.
func escaped(s []byte) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	var r rune
	if _, err := fmt.Sscanf(string(s[2:6]), "%04x", &r); err != nil {
		return 0, false
	}
	return r, true
}
