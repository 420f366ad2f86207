package fakejudge

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/genai"
)

const geminiPath = "/v1beta/models/gemini-test:generateContent"

var geminiHeaders = object{"X-Goog-Api-Key": "k", "Content-Type": "application/json"}

// geminiCall is a well-formed judge call: candidate first, criterion last (S-46).
func geminiCall(nonce, candidate, criterion string) object {
	return object{
		"systemInstruction": object{"parts": list{object{"text": "You are a judge."}}},
		"contents": list{object{"role": "user", "parts": list{
			object{"text": fmt.Sprintf("<candidate %s>\n%s\n</candidate %s>", nonce, candidate, nonce)}, object{"text": criterion},
		}}},
		"generationConfig": object{
			"temperature": 0, "maxOutputTokens": 512, "responseMimeType": "application/json", "responseJsonSchema": raw(verdictSchema),
		},
	}
}

func askGemini(t testing.TB, url string, call object) reply {
	t.Helper()
	return post(t, url+geminiPath, call.encode(), geminiHeaders.headers())
}

func geminiVerdict(t testing.TB, r reply) verdict {
	t.Helper()
	var m geminiResponse
	if r.status != 200 {
		t.Fatalf("status %d: %s", r.status, r.body)
	}
	if err := json.Unmarshal([]byte(r.body), &m); err != nil || len(m.Candidates) != 1 || m.Candidates[0].Content == nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	var v verdict
	if err := json.Unmarshal([]byte(m.Candidates[0].Content.Parts[0].Text), &v); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	return v
}

