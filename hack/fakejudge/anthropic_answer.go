package fakejudge

import "fmt"

type anthropicMessage struct {
	ID           string           `json:"id"`
	Type         string           `json:"type"`
	Role         string           `json:"role"`
	Model        string           `json:"model"`
	Content      []anthropicBlock `json:"content"`
	StopReason   string           `json:"stop_reason"`
	StopSequence *string          `json:"stop_sequence"`
	Usage        anthropicUsage   `json:"usage"`
}

// anthropicBlock is a text or a tool_use block.
type anthropicBlock struct {
	Type  string `json:"type"`
	Text  string `json:"text,omitempty"`
	ID    string `json:"id,omitempty"`
	Name  string `json:"name,omitempty"`
	Input any    `json:"input,omitempty"`
}

type anthropicUsage struct {
	InputTokens              int    `json:"input_tokens"`
	CacheCreationInputTokens int    `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int    `json:"cache_read_input_tokens"`
	OutputTokens             int    `json:"output_tokens"`
	ServiceTier              string `json:"service_tier"`
}

func (anthropic) answer(s *Server, req *request, out outcome) any {
	id := s.ids.Add(1)
	m := anthropicMessage{
		ID: fmt.Sprintf("msg_fakejudge%012d", id), Type: "message", Role: "assistant", Model: req.model, StopReason: "end_turn",
	}
	switch {
	case out.fault == faultTruncated && req.tool != "":
		m.StopReason = "max_tokens"
		m.Content = append(m.Content, anthropicBlock{Type: "tool_use", ID: fmt.Sprintf("toolu_fakejudge%012d", id), Name: req.tool, Input: map[string]any{}})
	case out.fault == faultTruncated:
		m.StopReason = "max_tokens"
		m.Content = append(m.Content, anthropicBlock{Type: "text", Text: out.text})
	case out.refusal != "":
		m.StopReason = "refusal"
		m.Content = append(m.Content, anthropicBlock{Type: "text", Text: out.refusal})
	case out.verdict != nil && req.tool != "":
		m.StopReason = "tool_use"
		m.Content = append(m.Content, anthropicBlock{Type: "tool_use", ID: fmt.Sprintf("toolu_fakejudge%012d", id), Name: req.tool, Input: out.verdict})
	default:
		m.Content = append(m.Content, anthropicBlock{Type: "text", Text: out.text})
	}
	use := s.cache.use("anthropic/"+req.model, req.segments)
	m.Usage = anthropicUsage{
		CacheCreationInputTokens: tokens(use.written), CacheReadInputTokens: tokens(use.read), InputTokens: max(1, tokens(use.plain)),
		OutputTokens: out.tokens, ServiceTier: "standard",
	}
	return m
}

// tokens is estimateTokens, with none for nothing.
func tokens(bytes int) int {
	if bytes == 0 {
		return 0
	}
	return estimateTokens(bytes)
}
