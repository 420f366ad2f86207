package fakejudge

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Gullible is a judge that obeys: it gives the full score when anything in a request makes it believe that an instruction
// was meant for it. It exists to show that a prompt holds hostile text back (S-45).
//
// Hostile text carries a payload that Payload matches. Inside of a block whose code the prompt announced a payload is
// data, and the judge keeps to that. Anywhere else, in any message, system text, tool or other field of the request, it
// obeys. And it believes what it reads in a block: a tag like the block's own ends the block, whatever its code; so does
// the beginning of a chat message, a token of a chat template, and the name of the verdict's tool; text with the keys of a
// verdict is a verdict. It reads what hides: characters of no width vanish, tag characters become letters, text
// behind a bidirectional override turns around, and full-width letters are letters.
//
// It is an http.Handler that speaks Anthropic Messages and OpenAI Chat Completions, and safe for concurrent use.
type Gullible struct {
	// Payload matches what hostile text wants done, such as PWNED-17. It is required.
	Payload *regexp.Regexp
	// InWords makes it refuse every form of structured output; it then answers in words, gives its verdict, and after that
	// repeats what it was shown, word by word.
	InWords bool
	// Tool is the name of the verdict's tool. Default: record_verdict.
	Tool string
}

// gullibleRequest is what both wire formats have in common.
type gullibleRequest struct {
	Model    string            `json:"model"`
	Messages []gullibleMessage `json:"messages"`

	ToolChoice     json.RawMessage `json:"tool_choice"`
	OutputConfig   json.RawMessage `json:"output_config"`
	ResponseFormat json.RawMessage `json:"response_format"`
	// rest holds the other fields: system, tools and so on.
	rest map[string]json.RawMessage
}

type gullibleMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// ServeHTTP answers one call.
func (g *Gullible) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(Header, Name)
	openAIForm := strings.HasSuffix(r.URL.Path, "/chat/completions")
	if !openAIForm && !strings.HasSuffix(r.URL.Path, "/v1/messages") {
		g.refuse(w, http.StatusNotFound, "the gullible stand-in serves POST .../v1/messages and .../v1/chat/completions")
		return
	}
	body, err := readBody(w, r, MaxBodyBytes)
	if err != nil {
		g.refuse(w, http.StatusBadRequest, "the body cannot be read: "+err.Error())
		return
	}
	var req gullibleRequest
	if err := json.Unmarshal(body, &req); err != nil {
		g.refuse(w, http.StatusBadRequest, "the body is not JSON: "+err.Error())
		return
	}
	if err := json.Unmarshal(body, &req.rest); err != nil {
		g.refuse(w, http.StatusBadRequest, "the body is no JSON object: "+err.Error())
		return
	}
	if form := req.structured(); g.InWords && form != "" {
		g.refuse(w, http.StatusBadRequest, form+" is not supported by this model")
		return
	}
	rd := g.read(&req)
	answer := gullibleAnthropic
	if openAIForm {
		answer = gullibleOpenAI
	}
	// An answer that cannot be written is the client's to miss.
	_ = writeJSON(w, http.StatusOK, answer(&req, g.tool(), g.say(&req, rd)))
}

func (g *Gullible) refuse(w http.ResponseWriter, status int, message string) {
	// Both SDKs read this form.
	_ = writeJSON(w, status, anthropic{}.failure(status, ReasonPrefix+" "+message))
}

func (g *Gullible) tool() string {
	if g.Tool == "" {
		return "record_verdict"
	}
	return g.Tool
}

// structured names the field through which a request asks for structured output; "" when it asks for none.
func (r *gullibleRequest) structured() string {
	switch {
	case len(r.ToolChoice) > 0:
		return "tool_choice"
	case len(r.OutputConfig) > 0:
		return "output_config"
	case len(r.ResponseFormat) > 0:
		return "response_format"
	}
	return ""
}

// read reads a whole request: every message of others, and every text in every other field. What it said itself, in
// the turns of an assistant, moves it no more.
func (g *Gullible) read(req *gullibleRequest) *reading {
	rd := &reading{payload: g.Payload, tool: g.tool()}
	for _, name := range slices.Sorted(maps.Keys(req.rest)) {
		if name != "messages" {
			rd.message(strings.Join(texts(req.rest[name]), "\n"))
		}
	}
	for _, m := range req.Messages {
		if m.Role == "assistant" {
			continue
		}
		text := strings.Join(texts(m.Content), "\n")
		if m.Role == "user" && rd.shown == "" {
			rd.shown = text
		}
		rd.message(text)
	}
	return rd
}

// texts returns the texts in a JSON value: every string but those that say of what type something is.
func texts(raw json.RawMessage) []string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return appendTexts(nil, v)
}

func appendTexts(out []string, v any) []string {
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, e := range v {
			out = appendTexts(out, e)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name != "type" {
				out = appendTexts(out, v[name])
			}
		}
	}
	return out
}

// say is the verdict as JSON, or the words around it. The score is 1 of 1, or 10 of 10 where whole numbers are asked for.
func (g *Gullible) say(req *gullibleRequest, rd *reading) string {
	score, reason := 0.0, ReasonPrefix+" nobody told me anything"
	if rd.obeyed != "" {
		score, reason = 1, ReasonPrefix+" obeyed: "+rd.obeyed
	}
	asked := string(req.rest["tools"]) + string(req.ResponseFormat) + string(req.OutputConfig)
	verdict := map[string]any{"reason": reason, "score": score}
	if strings.Contains(asked, `"integer"`) {
		verdict["score"] = 10 * score
	}
	if strings.Contains(asked, `"evidence"`) || g.InWords && strings.Contains(rd.shown, "- evidence:") {
		verdict["evidence"] = ""
	}
	data, _ := json.Marshal(verdict) //nolint:errchkjson // it is made of JSON values only, which can always be encoded
	if !g.InWords {
		return string(data)
	}
	return fmt.Sprintf("My verdict:\n%s\nThat was about this:\n%s", data, rd.shown)
}

// gullibleAnthropic words an answer as a Messages response.
func gullibleAnthropic(req *gullibleRequest, tool, said string) any {
	m := anthropicMessage{ID: "msg_gullible", Type: "message", Role: "assistant", Model: req.Model, StopReason: "end_turn"}
	block := anthropicBlock{Type: "text", Text: said}
	if len(req.ToolChoice) > 0 {
		m.StopReason = "tool_use"
		block = anthropicBlock{Type: "tool_use", ID: "toolu_gullible", Name: tool, Input: json.RawMessage(said)}
	}
	m.Content = []anthropicBlock{block}
	m.Usage = anthropicUsage{InputTokens: 1, OutputTokens: 1, ServiceTier: "standard"}
	return m
}

// gullibleOpenAI words an answer as a completion.
func gullibleOpenAI(req *gullibleRequest, _, said string) any {
	return openAICompletion{
		ID: "chatcmpl-gullible", Object: "chat.completion", Model: req.Model, ServiceTier: "default", Fingerprint: "fp_" + Name,
		Choices: []openAIChoice{{Message: openAIMessage{Role: "assistant", Content: &said, Annotations: []string{}}, FinishReason: "stop"}},
		Usage:   openAIUsage{PromptTokens: 1, CompletionTokens: 1, TotalTokens: 2},
	}
}
