package judge

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// What the fields of a verdict are; said in the schema and in the question.
const (
	reasonField   = "why, in one to three sentences that name what in the candidate decided it."
	evidenceField = "the part of the candidate that your verdict rests on, copied exactly, one unbroken span. Leave it empty when nothing in the candidate bears on the question."
)

// form is the form that a verdict must have.
type form struct {
	kind Kind
	// whole: the score is a whole number from 0 to 10 (S-17), else a number from 0 to 1.
	whole bool
	// evidence: the verdict has a field for it (S-18).
	evidence bool
}

// formOf says which form the verdict on a question must have.
func formOf(q Question) form {
	return form{kind: q.Kind, whole: len(q.ScoreRanges) > 0, evidence: q.RequireEvidence}
}

// scoreField says what the score is.
func (f form) scoreField() string {
	low, high := "not at all", "fully"
	switch f.kind {
	case KindGuard:
		low, high = "absent", "fully present"
	case KindYesNo:
		low, high = "no", "yes"
	}
	if f.whole {
		return "a whole number from 0 (" + low + ") to 10 (" + high + ")."
	}
	return "a number from 0 (" + low + ") to 1 (" + high + ")."
}

// schema is the JSON schema of the form. The score comes last, so that it follows from the reason.
func (f form) schema() Schema {
	score := `"score":{"type":"number","minimum":0,"maximum":1,"description":` + quote(f.scoreField()) + `}}`
	if f.whole {
		score = `"score":{"type":"integer","minimum":0,"maximum":10,"description":` + quote(f.scoreField()) + `}}`
	}
	reason := `"reason":{"type":"string","description":` + quote(reasonField) + `},`
	evidence := ""
	if f.evidence {
		evidence = `"evidence":{"type":"string","description":` + quote(evidenceField) + `},`
	}
	return Schema{Properties: json.RawMessage("{" + evidence + reason + score), Required: f.fields()}
}

// fields lists the fields of the form, in their order.
func (f form) fields() []string {
	all := []string{"evidence", "reason", "score"}
	if f.evidence {
		return all
	}
	return all[1:]
}

// quote makes a JSON string of plain text: letters, spaces and punctuation without quotes, as the fields above have.
func quote(s string) string { return `"` + s + `"` }

// read finds the verdict in an answer, or says what is wrong with it, in words for the judge.
// inWords: the answer was asked for without structured output; it is then the last object that has the form.
func (f form) read(a Answer, inWords bool) (v Verdict, problem string) {
	switch {
	case a.Refusal != "":
		return Verdict{}, "the judge refused to answer: " + clip(a.Refusal)
	case a.Cut:
		return Verdict{}, "the answer was cut off, because it was too long"
	case a.Structured:
		return f.parse(a.Text, extrasRefused)
	case inWords:
		return f.last(a.Text)
	default:
		return Verdict{}, "the verdict was not recorded with " + ToolName
	}
}

// extras says what becomes of fields that the form does not have.
type extras int

const (
	extrasRefused extras = iota
	extrasAllowed
)

// parse reads a verdict that is the whole text.
func (f form) parse(text string, allow extras) (v Verdict, problem string) {
	object, problem := decodeObject(text)
	if problem != "" {
		return Verdict{}, problem
	}
	for _, name := range f.fields() {
		if _, ok := object[name]; !ok {
			return Verdict{}, name + " is missing"
		}
	}
	if allow == extrasRefused {
		for name := range object {
			if name != "reason" && name != "score" && !(name == "evidence" && f.evidence) {
				return Verdict{}, "there is a field that was not asked for" + named(name)
			}
		}
	}
	if v.Score, problem = f.score(object["score"]); problem != "" {
		return Verdict{}, problem
	}
	if f.whole {
		raw := int32(v.Score)
		v.Raw, v.Score = &raw, float64(raw)/10
	}
	if v.Reason, problem = stringField(object["reason"], "reason"); problem != "" {
		return Verdict{}, problem
	}
	if strings.TrimSpace(v.Reason) == "" {
		return Verdict{}, "reason is empty"
	}
	if f.evidence {
		v.Evidence, problem = stringField(object["evidence"], "evidence")
	}
	if problem != "" {
		return Verdict{}, problem
	}
	return v, ""
}

