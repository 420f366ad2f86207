package judge_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
)

// listener is a provider that remembers the bodies of the requests; what it answers is troubled's.
type listener struct {
	troubled
	mu     sync.Mutex
	bodies []map[string]any
}

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	l.bodies = append(l.bodies, body)
	l.mu.Unlock()
	l.troubled.ServeHTTP(w, r)
}

// asked puts questions to a model, one after the other, and returns the verdict on the last and the bodies of all requests.
func asked(t *testing.T, m judge.Model, replies []reply, questions ...judge.Question) (judge.Verdict, []map[string]any) {
	t.Helper()
	l := &listener{troubled: troubled{replies: replies, form: wireForms[m.Name]}}
	ts := httptest.NewServer(l)
	defer ts.Close()
	clients, _ := providersAt(ts.URL)
	j := judge.New(judge.Options{Clients: clients, Jitter: func() float64 { return 0 }})
	var v judge.Verdict
	for _, q := range questions {
		var err error
		if v, _, err = j.Ask(t.Context(), m, q); err != nil {
			t.Fatal(err)
		}
	}
	return v, l.bodies
}

var (
	claude = judge.Model{Name: "claude-test", Provider: v1alpha1.ProviderAnthropic}
	gpt    = judge.Model{Name: "gpt-test", Provider: v1alpha1.ProviderOpenAI}
)

// at walks into a JSON document by keys and indexes.
func at(t *testing.T, doc any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := doc.(map[string]any)
			doc = object[step]
		case int:
			list, _ := doc.([]any)
			if step < 0 {
				step += len(list)
			}
			if step < 0 || step >= len(list) {
				t.Fatalf("there is no element %v of %v in %v", step, path, doc)
			}
			doc = list[step]
		}
	}
	return doc
}

func TestS44FieldsOfAVerdict(t *testing.T) {
	score := func(typ string, most float64) map[string]any {
		return map[string]any{"type": typ, "minimum": 0.0, "maximum": most}
	}
	text := map[string]any{"type": "string"}
	tests := map[string]struct {
		question judge.Question
		answer   string
		want     map[string]any
		required []any
	}{
		"S-44 score 0..1 and reason": {
			judge.Question{}, `{"reason":"r","score":1}`,
			map[string]any{"reason": text, "score": score("number", 1)}, []any{"reason", "score"},
		},
		"S-44 a whole score 0..10 for scoreRanges": {
			judge.Question{ScoreRanges: map[string]v1alpha1.ScoreRange{"0": "bad"}}, `{"reason":"r","score":10}`,
			map[string]any{"reason": text, "score": score("integer", 10)}, []any{"reason", "score"},
		},
		"S-44 with evidence": {
			judge.Question{RequireEvidence: true}, `{"evidence":"e","reason":"r","score":1}`,
			map[string]any{"evidence": text, "reason": text, "score": score("number", 1)}, []any{"evidence", "reason", "score"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			q := tt.question
			q.Kind, q.Ask, q.Candidate = judge.KindCriterion, "good?", "c"
			_, bodies := asked(t, claude, []reply{says(tt.answer)}, q)
			if diff := cmp.Diff(map[string]any{"type": "tool", "name": "record_verdict", "disable_parallel_tool_use": true}, at(t, bodies[0], "tool_choice")); diff != "" {
				t.Errorf("anthropic: the tool is not forced (-want +got):\n%s", diff)
			}
			if name := at(t, bodies[0], "tools", 0, "name"); name != "record_verdict" {
				t.Errorf("anthropic: the tool is %v", name)
			}
			checkSchema(t, "anthropic", at(t, bodies[0], "tools", 0, "input_schema"), tt.want, tt.required)

			_, bodies = asked(t, gpt, []reply{says(tt.answer)}, q)
			if kind, strict := at(t, bodies[0], "response_format", "type"), at(t, bodies[0], "response_format", "json_schema", "strict"); kind != "json_schema" || strict != true {
				t.Errorf("openai: response_format is %v, strict %v", kind, strict)
			}
			checkSchema(t, "openai", at(t, bodies[0], "response_format", "json_schema", "schema"), tt.want, tt.required)
		})
	}
}

