package fakejudge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// anthropicBlocks are the block types of the real service, in its order; the
// stand-in reads text, tool_use and tool_result.
var anthropicBlocks = []string{
	"document", "image", "redacted_thinking", "search_result", "server_tool_use", "text", "thinking", "tool_result", "tool_use",
	"web_search_tool_result",
}

// messages reads the conversation. Consecutive turns of one role are one turn, as
// the real service combines them.
func (d *anthropicDecoder) messages() *refusal {
	if d.f["messages"] == nil {
		return d.bad("messages", "Field required")
	}
	list, ok := listOf(d.f["messages"])
	switch {
	case !ok:
		return d.bad("messages", "Input should be a valid list")
	case len(list) == 0:
		return d.bad("messages", "at least one message is required")
	}
	calls := toolCalls{open: map[string]bool{}}
	for i, raw := range list {
		t, ref := d.message(i, raw, &calls)
		if ref != nil {
			return ref
		}
		if n := len(d.turns); n > 0 && d.turns[n-1].role == t.role {
			d.turns[n-1].blocks = append(d.turns[n-1].blocks, t.blocks...)
			continue
		}
		d.turns = append(d.turns, t)
	}
	switch {
	case d.turns[0].role != "user":
		return d.bad("messages", `first message must use the "user" role`)
	case d.turns[len(d.turns)-1].role != "user":
		return d.bad("messages", "This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	return nil
}

func (d *anthropicDecoder) message(i int, raw json.RawMessage, calls *toolCalls) (turn, *refusal) {
	place := fmt.Sprintf("messages.%d", i)
	f, ok := objectOf(raw)
	if !ok {
		return turn{}, d.bad(place, "Input should be a valid dictionary")
	}
	if k, ok := f.unknown([]string{"role", "content"}); ok {
		return turn{}, d.bad(place+"."+k, "Extra inputs are not permitted")
	}
	role, _ := stringOf(f["role"])
	switch {
	case f["role"] == nil:
		return turn{}, d.bad(place+".role", "Field required")
	case role == "system":
		return turn{}, d.bad("messages", "Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role.")
	case role != "user" && role != "assistant":
		return turn{}, d.bad(place+".role", "Input should be 'user' or 'assistant'")
	case f["content"] == nil:
		return turn{}, d.bad(place+".content", "Field required")
	}
	blocks, ref := d.content(place, role, f["content"], calls)
	if ref != nil {
		return turn{}, ref
	}
	if missing := calls.unanswered(role); missing != "" {
		return turn{}, d.bad(place, "`tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", clip(missing, 200))
	}
	return turn{role: role, blocks: blocks}, nil
}

func (d *anthropicDecoder) content(place, role string, raw json.RawMessage, calls *toolCalls) ([]string, *refusal) {
	if text, ok := stringOf(raw); ok {
		if strings.TrimSpace(text) == "" {
			return nil, d.bad(place, "%s messages must have non-empty content", role)
		}
		d.req.segments = append(d.req.segments, segment{text: text})
		return []string{text}, nil
	}
	list, ok := listOf(raw)
	switch {
	case !ok:
		return nil, d.bad(place+".content", "Input should be a valid list")
	case len(list) == 0:
		return nil, d.bad(place, "%s messages must have non-empty content", role)
	}
	var texts []string
	for i, b := range list {
		at := fmt.Sprintf("%s.content.%d", place, i)
		f, ok := objectOf(b)
		if !ok {
			return nil, d.bad(at, "Input should be a valid dictionary")
		}
		text, ref := d.block(at, role, f, b, calls)
		if ref != nil {
			return nil, ref
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	return texts, nil
}

// block reads one block and returns its text, if it has any.
func (d *anthropicDecoder) block(at, role string, f fields, raw json.RawMessage, calls *toolCalls) (string, *refusal) {
	kind, _ := stringOf(f["type"])
	switch {
	case f["type"] == nil:
		return "", d.bad(at+".type", "Field required")
	case !slices.Contains(anthropicBlocks, kind):
		return "", d.bad(at, "Input tag '%s' found using 'type' does not match any of the expected tags: '%s'", clip(kind, 50), strings.Join(anthropicBlocks, "', '"))
	}
	switch kind {
	case "text":
		return d.text(at, "messages", f)
	case "tool_use":
		id, _ := stringOf(f["id"])
		name, _ := stringOf(f["name"])
		switch {
		case role != "assistant":
			return "", d.bad(at, "`tool_use` blocks can only be in `assistant` messages")
		case id == "":
			return "", d.bad(at+".tool_use.id", "Field required")
		case !anthropicToolName.MatchString(name):
			return "", d.bad(at+".tool_use.name", "String should match pattern '%s'", anthropicToolName)
		case kindOf(f["input"]) != "object":
			return "", d.bad(at+".tool_use.input", "Input should be a valid dictionary")
		}
		calls.next = append(calls.next, id)
	case "tool_result":
		id, _ := stringOf(f["tool_use_id"])
		switch {
		case role != "user":
			return "", d.bad(at, "`tool_result` blocks can only be in `user` messages")
		case id == "":
			return "", d.bad(at+".tool_result.tool_use_id", "Field required")
		case !calls.open[id]:
			return "", d.bad(at, "unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", clip(id, 200))
		}
		delete(calls.open, id)
	default:
		return "", d.bad(at, "'%s' blocks are not supported by the stand-in judge; send text", kind)
	}
	marked, ref := d.mark(at+"."+kind, f)
	d.req.segments = append(d.req.segments, segment{text: string(raw), breakpoint: marked})
	return toolResultText(f["content"]), ref
}

// toolResultText is the text of a tool result: a string, or text blocks.
func toolResultText(raw json.RawMessage) string {
	if s, ok := stringOf(raw); ok {
		return s
	}
	list, _ := listOf(raw)
	var texts []string
	for _, b := range list {
		f, _ := objectOf(b)
		if s, ok := stringOf(f["text"]); ok {
			texts = append(texts, s)
		}
	}
	return strings.Join(texts, "\n")
}

// toolCalls follows tool_use ids to their results.
type toolCalls struct {
	next []string        // calls of the assistant's turn that is being read
	open map[string]bool // calls that the user's turn has to answer
}

// unanswered is asked at the end of each message: after a user's message every open
// call has its result; after an assistant's its calls become the open ones.
func (c *toolCalls) unanswered(role string) string {
	if role == "assistant" {
		for _, id := range c.next {
			c.open[id] = true
		}
		c.next = nil
		return ""
	}
	for id := range c.open {
		return id
	}
	return ""
}
