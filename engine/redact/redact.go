// Package redact removes secrets from text before it is written to a status, an event, a log or a report (S-48).
//
// What is removed leaves its kind behind, as [REDACTED:token]. Redacting twice changes nothing, so that renderers can
// redact again, and takes linear time, whatever the text.
package redact

import (
	"encoding/json"
	"slices"
	"strings"
)

// MinSecret is the length, in bytes, from which a secret is looked for by its value. Shorter ones stand in ordinary
// words too often: a report full of holes would tell more about them than it hides.
const MinSecret = 6

// maxRounds bounds how often the rules are applied to what they left; text settles in the first two but for oddities.
const maxRounds = 8

// Redactor removes secrets from text. It is safe for concurrent use. A nil *Redactor knows no values, and finds secrets by
// their form only.
type Redactor struct {
	secrets *strings.Replacer
}

// New returns a redactor that also removes the given values, the longest first, wherever they stand: as they are, without the
// white space around them, and as they are written in a JSON string. Values shorter than MinSecret are ignored, and
// so are those that are part of the marks that redaction leaves.
func New(secrets ...string) *Redactor {
	var values []string
	for _, s := range secrets {
		trimmed := strings.TrimSpace(s)
		if len(trimmed) < MinSecret {
			continue
		}
		for _, v := range []string{s, trimmed, jsonEscaped(trimmed)} {
			if !partOfMark(v) {
				values = append(values, v)
			}
		}
	}
	if len(values) == 0 {
		return &Redactor{}
	}
	slices.SortFunc(values, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	values = slices.Compact(values)
	pairs := make([]string, 0, 2*len(values))
	for _, v := range values {
		pairs = append(pairs, v, mark(kindSecret))
	}
	return &Redactor{secrets: strings.NewReplacer(pairs...)}
}

// String returns s without its secrets. It does not tell whether there were any; compare the two.
func (r *Redactor) String(s string) string {
	for range maxRounds {
		next := s
		if r != nil && r.secrets != nil {
			next = r.secrets.Replace(next)
		}
		for _, rule := range rules {
			next = rule(next)
		}
		if next == s {
			break
		}
		s = next
	}
	return s
}

// rules find secrets by their form. The order matters: what a key or a header says of its value comes before what
// the value looks like.
var rules = []func(string) string{privateKeys, quotedValues, plainValues, tokens, hexRuns, base64Runs}

// The kinds of what is removed.
const (
	kindSecret     = "secret"      // a value that the process was given
	kindToken      = "token"       // known by its prefix
	kindJWT        = "jwt"         // a JSON web token
	kindPrivateKey = "private-key" // a PEM block
	kindHex        = "hex"         // a run of hex digits
	kindBase64     = "base64"      // a run of base64 digits
	kindHeader     = "header"      // the value of a secret HTTP header
	kindValue      = "value"       // the value under a secret key
)

var kinds = []string{kindSecret, kindToken, kindJWT, kindPrivateKey, kindHex, kindBase64, kindHeader, kindValue}

const markPrefix = "[REDACTED:"

// mark is what stands in the place of a secret.
func mark(kind string) string { return markPrefix + kind + "]" }

// markAt returns the length of the mark that s begins with; 0 when it begins with none.
func markAt(s string) int {
	rest, ok := strings.CutPrefix(s, markPrefix)
	if !ok {
		return 0
	}
	for _, k := range kinds {
		if strings.HasPrefix(rest, k+"]") {
			return len(markPrefix) + len(k) + 1
		}
	}
	return 0
}

// partOfMark reports whether a value stands in a mark: removing it would change the marks, again and again.
func partOfMark(v string) bool {
	return slices.ContainsFunc(kinds, func(k string) bool { return strings.Contains(mark(k), v) })
}

// jsonEscaped is how a value is written in a JSON string.
func jsonEscaped(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return s
	}
	quoted := strings.TrimSuffix(b.String(), "\n")
	return quoted[1 : len(quoted)-1]
}

// editor builds a text with parts of another one replaced; without any it makes no copy.
type editor struct {
	src  string
	out  strings.Builder
	done int
}

// redact puts a mark in the place of src[from:to]. Parts are given in order; one that begins before the end of the last is left out.
func (e *editor) redact(from, to int, kind string) {
	if from < e.done {
		return
	}
	e.out.WriteString(e.src[e.done:from])
	e.out.WriteString(mark(kind))
	e.done = to
}

func (e *editor) String() string {
	if e.done == 0 {
		return e.src
	}
	e.out.WriteString(e.src[e.done:])
	return e.out.String()
}
