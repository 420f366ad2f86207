package fakejudge

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestValuesSatisfyTheirSchema(t *testing.T) {
	d := decision{score: 0.84, reason: "because", evidence: "a span"}
	prop := func(name, schema string) string {
		return `{"type":"object","properties":{"` + name + `":` + schema + `}}`
	}
	for name, tc := range map[string]struct{ schema, want string }{
		"score in 0..1":            {prop("score", `{"type":"number","minimum":0,"maximum":1}`), `{"score":0.84}`},
		"score in 0..10":           {prop("score", `{"type":"integer","minimum":0,"maximum":10}`), `{"score":8}`},
		"score without bounds":     {prop("score", `{"type":"number"}`), `{"score":0.84}`},
		"integer without bounds":   {prop("score", `{"type":"integer"}`), `{"score":8}`},
		"score in 1..5":            {prop("score", `{"type":"integer","minimum":1,"maximum":5}`), `{"score":4}`},
		"score of an enum":         {prop("score", `{"type":"integer","enum":[5,4,3,2,1]}`), `{"score":4}`},
		"score as a boolean":       {prop("score", `{"type":"boolean"}`), `{"score":true}`},
		"score below 1":            {prop("score", `{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":3}`), `{"score":2}`},
		"score in halves":          {prop("score", `{"type":"number","minimum":0,"maximum":1,"multipleOf":0.5}`), `{"score":1}`},
		"reason":                   {prop("reason", `{"type":"string"}`), `{"reason":"because"}`},
		"a short reason":           {prop("reason", `{"type":"string","maxLength":3}`), `{"reason":"bec"}`},
		"a long reason":            {prop("reason", `{"type":"string","minLength":9}`), `{"reason":"because.."}`},
		"evidence or null":         {prop("evidence", `{"type":["null","string"]}`), `{"evidence":"a span"}`},
		"any of null and a string": {prop("evidence", `{"anyOf":[{"type":"null"},{"type":"string"}]}`), `{"evidence":"a span"}`},
		"a constant":               {prop("kind", `{"const":"verdict"}`), `{"kind":"verdict"}`},
		"an array":                 {prop("list", `{"type":"array","items":{"type":"string"},"minItems":2}`), `{"list":["stand-in","stand-in"]}`},
		"an empty array":           {prop("list", `{"type":"array","items":{"type":"string"},"maxItems":0}`), `{"list":[]}`},
		"a reference":              {`{"$defs":{"s":{"type":"number"}},"type":"object","properties":{"score":{"$ref":"#/$defs/s"}}}`, `{"score":0.84}`},
		"all of":                   {`{"type":"object","allOf":[{"properties":{"score":{"type":"number"}}},{"properties":{"reason":{"type":"string"}}}]}`, `{"reason":"because","score":0.84}`},
		"nested":                   {prop("verdict", prop("score", `{"type":"number"}`)), `{"verdict":{"score":0.84}}`},
		"required alone":           {`{"type":"object","required":["x"]}`, `{"x":"stand-in"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := newSchema(raw(tc.schema))
			if err != nil {
				t.Fatal(err)
			}
			v, err := s.fill(d)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := json.Marshal(v); string(got) != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestSchemasThatCannotBeAnsweredAreRefused(t *testing.T) {
	bomb := `{"$defs":{"a":{"type":"object","properties":{"x":{"$ref":"#/$defs/a"},"y":{"$ref":"#/$defs/a"}}}},"$ref":"#/$defs/a"}`
	for name, tc := range map[string]struct{ schema, want string }{
		"a pattern":             {`{"type":"string","pattern":"x"}`, `keyword "pattern"`},
		"endless recursion":     {bomb, "too deep or too large"},
		"a reference elsewhere": {`{"$ref":"https://example.com/x"}`, "leads outside"},
		"a reference nowhere":   {`{"$ref":"#/$defs/x"}`, "leads nowhere"},
		"an empty enum":         {`{"enum":[]}`, "empty enum"},
		"no number between":     {`{"type":"integer","minimum":1.2,"maximum":1.8}`, "no number between its bounds"},
		"no multiple between":   {`{"type":"number","minimum":1,"maximum":2,"multipleOf":5}`, "no multiple of 5"},
		"too many items":        {`{"type":"array","minItems":1e9}`, "more than 100 items"},
		"a string too long":     {`{"type":"string","minLength":1e9}`, "cannot be made"},
		"required and not":      {`{"type":"object","required":["x"],"additionalProperties":false}`, `requires "x"`},
		"nothing":               {`false`, "is not an object"},
		"an unknown type":       {`{"type":"float"}`, `unknown type "float"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newSchema(raw(tc.schema))
			if err == nil {
				t.Fatal("accepted")
			}
			mustContain(t, err.Error(), tc.want)
		})
	}
}

func TestEvidenceIsASpanOfTheCandidate(t *testing.T) {
	for name, tc := range map[string]struct{ candidate, want string }{
		"a line":         {"Hello, world.", "Hello, world."},
		"twelve words":   {"one two three four five six seven eight nine ten eleven twelve thirteen", "one two three four five six seven eight nine ten eleven twelve"},
		"blank lines":    {"\n --- \n  Hello there  \n", "Hello there"},
		"another script": {"これは答えです", "これは答えです"},
		"nothing to say": {"...", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := prompt{candidate: tc.candidate}
			if got := p.evidence(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestTheCandidateIsFoundByItsNonce(t *testing.T) {
	named := "The candidate is between the two lines with " + nonceA + "."
	block := "--- " + nonceA + " begin\nline 1\n20240101 20240101\nline 2\n--- " + nonceA + " end\n"
	p := newPrompt([]string{named}, []turn{{"user", []string{"context", block, "the criterion"}}})
	if want := "line 1\n20240101 20240101\nline 2"; p.candidate != want || p.last != "the criterion" || p.tail != "the criterion" {
		t.Errorf("candidate %q, last %q, tail %q", p.candidate, p.last, p.tail)
	}
	if !strings.Contains(p.rest, "context") || strings.Contains(p.rest, "criterion") {
		t.Errorf("rest %q", p.rest)
	}
}

// fuzzDecode checks what holds for every body: no panic, and what is accepted can be answered.
func fuzzDecode(t *testing.T, w wire, body []byte) {
	s := New(Options{})
	req, ref := w.decode(body, s.rules.Load())
	if (req == nil) == (ref == nil) {
		t.Fatalf("request %v, refusal %v", req, ref)
	}
	var out any
	if ref != nil {
		if out = ref.body; ref.status < 400 {
			t.Errorf("refused with status %d", ref.status)
		}
	} else {
		d := s.rules.Load().decide(req)
		if o := d.outcome(req); o.fault != "" && o.fault != faultTruncated {
			t.Errorf("no valid answer to %s: %+v", body, o)
		} else {
			out = w.answer(s, req, o)
		}
	}
	if _, err := json.Marshal(out); err != nil {
		t.Error(err)
	}
}

func FuzzAnthropicDecode(f *testing.F) {
	f.Add(anthropicCall(nonceA, "a", "b").encode())
	f.Add([]byte(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) { fuzzDecode(t, anthropic{}, body) })
}

func FuzzOpenAIDecode(f *testing.F) {
	f.Add(openAICall(nonceA, "a", "b").encode())
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":"x"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) { fuzzDecode(t, openAI{}, body) })
}
