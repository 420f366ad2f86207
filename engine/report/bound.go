// Package report keeps the canonical report within its bounds, and renders it.
package report

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// CutMark ends a text that was cut.
const CutMark = "…"

const (
	// leastWords is how many bytes of a reason or a quote are left while something else can be cut.
	leastWords = 64
	// leastExcerpt is how many bytes are left of the candidate's beginning, of a prompt and of a question.
	leastExcerpt = 256
	// leastName is how many bytes of a name are left when names alone are too long.
	leastName = 24
)

// noteCollapsed is the note of a report that lost the details of its members.
const noteCollapsed = "the report was too long: what each member of the jury or panel said of each question was left out"

// Bound cuts a report to v1alpha1.MaxReportBytes as JSON. See BoundTo.
func Bound(r *v1alpha1.Report) { BoundTo(r, v1alpha1.MaxReportBytes) }

// BoundTo cuts a report to at most limit bytes as JSON, and says so in Truncated. It returns whether the report fits;
// it always does at v1alpha1.MaxReportBytes, whatever a rubric that admission let in made of it.
//
// The longest reasons and quotes are cut first; then excerpts, prompts and questions; then the words of the members of
// a jury or panel go, then their details, then all other words, and last names are shortened. Rubrics, criteria,
// scores, gates and outcomes stay.
func BoundTo(r *v1alpha1.Report, limit int) bool {
	size := encodedLen(r)
	if size <= limit {
		return true
	}
	r.Truncated = &v1alpha1.Truncation{OriginalBytes: int64(size), Digest: Digest(r)}
	steps := []func(){
		func() { cutLongest(r, limit, append(wordsOf(r), &r.Note), leastWords) },
		func() { cutLongest(r, limit, excerptsOf(r), leastExcerpt) },
		func() { clearAll(memberWords(r)) },
		func() { collapseMembers(r) },
		func() { cutLongest(r, limit, wordsOf(r), 0) },
		func() { cutLongest(r, limit, excerptsOf(r), 0) },
		func() { cutLongest(r, limit, namesOf(r), leastName) },
	}
	for _, step := range steps {
		if encodedLen(r) <= limit {
			return true
		}
		step()
	}
	return encodedLen(r) <= limit
}

