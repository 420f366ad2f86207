package fakejudge

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

func TestAnthropicRefusesWhatTheRealOneRefuses(t *testing.T) {
	_, url := start(t, Options{Keys: []string{"k"}, Rules: rulesOf(t, `
models:
- {name: "claude-unknown-*", unknown: true}
- {name: claude-hot, refusesTemperature: true}
`)})
	call := anthropicCall(nonceA, "a fine answer", "Is it fine?")
	user := func(content any) list { return list{object{"role": "user", "content": content}} }
	block := func(kv ...any) list { return user(list{object{}.with(kv...)}) }
	tool := func(kv ...any) list {
		return list{object{"name": "record_verdict", "input_schema": raw(verdictSchema)}.with(kv...)}
	}
	marked := object{"type": "text", "text": "x", "cache_control": object{"type": "ephemeral"}}
	for name, tc := range map[string]struct {
		call   object
		header object
		status int
		kind   string
		want   string
	}{
		"no key":                       {call, anthropicHeaders.with("X-Api-Key", ""), 401, "authentication_error", "x-api-key header is required"},
		"a wrong key":                  {call, anthropicHeaders.with("X-Api-Key", "other"), 401, "authentication_error", "invalid x-api-key"},
		"no version":                   {call, anthropicHeaders.with("Anthropic-Version", ""), 400, "invalid_request_error", "anthropic-version: header is required"},
		"a wrong version":              {call, anthropicHeaders.with("Anthropic-Version", "2020"), 400, "invalid_request_error", `anthropic-version: "2020" is not a valid version`},
		"a wrong content type":         {call, anthropicHeaders.with("Content-Type", "text/plain"), 400, "invalid_request_error", "application/json"},
		"no model":                     {call.with("model", nil), nil, 400, "", "model: Field required"},
		"a model that is a number":     {call.with("model", 4), nil, 400, "", "model: Input should be a valid string"},
		"an unknown model":             {call.with("model", "claude-unknown-9"), nil, 404, "not_found_error", "model: claude-unknown-9"},
		"no max_tokens":                {call.with("max_tokens", nil), nil, 400, "", "max_tokens: Field required"},
		"max_tokens 0":                 {call.with("max_tokens", 0), nil, 400, "", "max_tokens: Input should be greater than or equal to 1"},
		"max_tokens 1.5":               {call.with("max_tokens", 1.5), nil, 400, "", "max_tokens: Input should be a valid integer"},
		"no messages":                  {call.with("messages", nil), nil, 400, "", "messages: Field required"},
		"empty messages":               {call.with("messages", list{}), nil, 400, "", "messages: at least one message is required"},
		"assistant first":              {call.with("messages", list{object{"role": "assistant", "content": "x"}}), nil, 400, "", `messages: first message must use the "user" role`},
		"assistant last":               {call.with("messages", list{object{"role": "user", "content": "x"}, object{"role": "assistant", "content": "x"}}), nil, 400, "", "must end with a user message"},
		"a system message":             {call.with("messages", list{object{"role": "system", "content": "x"}}), nil, 400, "", `Unexpected role \"system\"`},
		"an unknown role":              {call.with("messages", list{object{"role": "judge", "content": "x"}}), nil, 400, "", "messages.0.role: Input should be 'user' or 'assistant'"},
		"a message with a name":        {call.with("messages", list{object{"role": "user", "content": "x", "name": "n"}}), nil, 400, "", "messages.0.name: Extra inputs are not permitted"},
		"no content":                   {call.with("messages", list{object{"role": "user"}}), nil, 400, "", "messages.0.content: Field required"},
		"empty content":                {call.with("messages", user("")), nil, 400, "", "must have non-empty content"},
		"an unknown block":             {call.with("messages", block("type", "song")), nil, 400, "", "messages.0.content.0: Input tag 'song' found using 'type' does not match any of the expected tags"},
		"an image":                     {call.with("messages", block("type", "image")), nil, 400, "", "not supported by the stand-in"},
		"an empty text block":          {call.with("messages", block("type", "text", "text", "")), nil, 400, "", "messages: text content blocks must be non-empty"},
		"a blank text block":           {call.with("messages", block("type", "text", "text", " \n")), nil, 400, "", "must contain non-whitespace text"},
		"a text block without text":    {call.with("messages", block("type", "text")), nil, 400, "", "messages.0.content.0.text.text: Field required"},
		"an extra field in a block":    {call.with("messages", block("type", "text", "text", "x", "y", 1)), nil, 400, "", "messages.0.content.0.text.y: Extra inputs are not permitted"},
		"a wrong cache_control":        {call.with("messages", block("type", "text", "text", "x", "cache_control", object{"type": "forever"})), nil, 400, "", "cache_control: Input tag 'forever'"},
		"a wrong ttl":                  {call.with("messages", block("type", "text", "text", "x", "cache_control", object{"type": "ephemeral", "ttl": "2d"})), nil, 400, "", "ttl: Input should be '5m' or '1h'"},
		"five cache breakpoints":       {call.with("messages", user(list{marked, marked, marked, marked, marked})), nil, 400, "", "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		"an unanswered tool call":      {call.with("messages", list{object{"role": "user", "content": "x"}, object{"role": "assistant", "content": list{object{"type": "tool_use", "id": "t1", "name": "n", "input": object{}}}}, object{"role": "user", "content": "x"}}), nil, 400, "", "`tool_use` ids were found without `tool_result` blocks immediately after: t1"},
		"a result without a call":      {call.with("messages", block("type", "tool_result", "tool_use_id", "t1", "content", "x")), nil, 400, "", "unexpected `tool_use_id` found in `tool_result` blocks: t1"},
		"a system that is a number":    {call.with("system", 1), nil, 400, "", "system: Input should be a valid string"},
		"a system block of a kind":     {call.with("system", list{object{"type": "image"}}), nil, 400, "", "system.0.type: Input should be 'text'"},
		"an empty system block":        {call.with("system", list{object{"type": "text", "text": ""}}), nil, 400, "", "system: text content blocks must be non-empty"},
		"a tool without a name":        {call.with("tools", tool("name", nil)), nil, 400, "", "tools.0.custom.name: Field required"},
		"a tool name with a space":     {call.with("tools", tool("name", "record verdict")), nil, 400, "", "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"},
		"a tool without a schema":      {call.with("tools", tool("input_schema", nil)), nil, 400, "", "tools.0.custom.input_schema: Field required"},
		"a schema without a type":      {call.with("tools", tool("input_schema", object{})), nil, 400, "", "tools.0.custom.input_schema.type: Field required"},
		"a schema that is an array":    {call.with("tools", tool("input_schema", object{"type": "array"})), nil, 400, "", "tools.0.custom.input_schema.type: Input should be 'object'"},
		"a schema of no known type":    {call.with("tools", tool("input_schema", raw(`{"type":"object","properties":{"score":{"type":"float"}}}`))), nil, 400, "", "It must match JSON Schema draft 2020-12"},
		"a strict tool with bounds":    {call.with("tools", tool("strict", true)), nil, 400, "", "For 'number' type, property 'minimum' is not supported"},
		"a strict tool that is open":   {call.with("tools", tool("strict", true, "input_schema", raw(`{"type":"object"}`))), nil, 400, "", "'additionalProperties' must be explicitly set to false"},
		"a tool with an extra field":   {call.with("tools", tool("parameters", object{})), nil, 400, "", "tools.0.custom.parameters: Extra inputs are not permitted"},
		"two tools of one name":        {call.with("tools", append(tool(), tool()...)), nil, 400, "", "Tool names must be unique"},
		"a server tool":                {call.with("tools", list{object{"type": "web_search_20250305", "name": "web_search"}}), nil, 400, "", "not supported by the stand-in"},
		"a schema it cannot answer":    {call.with("tools", tool("input_schema", raw(`{"type":"object","properties":{"s":{"type":"string","pattern":"^x"}}}`))), nil, 400, "", `cannot answer the schema keyword \"pattern\"`},
		"a choice of no tool":          {call.with("tool_choice", object{"type": "tool", "name": "other"}), nil, 400, "", "Tool 'other' not found in provided tools"},
		"a choice without a name":      {call.with("tool_choice", object{"type": "tool"}), nil, 400, "", "tool_choice.tool.name: Field required"},
		"a choice of an unknown type":  {call.with("tool_choice", object{"type": "function"}), nil, 400, "", "tool_choice: Input tag 'function'"},
		"a choice without tools":       {call.with("tools", nil), nil, 400, "", "may only be specified while providing tools"},
		"temperature 1.5":              {call.with("temperature", 1.5), nil, 400, "", "temperature: Input should be less than or equal to 1"},
		"temperature -1":               {call.with("temperature", -1), nil, 400, "", "temperature: Input should be greater than or equal to 0"},
		"a model without temperature":  {call.with("model", "claude-hot"), nil, 400, "", "`temperature` is deprecated for this model."},
		"an unknown field":             {call.with("response_format", object{}), nil, 400, "", "response_format: Extra inputs are not permitted"},
		"a stream":                     {call.with("stream", true), nil, 400, "", "not supported by the stand-in"},
		"thinking":                     {call.with("thinking", object{"type": "enabled", "budget_tokens": 1024}), nil, 400, "", "thinking: not supported by the stand-in"},
		"structured output by another": {call.with("output_config", object{"format": object{"type": "json_schema"}}), nil, 400, "", "output_config.format"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.header == nil {
				tc.header = anthropicHeaders
			}
			if tc.kind == "" {
				tc.kind = "invalid_request_error"
			}
			r := post(t, url+"/v1/messages", tc.call.encode(), tc.header.headers())
			var e anthropicError
			if err := json.Unmarshal([]byte(r.body), &e); err != nil || r.status != tc.status || e.Type != "error" || e.Error.Type != tc.kind {
				t.Errorf("status %d, body %s; want %d and %s", r.status, r.body, tc.status, tc.kind)
			}
			mustContain(t, e.Error.Message, strings.ReplaceAll(tc.want, `\"`, `"`))
			if !strings.HasPrefix(r.header.Get("Request-Id"), "req_") {
				t.Errorf("no request-id in %v", r.header)
			}
		})
	}
}

