package fakejudge

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"
)

// fields is a JSON object whose values are not yet decoded.
type fields map[string]json.RawMessage

// objectOf decodes an object; ok is false for everything else, null included.
func objectOf(raw json.RawMessage) (fields, bool) {
	var f fields
	if kindOf(raw) != "object" || json.Unmarshal(raw, &f) != nil {
		return nil, false
	}
	return f, true
}

// listOf decodes an array; ok is false for everything else.
func listOf(raw json.RawMessage) ([]json.RawMessage, bool) {
	var l []json.RawMessage
	if kindOf(raw) != "array" || json.Unmarshal(raw, &l) != nil {
		return nil, false
	}
	return l, true
}

// stringOf decodes a string; ok is false for everything else.
func stringOf(raw json.RawMessage) (string, bool) {
	var s string
	if kindOf(raw) != "string" || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// numberOf decodes a number; ok is false for everything else.
func numberOf(raw json.RawMessage) (float64, bool) {
	var n float64
	if kindOf(raw) != "number" || json.Unmarshal(raw, &n) != nil {
		return 0, false
	}
	return n, true
}

// has reports whether a field is there and not null.
func (f fields) has(name string) bool {
	return kindOf(f[name]) != "null"
}

// unknown returns the first field, in alphabetical order, that is not in known.
func (f fields) unknown(known []string) (string, bool) {
	for _, k := range slices.Sorted(maps.Keys(f)) {
		if !slices.Contains(known, k) {
			return k, true
		}
	}
	return "", false
}

// kindOf names the JSON type of a value; absent counts as null.
func kindOf(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "null"
	}
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// clip cuts a text to at most n bytes, never inside a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
