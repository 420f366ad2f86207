package judge

// What an estimate assumes beside the prompt.
const (
	// overheadTokens covers the schema and the frame of the messages.
	overheadTokens = 400
	// verdictTokens is a verdict of three sentences with a quotation, as most are.
	verdictTokens = 200
)

// Estimator guesses what calls about one candidate take, in tokens, before they are made: a token for every 4 ASCII
// bytes and one for every other character of the prompt, which is above what most tokenizers need for prose, and below
// what they need for dense code; 200 for the verdict. Models that think before they answer write more. It assumes no
// prompt cache, no retry, and no repair.
type Estimator struct{ shared length }

// NewEstimator counts what all questions about a candidate share: their Prompt, Context and Candidate.
func NewEstimator(shared Question) Estimator {
	return Estimator{shared: lengthOf(instructions, prefix(shared, []byte("estimate")))}
}

// Tokens guesses what a call for a question takes. Its Prompt, Context and Candidate are those of the Estimator.
func (e Estimator) Tokens(q Question) (input, output int) {
	return e.shared.plus(lengthOf(ask(q, formOf(q)))).tokens() + overheadTokens, verdictTokens
}

// length counts the characters of texts.
type length struct{ ascii, other int }

func lengthOf(texts ...string) length {
	var n length
	for _, text := range texts {
		for _, c := range text {
			if c < 0x80 {
				n.ascii++
			} else {
				n.other++
			}
		}
	}
	return n
}

func (n length) plus(m length) length { return length{n.ascii + m.ascii, n.other + m.other} }

// tokens guesses how many tokens so many characters are.
func (n length) tokens() int { return (n.ascii+3)/4 + n.other }
