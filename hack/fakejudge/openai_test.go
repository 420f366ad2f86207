package fakejudge

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
)

func TestOpenAIRefusesWhatTheRealOneRefuses(t *testing.T) {
	_, url := start(t, Options{Keys: []string{"k"}, Rules: rulesOf(t, `
models:
- {name: "gpt-unknown", unknown: true}
- {name: gpt-hot, refusesTemperature: true}
`)})
	call := openAICall(nonceA, "a fine answer", "Is it fine?")
	says := func(kv ...any) list { return list{object{"role": "user", "content": "x"}.with(kv...)} }
	part := func(kv ...any) list { return says("content", list{object{}.with(kv...)}) }
	format := func(kv ...any) object {
		return object{"type": "json_schema", "json_schema": object{"name": "verdict", "strict": true, "schema": raw(verdictSchema)}.with(kv...)}
	}
	schema := func(s string) object { return format("schema", raw(s)) }
	for name, tc := range map[string]struct {
		call   object
		header object
		status int
		param  string
		code   string
		want   string
	}{
		"no key":                        {call, openAIHeaders.with("Authorization", ""), 401, "", "invalid_api_key", "You didn't provide an API key"},
		"a key without Bearer":          {call, openAIHeaders.with("Authorization", "k"), 401, "", "invalid_api_key", "You didn't provide an API key"},
		"a wrong key":                   {call, openAIHeaders.with("Authorization", "Bearer sk-0123456789"), 401, "", "invalid_api_key", "Incorrect API key provided: sk-******6789."},
		"a wrong content type":          {call, openAIHeaders.with("Content-Type", "text/plain"), 400, "", "", "application/json"},
		"no model":                      {call.with("model", nil), nil, 400, "", "", "you must provide a model parameter"},
		"a model that is a number":      {call.with("model", 4), nil, 400, "model", "invalid_type", "expected a string, but got a number"},
		"an unknown model":              {call.with("model", "gpt-unknown"), nil, 404, "", "model_not_found", "The model `gpt-unknown` does not exist"},
		"an unknown field":              {call.with("system", "x"), nil, 400, "system", "unknown_parameter", "Unknown parameter: 'system'."},
		"no messages":                   {call.with("messages", nil), nil, 400, "messages", "missing_required_parameter", "Missing required parameter: 'messages'."},
		"empty messages":                {call.with("messages", list{}), nil, 400, "messages", "empty_array", "Invalid 'messages': empty array."},
		"an unknown role":               {call.with("messages", says("role", "judge")), nil, 400, "messages[0].role", "invalid_value", "Invalid value: 'judge'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."},
		"no role":                       {call.with("messages", says("role", nil)), nil, 400, "messages[0].role", "missing_required_parameter", "messages[0].role"},
		"a tool result without a call":  {call.with("messages", says("role", "tool")), nil, 400, "messages[0].role", "", "must be a response to a preceeding message"},
		"no content":                    {call.with("messages", says("content", nil)), nil, 400, "messages[0].content", "", "expected a string, got null"},
		"an unknown part":               {call.with("messages", part("type", "song")), nil, 400, "messages[0].content[0].type", "invalid_value", "Supported values are: 'text'"},
		"a part without text":           {call.with("messages", part("type", "text")), nil, 400, "messages[0].content[0].text", "missing_required_parameter", "Missing required parameter"},
		"a part with a cache_control":   {call.with("messages", part("type", "text", "text", "x", "cache_control", object{})), nil, 400, "messages[0].content[0].cache_control", "unknown_parameter", "cache_control"},
		"no parts":                      {call.with("messages", says("content", list{})), nil, 400, "messages[0].content", "empty_array", "empty array"},
		"temperature 2.5":               {call.with("temperature", 2.5), nil, 400, "temperature", "decimal_above_max_value", "Expected a value <= 2, but got 2.5 instead."},
		"temperature -1":                {call.with("temperature", -1), nil, 400, "temperature", "decimal_below_min_value", "Expected a value >= 0, but got -1 instead."},
		"temperature as text":           {call.with("temperature", "0"), nil, 400, "temperature", "invalid_type", "expected a decimal, but got a string"},
		"temperature of o3":             {call.with("model", "o3-mini"), nil, 400, "temperature", "unsupported_value", "'temperature' does not support 0 with this model. Only the default (1) value is supported."},
		"temperature of gpt-5":          {call.with("model", "gpt-5-mini"), nil, 400, "temperature", "unsupported_value", "Only the default (1)"},
		"temperature by a rule":         {call.with("model", "gpt-hot"), nil, 400, "temperature", "unsupported_value", "Only the default (1)"},
		"max_tokens of o3":              {call.with("model", "o3", "temperature", nil), nil, 400, "max_tokens", "unsupported_parameter", "Use 'max_completion_tokens' instead."},
		"top_p of gpt-5":                {call.with("model", "gpt-5", "temperature", 1, "top_p", 1), nil, 400, "top_p", "unsupported_parameter", "'top_p' is not supported with this model"},
		"max_tokens 0":                  {call.with("max_tokens", 0), nil, 400, "max_tokens", "integer_below_min_value", "Expected a value >= 1, but got 0 instead."},
		"both limits":                   {call.with("max_completion_tokens", 9), nil, 400, "max_tokens", "invalid_parameter_combination", "at the same time"},
		"a stream":                      {call.with("stream", true), nil, 400, "stream", "unsupported_value", "stand-in"},
		"tools":                         {call.with("tools", list{}), nil, 400, "tools", "unsupported_parameter", "stand-in"},
		"three choices":                 {call.with("n", 3), nil, 400, "n", "unsupported_value", "stand-in"},
		"a format of an unknown type":   {call.with("response_format", object{"type": "xml"}), nil, 400, "response_format.type", "invalid_value", "Supported values are: 'json_object', 'json_schema', and 'text'."},
		"a format with a schema inside": {call.with("response_format", object{"type": "json_schema", "schema": object{}}), nil, 400, "response_format.schema", "unknown_parameter", "Unknown parameter: 'response_format.schema'."},
		"a format without a name":       {call.with("response_format", format("name", nil)), nil, 400, "response_format.json_schema.name", "missing_required_parameter", "json_schema.name"},
		"a format name with a space":    {call.with("response_format", format("name", "a verdict")), nil, 400, "response_format.json_schema.name", "invalid_value", "'^[a-zA-Z0-9_-]+$'"},
		"a format name too long":        {call.with("response_format", format("name", strings.Repeat("n", 65))), nil, 400, "response_format.json_schema.name", "string_above_max_length", "maximum length 64, but got a string with length 65"},
		"a format without a schema":     {call.with("response_format", format("schema", nil)), nil, 400, "response_format.json_schema.schema", "missing_required_parameter", "json_schema.schema"},
		"a strict array":                {call.with("response_format", schema(`{"type":"array","items":{"type":"string"}}`)), nil, 400, "response_format", "", `schema must be a JSON Schema of 'type: "object"', got 'type: "array"'.`},
		"a strict schema that is open":  {call.with("response_format", schema(`{"type":"object","properties":{}}`)), nil, 400, "response_format", "", "Invalid schema for response_format 'verdict': In context=(), 'additionalProperties' is required to be supplied and to be false."},
		"an open object further down":   {call.with("response_format", schema(`{"type":"object","properties":{"a":{"type":"object","properties":{}}},"required":["a"],"additionalProperties":false}`)), nil, 400, "response_format", "", "In context=('properties', 'a'), 'additionalProperties'"},
		"a strict optional field":       {call.with("response_format", schema(`{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`)), nil, 400, "response_format", "", "including every key in properties. Missing 'a'."},
		"a strict field too many":       {call.with("response_format", schema(`{"type":"object","properties":{},"required":["a"],"additionalProperties":false}`)), nil, 400, "response_format", "", "Extra required key 'a' supplied."},
		"a strict minLength":            {call.with("response_format", schema(`{"type":"object","properties":{"a":{"type":"string","minLength":1}},"required":["a"],"additionalProperties":false}`)), nil, 400, "response_format", "", "'minLength' is not permitted."},
		"a strict field without a type": {call.with("response_format", schema(`{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`)), nil, 400, "response_format", "", "schema must have a 'type' key."},
		"json_object without the word":  {call.with("response_format", object{"type": "json_object"}), nil, 400, "messages", "", "must contain the word 'json'"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.header == nil {
				tc.header = openAIHeaders
			}
			r := post(t, url+"/v1/chat/completions", tc.call.encode(), tc.header.headers())
			var e openAIError
			if err := json.Unmarshal([]byte(r.body), &e); err != nil {
				t.Fatalf("%v in %s", err, r.body)
			}
			var param, code string
			if e.Error.Param != nil {
				param = *e.Error.Param
			}
			if e.Error.Code != nil {
				code = *e.Error.Code
			}
			if r.status != tc.status || e.Error.Type != "invalid_request_error" || param != tc.param || code != tc.code {
				t.Errorf("status %d, body %s; want %d, param %q, code %q", r.status, r.body, tc.status, tc.param, tc.code)
			}
			mustContain(t, e.Error.Message, tc.want)
		})
	}
}

