package fakejudge

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// anthropic is the Messages API: https://docs.anthropic.com/en/api/messages.
type anthropic struct{}

var (
	anthropicVersions = []string{"2023-01-01", "2023-06-01"}
	anthropicFields   = []string{
		"cache_control", "container", "diagnostics", "inference_geo", "max_tokens", "messages", "metadata", "model", "output_config",
		"service_tier", "speed", "stop_sequences", "stream", "system", "temperature", "thinking", "tool_choice", "tools", "top_k", "top_p",
	}
	// anthropicUnserved are fields that the real service takes and that would change
	// the answer in a way that the stand-in does not imitate.
	anthropicUnserved = []string{"container", "diagnostics", "speed", "thinking"}
	anthropicToolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
)

const maxCacheBreakpoints = 4

func (anthropic) requestIDHeader() string { return "request-id" }

// anthropicError is the body of every error.
type anthropicError struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

func (anthropic) failure(status int, message string) any {
	types := map[int]string{
		401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error",
		413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error",
	}
	e := anthropicError{Type: "error"}
	e.Error.Type, e.Error.Message = types[status], message
	switch {
	case e.Error.Type != "":
	case status >= 500:
		e.Error.Type = "api_error"
	default:
		e.Error.Type = "invalid_request_error"
	}
	return e
}

func (a anthropic) refuse(status int, format string, args ...any) *refusal {
	return &refusal{status, a.failure(status, fmt.Sprintf(format, args...))}
}

// bad is a 400 with the place in front, as the real service words it.
func (a anthropic) bad(place, format string, args ...any) *refusal {
	return a.refuse(http.StatusBadRequest, "%s: %s", clip(place, 300), fmt.Sprintf(format, args...))
}

func (a anthropic) checkHeaders(h http.Header, keys map[string]bool) *refusal {
	key := strings.TrimSpace(h.Get("X-Api-Key"))
	switch {
	case key == "":
		return a.refuse(http.StatusUnauthorized, "x-api-key header is required")
	case len(keys) > 0 && !keys[key]:
		return a.refuse(http.StatusUnauthorized, "invalid x-api-key")
	}
	switch v := h.Get("Anthropic-Version"); {
	case v == "":
		return a.bad("anthropic-version", "header is required")
	case !slices.Contains(anthropicVersions, v):
		return a.bad("anthropic-version", "%q is not a valid version", clip(v, 50))
	}
	return nil
}

func (a anthropic) decode(body []byte, rules *ruleSet) (*request, *refusal) {
	if !json.Valid(body) {
		return nil, a.refuse(http.StatusBadRequest, "The request body is not valid JSON")
	}
	f, ok := objectOf(body)
	if !ok {
		return nil, a.refuse(http.StatusBadRequest, "Input should be a valid dictionary")
	}
	d := &anthropicDecoder{f: f, req: &request{}, rules: rules}
	for _, step := range []func() *refusal{d.scalars, d.tools, d.system, d.messages, d.breakpoints} {
		if ref := step(); ref != nil {
			return nil, ref
		}
	}
	d.req.prompt = newPrompt(d.systemText, d.turns)
	for _, s := range d.req.segments {
		d.req.inputLen += len(s.text)
	}
	return d.req, nil
}

// anthropicDecoder decodes one body, a step at a time, in the order in which the
// prompt cache sees its parts: tools, system, messages.
type anthropicDecoder struct {
	anthropic
	f          fields
	rules      *ruleSet
	req        *request
	systemText []string
	turns      []turn
	marks      int // blocks with cache_control
}

func (d *anthropicDecoder) scalars() *refusal {
	if k, ok := d.f.unknown(anthropicFields); ok {
		return d.bad(k, "Extra inputs are not permitted")
	}
	model, ok := stringOf(d.f["model"])
	switch {
	case d.f["model"] == nil:
		return d.bad("model", "Field required")
	case !ok:
		return d.bad("model", "Input should be a valid string")
	case model == "":
		return d.bad("model", "String should have at least 1 character")
	}
	d.req.model = model
	policy := d.rules.model(model)
	if policy.Unknown {
		return d.refuse(http.StatusNotFound, "model: %s", clip(model, 200))
	}
	most, ok := numberOf(d.f["max_tokens"])
	switch {
	case d.f["max_tokens"] == nil:
		return d.bad("max_tokens", "Field required")
	case !ok || most != float64(int(most)):
		return d.bad("max_tokens", "Input should be a valid integer")
	case most < 1:
		return d.bad("max_tokens", "Input should be greater than or equal to 1")
	}
	d.req.maxTokens = int(most)
	if ref := d.ranges(policy); ref != nil {
		return ref
	}
	if d.f.has("stop_sequences") {
		if _, ok := listOf(d.f["stop_sequences"]); !ok {
			return d.bad("stop_sequences", "Input should be a valid list")
		}
	}
	switch s := strings.TrimSpace(string(d.f["stream"])); s {
	case "", "false", "null":
	case "true":
		return d.bad("stream", "not supported by the stand-in judge; leave it out")
	default:
		return d.bad("stream", "Input should be a valid boolean")
	}
	return d.unserved()
}

