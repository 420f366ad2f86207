package judge

// What an estimate assumes beside the prompt.
const (
	// overheadTokens covers the schema and the frame of the messages.
	overheadTokens = 400
	// verdictTokens is a verdict of three sentences with a quotation, as most are.
	verdictTokens = 200
)

// EstimateTokens guesses what a call for a question takes, in tokens, before it is made: a token for every 4 ASCII
// bytes and one for every other character of the prompt, which is above what most tokenizers need for prose, and below what they
// need for dense code; 200 for the verdict. Models that think before they answer write more. It assumes no
// prompt cache, no retry, and no repair.
func EstimateTokens(q Question) (input, output int) {
	r := newRequest(Model{}, q, formOf(q), []byte("estimate"))
	return tokensOf(r.System, r.Prefix, r.Question) + overheadTokens, verdictTokens
}

// tokensOf guesses how many tokens texts have.
func tokensOf(texts ...string) int {
	ascii, other := 0, 0
	for _, part := range texts {
		for _, c := range part {
			if c < 0x80 {
				ascii++
			} else {
				other++
			}
		}
	}
	return (ascii+3)/4 + other
}
