package fakejudge

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// openAI is the Chat Completions API: https://platform.openai.com/docs/api-reference/chat.
type openAI struct{}

var (
	openAIFields = []string{
		"audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens",
		"messages", "metadata", "modalities", "model", "moderation", "n", "parallel_tool_calls", "prediction", "presence_penalty",
		"prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning_effort", "response_format", "safety_identifier",
		"seed", "service_tier", "stop", "store", "stream", "stream_options", "temperature", "tool_choice", "tools", "top_logprobs",
		"top_p", "user", "verbosity", "web_search_options",
	}
	// openAIUnserved are fields that the real service takes and that would change
	// the answer in a way that the stand-in does not imitate.
	openAIUnserved = []string{
		"audio", "function_call", "functions", "logprobs", "modalities", "moderation", "prediction", "stream_options", "tool_choice",
		"tools", "top_logprobs", "web_search_options",
	}
	openAIRoles = []string{"system", "assistant", "user", "function", "tool", "developer"}
	openAIParts = []string{"text", "image_url", "input_audio", "refusal", "audio", "file"}

	openAIReasoning = regexp.MustCompile(`^(o[0-9]|gpt-[5-9])`)
)

func (openAI) requestIDHeader() string { return "X-Request-Id" }

// openAIError is the body of every error; param and code are null when there is none.
type openAIError struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	} `json:"error"`
}

func openAIBody(kind, message, param, code string) openAIError {
	var e openAIError
	e.Error.Message, e.Error.Type = message, kind
	if param != "" {
		e.Error.Param = &param
	}
	if code != "" {
		e.Error.Code = &code
	}
	return e
}

func (openAI) failure(status int, message string) any {
	switch {
	case status == http.StatusTooManyRequests:
		return openAIBody("requests", message, "", "rate_limit_exceeded")
	case status >= 500:
		return openAIBody("server_error", message, "", "")
	}
	return openAIBody("invalid_request_error", message, "", "")
}

// bad is a 400 about one parameter.
func (openAI) bad(param, code, format string, args ...any) *refusal {
	return &refusal{http.StatusBadRequest, openAIBody("invalid_request_error", fmt.Sprintf(format, args...), clip(param, 300), code)}
}

func (o openAI) checkHeaders(h http.Header, keys map[string]bool) *refusal {
	scheme, key, _ := strings.Cut(h.Get("Authorization"), " ")
	key = strings.TrimSpace(key)
	switch {
	case !strings.EqualFold(scheme, "Bearer") || key == "":
		return &refusal{http.StatusUnauthorized, openAIBody("invalid_request_error", "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).", "", "invalid_api_key")}
	case len(keys) > 0 && !keys[key]:
		return &refusal{http.StatusUnauthorized, openAIBody("invalid_request_error", "Incorrect API key provided: "+masked(key)+". You can find your API key at https://platform.openai.com/account/api-keys.", "", "invalid_api_key")}
	}
	return nil
}

// masked shows the ends of a key, as the real service does.
func masked(key string) string {
	if len(key) < 12 {
		return strings.Repeat("*", len(key))
	}
	return clip(key, 3) + strings.Repeat("*", min(len(key)-7, 40)) + key[len(key)-4:]
}

func (o openAI) decode(body []byte, rules *ruleSet) (*request, *refusal) {
	f, ok := objectOf(body)
	if model, _ := stringOf(f["model"]); mistralModels.MatchString(model) {
		return mistral{}.decode(body, rules)
	}
	if !ok || !json.Valid(body) {
		return nil, o.bad("", "", "We could not parse the JSON body of your request. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.")
	}
	return o.decodeFields(f, rules)
}

func (openAI) decodeFields(f fields, rules *ruleSet) (*request, *refusal) {
	d := &openAIDecoder{f: f, req: &request{}, rules: rules}
	for _, step := range []func() *refusal{d.model, d.messages, d.sampling, d.limits, d.unserved, d.responseFormat} {
		if ref := step(); ref != nil {
			return nil, ref
		}
	}
	d.req.prompt = newPrompt(nil, d.turns)
	d.req.segments = chunks(d.text.String(), openAICacheMin)
	d.req.inputLen = d.text.Len()
	return d.req, nil
}

// openAIDecoder decodes one body, a step at a time.
type openAIDecoder struct {
	openAI
	f      fields
	rules  *ruleSet
	req    *request
	policy Model
	turns  []turn
	text   strings.Builder // all messages, as the prompt cache sees them
}

