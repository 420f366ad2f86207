package fakejudge

import (
	"fmt"
	"time"
)

// Some prompt caches work without marks: OpenAI's from 1024 tokens, in steps of 128.
const (
	cacheStep      = 128 * 4 // bytes
	openAICacheMin = 1024 * 4
)

type openAICompletion struct {
	ID          string         `json:"id"`
	Object      string         `json:"object"`
	Created     int64          `json:"created"`
	Model       string         `json:"model"`
	Choices     []openAIChoice `json:"choices"`
	Usage       openAIUsage    `json:"usage"`
	ServiceTier string         `json:"service_tier"`
	Fingerprint string         `json:"system_fingerprint"`
}

type openAIChoice struct {
	Index        int           `json:"index"`
	Message      openAIMessage `json:"message"`
	Logprobs     *string       `json:"logprobs"`
	FinishReason string        `json:"finish_reason"`
}

type openAIMessage struct {
	Role        string   `json:"role"`
	Content     *string  `json:"content"`
	Refusal     *string  `json:"refusal"`
	Annotations []string `json:"annotations"`
}

type openAIUsage struct {
	PromptTokens        int                     `json:"prompt_tokens"`
	CompletionTokens    int                     `json:"completion_tokens"`
	TotalTokens         int                     `json:"total_tokens"`
	PromptTokensDetails openAIPromptDetails     `json:"prompt_tokens_details"`
	OutputDetails       openAICompletionDetails `json:"completion_tokens_details"`
}

type openAIPromptDetails struct {
	CachedTokens int `json:"cached_tokens"`
	AudioTokens  int `json:"audio_tokens"`
}

type openAICompletionDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

func (openAI) answer(s *Server, req *request, out outcome) any {
	choice := openAIChoice{Message: openAIMessage{Role: "assistant", Annotations: []string{}}, FinishReason: "stop"}
	switch {
	case out.refusal != "":
		choice.Message.Refusal = &out.refusal
	case out.verdict != nil:
		text := out.verdictText()
		choice.Message.Content = &text
	default:
		choice.Message.Content = &out.text
	}
	if out.fault == faultTruncated {
		choice.FinishReason = "length"
	}
	use := s.cache.use("openai/"+req.model, req.segments)
	in := estimateTokens(req.inputLen)
	return openAICompletion{
		ID: fmt.Sprintf("chatcmpl-fakejudge%012d", s.ids.Add(1)), Object: "chat.completion", Created: time.Now().Unix(), Model: req.model,
		Choices: []openAIChoice{choice}, ServiceTier: "default", Fingerprint: "fp_" + Name,
		Usage: openAIUsage{
			PromptTokens: in, CompletionTokens: out.tokens, TotalTokens: in + out.tokens,
			PromptTokensDetails: openAIPromptDetails{CachedTokens: tokens(use.read)},
		},
	}
}

// chunks cuts a prompt where a cache without marks looks for a known prefix: from least bytes on.
func chunks(text string, least int) []segment {
	var out []segment
	for at := 0; at < len(text); at += cacheStep {
		end := min(at+cacheStep, len(text))
		out = append(out, segment{text[at:end], end >= least && end-at == cacheStep})
	}
	return out
}
