package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files anew")

var ansi = regexp.MustCompile("\x1b\\[[0-9;]*m")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run go test -update to write it", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); after looking at it, run go test -update\n%s", path, diff)
	}
}

func render(t *testing.T, format string, r v1alpha1.RunReport, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Render(&b, format, &r, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPrettyGolden(t *testing.T) {
	one := richReport()
	one.Rows = one.Rows[:1]
	one.Summary = v1alpha1.Summary{Rows: 1, Passed: 1, Score: ptr(0.9), Calls: 1, CostUSD: 0.00004}
	running := richReport()
	running.Summary.Rows = 20
	waiting := v1alpha1.RunReport{SchemaVersion: "v1", Run: "nightly-7x2kq", Summary: v1alpha1.Summary{Rows: 4}, Rows: []v1alpha1.Report{}}
	deferred := richReport()
	deferred.Rows = deferred.Rows[10:11]
	deferred.Summary = v1alpha1.Summary{Rows: 1, Deferred: 1}
	for name, test := range map[string]struct {
		report  v1alpha1.RunReport
		options Options
	}{
		"pretty-80.txt":       {richReport(), Options{Width: 80}},
		"pretty-120.txt":      {richReport(), Options{Width: 120}},
		"pretty-40.txt":       {richReport(), Options{Width: 40}},
		"pretty-80.ansi":      {richReport(), Options{Width: 80, Color: ColorAlways}},
		"pretty-one.txt":      {one, Options{}},
		"pretty-running.txt":  {running, Options{}},
		"pretty-waiting.txt":  {waiting, Options{}},
		"pretty-deferred.txt": {deferred, Options{}},
		"rich.json":           {richReport(), Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			format := DefaultFormat
			if strings.HasSuffix(name, ".json") {
				format = "json"
			}
			golden(t, name, render(t, format, test.report, test.options))
		})
	}
}

func TestPrettyFitsItsWidth(t *testing.T) {
	for _, columns := range []int{40, 60, 80, 100, 120, 160} {
		for _, line := range strings.Split(string(render(t, DefaultFormat, richReport(), Options{Width: columns})), "\n") {
			if n := width(line); n > columns {
				t.Errorf("at %d columns a line has %d: %q", columns, n, line)
			}
		}
	}
}

func TestPrettyWritesColoursOnlyWhenAsked(t *testing.T) {
	uncoloured := render(t, DefaultFormat, richReport(), Options{})
	if bytes.Contains(uncoloured, []byte("\x1b")) {
		t.Error("an escape was written without colour")
	}
	coloured := render(t, DefaultFormat, richReport(), Options{Color: ColorAlways})
	if diff := cmp.Diff(string(uncoloured), ansi.ReplaceAllString(string(coloured), "")); diff != "" {
		t.Errorf("colour changes the text (-without +with):\n%s", diff)
	}
}

func TestRenderDoesNotChangeTheReport(t *testing.T) {
	r := richReport()
	for _, f := range Formats() {
		render(t, f, r, Options{})
	}
	if diff := cmp.Diff(richReport(), r); diff != "" {
		t.Error(diff)
	}
}

func TestHostileTextIsNeutralised(t *testing.T) {
	hostile := "\x1b[31mred\x1b[0m\x07 \u009b2J \u202egnp.exe\x00\x7f\r\nnext\xff\ufeff"
	r := richReport()
	r.Run = hostile
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Name, row.Eval, row.Note = hostile, hostile, hostile
		for j := range row.Rubrics {
			rb := &row.Rubrics[j]
			rb.Reason = hostile
			for k := range rb.Criteria {
				rb.Criteria[k].Name, rb.Criteria[k].Reason, rb.Criteria[k].Evidence, rb.Criteria[k].Error = hostile, hostile, hostile, hostile
			}
			for k := range rb.Path {
				rb.Path[k].Ask, rb.Path[k].Reason = hostile, hostile
			}
			for k := range rb.Members {
				rb.Members[k].Reason, rb.Members[k].Error = hostile, hostile
			}
		}
	}
	for _, f := range Formats() {
		out := render(t, f, r, Options{})
		if !utf8.Valid(out) {
			t.Errorf("%s: not UTF-8", f)
		}
		for _, c := range string(out) {
			if c != '\n' && unsafe(c) {
				t.Errorf("%s: %U reached the output", f, c)
				break
			}
		}
	}
}

func TestUnknownFormatListsTheFormats(t *testing.T) {
	err := Check("jsn")
	want := `unknown format "jsn"; the formats are pretty, json; did you mean "json"?`
	if err == nil || err.Error() != want {
		t.Errorf("Check = %v, want %s", err, want)
	}
}

func TestNewerSchemaVersionIsAWarning(t *testing.T) {
	for name, test := range map[string]struct {
		run, row string
		want     string
	}{
		"this version":     {"v1", "v1", ""},
		"a newer report":   {"v2", "v1", "newer"},
		"a newer row":      {"v1", "v3", "newer"},
		"not a version":    {"beta", "beta", "unknown schemaVersion"},
		"none is unknown":  {"", "", "unknown schemaVersion"},
		"a row without it": {"v1", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Warnings(&v1alpha1.RunReport{SchemaVersion: test.run, Rows: []v1alpha1.Report{{SchemaVersion: test.row}}})
			if text := strings.Join(got, "\n"); (test.want == "") != (text == "") || !strings.Contains(text, test.want) {
				t.Errorf("Warnings = %q, want %q", got, test.want)
			}
		})
	}
}

func FuzzPretty(f *testing.F) {
	f.Add("name", "reason", 80, 0.5)
	f.Add("\x1b[2J", strings.Repeat("x", 500), 1, 1.0)
	f.Add("日本語の名前", "a\tb\u202e", 41, 0.699999999)
	f.Fuzz(func(t *testing.T, name, reason string, columns int, score float64) {
		if !(score >= 0 && score <= 1) {
			return
		}
		r := richReport()
		for i := range r.Rows {
			r.Rows[i].Name, r.Rows[i].Note = name, reason
			if r.Rows[i].Score != nil {
				r.Rows[i].Score = &score
			}
			for j := range r.Rows[i].Rubrics {
				r.Rows[i].Rubrics[j].Reason = reason
			}
		}
		out := render(t, DefaultFormat, r, Options{Width: columns})
		for _, line := range strings.Split(string(out), "\n") {
			if n := width(line); n > min(max(columns, minWidth), maxWidth) && columns != 0 {
				t.Errorf("at %d columns a line has %d: %q", columns, n, line)
			}
		}
	})
}
