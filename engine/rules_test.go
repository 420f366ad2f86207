// Package engine_test holds what is true of the engine as a whole.
package engine_test

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// lastRule is the last of the rules that a test must be named after. Those that follow, calibration and the import of
// other formats, are whole features with suites of their own.
const lastRule = 48

// untested are the rules that no test is named after, each with the reason.
var untested = map[int]string{
	43: "baselines and the score-delta gate are not in this version, and the schema has no field for them",
}

var (
	ruleOfPage     = regexp.MustCompile(`^- S-(\d+) `)
	ruleOfFunction = regexp.MustCompile(`^(?:Test|Fuzz)S(\d+)(?:[A-Z_]|$)`)
	ruleOfCase     = regexp.MustCompile(`^S-(\d+)(?: |$)`)
)

// Every rule of docs/semantics.md from S-1 to S-48 has a test below engine/ that is named after it: a function such as
// TestS36Expand, or a case of a table such as "S-36 a name that collides".
func TestEveryRuleHasATest(t *testing.T) {
	rules := rulesOfPage(t, filepath.Join("..", "docs", "semantics.md"))
	tested := rulesOfTests(t, ".")
	var missing []string
	for rule := 1; rule <= lastRule; rule++ {
		switch where := tested[rule]; {
		case !rules[rule]:
			t.Errorf("docs/semantics.md has no rule S-%d", rule)
		case len(where) > 0 && untested[rule] != "":
			t.Errorf("S-%d has a test, %s, and an exception (%s): remove the exception", rule, where[0], untested[rule])
		case len(where) == 0 && untested[rule] == "":
			missing = append(missing, fmt.Sprintf("S-%d", rule))
		}
	}
	if len(missing) > 0 {
		t.Errorf("no test below engine/ is named after %s: name a function TestS%s…, or a case of a table %q",
			strings.Join(missing, ", "), strings.TrimPrefix(missing[0], "S-"), missing[0]+" …")
	}
	for _, rule := range slices.Sorted(maps.Keys(tested)) {
		if !rules[rule] {
			t.Errorf("%s: docs/semantics.md has no rule S-%d", strings.Join(tested[rule], ", "), rule)
		}
	}
}

// rulesOfPage reads which rules a page has.
func rulesOfPage(t *testing.T, page string) map[int]bool {
	t.Helper()
	file, err := os.Open(page)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rules := map[int]bool{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if rule, ok := numberIn(ruleOfPage, lines.Text()); ok {
			rules[rule] = true
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rules
}

// rulesOfTests finds the rules that tests below a folder are named after, each with where that is.
func rulesOfTests(t *testing.T, folder string) map[int][]string {
	t.Helper()
	found := map[int][]string{}
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rules, err := rulesOfFile(path, source)
		for rule, where := range rules {
			found[rule] = append(found[rule], where...)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// rulesOfFile finds the rules that the tests of one file are named after.
func rulesOfFile(path string, source []byte) (map[int][]string, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	found := map[int][]string{}
	add := func(at token.Pos, rule int) { found[rule] = append(found[rule], files.Position(at).String()) }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if rule, ok := numberIn(ruleOfFunction, n.Name.Name); ok && n.Recv == nil {
				add(n.Pos(), rule)
			}
		case *ast.CallExpr:
			return !isMessage(n)
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			if n.Kind != token.STRING || err != nil {
				return true
			}
			if rule, ok := numberIn(ruleOfCase, text); ok {
				add(n.Pos(), rule)
			}
		}
		return true
	})
	return found, nil
}

// isMessage tells the calls whose texts are said when a test fails, and name no test.
func isMessage(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Error", "Errorf", "Fatal", "Fatalf", "Log", "Logf", "Skip", "Skipf", "Sprintf"}, f.Sel.Name)
}

func numberIn(pattern *regexp.Regexp, text string) (int, bool) {
	m := pattern.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}

func TestRulesOfFile(t *testing.T) {
	for name, tc := range map[string]struct {
		source string
		want   []int
	}{
		"a function":                       {"func TestS36Expand(t *testing.T) {}", []int{36}},
		"a function named after no more":   {"func TestS36(t *testing.T) {}", []int{36}},
		"a fuzz target":                    {"func FuzzS19Evidence(f *testing.F) {}", []int{19}},
		"a function of another word":       {"func TestS3cret(t *testing.T) {}\nfunc TestScore(t *testing.T) {}", nil},
		"a method":                         {"func (s suite) TestS36Expand() {}", nil},
		"a key of a table":                 {`var table = map[string]int{"S-8 worked figure 4.9/6": 1, "S-14": 2, "S-80x": 3}`, []int{8, 14}},
		"a name in a table":                {"var table = []struct{ name string }{{name: `S-8 worked`}, {\"S-9 min\"}}", []int{8, 9}},
		"a subtest":                        {`func TestX(t *testing.T) { t.Run("S-1 x", func(t *testing.T) { t.Run("S-2 y", nil) }) }`, []int{1, 2}},
		"a message is no test":             {`func TestX(t *testing.T) { t.Errorf("S-38 onDeferred"); t.Fatal("S-39 is broken") }`, nil},
		"a rule in the middle of a text":   {`var x = "as S-12 says"`, nil},
		"a comment is no test":             {"// S-12 holds\n", nil},
		"several cases of one rule, twice": {`var x = []string{"S-1 a", "S-1 b"}`, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := rulesOfFile("x_test.go", []byte("package x\n"+tc.source))
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, tc.want) {
				t.Errorf("rules %v, want %v", got, tc.want)
			}
		})
	}
}
