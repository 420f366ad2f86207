package mcptest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/mcptest/mcptest-operator/engine/convert/mcptest"
)

// compiled is the schema as a third party reads it.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(mcptest.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// instance is a YAML text as an editor hands it to a validator: keys are texts.
func instance(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return withTextKeys(v)
}

func withTextKeys(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, item := range v {
			v[k] = withTextKeys(item)
		}
		return v
	case map[any]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			var key strings.Builder
			if err := yaml.NewEncoder(&key).Encode(k); err == nil {
				out[strings.TrimSpace(key.String())] = withTextKeys(item)
			}
		}
		return out
	case []any:
		for i, item := range v {
			v[i] = withTextKeys(item)
		}
		return v
	}
	return v
}

func TestSchemaTakesTheExamples(t *testing.T) {
	s := compiled(t)
	files, err := filepath.Glob(filepath.Join(examples, "*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(instance(t, string(text))); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestSchemaAndLoaderAgree(t *testing.T) {
	s := compiled(t)
	eval := func(text string) string { return "evals:\n- name: e\n" + indent(text, 2) }
	criteria := func(text string) string { return eval("rubric: {criteria: [{name: a, description: b, " + text + "}]}") }
	const leaves = "yes: {score: 1}, no: {score: 0}"
	for name, test := range map[string]struct {
		text string
		good bool
	}{
		"a rubric in one text":           {eval("rubric: x\nthreshold: 0.5"), true},
		"a number for a text":            {eval("rubric: 42\nresponse: true\nthreshold: 0.5"), true},
		"a context in one text":          {eval("rubric: x\ncontext: y"), true},
		"a context as a list":            {eval("rubric: x\ncontext: [y, 1]"), true},
		"a scale by its name":            {eval("rubric: {text: x, scale: letter}"), true},
		"a scale as a mapping":           {eval("rubric: {text: x, scale: {unit: {}}}"), true},
		"a preset with its version":      {eval("rubric: {preset: safety@1}"), true},
		"a preset with criteria":         {eval("rubric: {preset: safety, criteria: [{name: a, description: b}]}"), true},
		"score ranges":                   {criteria("score_ranges: {0: x, 10: z}"), true},
		"several rubrics":                {eval("rubrics: [{name: a, text: x, weight: 0}, {name: b, preset: safety}]"), true},
		"a panel":                        {eval("rubric: x\njudge: {panel: [gpt-a, gpt-b], aggregate: median, tie_break: pass}"), true},
		"a server by any name":           {eval("rubric: x\nserver: Remote_API"), true},
		"variables for values of a list": {"variables: {a: min, m: gpt-a, p: safety}\n" + eval("rubric: {aggregation: \"${a}\", criteria: [{name: a, description: b}]}\njudge: {model: \"${m}\"}"), true},
		"evidence refused, with a tree":  {eval("rubric: {require_evidence: false, tree: {ask: q, " + leaves + "}}"), true},
		"rubrics alone, one in a text":   {"rubrics: {a: x, b: {text: z}}", true},
		"other blocks":                   {"version: 1\nname: x\ntests: [{a: b}]\nservers: {a: {url: x}}\nevals:", true},
		"an unknown block":               {"evls: []\nevals: []", false},
		"an unknown key of an eval":      {eval("rubrik: x\nrubric: x"), false},
		"a key in camelCase":             {eval("rubric: {requireEvidence: true, criteria: [{name: a, description: b}]}"), false},
		"an unknown key of a criterion":  {criteria("weigth: 1"), false},
		"an unknown key of a tree":       {eval("rubric: {tree: {ask: q, " + leaves + ", if_yes: {score: 1}}}"), false},
		"an unknown key of a judge":      {eval("rubric: x\njudge: {secret_ref: {name: x}}"), false},
		"title":                          {eval("rubric: x\ntitle: y"), false},
		"no name":                        {"evals: [{rubric: x}]", false},
		"a blank name":                   {"evals: [{name: ' ', rubric: x}]", false},
		"no rubric":                      {eval("response: x"), false},
		"a rubric and rubrics":           {eval("rubric: x\nrubrics: [{name: a, text: x}]"), false},
		"a blank rubric":                 {eval("rubric: ' '"), false},
		"criteria and a tree":            {eval("rubric: {criteria: [{name: a, description: b}], tree: {ask: q, " + leaves + "}}"), false},
		"a text and a preset":            {eval("rubric: {text: x, preset: safety}"), false},
		"a rubric of nothing":            {eval("rubric: {threshold: 0.5}"), false},
		"a threshold beside criteria":    {eval("threshold: 0.5\nrubric: {criteria: [{name: a, description: b}]}"), false},
		"a threshold without a rubric":   {eval("threshold: 0.5\nrubrics: [{name: a, text: x}]"), false},
		"a threshold above 1":            {eval("threshold: 1.1\nrubric: x"), false},
		"a threshold that is a text":     {eval("threshold: high\nrubric: x"), false},
		"strict: yes":                    {eval("rubric: {text: x, strict: yes}"), false},
		"a negative weight":              {criteria("weight: -1"), false},
		"no description":                 {eval("rubric: {criteria: [{name: a}]}"), false},
		"an unknown aggregation":         {eval("rubric: {aggregation: mean, criteria: [{name: a, description: b}]}"), false},
		"an unknown scale":               {eval("rubric: {scale: stars, text: x}"), false},
		"likert without its ends":        {eval("rubric: {scale: likert, text: x}"), false},
		"likert without one end":         {eval("rubric: {scale: {likert: {max: 5}}, text: x}"), false},
		"two scales":                     {eval("rubric: {scale: {unit: {}, letter: {}}, text: x}"), false},
		"an unknown preset":              {eval("rubric: {preset: kindness}"), false},
		"an aggregation of a tree":       {eval("rubric: {aggregation: min, tree: {ask: q, " + leaves + "}}"), false},
		"evidence of a text":             {eval("rubric: {require_evidence: true, text: x}"), false},
		"a required gate of a text":      {eval("rubric: {required_gate: zero, text: x}"), false},
		"a scale beside a ref":           {"rubrics: {a: x}\n" + eval("rubric: {ref: a, scale: letter}"), false},
		"a ref among rubrics":            {"rubrics: {a: {ref: b}, b: x}", false},
		"a question without no":          {eval("rubric: {tree: {ask: q, yes: {score: 1}}}"), false},
		"a leaf with a question":         {eval("rubric: {tree: {ask: q, yes: {score: 1, ask: r}, no: {score: 0}}}"), false},
		"a question with a reason":       {eval("rubric: {tree: {ask: q, reason: x, " + leaves + "}}"), false},
		"a tree that is a leaf":          {eval("rubric: {tree: {score: 1}}"), false},
		"a leaf above 1":                 {eval("rubric: {tree: {ask: q, yes: {score: 2}, no: {score: 0}}}"), false},
		"when with both":                 {criteria("when: {contains: a, regex: b}"), false},
		"when with none":                 {criteria("when: {}"), false},
		"indicators of nothing":          {criteria("indicators: {}"), false},
		"an example without a score":     {criteria("examples: [{response: x}]"), false},
		"score ranges without 0":         {criteria("score_ranges: {5: x}"), false},
		"score ranges past 10":           {criteria("score_ranges: {0: x, 11: z}"), false},
		"a jury of nobody":               {eval("rubric: x\njudge: {jury: {size: 0}}"), false},
		"a jury of a fraction":           {eval("rubric: x\njudge: {jury: {size: 1.5}}"), false},
		"a consensus of 0":               {eval("rubric: x\njudge: {jury: {size: 3, consensus: 0}}"), false},
		"a panel of one":                 {eval("rubric: x\njudge: {panel: [gpt-a]}"), false},
		"a panel of twice the same":      {eval("rubric: x\njudge: {panel: [gpt-a, gpt-a]}"), false},
		"a panel and a jury":             {eval("rubric: x\njudge: {panel: [gpt-a, gpt-b], jury: {size: 3}}"), false},
		"a panel and a model":            {eval("rubric: x\njudge: {panel: [gpt-a, gpt-b], model: gpt-a}"), false},
		"an aggregate without a panel":   {eval("rubric: x\njudge: {aggregate: mean}"), false},
		"a model that is none":           {eval("rubric: x\njudge: {model: \"a b\"}"), false},
		"an unknown provider":            {eval("rubric: x\njudge: {provider: acme}"), false},
		"a matrix of nothing":            {eval("rubric: x\nmatrix: {}"), false},
		"matrix and judge both choose":   {eval("rubric: x\njudge: {model: gpt-a}\nmatrix: {models: [gpt-b]}"), false},
		"a policy that is none":          {eval("rubric: x\non_deferred: fail"), false},
		"a mapping for a text":           {eval("rubric: x\nprompt: {a: b}"), false},
		"evals as a mapping":             {"evals: {a: x}", false},
		"a variable that is a list":      {"evals: []\nvariables: {a: [b]}", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, loaded := load(test.text)
			valid := s.Validate(instance(t, test.text))
			if (loaded == nil) != test.good {
				t.Errorf("the loader says: %v", loaded)
			}
			if (valid == nil) != test.good {
				t.Errorf("the schema says: %v", valid)
			}
		})
	}
}