func TestGeminiRefusesWhatTheRealOneRefuses(t *testing.T) {
	_, url := start(t, Options{Keys: []string{"k"}, Rules: rulesOf(t, `
models:
- {name: "gemini-unknown", unknown: true}
- {name: gemini-hot, refusesTemperature: true}
`)})
	call := geminiCall(nonceA, "a fine answer", "Is it fine?")
	config := func(kv ...any) object {
		return call.with("generationConfig", call["generationConfig"].(object).with(kv...))
	}
	says := func(kv ...any) object {
		return call.with("contents", list{object{"role": "user", "parts": list{object{"text": "x"}}}.with(kv...)})
	}
	part := func(p any) object { return says("parts", list{p}) }
	for name, tc := range map[string]struct {
		call         object
		header       object
		path         string
		status       int
		code, reason string
		want         string
	}{
		"no key":                      {call: call, header: geminiHeaders.with("X-Goog-Api-Key", nil), status: 403, code: "PERMISSION_DENIED", want: "unregistered callers"},
		"a key in another header":     {call: call, header: geminiHeaders.with("X-Goog-Api-Key", nil, "Authorization", "Bearer k"), status: 403, code: "PERMISSION_DENIED", want: "unregistered callers"},
		"a wrong key":                 {call: call, header: geminiHeaders.with("X-Goog-Api-Key", "wrong"), status: 400, code: "INVALID_ARGUMENT", reason: "API_KEY_INVALID", want: "API key not valid."},
		"a wrong content type":        {call: call, header: geminiHeaders.with("Content-Type", "text/plain"), status: 400, code: "INVALID_ARGUMENT", want: "application/json"},
		"an unknown model":            {call: call, path: "/v1beta/models/gemini-unknown:generateContent", status: 404, code: "NOT_FOUND", want: "models/gemini-unknown is not found for API version v1beta"},
		"no model":                    {call: call, path: "/v1beta/models/:generateContent", status: 404, code: "NOT_FOUND", want: "is not found"},
		"an unknown field":            {call: call.with("messages", list{}), status: 400, code: "INVALID_ARGUMENT", want: `Unknown name "messages": Cannot find field.`},
		"an unknown field inside":     {call: config("maxTokens", 5), status: 400, code: "INVALID_ARGUMENT", want: `Unknown name "maxTokens" at 'generation_config'`},
		"tools":                       {call: call.with("tools", list{object{}}), status: 400, code: "INVALID_ARGUMENT", want: "tools is not supported by the stand-in"},
		"no contents":                 {call: call.with("contents", nil), status: 400, code: "INVALID_ARGUMENT", want: "contents is not specified"},
		"contents that are no list":   {call: call.with("contents", "x"), status: 400, code: "INVALID_ARGUMENT", want: "Invalid value at 'contents'"},
		"an unknown role":             {call: says("role", "assistant"), status: 400, code: "INVALID_ARGUMENT", want: "Please use a valid role: user, model."},
		"no parts":                    {call: says("parts", list{}), status: 400, code: "INVALID_ARGUMENT", want: "contents[0].parts: contents.parts must not be empty."},
		"a part that is no object":    {call: part("x"), status: 400, code: "INVALID_ARGUMENT", want: "Invalid value at 'contents[0].parts[0]'"},
		"an empty part":               {call: part(object{}), status: 400, code: "INVALID_ARGUMENT", want: "must have one initialized field"},
		"a picture":                   {call: part(object{"inline_data": object{}}), status: 400, code: "INVALID_ARGUMENT", want: "inlineData is not supported by the stand-in"},
		"an unknown part":             {call: part(object{"song": "x"}), status: 400, code: "INVALID_ARGUMENT", want: `Unknown name "song" at 'contents[0].parts[0]'`},
		"text that is a number":       {call: part(object{"text": 5}), status: 400, code: "INVALID_ARGUMENT", want: "(TYPE_STRING), 5"},
		"the model has the last word": {call: says("role", "model"), status: 400, code: "INVALID_ARGUMENT", want: "end with a user role"},
		"temperature 2.5":             {call: config("temperature", 2.5), status: 400, code: "INVALID_ARGUMENT", want: "generation_config.temperature: temperature must be in the range [0.0, 2.0]."},
		"temperature as text":         {call: config("temperature", "0"), status: 400, code: "INVALID_ARGUMENT", want: "(TYPE_FLOAT)"},
		"temperature by a rule":       {call: call, path: "/v1beta/models/gemini-hot:generateContent", status: 400, code: "INVALID_ARGUMENT", want: "does not support the temperature parameter"},
		"maxOutputTokens 0":           {call: config("maxOutputTokens", 0), status: 400, code: "INVALID_ARGUMENT", want: "maxOutputTokens value of 0 but the supported range is from 1"},
		"three candidates":            {call: config("candidateCount", 3), status: 400, code: "INVALID_ARGUMENT", want: "stand-in"},
		"thinking":                    {call: config("thinkingConfig", object{}), status: 400, code: "INVALID_ARGUMENT", want: "thinkingConfig is not supported by the stand-in"},
		"an unknown MIME type":        {call: config("responseMimeType", "text/xml"), status: 400, code: "INVALID_ARGUMENT", want: "allowed mimetypes"},
		"a schema without JSON":       {call: config("responseMimeType", nil), status: 400, code: "INVALID_ARGUMENT", want: "needs response_mime_type"},
		"two schemas":                 {call: config("responseSchema", object{}), status: 400, code: "INVALID_ARGUMENT", want: "response_schema must not be set with response_json_schema"},
		"a schema that is none":       {call: config("responseJsonSchema", raw(`{"type":"song"}`)), status: 400, code: "INVALID_ARGUMENT", want: `"song" is not a type`},
		"an order of what is not":     {call: config("responseJsonSchema", raw(`{"type":"object","properties":{"a":{"type":"string"}},"propertyOrdering":["b"]}`)), status: 400, code: "INVALID_ARGUMENT", want: `property "b" is not defined`},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.header == nil {
				tc.header = geminiHeaders
			}
			if tc.path == "" {
				tc.path = geminiPath
			}
			r := post(t, url+tc.path, tc.call.encode(), tc.header.headers())
			var e geminiError
			if err := json.Unmarshal([]byte(r.body), &e); err != nil {
				t.Fatalf("%v in %s", err, r.body)
			}
			if r.status != tc.status || e.Error.Code != tc.status || e.Error.Status != tc.code {
				t.Errorf("status %d, body %s; want %d %s", r.status, r.body, tc.status, tc.code)
			}
			mustContain(t, e.Error.Message, tc.want)
			mustContain(t, r.body, tc.reason)
		})
	}
}

func TestGeminiAcceptsWhatTheRealOneAccepts(t *testing.T) {
	_, url := start(t, Options{})
	call := geminiCall(nonceA, "a fine answer", "Is it fine?")
	config := func(c object) object { return call.with("generationConfig", c) }
	for name, c := range map[string]object{
		"a judge call":        call,
		"names with _":        config(object{"max_output_tokens": 512, "response_mime_type": "application/json", "response_json_schema": raw(verdictSchema)}),
		"Google's own schema": config(object{"responseMimeType": "application/json", "responseSchema": raw(`{"type":"OBJECT","properties":{"score":{"type":"NUMBER"},"reason":{"type":"STRING"}},"propertyOrdering":["reason","score"]}`)}),
		"JSON without one":    config(object{"responseMimeType": "application/json"}),
		"turns of the model":  call.with("contents", append(call["contents"].(list), object{"role": "model", "parts": list{object{"text": "{}", "thoughtSignature": "c2ln"}}}, object{"role": "user", "parts": list{object{"text": "No."}}})),
		"no role":             call.with("contents", list{object{"parts": list{object{"text": "Is it?"}}}}),
	} {
		t.Run(name, func(t *testing.T) {
			if v := geminiVerdict(t, askGemini(t, url, c)); v.Score == nil || !strings.HasPrefix(v.Reason, ReasonPrefix) {
				t.Errorf("verdict %v", v)
			}
		})
	}
}

