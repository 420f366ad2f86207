package fakejudge

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// gemini is the method generateContent of the Gemini API: https://ai.google.dev/api/generate-content. The name of the
// model stands in the path.
type gemini struct{ model string }

const (
	geminiModels = "/models/"
	geminiMethod = ":generateContent"
)

var (
	geminiFields = []string{
		"cachedContent", "contents", "generationConfig", "labels", "safetySettings", "serviceTier", "store", "systemInstruction",
		"toolConfig", "tools",
	}
	// geminiUnserved are fields that the real service takes and that would change
	// the answer in a way that the stand-in does not imitate.
	geminiUnserved = []string{"cachedContent", "toolConfig", "tools"}
	geminiRoles    = []string{"user", "model"}
	geminiParts    = []string{
		"audioTranscription", "codeExecutionResult", "executableCode", "fileData", "functionCall", "functionResponse", "inlineData",
		"text", "thought", "thoughtSignature", "toolCall", "toolResponse", "videoMetadata",
	}
)

// geminiModel is the name between /models/ and the method.
func geminiModel(path string) string {
	at := strings.LastIndex(path, geminiModels)
	return strings.TrimSuffix(path[at+len(geminiModels):], geminiMethod)
}

// requestIDHeader: Google sends none.
func (gemini) requestIDHeader() string { return "" }

// geminiError is the body of every error.
type geminiError struct {
	Error struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Status  string `json:"status"`
		Details []any  `json:"details,omitempty"`
	} `json:"error"`
}

// geminiInfo, geminiRetry and geminiViolations are details of an error, as google.rpc has them.
type (
	geminiInfo struct {
		Type   string `json:"@type"`
		Reason string `json:"reason"`
		Domain string `json:"domain"`
	}
	geminiRetry struct {
		Type       string `json:"@type"`
		RetryDelay string `json:"retryDelay"`
	}
	geminiViolations struct {
		Type            string            `json:"@type"`
		FieldViolations []geminiViolation `json:"fieldViolations"`
	}
	geminiViolation struct {
		Field       string `json:"field,omitempty"`
		Description string `json:"description"`
	}
)

const geminiTypes = "type.googleapis.com/google.rpc."

func geminiBody(status int, message string, details ...any) geminiError {
	names := map[int]string{
		400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED",
		429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL", 501: "UNIMPLEMENTED", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
	}
	var e geminiError
	e.Error.Code, e.Error.Message, e.Error.Details = status, message, details
	switch e.Error.Status = names[status]; {
	case e.Error.Status != "":
	case status >= 500:
		e.Error.Status = "UNKNOWN"
	default:
		e.Error.Status = "FAILED_PRECONDITION"
	}
	return e
}

func (gemini) failure(status int, message string) any { return geminiBody(status, message) }

// failureAfter says how long to wait as Google does: in a RetryInfo, not in a header.
func (gemini) failureAfter(status int, message string, wait time.Duration) any {
	if wait <= 0 {
		return geminiBody(status, message)
	}
	return geminiBody(status, message, geminiRetry{geminiTypes + "RetryInfo", fmt.Sprintf("%gs", wait.Seconds())})
}

// bad is a 400 in free words.
func (gemini) bad(format string, args ...any) *refusal {
	return &refusal{http.StatusBadRequest, geminiBody(http.StatusBadRequest, fmt.Sprintf(format, args...))}
}

// badField is a 400 about one field, as the service words what it checks itself.
func (g gemini) badField(field, format string, args ...any) *refusal {
	return g.bad("* GenerateContentRequest.%s: %s\n", clip(field, 300), fmt.Sprintf(format, args...))
}

// badPayload is a 400 about JSON that does not fit the request, as the gateway before the service words it.
func (gemini) badPayload(field, description string) *refusal {
	return &refusal{http.StatusBadRequest, geminiBody(http.StatusBadRequest, description,
		geminiViolations{geminiTypes + "BadRequest", []geminiViolation{{field, description}}})}
}

func (g gemini) unknownField(at, name string) *refusal {
	if at == "" {
		return g.badPayload("", fmt.Sprintf("Invalid JSON payload received. Unknown name %q: Cannot find field.", clip(name, 200)))
	}
	return g.badPayload(at, fmt.Sprintf("Invalid JSON payload received. Unknown name %q at '%s': Cannot find field.", clip(name, 200), at))
}

// wrongType is a 400 about a value of another type.
func (g gemini) wrongType(at, want string, raw json.RawMessage) *refusal {
	return g.badPayload(at, fmt.Sprintf("Invalid value at '%s' (%s), %s", at, want, clip(strings.TrimSpace(string(raw)), 60)))
}

func (g gemini) checkHeaders(h http.Header, keys map[string]bool) *refusal {
	key := strings.TrimSpace(h.Get("X-Goog-Api-Key"))
	switch {
	case key == "":
		return &refusal{http.StatusForbidden, geminiBody(http.StatusForbidden, "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.")}
	case len(keys) > 0 && !keys[key]:
		return &refusal{http.StatusBadRequest, geminiBody(http.StatusBadRequest, "API key not valid. Please pass a valid API key.",
			geminiInfo{geminiTypes + "ErrorInfo", "API_KEY_INVALID", "googleapis.com"})}
	}
	return nil
}

