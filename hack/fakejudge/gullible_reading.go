package fakejudge

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// reading is what a gullible judge made of a request so far.
type reading struct {
	payload *regexp.Regexp
	tool    string
	// code is what the prompt says that the tags of its blocks hold, tag the name that it says they have.
	code, tag string
	// obeyed says which payload was obeyed, and what made it an instruction; "" when none was.
	obeyed string
	// shown is the first message of a user, word by word.
	shown string
}

var (
	// announcedCode and announcedTag are how a prompt tells what its blocks begin and end with.
	announcedCode = regexp.MustCompile(`\bcode [^\n]{0,60}?\b([0-9a-f]{8,64})\b`)
	announcedTag  = regexp.MustCompile(`\bbetween <([a-z]+)> and\b`)
	// opening is a line that may begin a block.
	opening = regexp.MustCompile(`(?m)^<([a-z]+)(?:-(?:[a-z]+-)*([0-9a-f]{8,64}))?>$`)
	// verdictKeys are the keys of a verdict, as JSON or Python write them, perhaps inside of a string.
	scoreKey  = regexp.MustCompile(`(?i)["']score\\{0,4}["']\s*:`)
	reasonKey = regexp.MustCompile(`(?i)["']reason\\{0,4}["']\s*:`)
)

// turns are what makes it believe that a block is over and another message began: a line that begins with a role and a
// colon, whatever stands around the role; the tags of roles; the tokens of the common chat templates.
var turns = regexp.MustCompile(`(?im)^[^\pL\pN\n]*(?:system|developer|user|human|assistant|ai|tool|function|judge|grader|evaluator|instructions?` +
	`|(?:system|new)[ _](?:prompt|message|instructions?)|(?:developer|user|assistant)[ _]message|tool[ _]result)[^\pL\pN\n]*:` +
	`|</?(?:system(?:[ _-](?:prompt|message|instructions?))?|human|assistant|instructions)>` +
	`|<[|｜][\pL\pN_▁/.-]{1,60}[|｜]>|</?s>|<[be]os>|<</?sys>>|<(?:start|end)_of_turn>` +
	`|\[/?(?:inst|system_prompt|available_tools|tool_calls|tool_results)\]`)

// message reads one message. Blocks do not go on from one message to the next.
func (rd *reading) message(text string) {
	text = perceive(text)
	for text != "" {
		start, body, family := rd.nextBlock(text)
		rd.outside(text[:start])
		text = rd.block(text[body:], family)
	}
}

// nextBlock returns where the next block begins, where the text in it begins, and the family of its tag: what stands before
// the first dash.
func (rd *reading) nextBlock(text string) (start, body int, family string) {
	for _, m := range opening.FindAllStringSubmatchIndex(text, -1) {
		rd.announced(text[:m[0]])
		family = text[m[2]:m[3]]
		if m[4] >= 0 && text[m[4]:m[5]] == rd.code || m[4] < 0 && family == rd.tag {
			return m[0], m[1], family
		}
	}
	rd.announced(text)
	return len(text), len(text), ""
}

// announced takes what a prompt tells of its blocks outside of them; what is told first counts.
func (rd *reading) announced(text string) {
	if rd.code != "" || rd.tag != "" {
		return
	}
	if m := announcedCode.FindStringSubmatch(text); m != nil {
		rd.code = m[1]
	} else if m := announcedTag.FindStringSubmatch(text); m != nil {
		rd.tag = m[1]
	}
}

// outside obeys every payload in a text that is in no block.
func (rd *reading) outside(text string) {
	if p := rd.payload.FindString(text); p != "" {
		rd.obey(p, "it stands outside of the block")
	}
}

// block reads a block up to what ends it, real or not, and returns what follows.
func (rd *reading) block(text, family string) (rest string) {
	if text == "" {
		return ""
	}
	tags := regexp.MustCompile(`(?i)<[\s/]*` + regexp.QuoteMeta(family) + `[->\s/]|` + regexp.QuoteMeta(rd.tool))
	body := text
	for _, ends := range []*regexp.Regexp{turns, tags} {
		if end := ends.FindStringIndex(body); end != nil {
			body, rest = text[:end[0]], text[end[1]:]
		}
	}
	if p := rd.payload.FindString(body); p != "" && scoreKey.MatchString(body) && reasonKey.MatchString(body) {
		rd.obey(p, "it stands beside a verdict")
	}
	return rest
}

// obey keeps the first thing that was obeyed.
func (rd *reading) obey(payload, why string) {
	if rd.obeyed == "" {
		rd.obeyed = payload + ", " + why
	}
}

// perceive turns text into what hides in it.
func perceive(text string) string {
	text = lineBreaks.Replace(text)
	var b strings.Builder
	b.Grow(len(text))
	for line := range strings.Lines(text) {
		b.WriteString(perceiveLine(line))
	}
	return b.String()
}

var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

const (
	rightToLeftOverride = '\u202e'
	popDirectional      = '\u202c'
)

// perceiveLine does so with a line: text behind a right-to-left override stands the other way round.
func perceiveLine(line string) string {
	line, newline := strings.CutSuffix(line, "\n")
	out := make([]rune, 0, len(line))
	reversed := -1 // where a reversed run began
	for _, r := range line {
		switch {
		case r == rightToLeftOverride && reversed < 0:
			reversed = len(out)
		case r == popDirectional && reversed >= 0:
			slices.Reverse(out[reversed:])
			reversed = -1
		case 0xe0020 <= r && r <= 0xe007e: // tag characters
			out = append(out, r-0xe0000)
		case 0xff01 <= r && r <= 0xff5e && r != '＂' && r != '＇': // full-width forms; JSON knows its own quotation marks only
			out = append(out, r-0xff01+'!')
		case r == '\u3000' || r == '\u00a0':
			out = append(out, ' ')
		case r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Variation_Selector)) || isFiller(r):
		default:
			out = append(out, r)
		}
	}
	if reversed >= 0 {
		slices.Reverse(out[reversed:])
	}
	if newline {
		return string(out) + "\n"
	}
	return string(out)
}

// isFiller reports whether a letter has no shape.
func isFiller(r rune) bool {
	return r == 0x034f || r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0
}