func TestOpenAIAcceptsWhatTheRealOneAccepts(t *testing.T) {
	_, url := start(t, Options{})
	call := openAICall(nonceA, "a fine answer", "Is it fine?")
	for name, c := range map[string]object{
		"a judge call":            call,
		"o3 without temperature":  call.with("model", "o3", "temperature", nil, "max_tokens", nil, "max_completion_tokens", 512),
		"gpt-5 at temperature 1":  call.with("model", "gpt-5", "temperature", 1, "max_tokens", nil),
		"gpt-5-chat is no such":   call.with("model", "gpt-5-chat-latest"),
		"json_object":             call.with("response_format", object{"type": "json_object"}, "messages", list{object{"role": "user", "content": "Answer in JSON."}}),
		"a schema not strict":     call.with("response_format", object{"type": "json_schema", "json_schema": object{"name": "v", "schema": raw(`{"type":"object","properties":{"score":{"type":"number"},"reason":{"type":"string"}}}`)}}),
		"a developer message":     call.with("messages", list{object{"role": "developer", "content": "Judge."}, object{"role": "user", "content": "Is it?"}}),
		"assistant turns and all": call.with("messages", list{object{"role": "user", "content": "Is it?"}, object{"role": "assistant", "content": "{}"}, object{"role": "user", "content": "No."}}),
	} {
		t.Run(name, func(t *testing.T) {
			if v := openAIVerdict(t, askOpenAI(t, url, c)); v.Score == nil || !strings.HasPrefix(v.Reason, ReasonPrefix) {
				t.Errorf("verdict %v", v)
			}
		})
	}
}

