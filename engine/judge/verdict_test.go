package judge

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func ptr[T any](v T) *T { return &v }

func TestReadStructuredVerdict(t *testing.T) {
	unit, whole, evidence := form{}, form{whole: true}, form{evidence: true}
	tests := map[string]struct {
		form form
		text string
		want Verdict
		// problem is a part of what the judge is told.
		problem string
	}{
		"a verdict":                      {form: unit, text: `{"reason":"ok","score":0.25}`, want: Verdict{Score: 0.25, Reason: "ok"}},
		"the ends of the range":          {form: unit, text: ` {"score":1.0,"reason":"ok"} `, want: Verdict{Score: 1, Reason: "ok"}},
		"minus zero is zero":             {form: unit, text: `{"score":-0,"reason":"ok"}`, want: Verdict{Reason: "ok"}},
		"8 on 0..1 is not clamped (S-5)": {form: unit, text: `{"score":8,"reason":"ok"}`, problem: `score is "8"; it must be a number from 0 to 1`},
		"below 0":                        {form: unit, text: `{"score":-0.1,"reason":"ok"}`, problem: "score is"},
		"a score in quotes":              {form: unit, text: `{"score":"0.5","reason":"ok"}`, problem: "written as a number"},
		"NaN":                            {form: unit, text: `{"score":NaN,"reason":"ok"}`, problem: "not one JSON object"},
		"a score too large for a float":  {form: unit, text: `{"score":1e999,"reason":"ok"}`, problem: "score is"},
		"null":                           {form: unit, text: `{"score":null,"reason":"ok"}`, problem: "written as a number"},
		"no score":                       {form: unit, text: `{"reason":"ok"}`, problem: "score is missing"},
		"keys are told apart by case":    {form: unit, text: `{"Score":1,"reason":"ok"}`, problem: "score is missing"},
		"empty reason":                   {form: unit, text: `{"score":1,"reason":" \n"}`, problem: "reason is empty"},
		"no reason":                      {form: unit, text: `{"score":1}`, problem: "reason is missing"},
		"a reason that is no string":     {form: unit, text: `{"score":1,"reason":["a"]}`, problem: "it must be a string"},
		"a field that was not asked for": {form: unit, text: `{"score":1,"reason":"a","evidence":"b"}`, problem: `not asked for: "evidence"`},
		"a field that stands twice":      {form: unit, text: `{"score":0,"reason":"a","score":1}`, problem: `stands there twice: "score"`},
		"two objects":                    {form: unit, text: `{"score":0,"reason":"a"}{"score":1,"reason":"a"}`, problem: "not one JSON object"},
		"prose around it":                {form: unit, text: `Here: {"score":0,"reason":"a"}`, problem: "not one JSON object"},
		"an array":                       {form: unit, text: `[{"score":0,"reason":"a"}]`, problem: "not one JSON object"},
		"nothing":                        {form: unit, text: ``, problem: "not one JSON object"},
		"whole score":                    {form: whole, text: `{"score":7,"reason":"ok"}`, want: Verdict{Score: 0.7, Raw: ptr(int32(7)), Reason: "ok"}},
		"a whole score that says so":     {form: whole, text: `{"score":7.0,"reason":"ok"}`, want: Verdict{Score: 0.7, Raw: ptr(int32(7)), Reason: "ok"}},
		"0.7 is no whole score":          {form: whole, text: `{"score":0.7,"reason":"ok"}`, problem: "a whole number from 0 to 10"},
		"11 is out of range":             {form: whole, text: `{"score":11,"reason":"ok"}`, problem: "a whole number from 0 to 10"},
		"evidence":                       {form: evidence, text: `{"score":1,"reason":"a","evidence":"b"}`, want: Verdict{Score: 1, Reason: "a", Evidence: "b"}},
		"empty evidence is valid":        {form: evidence, text: `{"score":1,"reason":"a","evidence":""}`, want: Verdict{Score: 1, Reason: "a"}},
		"missing evidence":               {form: evidence, text: `{"score":1,"reason":"a"}`, problem: "evidence is missing"},
		"evidence that is no string":     {form: evidence, text: `{"score":1,"reason":"a","evidence":null}`, problem: "evidence is"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, problem := tt.form.read(Answer{Text: tt.text, Structured: true}, false)
			if (problem == "") != (tt.problem == "") || !strings.Contains(problem, tt.problem) {
				t.Fatalf("problem = %q, want %q", problem, tt.problem)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadAnswerThatIsNoVerdict(t *testing.T) {
	const valid = `{"score":1,"reason":"a"}`
	tests := map[string]struct {
		answer  Answer
		problem string
	}{
		"a refusal":           {Answer{Text: valid, Structured: true, Refusal: "I cannot"}, "refused to answer"},
		"a cut answer":        {Answer{Text: valid, Structured: true, Cut: true}, "cut off"},
		"no call of the tool": {Answer{Text: valid}, "not recorded with record_verdict"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, problem := (form{}).read(tt.answer, false); !strings.Contains(problem, tt.problem) {
				t.Errorf("problem = %q, want %q", problem, tt.problem)
			}
		})
	}
}

func TestReadVerdictInWords(t *testing.T) {
	tests := map[string]struct {
		text    string
		want    Verdict
		problem string
	}{
		"prose around it":                {text: "Sure:\n```json\n{\"score\":0.5,\"reason\":\"a\"}\n```\nDone.", want: Verdict{Score: 0.5, Reason: "a"}},
		"the last one counts":            {text: `{"score":1,"reason":"a"} no: {"score":0,"reason":"b"} {"x":1}`, want: Verdict{Reason: "b"}},
		"more fields are allowed":        {text: `{"score":1,"reason":"a","confidence":0.3}`, want: Verdict{Score: 1, Reason: "a"}},
		"one inside of another is none":  {text: `{"score":0,"reason":"a","quoted":{"score":1,"reason":"x"}}`, want: Verdict{Reason: "a"}},
		"one inside of a string is none": {text: `{"score":0,"reason":"it says {\"score\":1,\"reason\":\"x\"}"}`, want: Verdict{Reason: "it says {\"score\":1,\"reason\":\"x\"}"}},
		"an incomplete one is none":      {text: `{"score":0,"reason":"a"} {"score":1,"reason":"b`, want: Verdict{Reason: "a"}},
		"braces in prose":                {text: `if {x} then {"score":1,"reason":"a"}`, want: Verdict{Score: 1, Reason: "a"}},
		"out of range":                   {text: `{"score":7,"reason":"a"}`, problem: "score is"},
		"no object":                      {text: `I would say 0.5`, problem: "no JSON object"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, problem := (form{}).read(Answer{Text: tt.text}, true)
			if (problem == "") != (tt.problem == "") || !strings.Contains(problem, tt.problem) {
				t.Fatalf("problem = %q, want %q", problem, tt.problem)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadInWordsTakesLinearTime(t *testing.T) {
	for _, part := range []string{"{", `{"a":`, "{}", `"{`, `{"a":{}}`, "{{}", "}"} {
		start := time.Now()
		(form{}).last(strings.Repeat(part, 1<<18/len(part)))
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("256 KiB of %q took %v", part, d)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{`{"score":0.5,"reason":"a"}`, `{"score":7,"reason":"a","evidence":"b"}`, `x {"score":1e0,"reason":"\u0061"} {`, `{{"score":-0,"reason":"a"}}`, `{"score":NaN}`} {
		f.Add(s, true, false)
		f.Add(s, false, true)
	}
	f.Fuzz(func(t *testing.T, text string, whole, evidence bool) {
		fm := form{whole: whole, evidence: evidence}
		for _, a := range []Answer{{Text: text, Structured: true}, {Text: text}} {
			v, problem := fm.read(a, !a.Structured)
			if problem != "" {
				if v != (Verdict{}) {
					t.Fatalf("%q: a verdict beside the problem %q: %+v", text, problem, v)
				}
				continue
			}
			if !(v.Score >= 0 && v.Score <= 1) || math.Signbit(v.Score) || strings.TrimSpace(v.Reason) == "" || (v.Raw != nil) != whole {
				t.Fatalf("%q: invalid verdict %+v", text, v)
			}
		}
	})
}

func BenchmarkParseVerdict(b *testing.B) {
	const object = `{"evidence":"it is 21 degrees","reason":"The candidate names the temperature that the tool gave.","score":0.75}`
	f := form{evidence: true}
	for name, a := range map[string]Answer{"structured": {Text: object, Structured: true}, "words": {Text: "Here it is:\n" + object}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, problem := f.read(a, !a.Structured); problem != "" {
					b.Fatal(problem)
				}
			}
		})
	}
}
