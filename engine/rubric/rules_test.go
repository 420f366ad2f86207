package rubric

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

func TestEvidenceOccurs(t *testing.T) {
	for name, tc := range map[string]struct {
		shown, span string
		want        bool
	}{
		"S-19 verbatim":                          {"The 2.3.0 release added limits.", "2.3.0 release", true},
		"S-19 white space is collapsed":          {"added per-tenant\n   rate limits", "per-tenant rate\tlimits", true},
		"S-19 white space around is left out":    {"it is 18C", "  18C ", true},
		"S-19 a quote in decomposed letters":     {"un café", "cafe\u0301", true},
		"S-19 a candidate in decomposed letters": {"un cafe\u0301", "café", true},
		"S-19 an accent is part of its letter":   {"un cafe\u0301", "cafe", false},
		"S-19 case counts":                       {"Paris is clear", "paris", false},
		"S-19 three characters are enough":       {"it is 18C", "18C", true},
		"S-19 two are not":                       {"it is 18C", "18", false},
		"S-19 spaces do not count":               {"a b", "a b", false},
		"S-19 a span that does not occur":        {"it is clear", "it is cloudy", false},
		"S-19 nothing is no evidence":            {"it is clear", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := EvidenceOccurs(tc.shown, tc.span); got != tc.want {
				t.Errorf("EvidenceOccurs(%q, %q) = %v, want %v", tc.shown, tc.span, got, tc.want)
			}
		})
	}
}

func FuzzEvidenceOccurs(f *testing.F) {
	f.Add("The 2.3.0 release", "2.3.0")
	f.Add("cafe\u0301 \u200b", "café")
	f.Fuzz(func(t *testing.T, shown, span string) {
		if EvidenceOccurs(shown, span) && strings.TrimSpace(span) == "" {
			t.Errorf("blank %q was taken for evidence", span)
		}
		if visible := strings.Join(strings.Fields(shown), ""); len([]rune(visible)) > 8 && !EvidenceOccurs(shown, shown) {
			t.Errorf("%q does not occur in itself", shown)
		}
	})
}

func TestEmpty(t *testing.T) {
	for name, tc := range map[string]struct {
		candidate string
		want      bool
	}{
		"S-34 nothing":                           {"", true},
		"S-34 white space":                       {" \t\n\u00a0\u2003", true},
		"S-34 punctuation":                       {"--- ?!… 「」", true},
		"S-34 what cannot be seen":               {"\u200b\u200d\ufeff", true},
		"S-34 pictures":                          {"👍 ❤️ →", true},
		"S-34 an accent without its letter":      {"\u0301", true},
		"S-34 bytes that are no text":            {"\xff\xfe", true},
		"S-34 one letter":                        {"- a", false},
		"S-34 a bare number":                     {"42", false},
		"S-34 Chinese":                           {"是。", false},
		"S-34 Greek":                             {"Ω", false},
		"S-34 Cyrillic":                          {"да", false},
		"S-34 Hebrew":                            {"כן", false},
		"S-34 Arabic":                            {"نعم", false},
		"S-34 Devanagari":                        {"हाँ", false},
		"S-34 Thai":                              {"ใช่", false},
		"S-34 Hangul":                            {"네", false},
		"S-34 Arabic digits":                     {"٤٢", false},
		"S-34 Devanagari digits":                 {"४२", false},
		"S-34 full-width digits":                 {"４２", false},
		"S-34 a letter after much that is blank": {strings.Repeat(" ", 10000) + "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Empty(tc.candidate); got != tc.want {
				t.Errorf("Empty(%q) = %v, want %v", tc.candidate, got, tc.want)
			}
		})
	}
}