func (g gemini) decode(body []byte, rules *ruleSet) (*request, *refusal) {
	f, ok := objectOf(body)
	if !ok || !json.Valid(body) {
		return nil, g.badPayload("", "Invalid JSON payload received. Expected a value.")
	}
	d := &geminiDecoder{gemini: g, f: camelCase(f), req: &request{model: g.model}, policy: rules.model(g.model)}
	for _, step := range []func() *refusal{d.scalars, d.system, d.contents, d.config} {
		if ref := step(); ref != nil {
			return nil, ref
		}
	}
	d.req.prompt = newPrompt(d.systemText, d.turns)
	d.req.segments = chunks(d.text.String(), geminiCacheMin)
	d.req.inputLen = d.text.Len()
	return d.req, nil
}

// camelCase names fields as the documentation does; the service takes them with underscores too.
func camelCase(f fields) fields {
	out := make(fields, len(f))
	for name, value := range f {
		words := strings.Split(name, "_")
		for i, w := range words[1:] {
			if w != "" {
				words[i+1] = strings.ToUpper(w[:1]) + w[1:]
			}
		}
		out[strings.Join(words, "")] = value
	}
	return out
}

// geminiDecoder decodes one body, a step at a time.
type geminiDecoder struct {
	gemini
	f          fields
	req        *request
	policy     Model
	systemText []string
	turns      []turn
	text       strings.Builder // everything, as the prompt cache sees it
}

func (d *geminiDecoder) scalars() *refusal {
	if k, ok := d.f.unknown(geminiFields); ok {
		return d.unknownField("", k)
	}
	for _, name := range geminiUnserved {
		if d.f.has(name) {
			return d.badField(name, "%s is not supported by the stand-in judge; leave it out", name)
		}
	}
	if d.model == "" || d.policy.Unknown {
		return &refusal{http.StatusNotFound, geminiBody(http.StatusNotFound, fmt.Sprintf("models/%s is not found for API version v1beta, or is not supported for generateContent. "+
			"Call ListModels to see the list of available models and their supported methods.", clip(d.model, 200)))}
	}
	return nil
}

func (d *geminiDecoder) system() *refusal {
	if !d.f.has("systemInstruction") {
		return nil
	}
	c, ref := d.content("system_instruction", d.f["systemInstruction"])
	if ref != nil {
		return ref
	}
	d.systemText = c.blocks
	return nil
}

func (d *geminiDecoder) contents() *refusal {
	list, ok := listOf(d.f["contents"])
	switch {
	case d.f.has("contents") && !ok:
		return d.wrongType("contents", "type.googleapis.com/google.ai.generativelanguage.v1beta.Content", d.f["contents"])
	case len(list) == 0:
		return d.badField("contents", "contents is not specified")
	}
	for i, raw := range list {
		c, ref := d.content(fmt.Sprintf("contents[%d]", i), raw)
		if ref != nil {
			return ref
		}
		switch c.role {
		case "":
			c.role = "user"
		case "model":
			c.role = "assistant" // what the other formats call it
		}
		d.turns = append(d.turns, c)
	}
	if d.turns[len(d.turns)-1].role != "user" {
		return d.bad("Please ensure that multiturn requests end with a user role or a function response.")
	}
	return nil
}

func (d *geminiDecoder) content(at string, raw json.RawMessage) (turn, *refusal) {
	f, ok := objectOf(raw)
	if !ok {
		return turn{}, d.wrongType(at, "type.googleapis.com/google.ai.generativelanguage.v1beta.Content", raw)
	}
	if k, ok := f.unknown([]string{"parts", "role"}); ok {
		return turn{}, d.unknownField(at, k)
	}
	role, _ := stringOf(f["role"])
	parts, _ := listOf(f["parts"])
	switch {
	case role != "" && !slices.Contains(geminiRoles, role):
		return turn{}, d.bad("Please use a valid role: user, model.")
	case len(parts) == 0:
		return turn{}, d.badField(at+".parts", "contents.parts must not be empty.")
	}
	c := turn{role: role}
	for i, raw := range parts {
		text, ref := d.part(fmt.Sprintf("%s.parts[%d]", at, i), raw)
		if ref != nil {
			return turn{}, ref
		}
		c.blocks = append(c.blocks, text)
		d.text.WriteString(role + "\x00" + text + "\x00")
	}
	return c, nil
}

func (d *geminiDecoder) part(at string, raw json.RawMessage) (string, *refusal) {
	f, ok := objectOf(raw)
	if !ok {
		return "", d.wrongType(at, "type.googleapis.com/google.ai.generativelanguage.v1beta.Part", raw)
	}
	f = camelCase(f)
	if k, ok := f.unknown(geminiParts); ok {
		return "", d.unknownField(at, k)
	}
	for _, name := range geminiParts {
		if f.has(name) && name != "text" && name != "thoughtSignature" {
			return "", d.badField(at, "%s is not supported by the stand-in judge; send text", name)
		}
	}
	text, isText := stringOf(f["text"])
	switch {
	case !f.has("text"):
		return "", d.badField(at+".data", "required oneof field 'data' must have one initialized field")
	case !isText:
		return "", d.wrongType(at+".text", "TYPE_STRING", f["text"])
	}
	return text, nil
}