// sdkOf is the real SDK, pointed at the stand-in.
func sdkOf(t *testing.T, url, key string) *genai.Client {
	t.Helper()
	c, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: key, Backend: genai.BackendGeminiAPI, HTTPClient: http.DefaultClient, HTTPOptions: genai.HTTPOptions{BaseURL: url},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestGeminiSDKReadsTheVerdictAndTheCacheUse(t *testing.T) {
	s, url := start(t, Options{Rules: rulesOf(t, `rules: [{when: {contains: "fine"}, score: 0.25, reason: "meh"}]`)})
	client := sdkOf(t, url+"/prefix", "k")
	ask := func() *genai.GenerateContentResponse {
		t.Helper()
		m, err := client.Models.GenerateContent(t.Context(), "gemini-test", genai.Text("Is it fine?"), &genai.GenerateContentConfig{
			SystemInstruction: genai.NewContentFromText(strings.Repeat("judge well ", 2000), genai.RoleUser),
			ResponseMIMEType:  "application/json", ResponseJsonSchema: raw(strictSchema),
		})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	first, second := ask(), ask()
	if got, want := first.Text(), `{"reason":"[stand-in judge] meh","score":3}`; got != want {
		t.Errorf("text %s, want %s", got, want)
	}
	if c := first.Candidates[0]; c.FinishReason != genai.FinishReasonStop || first.ModelVersion != "gemini-test" {
		t.Errorf("response %+v", first)
	}
	if n := first.UsageMetadata.CachedContentTokenCount; n != 0 {
		t.Errorf("the first call read %d tokens from the cache", n)
	}
	u := second.UsageMetadata
	if n := u.CachedContentTokenCount; n < 4096 || n%128 != 0 || n > u.PromptTokenCount || u.TotalTokenCount != u.PromptTokenCount+u.CandidatesTokenCount {
		t.Errorf("the second call's usage: %+v", u)
	}
	if st := s.Stats(); st.Answered != 2 || st.AnsweredTwice != 1 || st.ByModel["gemini-test"] != 2 {
		t.Errorf("stats %+v", st)
	}
}

func TestGeminiSDKReadsTheErrors(t *testing.T) {
	_, url := start(t, Options{Keys: []string{"right"}})
	_, err := sdkOf(t, url, "wrong").Models.GenerateContent(t.Context(), "gemini-test", genai.Text("x"), nil)
	var e genai.APIError
	if !errors.As(err, &e) || e.Code != 400 || e.Status != "INVALID_ARGUMENT" || len(e.Details) != 1 || e.Details[0]["reason"] != "API_KEY_INVALID" {
		t.Fatalf("error %v", err)
	}
}

func TestGeminiSaysInTheBodyHowLongToWait(t *testing.T) {
	_, url := start(t, Options{Rules: rulesOf(t, `rules: [{fault: status, status: 429, retryAfter: 1500ms, times: 1, score: 0.25}]`)})
	call := geminiCall(nonceA, "x", "Is it?")
	r := askGemini(t, url, call)
	if r.status != 429 || r.header.Get("Retry-After") != "" || r.header.Get("Retry-After-Ms") != "" {
		t.Errorf("status %d, headers %v", r.status, r.header)
	}
	mustContain(t, r.body, `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.5s"}`)
	if v := geminiVerdict(t, askGemini(t, url, call)); *v.Score != 0.25 {
		t.Errorf("verdict %v", v)
	}
}

func TestGeminiIsCutOffAtItsLimit(t *testing.T) {
	s, url := start(t, Options{})
	call := geminiCall(nonceA, "x", "Is it?")
	r := askGemini(t, url, call.with("generationConfig", object{"maxOutputTokens": 3}))
	mustContain(t, r.body, `"finishReason":"MAX_TOKENS"`, `"candidatesTokenCount":3`)
	if st := s.Stats(); st.ByFault[faultTruncated] != 1 {
		t.Errorf("stats %+v", st)
	}
}

func FuzzGeminiDecode(f *testing.F) {
	f.Add(geminiCall(nonceA, "x", "q").encode())
	f.Add([]byte(`{"contents":[{"parts":[{"text":"x"}]}],"generation_config":{"response_mime_type":"application/json","response_schema":{"type":"ARRAY"}}}`))
	f.Add([]byte(`{"contents":[null],"_":{"__":1}}`))
	rules, err := compile(Rules{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		req, ref := gemini{model: "gemini-test"}.decode(body, rules)
		switch {
		case (req == nil) == (ref == nil):
			t.Errorf("%q: request %v, refusal %v", body, req, ref)
		case ref != nil && (ref.status < 400 || ref.status > 499):
			t.Errorf("%q is refused with %d", body, ref.status)
		}
	})
}