// Digest is the SHA-256 of a report as JSON, as sha256:hex; of a report that was cut, see Truncated.
func Digest(r *v1alpha1.Report) string {
	whole := *r
	whole.Truncated = nil
	data, err := json.Marshal(whole)
	if err != nil { // a report always marshals: it holds no NaN
		return ""
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Cut cuts a text to at most limit bytes, between characters, and ends it with CutMark when it did; the mark counts.
// A limit too short for the mark cuts to nothing.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	cut := limit - len(CutMark)
	if cut < 0 {
		return ""
	}
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return strings.TrimSuffix(text[:cut], CutMark) + CutMark
}

// cutLongest cuts texts to the greatest length at which the report fits, but not below least bytes.
func cutLongest(r *v1alpha1.Report, limit int, texts []*string, least int) {
	whole := make([]string, len(texts))
	longest := 0
	for i, text := range texts {
		whole[i] = *text
		longest = max(longest, len(*text))
	}
	// What a text takes in the report is what it takes as a JSON string: the rest stays the same, or gets shorter by the
	// keys of texts that are cut to nothing.
	rest := encodedLen(r)
	for _, text := range whole {
		rest -= quotedLen(text)
	}
	fits := func(n int) bool {
		total := rest
		for _, text := range whole {
			total += quotedLen(Cut(text, n))
		}
		return total <= limit
	}
	// Invariant: at low it fits, or low is the least; at high it is too long.
	low, high := least, longest
	for high-low > 1 {
		if mid := low + (high-low)/2; fits(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	for i, text := range texts {
		*text = Cut(whole[i], low)
	}
}

// quotedLen is how many bytes encoding/json makes of a string, but for the quotes.
func quotedLen(s string) int {
	n := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			switch {
			case c == '"', c == '\\', c == '\n', c == '\r', c == '\t', c == '\b', c == '\f':
				n += 2
			case c < ' ', c == '<', c == '>', c == '&':
				n += 6
			default:
				n++
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1, r == '\u2028', r == '\u2029':
			n += 6
		default:
			n += size
		}
		i += size
	}
	return n
}

// wordsOf are the words of judges, and of those who wrote rubrics.
func wordsOf(r *v1alpha1.Report) []*string {
	var texts []*string
	for i := range r.Rubrics {
		rubric := &r.Rubrics[i]
		texts = append(texts, &rubric.Reason)
		texts = append(texts, detailWords(rubric.Criteria, rubric.Path, rubric.Leaf)...)
		for j := range rubric.Members {
			member := &rubric.Members[j]
			texts = append(texts, &member.Reason, &member.Error)
		}
	}
	return append(texts, memberWords(r)...)
}

// memberWords are the words of members about single questions.
func memberWords(r *v1alpha1.Report) []*string {
	var texts []*string
	for i := range r.Rubrics {
		for j := range r.Rubrics[i].Members {
			member := &r.Rubrics[i].Members[j]
			texts = append(texts, detailWords(member.Criteria, member.Path, member.Leaf)...)
		}
	}
	return texts
}

func detailWords(criteria []v1alpha1.CriterionReport, path []v1alpha1.TreeStep, leaf *v1alpha1.TreeLeaf) []*string {
	var texts []*string
	for i := range criteria {
		texts = append(texts, &criteria[i].Reason, &criteria[i].Evidence, &criteria[i].Error)
	}
	for i := range path {
		texts = append(texts, &path[i].Reason)
	}
	if leaf != nil {
		texts = append(texts, &leaf.Reason)
	}
	return texts
}

// excerptsOf are the texts that stand whole elsewhere: in the spec that was graded.
func excerptsOf(r *v1alpha1.Report) []*string {
	var texts []*string
	if r.Candidate != nil {
		texts = append(texts, &r.Candidate.Excerpt)
	}
	if r.Cell != nil {
		texts = append(texts, &r.Cell.Prompt)
	}
	for i := range r.Rubrics {
		for j := range r.Rubrics[i].Path {
			texts = append(texts, &r.Rubrics[i].Path[j].Ask)
		}
		for j := range r.Rubrics[i].Members {
			for k := range r.Rubrics[i].Members[j].Path {
				texts = append(texts, &r.Rubrics[i].Members[j].Path[k].Ask)
			}
		}
	}
	return texts
}

func namesOf(r *v1alpha1.Report) []*string {
	var texts []*string
	for i := range r.Rubrics {
		texts = append(texts, &r.Rubrics[i].Name, &r.Rubrics[i].Display)
		for j := range r.Rubrics[i].Criteria {
			texts = append(texts, &r.Rubrics[i].Criteria[j].Name)
		}
		for j := range r.Rubrics[i].Members {
			texts = append(texts, &r.Rubrics[i].Members[j].Model)
		}
	}
	return texts
}

func clearAll(texts []*string) {
	for _, text := range texts {
		*text = ""
	}
}

// collapseMembers leaves of each member its score, its vote and its words about the whole.
func collapseMembers(r *v1alpha1.Report) {
	collapsed := false
	for i := range r.Rubrics {
		for j := range r.Rubrics[i].Members {
			member := &r.Rubrics[i].Members[j]
			collapsed = collapsed || len(member.Criteria)+len(member.Path) > 0
			member.Criteria, member.Path = nil, nil
		}
	}
	switch {
	case !collapsed:
	case r.Note == "":
		r.Note = noteCollapsed
	default:
		r.Note = noteCollapsed + "; " + r.Note
	}
}

func encodedLen(r *v1alpha1.Report) int {
	data, err := json.Marshal(r)
	if err != nil { // a report always marshals: it holds no NaN
		return 0
	}
	return len(data)
}
