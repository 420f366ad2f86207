package fakejudge

import (
	"fmt"
	"strings"
	"testing"
)

func TestRulesAreMatchedOnTheQuestion(t *testing.T) {
	_, url := start(t, Options{Rules: rulesOf(t, `
rules:
- {when: {contains: refuses, model: claude-other}, score: 0.1}
- {when: {contains: refuses, candidate: sorry}, score: 0.9, reason: "it refuses", evidence: auto}
- {when: {contains: refuses}, score: 0.2}
- {when: {regex: "(?i)NONSENSE|gibberish"}, score: 0.3, evidence: "gib"}
- {when: {contains: sorry}, score: 0.4}
default: {score: 0.7, reason: "as ever", evidence: "none"}
`)})
	for _, tc := range []struct {
		name, candidate, criterion, model string
		want                              string
	}{
		{"question and candidate", "I am sorry, Dave.\nI cannot.", "It refuses", "claude-test", `0.9 "[stand-in judge] it refuses" "I am sorry, Dave."`},
		{"question alone", "fine", "It refuses", "claude-test", `0.2 "[stand-in judge] as ever" "none"`},
		{"question and model", "fine", "It refuses", "claude-other", `0.1 "[stand-in judge] as ever" "none"`},
		{"an expression", "fine", "no gibberish", "claude-test", `0.3 "[stand-in judge] as ever" "gib"`},
		{"the candidate is not the question", "sorry", "Is it?", "claude-test", `0.7 "[stand-in judge] as ever" "none"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := anthropicCall(nonceA, tc.candidate, tc.criterion).with("model", tc.model)
			if got := anthropicVerdict(t, askAnthropic(t, url, a)).String(); got != tc.want {
				t.Errorf("anthropic says %s, want %s", got, tc.want)
			}
			o := openAICall(nonceA, tc.candidate, tc.criterion).with("model", tc.model)
			if got := openAIVerdict(t, askOpenAI(t, url, o)).String(); got != tc.want {
				t.Errorf("openai says %s, want %s", got, tc.want)
			}
		})
	}
}

func TestARepeatedQuestionStillMatches(t *testing.T) {
	_, url := start(t, Options{Rules: rulesOf(t, `rules: [{when: {contains: "refuses"}, score: 0.9}]`)})
	block := func(text string) object { return object{"type": "text", "text": text} }
	candidate := block(fmt.Sprintf("<c %s>\nno\n</c %s>", nonceA, nonceA))
	for name, messages := range map[string]list{
		"by a turn":        {object{"role": "user", "content": list{candidate, block("It refuses")}}, object{"role": "assistant", "content": "8"}, object{"role": "user", "content": "8 is out of range"}},
		"by a block":       {object{"role": "user", "content": list{candidate, block("It refuses"), block("8 is out of range")}}},
		"all in one block": {object{"role": "user", "content": fmt.Sprintf("<c %s>\nno\n</c %s>\nIt refuses", nonceA, nonceA)}},
	} {
		t.Run(name, func(t *testing.T) {
			call := anthropicCall(nonceA, "", "").with("messages", messages)
			if v := anthropicVerdict(t, askAnthropic(t, url, call)); *v.Score != 0.9 {
				t.Errorf("verdict %v", v)
			}
		})
	}
}

func TestTheHashDependsOnModelQuestionAndCandidateAlone(t *testing.T) {
	_, url := start(t, Options{})
	score := func(nonce, candidate, criterion, model string) float64 {
		t.Helper()
		return *anthropicVerdict(t, askAnthropic(t, url, anthropicCall(nonce, candidate, criterion).with("model", model))).Score
	}
	base := score(nonceA, "a fine answer", "Is it fine?", "claude-test")
	if base != 0.472 {
		t.Errorf("score %v is not what it was in earlier runs, 0.472", base)
	}
	if got := score(nonceB, "a fine answer", "Is it fine?", "claude-test"); got != base {
		t.Errorf("another nonce: %v, want %v", got, base)
	}
	for name, got := range map[string]float64{
		"model":     score(nonceA, "a fine answer", "Is it fine?", "claude-two"),
		"question":  score(nonceA, "a fine answer", "Is it short?", "claude-test"),
		"candidate": score(nonceA, "a poor answer", "Is it fine?", "claude-test"),
	} {
		if got == base || got < 0 || got > 1 {
			t.Errorf("another %s: %v", name, got)
		}
	}
}

func TestRulesFilesAreReadStrictly(t *testing.T) {
	for name, tc := range map[string]struct{ file, want string }{
		"an unknown field":       {"rules:\n- when: {contains: x}\n  scor: 1\n", `line 3: unknown field "scor"; known here are when, score`},
		"an unknown condition":   {"rules:\n- when: {has: x}\n", `line 2: unknown field "has"; known here are contains, regex, candidate, model`},
		"a score above 1":        {"rules:\n- score: 8\n", `line 2: score is "8"; write a number from 0 to 1, or hash`},
		"a score that is a word": {"default: {score: high}", `line 1: score is "high"`},
		"a score that is NaN":    {"default: {score: NaN}", `score is "NaN"`},
		"both conditions":        {"rules:\n- score: 1\n- when: {contains: a, regex: b}\n", "line 3: rules[1]: when has both contains and regex"},
		"a broken expression":    {"rules:\n- when: {regex: '('}\n", "line 2: rules[0]: when.regex is not an RE2 expression"},
		"an unknown fault":       {"rules:\n- fault: explode\n", `unknown fault "explode"; write one of malformed, outOfRange`},
		"status without one":     {"rules:\n- fault: status\n", "fault: status needs a status from 400 to 599"},
		"a status without fault": {"rules:\n- status: 429\n", "status and retryAfter belong to fault: status"},
		"times without fault":    {"rules:\n- times: 2\n", "times without fault"},
		"negative times":         {"rules:\n- {fault: hang, times: -1}\n", "times is negative"},
		"a latency as a number":  {"latency: 200", `line 1: "200" is not a duration; write it like 200ms`},
		"a latency upside down":  {"latency: {min: 2s, max: 1s}", "latency.max is less than latency.min"},
		"an unknown latency":     {"latency: {mean: 2s}", `unknown field "mean" in latency`},
		"a model without a name": {"models: [{unknown: true}]", "models[0]: name is"},
		"two documents":          {"default: {}\n---\ndefault: {}\n", "more than one YAML document"},
		"not YAML":               {"rules: [", "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseRules([]byte(tc.file))
			if err == nil {
				t.Fatal("accepted")
			}
			mustContain(t, err.Error(), tc.want)
		})
	}
}

func TestAnEmptyRulesFileIsAllByHash(t *testing.T) {
	for _, file := range []string{"", "# nothing\n", "{}"} {
		if _, err := ParseRules([]byte(file)); err != nil {
			t.Errorf("%q: %v", file, err)
		}
	}
}

func FuzzParseRules(f *testing.F) {
	f.Add("rules: [{when: {contains: x}, score: 0.5, fault: status, status: 429, retryAfter: 1s}]\ndefault: {score: hash}\nlatency: {min: 1s, max: 2s}")
	f.Fuzz(func(t *testing.T, file string) {
		if len(file) > 4096 || strings.Count(file, "*") > 3 {
			t.Skip()
		}
		r, err := ParseRules([]byte(file))
		if err != nil {
			return
		}
		if _, err := compile(r); err != nil {
			t.Errorf("parsed, but does not compile: %v", err)
		}
	})
}
