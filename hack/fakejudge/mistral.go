package fakejudge

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
)

// mistral is OpenAI's format as Mistral has it: https://docs.mistral.ai/api. Both have the same path, so that the name of
// the model tells which is meant; a wrong key is refused before it is read, in OpenAI's words.
type mistral struct{ openAI }

var (
	mistralModels = regexp.MustCompile(`^(mistral|codestral|magistral|ministral|devstral)-`)
	// mistralFields are the fields that Mistral takes; it refuses all others, OpenAI's newer ones too.
	mistralFields = []string{
		"frequency_penalty", "guardrails", "max_tokens", "messages", "metadata", "model", "n", "parallel_tool_calls", "prediction",
		"presence_penalty", "prompt_cache_key", "prompt_mode", "random_seed", "reasoning_effort", "response_format", "safe_prompt", "stop",
		"stream", "temperature", "tool_choice", "tools", "top_p",
	}
	// mistralUnserved are fields that OpenAI does not have, and that the stand-in does not imitate.
	mistralUnserved = []string{"guardrails", "prompt_mode"}
	// mistralIgnored are fields that OpenAI does not have, and that change nothing here.
	mistralIgnored = []string{"random_seed", "safe_prompt"}
)

const mistralMaxTemperature = 1.5

// mistralError is the body of every error; its message is a string, or the complaints about a request.
type mistralError struct {
	Object  string  `json:"object"`
	Message any     `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// mistralComplaints are what is wrong with a request, each with the part of it that is meant.
type mistralComplaints struct {
	Detail []mistralComplaint `json:"detail"`
}

type mistralComplaint struct {
	Type    string          `json:"type"`
	Place   []string        `json:"loc"`
	Message string          `json:"msg"`
	Input   json.RawMessage `json:"input"`
}

func mistralBody(kind string, message any, code string) mistralError {
	e := mistralError{Object: "error", Message: message, Type: kind}
	if code != "" {
		e.Code = &code
	}
	return e
}

func (mistral) failure(status int, message string) any {
	switch {
	case status == http.StatusTooManyRequests:
		return mistralBody("rate_limited", message, "1300")
	case status >= 500:
		return mistralBody("internal_server_error", message, strconv.Itoa(status))
	}
	return mistralBody("invalid_request_error", message, "")
}

// complain is a 422 about one field.
func (mistral) complain(kind, field, message string, input json.RawMessage) *refusal {
	return &refusal{http.StatusUnprocessableEntity, mistralBody("invalid_request_error", mistralComplaints{[]mistralComplaint{{
		Type: kind, Place: []string{"body", clip(field, 200)}, Message: message, Input: input,
	}}}, "")}
}

func (m mistral) decode(body []byte, rules *ruleSet) (*request, *refusal) {
	f, _ := objectOf(body)
	if k, ok := f.unknown(mistralFields); ok {
		return nil, m.complain("extra_forbidden", k, "Extra inputs are not permitted", f[k])
	}
	for _, name := range mistralUnserved {
		if f.has(name) {
			return nil, m.complain("value_error", name, name+" is not supported by the stand-in judge; leave it out", f[name])
		}
	}
	for _, name := range mistralIgnored {
		delete(f, name)
	}
	model, _ := stringOf(f["model"])
	policy := rules.model(model)
	t, hasTemperature := numberOf(f["temperature"])
	switch {
	case policy.Unknown:
		return nil, &refusal{http.StatusBadRequest, mistralBody("invalid_model", "Invalid model: "+clip(model, 200), "1500")}
	case hasTemperature && policy.RefusesTemperature:
		return nil, m.complain("value_error", "temperature", "temperature is not supported with this model", f["temperature"])
	case hasTemperature && t > mistralMaxTemperature:
		return nil, m.complain("less_than_equal", "temperature", fmt.Sprintf("Input should be less than or equal to %v", mistralMaxTemperature), f["temperature"])
	}
	req, ref := m.decodeFields(f, rules)
	if ref != nil {
		// What is wrong is wrong with both; only the form is another.
		said, _ := ref.body.(openAIError)
		return nil, &refusal{ref.status, m.failure(ref.status, said.Error.Message)}
	}
	req.form = m
	return req, nil
}

// answer is OpenAI's, except that Mistral has no field for a refusal: it is what the model says.
func (m mistral) answer(s *Server, req *request, out outcome) any {
	if out.refusal != "" {
		out.text, out.refusal = out.refusal, ""
	}
	return m.openAI.answer(s, req, out)
}