func TestApplies(t *testing.T) {
	for name, tc := range map[string]struct {
		when    *v1alpha1.When
		want    bool
		wantErr string
	}{
		"S-11 without a condition":    {nil, true, ""},
		"S-11 contains":               {&v1alpha1.When{Contains: "error 500"}, true, ""},
		"S-11 contains, other case":   {&v1alpha1.When{Contains: "Error 500"}, false, ""},
		"S-11 regex":                  {&v1alpha1.When{Regex: `error \d{3}`}, true, ""},
		"S-11 regex, not found":       {&v1alpha1.When{Regex: `^error`}, false, ""},
		"S-11 regex, no RE2":          {&v1alpha1.When{Regex: `(?=a)`}, false, "when.regex"},
		"S-11 regex tells case apart": {&v1alpha1.When{Regex: `Error`}, false, ""},
		"S-11 regex in any case":      {&v1alpha1.When{Regex: `(?i)ERROR`}, true, ""},
		"S-11 contains, regex chars":  {&v1alpha1.When{Contains: "error \\d"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Applies(tc.when, "an error 500 occurred")
			if got != tc.want || (err != nil) != (tc.wantErr != "") {
				t.Fatalf("Applies = %v, %v; want %v, error %q", got, err, tc.want, tc.wantErr)
			}
			if err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error %q does not say %q", err, tc.wantErr)
			}
		})
	}
}