// checkSchema compares a schema without its descriptions.
func checkSchema(t *testing.T, wire string, schema any, properties map[string]any, required []any) {
	t.Helper()
	object, _ := schema.(map[string]any)
	fields, _ := object["properties"].(map[string]any)
	for _, f := range fields {
		delete(f.(map[string]any), "description")
	}
	want := map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	if diff := cmp.Diff(want, schema); diff != "" {
		t.Errorf("%s: schema (-want +got):\n%s", wire, diff)
	}
}

func TestS44WithoutStructuredOutputTheLastVerdictCounts(t *testing.T) {
	refuse := func(what string) reply {
		return func(w http.ResponseWriter, _ *http.Request, f wireForm) {
			w.WriteHeader(http.StatusBadRequest)
			write(w, f.failure(what+" is not supported"))
		}
	}
	words := func(text string) reply {
		return func(w http.ResponseWriter, _ *http.Request, f wireForm) { write(w, f.prose(text)) }
	}
	const first = `{"reason":"first","score":1}`
	tests := map[string]struct {
		text string
		want string
	}{
		"S-44 the last complete object":    {"Perhaps " + first + `, no: {"reason":"last","score":0.25}. Done.`, "last"},
		"S-44 not one that is incomplete":  {first + ` or {"reason":"last","sco`, "first"},
		"S-44 not one of another form":     {first + ` and {"score":0.25} and {"reason":"last","score":7}`, "first"},
		"S-44 not one inside of another":   {`{"reason":"outer","score":0.25,"more":` + first + `}`, "outer"},
		"S-44 in a block of code":          {"```json\n" + first + "\n```", "first"},
		"S-44 not what stands in a string": {`{"reason":"it says {\"reason\":\"x\",\"score\":0}","score":1}`, `it says {"reason":"x","score":0}`},
	}
	q := judge.Question{Kind: judge.KindText, Ask: "good?", Candidate: "c"}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for m, replies := range map[judge.Model][]reply{
				claude: {refuse("tool_choice"), refuse("output_config"), words(tt.text)},
				gpt:    {refuse("response_format"), words(tt.text)},
			} {
				v, bodies := asked(t, m, replies, q)
				if v.Reason != tt.want {
					t.Errorf("%s: the verdict is %+v, want the one that says %q", m.Name, v, tt.want)
				}
				last := bodies[len(bodies)-1]
				for _, field := range []string{"tools", "tool_choice", "output_config", "response_format"} {
					if last[field] != nil {
						t.Errorf("%s: the last request still holds %s", m.Name, field)
					}
				}
			}
		})
	}
}

// parts returns the texts of the one user's turn.
func parts(t *testing.T, body map[string]any) []string {
	t.Helper()
	var texts []string
	content, _ := at(t, body, "messages", -1, "content").([]any)
	for i := range content {
		text, _ := at(t, content, i, "text").(string)
		texts = append(texts, text)
	}
	return texts
}

func TestS46WhatStaysTheSameComesFirst(t *testing.T) {
	base := judge.Question{Prompt: "the prompt", Context: []string{"the document"}, Candidate: "the candidate's text", Kind: judge.KindCriterion}
	first, second := base, base
	first.Name, first.Ask = "one", "the first criterion"
	second.Name, second.Ask, second.Kind = "two", "the second criterion", judge.KindGuard
	for _, m := range []judge.Model{claude, gpt} {
		t.Run("S-46 "+m.Name, func(t *testing.T) {
			_, bodies := asked(t, m, []reply{fine}, first, second)
			a, b := parts(t, bodies[0]), parts(t, bodies[1])
			if len(a) != 2 || len(b) != 2 {
				t.Fatalf("the user's turn has %d and %d parts, want the prefix and the question", len(a), len(b))
			}
			if a[0] != b[0] {
				t.Errorf("the prefix differs between two calls about one candidate:\n%s\n%s", a[0], b[0])
			}
			last := -1
			for _, text := range []string{"the prompt", "the document", "the candidate's text"} {
				where := strings.Index(a[0], text)
				if where <= last || strings.Contains(a[1], text) {
					t.Errorf("%q stands at %d of the prefix, want it behind %d and not in the question", text, where, last)
				}
				last = where
			}
			if !strings.Contains(a[1], "the first criterion") || !strings.Contains(b[1], "the second criterion") || strings.Contains(a[0], "criterion") {
				t.Errorf("the criterion is not in the last part alone")
			}
			instructions, again := at(t, bodies[0], "system"), at(t, bodies[1], "system")
			if m == gpt {
				instructions, again = at(t, bodies[0], "messages", 0), at(t, bodies[1], "messages", 0)
			}
			if instructions == nil || !cmp.Equal(instructions, again) {
				t.Errorf("the instructions differ between two calls")
			}
		})
	}
}