func TestAnthropicAcceptsWhatTheRealOneAccepts(t *testing.T) {
	_, url := start(t, Options{Rules: rulesOf(t, "models: [{name: claude-hot, refusesTemperature: true}]")})
	call := anthropicCall(nonceA, "a fine answer", "Is it fine?")
	for name, c := range map[string]object{
		"a judge call":              call,
		"a system string":           call.with("system", "Judge."),
		"content as a string":       call.with("messages", list{object{"role": "user", "content": "Is it fine?"}}),
		"two user turns in a row":   call.with("messages", list{object{"role": "user", "content": "a"}, object{"role": "user", "content": "b"}}),
		"no temperature where none": call.with("model", "claude-hot", "temperature", nil),
		"any tool":                  call.with("tool_choice", object{"type": "any"}),
		"a strict tool":             call.with("tools", list{object{"name": "record_verdict", "strict": true, "input_schema": raw(strictSchema)}}),
		"four cache breakpoints":    call.with("cache_control", object{"type": "ephemeral", "ttl": "1h"}),
		"thinking that is disabled": call.with("thinking", object{"type": "disabled"}),
		"a verdict that is sent back": call.with("messages", list{
			object{"role": "user", "content": "Is it fine?"},
			object{"role": "assistant", "content": list{object{"type": "tool_use", "id": "t1", "name": "record_verdict", "input": object{"score": 8}}}},
			object{"role": "user", "content": list{object{"type": "tool_result", "tool_use_id": "t1", "is_error": true, "content": "8 is not in 0..1"}}},
		}),
	} {
		t.Run(name, func(t *testing.T) {
			if v := anthropicVerdict(t, askAnthropic(t, url, c)); v.Score == nil || !strings.HasPrefix(v.Reason, ReasonPrefix) {
				t.Errorf("verdict %v", v)
			}
		})
	}
}

