package gemini

import (
	"math"
	"strings"

	"google.golang.org/genai"

	"github.com/mcptest/mcptest-operator/engine/judge"
)

// contents words the conversation: the material and the question as two parts of one turn (S-46), then what was
// answered, and what was wrong with it.
func contents(r judge.Request) []*genai.Content {
	list := []*genai.Content{genai.NewContentFromParts(
		[]*genai.Part{genai.NewPartFromText(r.Prefix), genai.NewPartFromText(r.Question)}, genai.RoleUser,
	)}
	for _, t := range r.Turns {
		said := t.Answer.Text
		if strings.TrimSpace(said) == "" {
			said = "(no answer)"
		}
		list = append(list, genai.NewContentFromText(said, genai.RoleModel), genai.NewContentFromText(t.Complaint, genai.RoleUser))
	}
	return list
}

// config is everything about a request but its texts.
func config(r judge.Request) *genai.GenerateContentConfig {
	c := &genai.GenerateContentConfig{
		SystemInstruction: &genai.Content{Parts: []*genai.Part{genai.NewPartFromText(r.System)}},
		MaxOutputTokens:   int32(min(r.MaxTokens, math.MaxInt32)),
		// One request a call: the SDK would go on by itself with an answer that is not complete.
		AutomaticContinuation: genai.Ptr(false),
	}
	if r.Temperature != nil {
		c.Temperature = genai.Ptr(float32(*r.Temperature))
	}
	if !r.Without.Has(judge.FeatureStructuredOutput) {
		c.ResponseMIMEType = "application/json"
		c.ResponseJsonSchema = schema(r.Schema)
	}
	return c
}

// schema is the JSON schema of a verdict. The SDK sorts the properties by name, so that their order is said beside them:
// the score comes after the reason that it follows from.
func schema(s judge.Schema) map[string]any {
	return map[string]any{
		"type": "object", "properties": s.Properties, "required": s.Required, "propertyOrdering": s.Required, "additionalProperties": false,
	}
}

// response finds the answer in what was generated.
func response(m *genai.GenerateContentResponse, r judge.Request) judge.Response {
	a := judge.Answer{Structured: !r.Without.Has(judge.FeatureStructuredOutput), Refusal: blocked(m)}
	if len(m.Candidates) > 0 {
		candidate := m.Candidates[0]
		a.Text = text(candidate.Content)
		switch reason := candidate.FinishReason; reason {
		case "", genai.FinishReasonUnspecified, genai.FinishReasonStop:
		case genai.FinishReasonMaxTokens, genai.FinishReasonContinuation:
			a.Cut = true
		default:
			// SAFETY, RECITATION, PROHIBITED_CONTENT and whatever comes to them: there is no whole answer, and it was not too long.
			a.Refusal = "it stopped with finishReason " + string(reason)
		}
	}
	return judge.Response{Answer: a, Tokens: tokens(m)}
}

// blocked says why the prompt was not answered at all; "" when it was.
func blocked(m *genai.GenerateContentResponse) string {
	if m.PromptFeedback == nil || m.PromptFeedback.BlockReason == "" || m.PromptFeedback.BlockReason == genai.BlockedReasonUnspecified {
		return ""
	}
	return "it did not read the prompt: promptFeedback.blockReason is " + string(m.PromptFeedback.BlockReason)
}

// text is what the model wrote, its thoughts aside.
func text(c *genai.Content) string {
	if c == nil {
		return ""
	}
	var b strings.Builder
	for _, p := range c.Parts {
		if p != nil && !p.Thought {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// tokens counts what a request took. Cached tokens are part of the prompt's; thoughts are billed as output.
func tokens(m *genai.GenerateContentResponse) judge.Tokens {
	u := m.UsageMetadata
	if u == nil {
		return judge.Tokens{}
	}
	return judge.Tokens{
		Input:     int64(u.PromptTokenCount) + int64(u.ToolUsePromptTokenCount),
		CacheRead: int64(u.CachedContentTokenCount),
		Output:    int64(u.CandidatesTokenCount) + int64(u.ThoughtsTokenCount),
	}
}