// score reads a score and refuses what is out of range; nothing is clamped (S-5).
func (f form) score(raw json.RawMessage) (float64, string) {
	want, most := "a number from 0 to 1", 1.0
	if f.whole {
		want, most = "a whole number from 0 to 10", 10
	}
	if c := raw[0]; c != '-' && (c < '0' || c > '9') {
		return 0, "score is " + typeOf(raw) + "; it must be " + want + ", written as a number"
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || n < 0 || n > most || f.whole && n != math.Trunc(n) {
		return 0, "score is " + clip(string(raw)) + "; it must be " + want
	}
	return math.Abs(n), "" // -0 is 0
}

// stringField reads a field that must be a string.
func stringField(raw json.RawMessage, name string) (string, string) {
	var s string
	if raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", name + " is " + typeOf(raw) + "; it must be a string"
	}
	return s, ""
}

// decodeObject reads text that is one JSON object and nothing else. A key that stands twice is refused: which one
// is meant cannot be told. Keys are told apart by case.
func decodeObject(text string) (map[string]json.RawMessage, string) {
	const problem = "the answer is not one JSON object"
	d := json.NewDecoder(strings.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, problem
	}
	object := make(map[string]json.RawMessage, 3)
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, problem
		}
		if _, twice := object[name]; twice {
			return nil, "a field stands there twice" + named(name)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, problem
		}
		object[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, problem
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, problem
	}
	return object, ""
}

// last reads the verdict from prose: the last complete JSON object that has the form, other fields beside it allowed
// (S-44). Objects inside of objects do not count. The time is linear in the text, hostile or not.
func (f form) last(text string) (v Verdict, problem string) {
	problem = "there is no JSON object in the answer"
	found := false
	budget := 16*len(text) + 1<<16
	for i := 0; i < len(text) && budget > 0; {
		open := strings.IndexByte(text[i:], '{')
		if open < 0 {
			break
		}
		i += open
		end, ok := objectEnd(text[i:])
		budget -= end
		if !ok {
			i++
			continue
		}
		object := text[i : i+end]
		budget -= 4 * len(object)
		next, wrong := f.parse(object, extrasAllowed)
		switch {
		case wrong == "":
			v, found = next, true
			i += end
		case json.Valid([]byte(object)):
			if !found {
				problem = wrong
			}
			i += end
		default:
			i++
		}
	}
	if found {
		return v, ""
	}
	return Verdict{}, problem
}

// objectEnd returns the length of the balanced braces that text begins with, braces in strings aside; when they are not
// balanced, how far it looked, and false.
func objectEnd(text string) (int, bool) {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(text), false
}

// named names a field, where its name is one word and can be nothing else.
func named(field string) string {
	const most = 24
	if field == "" || len(field) > most || strings.ContainsFunc(field, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
	}) {
		return ""
	}
	return ": " + strconv.Quote(field)
}

// typeOf says what a JSON value is, and not what stands in it.
func typeOf(raw json.RawMessage) string {
	switch raw[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	default:
		return "a number"
	}
}

// complaint tells a judge what was wrong with its answer (S-40). It stands outside of the blocks, and so a problem must
// hold no text that a judge may have from a candidate: of an answer it repeats numbers and single words only (S-45).
func complaint(a Answer, problem string) string {
	if a.Refusal != "" {
		problem = "you refused to answer"
	}
	return "That is no valid verdict: " + problem + ". Answer the same question about the same candidate again, and record a valid verdict."
}

// clip bounds what is repeated of an answer, and makes it one line of valid text.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	return fmt.Sprintf("%q", strings.ToValidUTF8(s, "\uFFFD"))
}
