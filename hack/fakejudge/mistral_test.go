package fakejudge

import (
	"encoding/json"
	"strings"
	"testing"
)

func mistralCall(nonce, candidate, criterion string) object {
	return openAICall(nonce, candidate, criterion).with("model", "mistral-test")
}

func TestMistralRefusesWhatTheRealOneRefuses(t *testing.T) {
	_, url := start(t, Options{Keys: []string{"k"}, Rules: rulesOf(t, `
models:
- {name: "mistral-typo", unknown: true}
- {name: magistral-hot, refusesTemperature: true}
`)})
	call := mistralCall(nonceA, "a fine answer", "Is it fine?")
	for name, tc := range map[string]struct {
		call   object
		status int
		kind   string
		// wants are parts of the body.
		wants []string
	}{
		"the limit's new name":    {call.with("max_tokens", nil, "max_completion_tokens", 9), 422, "invalid_request_error", []string{`"message":{"detail":[{"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted","input":9}]}`}},
		"of every model of its":   {call.with("model", "codestral-x", "max_completion_tokens", 9), 422, "invalid_request_error", []string{"extra_forbidden"}},
		"OpenAI's seed":           {call.with("seed", 1), 422, "invalid_request_error", []string{`"loc":["body","seed"]`}},
		"an unknown model":        {call.with("model", "mistral-typo"), 400, "invalid_model", []string{`"message":"Invalid model: mistral-typo"`, `"code":"1500"`}},
		"temperature by a rule":   {call.with("model", "magistral-hot"), 422, "invalid_request_error", []string{`"loc":["body","temperature"]`, "not supported with this model"}},
		"temperature 1.6":         {call.with("temperature", 1.6), 422, "invalid_request_error", []string{"less than or equal to 1.5"}},
		"what both refuse":        {call.with("messages", nil), 400, "invalid_request_error", []string{`"object":"error"`, "Missing required parameter: 'messages'."}},
		"what is not imitated":    {call.with("prompt_mode", "reasoning"), 422, "invalid_request_error", []string{"stand-in"}},
		"a schema that is broken": {call.with("response_format", object{"type": "xml"}), 400, "invalid_request_error", []string{"Supported values are"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := askOpenAI(t, url, tc.call)
			var e mistralError
			if err := json.Unmarshal([]byte(r.body), &e); err != nil {
				t.Fatalf("%v in %s", err, r.body)
			}
			if r.status != tc.status || e.Object != "error" || e.Type != tc.kind {
				t.Errorf("status %d, body %s; want %d %s", r.status, r.body, tc.status, tc.kind)
			}
			mustContain(t, r.body, tc.wants...)
		})
	}
}

func TestMistralAcceptsWhatTheRealOneAccepts(t *testing.T) {
	s, url := start(t, Options{})
	call := mistralCall(nonceA, "a fine answer", "Is it fine?")
	for name, c := range map[string]object{
		"a judge call":     call,
		"fields of its":    call.with("random_seed", 7, "safe_prompt", false),
		"temperature 1.5":  call.with("temperature", 1.5),
		"another of its":   call.with("model", "ministral-8b-2512"),
		"no limit":         call.with("max_tokens", nil),
		"no format at all": call.with("response_format", object{"type": "json_object"}, "messages", list{object{"role": "user", "content": "Answer in JSON."}}),
	} {
		t.Run(name, func(t *testing.T) {
			if v := openAIVerdict(t, askOpenAI(t, url, c)); v.Score == nil || !strings.HasPrefix(v.Reason, ReasonPrefix) {
				t.Errorf("verdict %v", v)
			}
		})
	}
	if st := s.Stats(); st.Refused != 0 || st.ByModel["mistral-test"] != 5 || st.ByModel["ministral-8b-2512"] != 1 {
		t.Errorf("stats %+v", st)
	}
}

func TestOtherModelsStayWithOpenAIsFields(t *testing.T) {
	_, url := start(t, Options{})
	for _, model := range []string{"gpt-x", "open-mistral-nemo", "mistral"} {
		r := askOpenAI(t, url, openAICall(nonceA, "x", "q").with("model", model, "max_tokens", nil, "max_completion_tokens", 512))
		if v := openAIVerdict(t, r); v.Score == nil {
			t.Errorf("%s: %s", model, r.body)
		}
	}
}