func (d *openAIDecoder) model() *refusal {
	if k, ok := d.f.unknown(openAIFields); ok {
		return d.bad(k, "unknown_parameter", "Unknown parameter: '%s'.", clip(k, 200))
	}
	model, ok := stringOf(d.f["model"])
	switch {
	case d.f.has("model") && !ok:
		return d.wrongType("model", "a string")
	case model == "":
		return d.bad("", "", "you must provide a model parameter")
	}
	d.req.model = model
	d.policy = d.rules.model(model)
	if d.policy.Unknown {
		return &refusal{http.StatusNotFound, openAIBody("invalid_request_error",
			fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", clip(model, 200)), "", "model_not_found")}
	}
	return nil
}

// reasoning reports whether the model is one that fixes its own sampling.
func (d *openAIDecoder) reasoning() bool {
	return openAIReasoning.MatchString(d.req.model) && !strings.Contains(d.req.model, "-chat")
}

func (d *openAIDecoder) wrongType(param, want string) *refusal {
	kind := kindOf(d.f[param])
	article := "a "
	if kind == "array" || kind == "object" {
		article = "an "
	}
	if kind == "null" {
		article = ""
	}
	return d.bad(param, "invalid_type", "Invalid type for '%s': expected %s, but got %s%s instead.", param, want, article, kind)
}

func (d *openAIDecoder) sampling() *refusal {
	for _, p := range []struct {
		name   string
		lo, hi float64
	}{{"temperature", 0, 2}, {"top_p", 0, 1}, {"frequency_penalty", -2, 2}, {"presence_penalty", -2, 2}} {
		if !d.f.has(p.name) {
			continue
		}
		v, ok := numberOf(d.f[p.name])
		switch {
		case !ok:
			return d.wrongType(p.name, "a decimal")
		case v < p.lo:
			return d.bad(p.name, "decimal_below_min_value", "Invalid '%s': decimal below minimum value. Expected a value >= %v, but got %v instead.", p.name, p.lo, v)
		case v > p.hi:
			return d.bad(p.name, "decimal_above_max_value", "Invalid '%s': decimal above maximum value. Expected a value <= %v, but got %v instead.", p.name, p.hi, v)
		case p.name == "temperature" && v != 1 && (d.reasoning() || d.policy.RefusesTemperature):
			return d.bad(p.name, "unsupported_value", "Unsupported value: 'temperature' does not support %v with this model. Only the default (1) value is supported.", v)
		case p.name != "temperature" && d.reasoning():
			return d.bad(p.name, "unsupported_parameter", "Unsupported parameter: '%s' is not supported with this model.", p.name)
		}
	}
	return nil
}

func (d *openAIDecoder) limits() *refusal {
	for _, name := range []string{"max_tokens", "max_completion_tokens", "n", "seed"} {
		if !d.f.has(name) {
			continue
		}
		v, ok := numberOf(d.f[name])
		switch {
		case !ok || v != float64(int(v)):
			return d.wrongType(name, "an integer")
		case name == "seed":
		case v < 1:
			return d.bad(name, "integer_below_min_value", "Invalid '%s': integer below minimum value. Expected a value >= 1, but got %v instead.", name, v)
		case name == "max_tokens" && d.reasoning():
			return d.bad(name, "unsupported_parameter", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
		case name == "n" && v > 1:
			return d.bad(name, "unsupported_value", "n above 1 is not supported by the stand-in judge")
		case name != "n":
			d.req.maxTokens = int(v)
		}
	}
	if d.f.has("max_tokens") && d.f.has("max_completion_tokens") {
		return d.bad("max_tokens", "invalid_parameter_combination", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
	return nil
}

func (d *openAIDecoder) unserved() *refusal {
	switch s := strings.TrimSpace(string(d.f["stream"])); s {
	case "", "false", "null":
	case "true":
		return d.bad("stream", "unsupported_value", "stream is not supported by the stand-in judge; leave it out")
	default:
		return d.wrongType("stream", "a boolean")
	}
	for _, name := range openAIUnserved {
		if d.f.has(name) && strings.TrimSpace(string(d.f[name])) != "false" {
			return d.bad(name, "unsupported_parameter", "'%s' is not supported by the stand-in judge; leave it out", name)
		}
	}
	return nil
}

func (d *openAIDecoder) messages() *refusal {
	if d.f["messages"] == nil {
		return d.bad("messages", "missing_required_parameter", "Missing required parameter: 'messages'.")
	}
	list, ok := listOf(d.f["messages"])
	switch {
	case !ok:
		return d.wrongType("messages", "an array of objects")
	case len(list) == 0:
		return d.bad("messages", "empty_array", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	for i, raw := range list {
		if ref := d.message(fmt.Sprintf("messages[%d]", i), raw); ref != nil {
			return ref
		}
	}
	return nil
}

func (d *openAIDecoder) message(place string, raw json.RawMessage) *refusal {
	f, ok := objectOf(raw)
	if !ok {
		return d.bad(place, "invalid_type", "Invalid type for '%s': expected an object, but got a %s instead.", place, kindOf(raw))
	}
	known := []string{"role", "content", "name", "refusal", "annotations", "audio", "tool_calls", "tool_call_id", "function_call"}
	if k, ok := f.unknown(known); ok {
		k = place + "." + clip(k, 200)
		return d.bad(k, "unknown_parameter", "Unknown parameter: '%s'.", k)
	}
	role, _ := stringOf(f["role"])
	switch {
	case !f.has("role"):
		return d.bad(place+".role", "missing_required_parameter", "Missing required parameter: '%s.role'.", place)
	case !slices.Contains(openAIRoles, role):
		return d.bad(place+".role", "invalid_value", "Invalid value: '%s'. Supported values are: '%s', and '%s'.", clip(role, 50), strings.Join(openAIRoles[:5], "', '"), openAIRoles[5])
	case role == "tool" || role == "function":
		return d.bad(place+".role", "", "Invalid parameter: messages with role '%s' must be a response to a preceeding message with 'tool_calls'.", role)
	case f.has("tool_calls") || f.has("function_call") || f.has("audio"):
		return d.bad(place, "unsupported_value", "tool_calls, function_call and audio are not supported by the stand-in judge; send text")
	case !f.has("content") && (role != "assistant" || !f.has("refusal")):
		return d.bad(place+".content", "", "Invalid value for 'content': expected a string, got null.")
	}
	blocks, ref := d.content(place+".content", f["content"])
	if ref != nil {
		return ref
	}
	for _, b := range blocks {
		d.text.WriteString(role + "\x00" + b + "\x00")
	}
	d.turns = append(d.turns, turn{role: role, blocks: blocks})
	return nil
}

func (d *openAIDecoder) content(place string, raw json.RawMessage) ([]string, *refusal) {
	if text, ok := stringOf(raw); ok || kindOf(raw) == "null" {
		return []string{text}, nil
	}
	list, ok := listOf(raw)
	switch {
	case !ok:
		return nil, d.bad(place, "invalid_type", "Invalid type for '%s': expected one of a string or array of objects, but got a %s instead.", place, kindOf(raw))
	case len(list) == 0:
		return nil, d.bad(place, "empty_array", "Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", place)
	}
	var texts []string
	for i, p := range list {
		at := fmt.Sprintf("%s[%d]", place, i)
		f, _ := objectOf(p)
		kind, _ := stringOf(f["type"])
		text, isText := stringOf(f["text"])
		switch {
		case f == nil:
			return nil, d.bad(at, "invalid_type", "Invalid type for '%s': expected an object, but got a %s instead.", at, kindOf(p))
		case !f.has("type"):
			return nil, d.bad(at+".type", "missing_required_parameter", "Missing required parameter: '%s.type'.", at)
		case !slices.Contains(openAIParts, kind):
			return nil, d.bad(at+".type", "invalid_value", "Invalid value: '%s'. Supported values are: '%s', and '%s'.", clip(kind, 50), strings.Join(openAIParts[:5], "', '"), openAIParts[5])
		case kind != "text":
			return nil, d.bad(at, "unsupported_value", "'%s' parts are not supported by the stand-in judge; send text", kind)
		case !f.has("text"):
			return nil, d.bad(at+".text", "missing_required_parameter", "Missing required parameter: '%s.text'.", at)
		case !isText:
			return nil, d.bad(at+".text", "invalid_type", "Invalid type for '%s.text': expected a string, but got a %s instead.", at, kindOf(f["text"]))
		}
		if k, ok := f.unknown([]string{"type", "text", "prompt_cache_breakpoint"}); ok {
			return nil, d.bad(at+"."+k, "unknown_parameter", "Unknown parameter: '%s.%s'.", at, clip(k, 200))
		}
		texts = append(texts, text)
	}
	return texts, nil
}
