package fakejudge

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Fault is a way in which a judge can be broken.
type Fault string

// The faults. All but hang, drop and status are HTTP 200 with a bad verdict in it.
const (
	FaultMalformed   Fault = "malformed"   // not the schema; where it is no tool, not even JSON
	FaultOutOfRange  Fault = "outOfRange"  // a score past the range that was asked for
	FaultEmptyReason Fault = "emptyReason" // a verdict with the reason ""
	FaultRefusal     Fault = "refusal"     // the model declines, in the provider's own form
	FaultProse       Fault = "prose"       // text without any verdict in it
	FaultEmbedded    Fault = "embedded"    // the verdict in the middle of prose, as from a server without structured output (S-44)
	FaultHang        Fault = "hang"        // no answer until the client gives up
	FaultDrop        Fault = "drop"        // the connection is closed without an answer
	FaultStatus      Fault = "status"      // an HTTP error, with Retry-After if wanted

	// faultTruncated is no rule's: the answer did not fit into max_tokens.
	faultTruncated Fault = "truncated"
)

var faults = []Fault{
	FaultMalformed, FaultOutOfRange, FaultEmptyReason, FaultRefusal, FaultProse,
	FaultEmbedded, FaultHang, FaultDrop, FaultStatus,
}

func faultNames() string {
	names := make([]string, len(faults))
	for i, f := range faults {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// outcome is the content of a 200 response, before a provider's format is put
// around it. Exactly one of verdict, text and refusal is set.
type outcome struct {
	fault   Fault  // "" for a valid verdict
	verdict any    // a JSON value by the request's schema
	text    string // prose, or, for malformed, text that is not JSON
	refusal string
	tokens  int // estimate of the output's length
}

const proseText = ReasonPrefix + " What a fine answer that is, on the whole; I would not know what number to put on it."

// outcome turns a decision into the content of an answer.
func (d decision) outcome(req *request) outcome {
	out := d.content(req)
	text := out.text + out.refusal
	if out.verdict != nil {
		text = out.verdictText()
	}
	out.tokens = estimateTokens(len(text))
	if req.maxTokens > 0 && out.tokens > req.maxTokens {
		return outcome{fault: faultTruncated, text: clip(text, 4*req.maxTokens), tokens: req.maxTokens}
	}
	return out
}

// verdictText is the verdict as JSON.
func (o outcome) verdictText() string {
	data, _ := json.Marshal(o.verdict) //nolint:errchkjson // it is made of JSON values only, which can always be encoded
	return string(data)
}

func (d decision) content(req *request) outcome {
	switch d.fault {
	case FaultRefusal:
		return outcome{fault: d.fault, refusal: ReasonPrefix + " I'm sorry, but I can't assist with that request."}
	case FaultProse:
		return outcome{fault: d.fault, text: proseText}
	case FaultMalformed:
		if req.tool != "" {
			return outcome{fault: d.fault, verdict: map[string]any{"score": "rather high", "verdict": ReasonPrefix + " malformed on purpose"}}
		}
		return outcome{fault: d.fault, text: `{"score": 0.`}
	}
	sc := req.schema
	if sc == nil {
		sc = defaultSchema
	}
	// The schema was tried when the request was decoded, so that this cannot fail.
	verdict, err := sc.fill(d)
	if err != nil {
		return outcome{fault: FaultProse, text: ReasonPrefix + " " + err.Error()}
	}
	if d.fault == FaultEmbedded || req.schema == nil {
		data, err := json.Marshal(verdict)
		if err != nil {
			return outcome{fault: FaultProse, text: proseText}
		}
		return outcome{fault: d.fault, text: ReasonPrefix + " Having weighed it, my verdict is:\n" + string(data) + "\nThat is all."}
	}
	return outcome{fault: d.fault, verdict: verdict}
}

// setRetryAfter writes whole seconds, rounded up, as RFC 9110 has it, and beside
// it the exact retry-after-ms that OpenAI sends and both SDKs read.
func setRetryAfter(h http.Header, d time.Duration) {
	h.Set("Retry-After", strconv.Itoa(int(math.Ceil(d.Seconds()))))
	if d%time.Second != 0 {
		h.Set("Retry-After-Ms", strconv.FormatInt(d.Milliseconds(), 10))
	}
}

func statusMessage(status int) string {
	switch status {
	case http.StatusTooManyRequests:
		return "This request would exceed your rate limit. " + ReasonPrefix
	case 529:
		return "Overloaded"
	case http.StatusInternalServerError:
		return "Internal server error"
	}
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "status " + strconv.Itoa(status)
}

// estimateTokens is the usual rule of thumb: four bytes a token, at least one.
func estimateTokens(bytes int) int { return max(1, (bytes+3)/4) }
