package report

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

func TestCut(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"a short text stays":                  {"abc", 3, "abc"},
		"a long text ends with the mark":      {"abcdefgh", 6, "abc…"},
		"it is cut between characters":        {"aé漢字漢字", 9, "aé漢…"},
		"a mark is not followed by another":   {"abc…defghi", 9, "abc…"},
		"no room for the mark leaves nothing": {"abcdef", 2, ""},
		"room for the mark only":              {"abcdef", 3, "…"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Cut(tc.text, tc.limit)
			if got != tc.want {
				t.Errorf("Cut(%q, %d) = %q, want %q", tc.text, tc.limit, got, tc.want)
			}
			if len(got) > tc.limit {
				t.Errorf("%d bytes, limit %d", len(got), tc.limit)
			}
		})
	}
}

// shape is how big a hostile report is.
type shape struct {
	rubrics, criteria, members int
	name, words                string
}

func (s shape) report() *v1alpha1.Report {
	score, yes := 0.123456, true
	raw := int32(10)
	r := &v1alpha1.Report{
		SchemaVersion: "v1", Name: strings.Repeat("n", 512), Eval: strings.Repeat("e", 256),
		Cell:      &v1alpha1.Cell{Model: "m", Prompt: s.words},
		Outcome:   v1alpha1.OutcomePassed,
		Score:     &score,
		Note:      s.words,
		Candidate: &v1alpha1.Candidate{Source: v1alpha1.CandidateResponse, Bytes: 1, Excerpt: s.words},
	}
	criteria := func() []v1alpha1.CriterionReport {
		out := make([]v1alpha1.CriterionReport, s.criteria)
		for i := range out {
			out[i] = v1alpha1.CriterionReport{
				Name: fmt.Sprintf("%d%s", i, s.name), Score: &score, Passed: true, Weight: 123456.789012, Required: true, Guard: true,
				Threshold: &score, Reason: s.words, Evidence: s.words, EvidenceVerified: &yes, Raw: &raw, Band: &raw,
				Gate: &v1alpha1.Gate{Failed: true, Rule: v1alpha1.GateRequiredZero}, Error: s.words,
			}
		}
		return out
	}
	path := func() []v1alpha1.TreeStep {
		out := make([]v1alpha1.TreeStep, 6)
		for i := range out {
			out[i] = v1alpha1.TreeStep{Ask: s.words, Answer: v1alpha1.TreeYes, Score: score, Reason: s.words}
		}
		return out
	}
	for range s.rubrics {
		rubric := v1alpha1.RubricReport{
			Name: s.name, Kind: v1alpha1.RubricKindCriteria, Score: &score, Reason: s.words, Display: s.name,
			Criteria: criteria(), Path: path(), Leaf: &v1alpha1.TreeLeaf{Score: score, Reason: s.words},
		}
		for range s.members {
			rubric.Members = append(rubric.Members, v1alpha1.MemberReport{
				Model: s.name, Score: &score, Error: s.words, Reason: s.words, Criteria: criteria(), Path: path(),
				Leaf: &v1alpha1.TreeLeaf{Score: score, Reason: s.words},
			})
		}
		r.Rubrics = append(r.Rubrics, rubric)
	}
	return r
}

func size(t testing.TB, r *v1alpha1.Report) int {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return len(data)
}

func TestReportThatFitsIsNotTouched(t *testing.T) {
	r := shape{rubrics: 2, criteria: 5, members: 3, name: "n", words: "short"}.report()
	want := r.DeepCopy()
	Bound(r)
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
}

func TestLongestWordsAreCutFirst(t *testing.T) {
	r := shape{rubrics: 1, criteria: 3, name: "c", words: "as it was"}.report()
	r.Rubrics[0].Criteria[1].Reason = strings.Repeat("a long reason ", 20_000)
	original, digest := size(t, r), Digest(r)
	want := r.DeepCopy()
	Bound(r)
	if got := size(t, r); got > v1alpha1.MaxReportBytes || got < v1alpha1.MaxReportBytes-1024 {
		t.Errorf("the report has %d bytes, want just under %d", got, v1alpha1.MaxReportBytes)
	}
	if diff := cmp.Diff(&v1alpha1.Truncation{OriginalBytes: int64(original), Digest: digest}, r.Truncated); diff != "" {
		t.Error(diff)
	}
	if cut := r.Rubrics[0].Criteria[1].Reason; !strings.HasSuffix(cut, CutMark) {
		t.Errorf("the long reason ends with %q", cut[len(cut)-10:])
	}
	want.Truncated = r.Truncated
	want.Rubrics[0].Criteria[1].Reason = r.Rubrics[0].Criteria[1].Reason
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("more than the long reason changed:\n%s", diff)
	}
}