func (d *anthropicDecoder) ranges(policy Model) *refusal {
	for _, name := range []string{"temperature", "top_p"} {
		if !d.f.has(name) {
			continue
		}
		v, ok := numberOf(d.f[name])
		switch {
		case !ok:
			return d.bad(name, "Input should be a valid number")
		case v < 0:
			return d.bad(name, "Input should be greater than or equal to 0")
		case v > 1:
			return d.bad(name, "Input should be less than or equal to 1")
		case name == "temperature" && policy.RefusesTemperature:
			return d.refuse(http.StatusBadRequest, "`temperature` is deprecated for this model.")
		}
	}
	return nil
}

func (d *anthropicDecoder) unserved() *refusal {
	for _, name := range anthropicUnserved {
		if !d.f.has(name) {
			continue
		}
		t, _ := objectOf(d.f[name])
		if kind, _ := stringOf(t["type"]); name == "thinking" && kind == "disabled" {
			continue
		}
		return d.bad(name, "not supported by the stand-in judge; leave it out")
	}
	if d.f.has("output_config") {
		c, ok := objectOf(d.f["output_config"])
		if !ok {
			return d.bad("output_config", "Input should be a valid dictionary")
		}
		if c.has("format") {
			return d.bad("output_config.format", "not supported by the stand-in judge; force a tool instead")
		}
	}
	return nil
}

// system takes a string or a list of text blocks.
func (d *anthropicDecoder) system() *refusal {
	raw := d.f["system"]
	switch kindOf(raw) {
	case "null":
		return nil
	case "string":
		s, _ := stringOf(raw)
		d.systemText = append(d.systemText, s)
		d.req.segments = append(d.req.segments, segment{text: s})
		return nil
	}
	blocks, ok := listOf(raw)
	if !ok {
		return d.bad("system", "Input should be a valid string or a valid list")
	}
	for i, b := range blocks {
		place := fmt.Sprintf("system.%d", i)
		f, ok := objectOf(b)
		if !ok {
			return d.bad(place, "Input should be a valid dictionary")
		}
		if kind, _ := stringOf(f["type"]); kind != "text" {
			return d.bad(place+".type", "Input should be 'text'")
		}
		text, ref := d.text(place, "system", f)
		if ref != nil {
			return ref
		}
		d.systemText = append(d.systemText, text)
	}
	return nil
}

// text reads a text block; part is "system" or "messages".
func (d *anthropicDecoder) text(place, part string, f fields) (string, *refusal) {
	if k, ok := f.unknown([]string{"type", "text", "cache_control", "citations"}); ok {
		return "", d.bad(place+".text."+k, "Extra inputs are not permitted")
	}
	text, ok := stringOf(f["text"])
	switch {
	case f["text"] == nil:
		return "", d.bad(place+".text.text", "Field required")
	case !ok:
		return "", d.bad(place+".text.text", "Input should be a valid string")
	case text == "" && f.has("cache_control"):
		return "", d.bad(place+".text", "cache_control cannot be set for empty text blocks")
	case text == "":
		return "", d.bad(part, "text content blocks must be non-empty")
	case strings.TrimSpace(text) == "":
		return "", d.bad(part, "text content blocks must contain non-whitespace text")
	}
	marked, ref := d.mark(place+".text", f)
	d.req.segments = append(d.req.segments, segment{text: text, breakpoint: marked})
	return text, ref
}

// mark checks a cache_control and reports whether there is one.
func (d *anthropicDecoder) mark(place string, f fields) (bool, *refusal) {
	if !f.has("cache_control") {
		return false, nil
	}
	place += ".cache_control"
	c, ok := objectOf(f["cache_control"])
	if !ok {
		return false, d.bad(place, "Input should be a valid dictionary")
	}
	if kind, _ := stringOf(c["type"]); kind != "ephemeral" {
		return false, d.bad(place, "Input tag '%s' found using 'type' does not match any of the expected tags: 'ephemeral'", clip(kind, 50))
	}
	if k, ok := c.unknown([]string{"type", "ttl"}); ok {
		return false, d.bad(place+".ephemeral."+k, "Extra inputs are not permitted")
	}
	if ttl, _ := stringOf(c["ttl"]); c.has("ttl") && ttl != "5m" && ttl != "1h" {
		return false, d.bad(place+".ephemeral.ttl", "Input should be '5m' or '1h'")
	}
	d.marks++
	return true, nil
}

func (d *anthropicDecoder) breakpoints() *refusal {
	marked, ref := d.mark("", fields{"cache_control": d.f["cache_control"]})
	if ref != nil {
		return ref
	}
	if n := len(d.req.segments); marked && n > 0 {
		d.req.segments[n-1].breakpoint = true
	}
	if d.marks > maxCacheBreakpoints {
		return d.refuse(http.StatusBadRequest, "A maximum of %d blocks with cache_control may be provided. Found %d.", maxCacheBreakpoints, d.marks)
	}
	return nil
}
