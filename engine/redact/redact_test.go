package redact

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

const hex64 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func TestString(t *testing.T) {
	r := New("hunter2!", "hunter2!-longer", "short", "with\nbreak\n", "REDACTED")
	tests := map[string]struct{ in, want string }{
		"a value the process was given":       {"I used hunter2! there", "I used [REDACTED:secret] there"},
		"the longest of overlapping values":   {"xhunter2!-longerx", "x[REDACTED:secret]x"},
		"a value inside of a JSON string":     {`{"a": "with\nbreak"}`, `{"a": "[REDACTED:secret]"}`},
		"a value without its outer space":     {"with\nbreak!", "[REDACTED:secret]!"},
		"values under 6 bytes are ignored":    {"a short story", "a short story"},
		"values inside of marks are ignored":  {"REDACTED hunter2!", "REDACTED [REDACTED:secret]"},
		"OpenAI key":                          {"key sk-proj-abc123DEF456.", "key [REDACTED:token]."},
		"sk- in a word is none":               {"risk-free sk-learn-contrib task-based", "risk-free sk-learn-contrib task-based"},
		"publishable key":                     {"pk-live1234567", "[REDACTED:token]"},
		"GitHub tokens":                       {"ghp_abcdefghij gho_abcdefghij ghs_abcdefghij github_pat_11ABCDEFG0", "[REDACTED:token] [REDACTED:token] [REDACTED:token] [REDACTED:token]"},
		"Slack tokens":                        {"xoxb-123456789 xoxp-123456789", "[REDACTED:token] [REDACTED:token]"},
		"AWS access key":                      {"(AKIAIOSFODNN7EXAMPLE)", "([REDACTED:token])"},
		"JSON web token":                      {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl.", "[REDACTED:jwt]."},
		"JSON web token cut off":              {"eyJhbGciOiJIUzI1NiJ9", "[REDACTED:jwt]"},
		"private key":                         {"a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb", "a\n[REDACTED:private-key]\nb"},
		"private key cut off":                 {"a -----BEGIN PRIVATE KEY-----\nMIIE", "a [REDACTED:private-key]"},
		"public key stays":                    {"-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----", "-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----"},
		"hex of 32":                           {"id=" + hex64[:32] + " x", "id=[REDACTED:hex] x"},
		"hex of 31 stays":                     {hex64[:31], hex64[:31]},
		"a commit's short hash stays":         {"commit 9f86d081884c", "commit 9f86d081884c"},
		"a UUID stays":                        {"550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000"},
		"base64":                              {"x QWxhZGRpbjpvcGVuIHNlc2FtZTEyMzQ1Njc4OTA= y", "x [REDACTED:base64] y"},
		"a long word stays":                   {strings.Repeat("Donaudampfschiff", 4), strings.Repeat("Donaudampfschiff", 4)},
		"a long name with dashes stays":       {"claude-sonnet-4-5-20250929-and-so-on-and-so-on", "claude-sonnet-4-5-20250929-and-so-on-and-so-on"},
		"JSON value":                          {`{"apiKey": "abc", "n": 1}`, `{"apiKey": "[REDACTED:value]", "n": 1}`},
		"JSON keys of every spelling":         {`{"api_key":"a","client_secret":"b","access_token":"c","private_key":"d","passwd":"e","Authorization":"f"}`, `{"api_key":"[REDACTED:value]","client_secret":"[REDACTED:value]","access_token":"[REDACTED:value]","private_key":"[REDACTED:value]","passwd":"[REDACTED:value]","Authorization":"[REDACTED:value]"}`},
		"JSON number":                         {`{"password": 123456}`, `{"password": [REDACTED:value]}`},
		"JSON null stays":                     {`{"password": null, "token": true}`, `{"password": null, "token": true}`},
		"JSON value with quotes in it":        {`{"secret": "a\"b", "x": 1}`, `{"secret": "[REDACTED:value]", "x": 1}`},
		"JSON in JSON":                        {`{"body": "{\"token\": \"abc\", \"x\": 1}"}`, `{"body": "{\"token\": \"[REDACTED:value]\", \"x\": 1}"}`},
		"JSON value cut off":                  {`{"token": "abc`, `{"token": "[REDACTED:value]`},
		"JSON header":                         {`{"X-Api-Key": "abc", "Cookie": "a=b"}`, `{"X-Api-Key": "[REDACTED:value]", "Cookie": "[REDACTED:value]"}`},
		"Python dict":                         {`{'password': 'abc'}`, `{'password': '[REDACTED:value]'}`},
		"token counts stay":                   {`{"max_tokens": 1024, "tokens": "12"}`, `{"max_tokens": 1024, "tokens": "12"}`},
		"Authorization header":                {"GET /\nAuthorization: Bearer abc def\nHost: x", "GET /\nAuthorization: [REDACTED:header]\nHost: x"},
		"header in quotes ends with them":     {`curl -H "X-Auth-Token: abc" http://x`, `curl -H "X-Auth-Token: [REDACTED:header]" http://x`},
		"cookies":                             {"Cookie: a=\"b\"; c\nSet-Cookie: d", "Cookie: [REDACTED:header]\nSet-Cookie: [REDACTED:header]"},
		"header of a service":                 {"x-goog-api-key: abc", "x-goog-api-key: [REDACTED:header]"},
		"assignment":                          {"DB_PASSWORD=abc USER=me", "DB_PASSWORD=[REDACTED:value] USER=me"},
		"assignment in quotes":                {`export TOKEN="a b" && x`, `export TOKEN="[REDACTED:value]" && x`},
		"query parameter":                     {"http://x/?access_token=abc&y=1", "http://x/?access_token=[REDACTED:value]&y=1"},
		"key with a colon":                    {"password: abc, user: me", "password: [REDACTED:value], user: me"},
		"prose about secrets stays":           {"The secret of a good token is its password.", "The secret of a good token is its password."},
		"marks stay":                          {"password: [REDACTED:value] [REDACTED:token]", "password: [REDACTED:value] [REDACTED:token]"},
		"what only looks like a mark is text": {"token: [REDACTED:x]", "token: [REDACTED:x]"},
		"nothing":                             {"", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := r.String(tt.in)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("String(%q) (-want +got):\n%s", tt.in, diff)
			}
			if again := r.String(got); again != got {
				t.Errorf("redacted twice: %q became %q", got, again)
			}
		})
	}
}