func TestDisplay(t *testing.T) {
	likert := &v1alpha1.Scale{Likert: &v1alpha1.LikertScale{Min: 1, Max: 5}}
	boolean := &v1alpha1.Scale{Boolean: &v1alpha1.BooleanScale{}}
	letter := &v1alpha1.Scale{Letter: &v1alpha1.LetterScale{}}
	for name, tc := range map[string]struct {
		scale  *v1alpha1.Scale
		score  float64
		passed bool
		want   string
	}{
		"unit is the default": {nil, 0.8, true, "0.80"},
		"unit":                {&v1alpha1.Scale{Unit: &v1alpha1.UnitScale{}}, 0.816667, true, "0.82"},
		"likert":              {likert, 0.75, true, "4.0/5"},
		"likert at 0":         {likert, 0, false, "1.0/5"},
		"likert at 1":         {likert, 1, true, "5.0/5"},
		"boolean pass":        {boolean, 0.7, true, "pass"},
		"boolean fail":        {boolean, 0.9, false, "fail"},
		"letter A":            {letter, 0.9, true, "A"},
		"letter B":            {letter, 0.899999, true, "B"},
		"letter C":            {letter, 0.7, true, "C"},
		"letter D":            {letter, 0.6, false, "D"},
		"letter F":            {letter, 0.59, false, "F"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Display(tc.scale, tc.score, tc.passed); got != tc.want {
				t.Errorf("Display = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCheckJudgments(t *testing.T) {
	text := evalOf(v1alpha1.RubricSpec{Text: "t"})
	criteria := evalOf(criteriaOf(criterionOf("a"), criterionOf("r", ranges("0"))))
	tree := evalOf(v1alpha1.RubricSpec{Tree: &v1alpha1.TreeNode{
		Ask: "q", IfYes: &v1alpha1.TreeNode{Score: ptr(1.0)}, IfNo: &v1alpha1.TreeNode{Score: ptr(0.0)},
	}})
	otherRubric := judged("", 1)
	otherRubric.Rubric = "other"
	both := failedBy(0, "")
	both.Score = ptr(1.0)
	for name, tc := range map[string]struct {
		spec      *v1alpha1.EvalSpec
		judgments []v1alpha1.Judgment
		want      string
	}{
		"answers to the questions":               {criteria, []v1alpha1.Judgment{judged("a", 0.5), judgedRaw("r", 3)}, ""},
		"an error is an answer":                  {text, []v1alpha1.Judgment{failedBy(0, "")}, ""},
		"another rubric":                         {text, []v1alpha1.Judgment{otherRubric}, "no such rubric"},
		"another member":                         {text, []v1alpha1.Judgment{judgedBy(1, "", 1)}, "member 1"},
		"a negative member":                      {text, []v1alpha1.Judgment{judgedBy(-1, "", 1)}, "member -1"},
		"another criterion":                      {criteria, []v1alpha1.Judgment{judged("z", 1)}, "no such criterion"},
		"a leaf is no question":                  {tree, []v1alpha1.Judgment{judged("y", 1)}, "no such question"},
		"a walk past a leaf":                     {tree, []v1alpha1.Judgment{judged("yy", 1)}, "no such question"},
		"no walk":                                {tree, []v1alpha1.Judgment{judged("x", 1)}, "no such question"},
		"a question of a text":                   {text, []v1alpha1.Judgment{judged("a", 1)}, "one question"},
		"twice":                                  {text, []v1alpha1.Judgment{judged("", 1), judged("", 0)}, "twice"},
		"S-5 above 1 is never clamped":           {text, []v1alpha1.Judgment{judged("", 8)}, "outside 0..1"},
		"S-5 below 0 is never clamped":           {text, []v1alpha1.Judgment{judged("", -0.1)}, "outside 0..1"},
		"a score and an error":                   {text, []v1alpha1.Judgment{both}, "either a score or an error"},
		"neither":                                {text, []v1alpha1.Judgment{{}}, "either a score or an error"},
		"S-17 a score that raw does not make":    {criteria, []v1alpha1.Judgment{func() v1alpha1.Judgment { j := judgedRaw("r", 3); j.Score = ptr(0.9); return j }()}, "does not make"},
		"S-17 raw above 10":                      {criteria, []v1alpha1.Judgment{func() v1alpha1.Judgment { j := judgedRaw("r", 11); j.Score = ptr(1.0); return j }()}, "does not make"},
		"S-17 raw where it was not asked for":    {criteria, []v1alpha1.Judgment{judgedRaw("a", 3)}, "raw belongs"},
		"S-17 no raw where it was asked for":     {criteria, []v1alpha1.Judgment{judged("r", 0.3)}, "raw belongs"},
		"a jury has as many members as its size": {evalOf(v1alpha1.RubricSpec{Text: "t"}, jury(2, nil)), []v1alpha1.Judgment{judgedBy(0, "", 1), judgedBy(1, "", 1)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckJudgments(tc.spec, tc.judgments)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && err == nil:
				t.Errorf("accepted, want an error with %q", tc.want)
			case err != nil && !strings.Contains(err.Error(), tc.want):
				t.Errorf("error %q does not say %q", err, tc.want)
			}
		})
	}
}

func TestSummarize(t *testing.T) {
	row := func(o v1alpha1.Outcome, score float64, model string) *v1alpha1.Report {
		r := &v1alpha1.Report{Outcome: o, Usage: v1alpha1.Usage{Calls: 1, CostUSD: 0.001}}
		if score >= 0 {
			r.Score = &score
		}
		if model != "" {
			r.Judge = &v1alpha1.JudgeReport{Models: []string{model}}
		}
		return r
	}
	vacuous := row(v1alpha1.OutcomePassed, 1, "m")
	vacuous.Vacuous = true
	for name, tc := range map[string]struct {
		rows    []*v1alpha1.Report
		want    v1alpha1.Summary
		outcome v1alpha1.Outcome
	}{
		"S-37 the mean is of judged rows": {
			[]*v1alpha1.Report{row("Passed", 0.9, "m"), row("Failed", 0.4, "m"), vacuous, row("Deferred", -1, "")},
			v1alpha1.Summary{Rows: 4, Passed: 2, Failed: 1, Deferred: 1, Score: ptr(0.65), Calls: 4, CostUSD: 0.004},
			v1alpha1.OutcomeFailed,
		},
		"S-32 no mean over different judges": {
			[]*v1alpha1.Report{row("Passed", 0.9, "m"), row("Passed", 0.8, "n")},
			v1alpha1.Summary{Rows: 2, Passed: 2, Calls: 2, CostUSD: 0.002},
			v1alpha1.OutcomePassed,
		},
		"S-39 an error fails the run closed": {
			[]*v1alpha1.Report{row("Passed", 0.9, "m"), row("Error", -1, "m"), row("Failed", 0.1, "m")},
			v1alpha1.Summary{Rows: 3, Passed: 1, Failed: 1, Errored: 1, Score: ptr(0.5), Calls: 3, CostUSD: 0.003},
			v1alpha1.OutcomeError,
		},
		"S-38 nothing judged at all is deferred": {
			[]*v1alpha1.Report{row("Deferred", -1, "")},
			v1alpha1.Summary{Rows: 1, Deferred: 1, Calls: 1, CostUSD: 0.001},
			v1alpha1.OutcomeDeferred,
		},
		"a row that goes on counts as a row": {
			[]*v1alpha1.Report{row("Passed", 0.9, "m"), nil},
			v1alpha1.Summary{Rows: 2, Passed: 1, Score: ptr(0.9), Calls: 1, CostUSD: 0.001},
			v1alpha1.OutcomePassed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Summarize(tc.rows)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
			if o := RunOutcome(got); o != tc.outcome {
				t.Errorf("outcome %s, want %s", o, tc.outcome)
			}
		})
	}
}
