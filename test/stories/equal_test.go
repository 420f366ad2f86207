package stories

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/exit"
)

// byHash scores by a hash of model, question and candidate: alike wherever a question is asked.
const byHash = `
rules:
- {when: {contains: has no verdict}, fault: malformed}
- {when: {contains: led to quote something else}, score: 0.9, evidence: words that stand nowhere}
default: {score: hash}
`

var _ = Describe("The same evals", func() {
	// graded is a report in JSON, without what may differ: the run's name, times, what a prompt cache saved, and how many
	// calls were under way when a process learned that a model refuses a parameter.
	graded := func(r result) map[string]any {
		GinkgoHelper()
		Expect(r.code).To(BeElementOf(exit.OK, exit.Failed), "%s\n%s%s", r.command, r.stdout, r.stderr)
		var report map[string]any
		Expect(json.Unmarshal([]byte(r.stdout), &report)).To(Succeed(), r.stdout)
		Expect(report["rows"]).NotTo(BeEmpty())
		// Files keep their order here; a cluster goes by the names of the objects.
		slices.SortStableFunc(report["rows"].([]any), func(a, b any) int {
			return strings.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
		})
		delete(report, "run")
		drop(report, "startedAt", "finishedAt", "costUSD", "cachedInputTokens", "retries")
		return report
	}
	// gradedHere grades a file without the cluster, by the judge of the bench.
	gradedHere := func(ctx SpecContext, b *bench, file string) map[string]any {
		GinkgoHelper()
		for name, value := range b.judge.Keys(theKey) {
			GinkgoT().Setenv(name, value)
		}
		return graded(plugin(ctx, "eval", "-f", file, "-o", "json"))
	}

	DescribeTable("of an example have the same report here and in a cluster",
		func(ctx SpecContext, example string) {
			b := newBench(ctx, byHash)
			file := filepath.Join(repo, "examples", example)
			here := gradedHere(ctx, b, file)
			there := graded(plugin(ctx, "run", "-f", file, "-n", b.namespace, "-o", "json"))
			Expect(cmp.Diff(here, there)).To(BeEmpty(), "-here +there")
		},
		Entry(nil, "quickstart.yaml"), Entry(nil, "text.yaml"), Entry(nil, "criteria.yaml"),
		Entry(nil, "tree.yaml"), Entry(nil, "evidence.yaml"), Entry(nil, "jury.yaml"), Entry(nil, "presets.yaml"),
	)

	DescribeTable("in mcptest YAML have the same report here, and converted in a cluster",
		func(ctx SpecContext, suite string) {
			b := newBench(ctx, byHash)
			file := filepath.Join(repo, "examples", "mcptest", suite+".yml")
			here := gradedHere(ctx, b, file)
			converted := plugin(ctx, "convert", "-f", file)
			Expect(converted.code).To(Equal(exit.OK), converted.stderr)
			b.apply(ctx, converted.stdout)
			there := graded(plugin(ctx, "run", "-l", "eval.mcptest.dev/suite="+suite, "-n", b.namespace, "-o", "json"))
			Expect(cmp.Diff(here, there)).To(BeEmpty(), "-here +there")
		},
		Entry(nil, "rubric-eval"), Entry(nil, "forms"), Entry(nil, "criteria"), Entry(nil, "reusable"),
		Entry(nil, "judges"), Entry(nil, "presets"), Entry(nil, "matrix"),
	)

	It("in mcptest YAML run as they are", func(ctx SpecContext) {
		b := newBench(ctx, byHash)
		file := filepath.Join(repo, "examples", "mcptest", "rubric-eval.yml")
		here := gradedHere(ctx, b, file)
		there := graded(plugin(ctx, "run", "-f", file, "-n", b.namespace, "-o", "json"))
		Expect(cmp.Diff(here, there)).To(BeEmpty(), "-here +there")
	})

	It("with every field of the schema have the same report here and in a cluster", func(ctx SpecContext) {
		const file = "testdata/everything.yaml"
		manifests, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(unusedFields(string(manifests))).To(BeEmpty(), "%s uses every field of Rubric and Eval", file)

		b := newBenchWithoutKeys(ctx, byHash)
		b.giveKeys(ctx, "team-keys")
		here := gradedHere(ctx, b, file)
		b.apply(ctx, string(manifests))
		Eventually(b.outcome(ctx, "everything")).Should(Equal(v1alpha1.OutcomeError))
		there := graded(plugin(ctx, "report", "everything", "-n", b.namespace, "-o", "json"))
		Expect(cmp.Diff(here, there)).To(BeEmpty(), "-here +there")

		By("ending in every way")
		summary := there["summary"].(map[string]any)
		for _, outcome := range []string{"passed", "failed", "deferred", "errored"} {
			Expect(summary[outcome]).To(BeNumerically(">", 0), outcome)
		}
	})
})

// drop removes keys from a JSON value, at any depth.
func drop(value any, keys ...string) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range keys {
			delete(value, key)
		}
		for _, v := range value {
			drop(v, keys...)
		}
	case []any:
		for _, v := range value {
			drop(v, keys...)
		}
	}
}

// unusedFields are the fields of the specs of Rubric and Eval that no manifest sets, as Type.field.
func unusedFields(manifests string) []string {
	GinkgoHelper()
	fields := make(map[string]bool) // whether it is used
	specs := map[string]reflect.Type{"Rubric": reflect.TypeFor[v1alpha1.RubricSpec](), "Eval": reflect.TypeFor[v1alpha1.EvalSpec]()}
	for _, t := range specs {
		listFields(t, fields)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	for {
		var object map[string]any
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			break
		}
		Expect(err).NotTo(HaveOccurred())
		if t := specs[object["kind"].(string)]; t != nil {
			useFields(t, object["spec"], fields)
		}
	}
	maps.DeleteFunc(fields, func(_ string, used bool) bool { return used })
	return slices.Sorted(maps.Keys(fields))
}

// listFields adds the fields of a struct, and of those in it, to fields.
func listFields(t reflect.Type, fields map[string]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for _, f := range reflect.VisibleFields(t) {
		if len(f.Index) > 1 {
			continue // of an embedded struct, which has its turn
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			listFields(f.Type, fields)
			continue
		}
		if _, known := fields[t.Name()+"."+name]; !known {
			fields[t.Name()+"."+name] = false
			listFields(f.Type, fields)
		}
	}
}

// useFields marks the fields of a struct that a value sets.
func useFields(t reflect.Type, value any, fields map[string]bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			useFields(t.Elem(), v, fields)
		}
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return
		}
		for _, f := range reflect.VisibleFields(t) {
			if len(f.Index) > 1 {
				continue // of an embedded struct, which has its turn
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				useFields(f.Type, value, fields) // embedded: its fields stand here
			} else if v, set := value[name]; set {
				fields[t.Name()+"."+name] = true
				useFields(f.Type, v, fields)
			}
		}
	}
}
