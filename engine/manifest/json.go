package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf16"
)

// asYAML makes what JSON allows and YAML does not readable as YAML: tabs between values, and characters written as a
// pair of surrogates. Lines stay where they are. What is not JSON is returned as it is.
func asYAML(data []byte) []byte {
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
			out = append(out, data[i], data[i+1])
			i++
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
