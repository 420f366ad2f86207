package fakejudge

import "fmt"

// geminiCacheMin is from where Google's implicit cache works, in bytes: 4096 tokens.
const geminiCacheMin = 4096 * 4

type geminiResponse struct {
	Candidates    []geminiCandidate `json:"candidates"`
	UsageMetadata geminiUsage       `json:"usageMetadata"`
	ModelVersion  string            `json:"modelVersion"`
	ResponseID    string            `json:"responseId"`
}

type geminiCandidate struct {
	Content       *geminiContent `json:"content,omitempty"`
	FinishReason  string         `json:"finishReason"`
	FinishMessage string         `json:"finishMessage,omitempty"`
	Index         int            `json:"index"`
}

type geminiContent struct {
	Parts []geminiPart `json:"parts"`
	Role  string       `json:"role"`
}

type geminiPart struct {
	Text string `json:"text"`
}

type geminiUsage struct {
	PromptTokenCount        int `json:"promptTokenCount"`
	CachedContentTokenCount int `json:"cachedContentTokenCount,omitempty"`
	CandidatesTokenCount    int `json:"candidatesTokenCount,omitempty"`
	TotalTokenCount         int `json:"totalTokenCount"`
}

func (gemini) answer(s *Server, req *request, out outcome) any {
	say := func(text string) *geminiContent {
		return &geminiContent{Parts: []geminiPart{{text}}, Role: "model"}
	}
	c := geminiCandidate{FinishReason: "STOP"}
	switch {
	case out.refusal != "":
		// Google's refusals have no content; the words stand beside it.
		c.FinishReason, c.FinishMessage = "SAFETY", out.refusal
	case out.verdict != nil:
		c.Content = say(out.verdictText())
	default:
		c.Content = say(out.text)
	}
	if out.fault == faultTruncated {
		c.FinishReason = "MAX_TOKENS"
	}
	use := s.cache.use("gemini/"+req.model, req.segments)
	in := estimateTokens(req.inputLen)
	return geminiResponse{
		Candidates: []geminiCandidate{c}, ModelVersion: req.model, ResponseID: fmt.Sprintf("fakejudge%012d", s.ids.Add(1)),
		UsageMetadata: geminiUsage{
			PromptTokenCount: in, CachedContentTokenCount: tokens(use.read), CandidatesTokenCount: out.tokens, TotalTokenCount: in + out.tokens,
		},
	}
}