func TestNilRedactorKnowsForms(t *testing.T) {
	var r *Redactor
	if got, want := r.String("sk-abc12345678 and hunter2!"), "[REDACTED:token] and hunter2!"; got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
}

func TestReportKeepsDigestsAndModels(t *testing.T) {
	r := New("hunter2!")
	digest := "sha256:" + hex64
	const secret, gone = "hunter2!", "[REDACTED:secret]"
	build := func(s string) *v1alpha1.RunReport {
		criteria := []v1alpha1.CriterionReport{{Name: "c " + s, Reason: s, Evidence: s, Error: s}}
		path := []v1alpha1.TreeStep{{Ask: s, Answer: v1alpha1.TreeYes, Reason: s}}
		leaf := func() *v1alpha1.TreeLeaf { return &v1alpha1.TreeLeaf{Reason: s} }
		return &v1alpha1.RunReport{Run: "r", Rows: []v1alpha1.Report{{
			Name: "n " + s, Eval: s, Note: s, Cell: &v1alpha1.Cell{Model: hex64, Prompt: s},
			Candidate: &v1alpha1.Candidate{Digest: digest, Excerpt: s},
			Rubrics: []v1alpha1.RubricReport{{
				Name: s, Reason: s, Criteria: criteria, Path: path, Leaf: leaf(),
				Members: []v1alpha1.MemberReport{{Model: hex64, Error: s, Reason: s, Leaf: leaf(),
					Criteria: append([]v1alpha1.CriterionReport(nil), criteria...), Path: append([]v1alpha1.TreeStep(nil), path...)}},
			}},
			Judge:     &v1alpha1.JudgeReport{Models: []string{hex64}},
			Truncated: &v1alpha1.Truncation{Digest: digest},
		}}}
	}
	got := build(secret)
	r.RunReport(got)
	if diff := cmp.Diff(build(gone), got); diff != "" {
		t.Errorf("RunReport (-want +got):\n%s", diff)
	}
	r.RunReport(nil)
	r.Report(nil)
}

func TestFindingsKeepKeys(t *testing.T) {
	r := New("hunter2!")
	build := func(s string) *v1alpha1.Findings {
		return &v1alpha1.Findings{
			Deferred: s, Error: s, Models: []string{hex64},
			Judgments: []v1alpha1.Judgment{{
				QuestionKey: v1alpha1.QuestionKey{Rubric: hex64, Question: "hunter2!"}, Model: hex64, Reason: s, Evidence: s, Error: s,
			}},
		}
	}
	got := build("a hunter2! b")
	r.Findings(got)
	if diff := cmp.Diff(build("a [REDACTED:secret] b"), got); diff != "" {
		t.Errorf("Findings (-want +got):\n%s", diff)
	}
	r.Findings(nil)
}

// hostile texts are those that quadratic scanners choke on.
var hostile = map[string]string{
	"quotes": `"`, "keys": `"token":`, "escapes": `\`, "escaped keys": `\"token\":`, "begin": "-----BEGIN ", "private": "-----BEGIN PRIVATE KEY-----",
	"names": "a-", "assignments": "token= ", "headers": "x-key:", "jwt": "eyJ.", "sk": "sk-", "marks": "[REDACTED:", "spaces": "token:   ", "open": `"token":"`,
}

func TestStringTakesLinearTime(t *testing.T) {
	r := New("hunter2!", "aaaaaaab")
	for name, part := range hostile {
		t.Run(name, func(t *testing.T) {
			s := strings.Repeat(part, 1<<18/len(part))
			start := time.Now()
			r.String(s)
			if d := time.Since(start); d > 5*time.Second {
				t.Errorf("256 KiB of %q took %v", part, d)
			}
		})
	}
}

func FuzzString(f *testing.F) {
	for _, s := range hostile {
		f.Add(strings.Repeat(s, 3), "hunter2!", "tail "+s)
	}
	f.Add(`password: [REDACTED:se`, `cret]abc`, `"x": "`)
	f.Add(`Authorization: "`, `abcdefg`, `" Cookie: [REDACTED:token]`)
	f.Fuzz(func(t *testing.T, before, secret, after string) {
		r := New(secret)
		got := r.String(before + secret + after)
		if again := r.String(got); again != got {
			t.Fatalf("redacted twice:\n%q\n%q", got, again)
		}
		if len(strings.TrimSpace(secret)) >= MinSecret && !partOfMark(secret) && strings.Contains(got, secret) {
			t.Fatalf("%q survived in %q", secret, got)
		}
		if utf8.ValidString(before) && utf8.ValidString(secret) && utf8.ValidString(after) && !utf8.ValidString(got) {
			t.Fatalf("%q is no UTF-8", got)
		}
	})
}

func BenchmarkString(b *testing.B) {
	r := New("hunter2!hunter2!", "another-secret-value")
	s := strings.Repeat("The candidate says \"it is 21 degrees\", which the tool result {\"temp\": 21, \"token\": \"abc\"} bears out.\n", 40)
	b.ReportAllocs()
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		r.String(s)
	}
}