func TestOpenAISDKReadsTheVerdictAndTheCacheUse(t *testing.T) {
	_, url := start(t, Options{Rules: rulesOf(t, `rules: [{when: {contains: "fine"}, score: 0.25, reason: "meh"}]`)})
	client := sdk.NewClient(option.WithBaseURL(url+"/prefix/v1"), option.WithAPIKey("k"), option.WithMaxRetries(0))
	ask := func() *sdk.ChatCompletion {
		t.Helper()
		c, err := client.Chat.Completions.New(t.Context(), sdk.ChatCompletionNewParams{
			Model: "gpt-4o", Temperature: sdk.Float(0),
			Messages: []sdk.ChatCompletionMessageParamUnion{sdk.SystemMessage(strings.Repeat("judge well ", 1000)), sdk.UserMessage("Is it fine?")},
			ResponseFormat: sdk.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
				JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "verdict", Strict: sdk.Bool(true), Schema: raw(strictSchema)},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first, second := ask(), ask()
	if got, want := first.Choices[0].Message.Content, `{"reason":"[stand-in judge] meh","score":3}`; got != want {
		t.Errorf("content %s, want %s", got, want)
	}
	if first.Choices[0].FinishReason != "stop" || first.Model != "gpt-4o" {
		t.Errorf("completion %s", first.RawJSON())
	}
	if n := first.Usage.PromptTokensDetails.CachedTokens; n != 0 {
		t.Errorf("the first call read %d tokens from the cache", n)
	}
	if n := second.Usage.PromptTokensDetails.CachedTokens; n < 2500 || n%128 != 0 || n > second.Usage.PromptTokens {
		t.Errorf("the second call read %d of %d tokens from the cache", n, second.Usage.PromptTokens)
	}
}

func TestOpenAISDKReadsTheErrors(t *testing.T) {
	_, url := start(t, Options{Keys: []string{"right"}})
	client := sdk.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey("wrong"), option.WithMaxRetries(0))
	_, err := client.Chat.Completions.New(t.Context(), sdk.ChatCompletionNewParams{Model: "gpt-4o", Messages: []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage("x")}})
	var e *sdk.Error
	if !errors.As(err, &e) || e.StatusCode != 401 || e.Code != "invalid_api_key" {
		t.Fatalf("error %v", err)
	}
}