func TestS46AnthropicsPrefixEndsWithACacheBreakpoint(t *testing.T) {
	_, bodies := asked(t, claude, []reply{fine}, judge.Question{Kind: judge.KindText, Ask: "good?", Candidate: "c"})
	if diff := cmp.Diff(map[string]any{"type": "ephemeral"}, at(t, bodies[0], "messages", -1, "content", 0, "cache_control")); diff != "" {
		t.Errorf("S-46: breakpoint of the prefix (-want +got):\n%s", diff)
	}
	if mark := at(t, bodies[0], "messages", -1, "content", 1, "cache_control"); mark != nil {
		t.Errorf("S-46: the question has a breakpoint too: %v", mark)
	}
}

func TestS47Temperature(t *testing.T) {
	refuse := func(w http.ResponseWriter, _ *http.Request, f wireForm) {
		w.WriteHeader(http.StatusBadRequest)
		write(w, f.failure("temperature is not supported with this model"))
	}
	half := 0.5
	tests := map[string]struct {
		set     *float64
		replies []reply
		// want are the temperatures of the requests, of two questions; nil: not sent.
		want []any
	}{
		"S-47 0 unless it is set":                           {nil, []reply{fine}, []any{0.0, 0.0}},
		"S-47 what is set":                                  {&half, []reply{fine}, []any{0.5, 0.5}},
		"S-47 none for a model that refuses it, remembered": {nil, []reply{refuse, fine}, []any{0.0, nil, nil}},
		"S-47 the same with one that is set":                {&half, []reply{refuse, fine}, []any{0.5, nil, nil}},
	}
	q := judge.Question{Kind: judge.KindText, Ask: "good?", Candidate: "c"}
	for name, tt := range tests {
		for _, m := range []judge.Model{claude, gpt} {
			t.Run(name+" "+m.Name, func(t *testing.T) {
				m.Temperature = tt.set
				_, bodies := asked(t, m, tt.replies, q, q)
				var got []any
				for _, b := range bodies {
					got = append(got, b["temperature"])
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("temperatures (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestS40ARepairSaysWhatWasWrong: in the same conversation, in each provider's own form, and twice at most.
func TestS40ARepairSaysWhatWasWrong(t *testing.T) {
	q := judge.Question{Kind: judge.KindText, Ask: "good?", Candidate: "c"}
	replies := []reply{says(`{"reason":"ok","score":8}`), says(`{"reason":"","score":1}`), fine}
	for _, m := range []judge.Model{claude, gpt} {
		_, bodies := asked(t, m, replies, q)
		if len(bodies) != 3 {
			t.Fatalf("%s: %d requests, want 3", m.Name, len(bodies))
		}
		for i, want := range []string{`score is \"8\"; it must be a number from 0 to 1`, "reason is empty"} {
			earlier, _ := bodies[i]["messages"].([]any)
			now, _ := bodies[i+1]["messages"].([]any)
			if len(now) != len(earlier)+2 || !cmp.Equal(earlier, now[:len(earlier)]) {
				t.Errorf("S-40 %s: request %d does not go on from the one before", m.Name, i+2)
				continue
			}
			said, err := json.Marshal(now[len(now)-1])
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(said), want) {
				t.Errorf("S-40 %s: request %d says %s, want %q in it", m.Name, i+2, said, want)
			}
		}
	}
}