func TestAnthropicSDKReadsTheVerdictAndTheCacheUse(t *testing.T) {
	_, url := start(t, Options{Rules: rulesOf(t, `rules: [{when: {contains: "fine"}, score: 0.9, reason: "it is", evidence: "a fine"}]`)})
	client := sdk.NewClient(option.WithBaseURL(url+"/some/prefix"), option.WithAPIKey("k"), option.WithMaxRetries(0))
	ask := func(criterion string) *sdk.Message {
		t.Helper()
		m, err := client.Messages.New(t.Context(), sdk.MessageNewParams{
			Model: "claude-test", MaxTokens: 256, Temperature: sdk.Float(0),
			System: []sdk.TextBlockParam{{Text: "You are a judge."}},
			Messages: []sdk.MessageParam{sdk.NewUserMessage(
				sdk.ContentBlockParamUnion{OfText: &sdk.TextBlockParam{Text: strings.Repeat("a fine answer ", 100), CacheControl: sdk.NewCacheControlEphemeralParam()}},
				sdk.NewTextBlock(criterion))},
			Tools: []sdk.ToolUnionParam{{OfTool: &sdk.ToolParam{Name: "record_verdict", InputSchema: sdk.ToolInputSchemaParam{
				Properties: map[string]any{"score": map[string]any{"type": "integer", "minimum": 0, "maximum": 10}, "reason": map[string]any{"type": "string"}},
				Required:   []string{"score", "reason"},
			}}}},
			ToolChoice: sdk.ToolChoiceParamOfTool("record_verdict"),
		})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	first, second := ask("Is it fine?"), ask("Is it a fine length?")
	block, ok := first.Content[0].AsAny().(sdk.ToolUseBlock)
	if !ok || string(block.Input) != `{"reason":"[stand-in judge] it is","score":9}` || block.Name != "record_verdict" {
		t.Errorf("content %s", first.RawJSON())
	}
	if first.StopReason != sdk.StopReasonToolUse || first.Model != "claude-test" || !strings.HasPrefix(first.ID, "msg_") {
		t.Errorf("message %s", first.RawJSON())
	}
	u, v := first.Usage, second.Usage
	if u.CacheCreationInputTokens < 350 || u.CacheReadInputTokens != 0 || u.InputTokens != 3 || u.OutputTokens == 0 {
		t.Errorf("first usage %s", u.RawJSON())
	}
	if v.CacheReadInputTokens != u.CacheCreationInputTokens || v.CacheCreationInputTokens != 0 || v.InputTokens != 5 {
		t.Errorf("second usage %s", v.RawJSON())
	}
}

func TestAnthropicSDKReadsTheErrors(t *testing.T) {
	_, url := start(t, Options{Keys: []string{"right"}})
	client := sdk.NewClient(option.WithBaseURL(url), option.WithAPIKey("wrong"), option.WithMaxRetries(0))
	_, err := client.Messages.New(t.Context(), sdk.MessageNewParams{Model: "claude-test", MaxTokens: 1, Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("x"))}})
	var e *sdk.Error
	if !errors.As(err, &e) || e.StatusCode != http.StatusUnauthorized || e.RequestID == "" {
		t.Fatalf("error %v", err)
	}
	mustContain(t, e.Error(), "authentication_error", "invalid x-api-key")
}

func TestAnswersThatDoNotFitAreCutOff(t *testing.T) {
	s, url := start(t, Options{})
	a := askAnthropic(t, url, anthropicCall(nonceA, "x", "Is it?").with("max_tokens", 3))
	mustContain(t, a.body, `"stop_reason":"max_tokens"`, `"input":{}`, `"output_tokens":3`)
	o := askOpenAI(t, url, openAICall(nonceA, "x", "Is it?").with("max_tokens", 3))
	mustContain(t, o.body, `"finish_reason":"length"`, `"content":"{\"evidenc`)
	if st := s.Stats(); st.Faults != 2 || st.Answered != 0 {
		t.Errorf("stats %+v", st)
	}
}