func TestHostileReportEndsUnderTheLimitWithEveryCriterion(t *testing.T) {
	for name, s := range map[string]shape{
		"the biggest rubrics with a full jury": {8, 64, 15, strings.Repeat("n", 120), strings.Repeat("w", 200)},
		"long words":                           {8, 64, 2, "n", strings.Repeat("w", 4096)},
		"names that JSON makes six times long": {8, 64, 15, strings.Repeat("<", 125), "<<"},
		"names of four bytes a character":      {8, 64, 9, strings.Repeat("😀", 125), "😀"},
		"bytes that are no text":               {4, 64, 3, "n", strings.Repeat("\xff\x00", 2000)},
		"no words at all":                      {8, 64, 15, strings.Repeat("n", 125), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.report()
			before := r.DeepCopy()
			Bound(r)
			if got := size(t, r); got > v1alpha1.MaxReportBytes {
				t.Fatalf("the report still has %d bytes", got)
			}
			if r.Truncated == nil || r.Truncated.Digest != Digest(before) {
				t.Errorf("truncated = %+v", r.Truncated)
			}
			checkFacts(t, before, r)
			if len(r.Rubrics[0].Members) > 0 && len(r.Rubrics[0].Members[0].Criteria) == 0 && !strings.Contains(r.Note, "left out") {
				t.Errorf("members were collapsed without a note: %q", r.Note)
			}
		})
	}
}

// checkFacts checks that nothing but words, names and the details of members went.
func checkFacts(t *testing.T, before, after *v1alpha1.Report) {
	t.Helper()
	if before.Outcome != after.Outcome || *before.Score != *after.Score || len(before.Rubrics) != len(after.Rubrics) {
		t.Fatal("the outcome changed")
	}
	for i := range before.Rubrics {
		b, a := before.Rubrics[i], after.Rubrics[i]
		if len(a.Criteria) != len(b.Criteria) || len(a.Members) != len(b.Members) || len(a.Path) != len(b.Path) {
			t.Fatalf("rubric %d: %d criteria, %d members, %d steps", i, len(a.Criteria), len(a.Members), len(a.Path))
		}
		for j := range a.Criteria {
			x, y := b.Criteria[j], a.Criteria[j]
			for _, c := range []*v1alpha1.CriterionReport{&x, &y} {
				c.Name, c.Reason, c.Evidence, c.Error = "", "", "", ""
			}
			if diff := cmp.Diff(x, y); diff != "" {
				t.Fatalf("criterion %d: %s", j, diff)
			}
		}
	}
}

func FuzzQuotedLen(f *testing.F) {
	f.Add("plain <b>&\u2028\u2029\x00\x1f\x7f\b\f\n\r\t\"\\漢😀\xff\xed\xa0\x80")
	f.Fuzz(func(t *testing.T, s string) {
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := quotedLen(s), len(data)-2; got != want {
			t.Errorf("quotedLen(%q) = %d, want %d", s, got, want)
		}
	})
}

func FuzzBound(f *testing.F) {
	f.Add(uint64(1), "words", "name")
	f.Add(uint64(2), "\x00<>&\u2028", "漢")
	f.Fuzz(func(t *testing.T, seed uint64, words, name string) {
		random := rand.New(rand.NewPCG(seed, 1))
		stretch := func(text string, most int) string {
			if text == "" {
				return ""
			}
			all := []rune(strings.Repeat(text, random.IntN(most)/len(text)+1))
			return string(all[:min(len(all), most)])
		}
		r := shape{
			rubrics: 1 + random.IntN(8), criteria: random.IntN(65), members: random.IntN(16),
			name: stretch(name, 125), words: stretch(words, 1+random.IntN(1000)),
		}.report()
		before := r.DeepCopy()
		Bound(r)
		if got := size(t, r); got > v1alpha1.MaxReportBytes {
			t.Fatalf("%d bytes", got)
		}
		if r.Truncated != nil && utf8.ValidString(words) && !utf8.ValidString(r.Note) {
			t.Fatalf("cut within a character: %q", r.Note)
		}
		checkFacts(t, before, r)
	})
}
