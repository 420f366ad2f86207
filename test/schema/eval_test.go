package schema

import (
	"fmt"
	"strings"
	"testing"
)

// checkEvals checks specs of evals as Evals, and as the eval of an EvalRun.
func checkEvals(t *testing.T, tests map[string]specCase) {
	t.Helper()
	checkSpecs(t, "Eval", tests)
	checkSpecs(t, "EvalRun", within(tests, "eval:\n%s", 2, "spec.eval"))
}

func TestEval(t *testing.T) {
	const rubric = "rubric: {ref: helpful}\n"
	checkEvals(t, map[string]specCase{
		"a rubric by reference":              {rubric, ""},
		"a rubric inline":                    {"rubric: {text: right}", ""},
		"all of an eval":                     {"title: t\nprompt: p\nresponse: r\nserver: weather\ncontext: [c]\nonDeferred: Fail\njudge: {model: claude-x, provider: anthropic, temperature: 0.2, secretRef: {name: s}, jury: {size: 3, consensus: 0.67}}\nmatrix: {prompts: [a, b]}\n" + rubric, ""},
		"an unknown field":                   {"answer: r\n" + rubric, `unknown field "spec.answer"`},
		"neither rubric nor rubrics":         {"prompt: p", "set exactly one of rubric (one) or rubrics (several, all must pass)"},
		"rubric and rubrics":                 {"rubrics: [{name: a, ref: x}]\n" + rubric, "set exactly one of rubric (one) or rubrics (several, all must pass)"},
		"response and responseFrom":          {"response: r\nresponseFrom: {configMapKeyRef: {name: a, key: b}}\n" + rubric, "set response or responseFrom, not both"},
		"an empty response":                  {`response: ""` + "\n" + rubric, ""},
		"responseFrom":                       {"responseFrom: {configMapKeyRef: {name: a, key: b}}\n" + rubric, ""},
		"responseFrom without a source":      {"responseFrom: {}\n" + rubric, "configMapKeyRef: Required value"},
		"responseFrom without a key":         {"responseFrom: {configMapKeyRef: {name: a}}\n" + rubric, "key: Required value"},
		"responseFrom without a name":        {"responseFrom: {configMapKeyRef: {key: a}}\n" + rubric, "name: Required value"},
		"responseFrom with a name too long":  {"responseFrom: {configMapKeyRef: {key: a, name: " + long(254) + "}}\n" + rubric, "may not be more than 253 bytes"},
		"responseFrom with a key too long":   {"responseFrom: {configMapKeyRef: {name: a, key: " + long(254) + "}}\n" + rubric, "may not be more than 253 bytes"},
		"responseFrom with an empty name":    {`responseFrom: {configMapKeyRef: {key: a, name: ""}}` + "\n" + rubric, "should be at least 1 chars long"},
		"responseFrom with an empty key":     {`responseFrom: {configMapKeyRef: {name: a, key: ""}}` + "\n" + rubric, "should be at least 1 chars long"},
		"a title too long":                   {"title: " + long(257) + "\n" + rubric, "may not be more than 256 bytes"},
		"a prompt too long":                  {"prompt: " + long(65537) + "\n" + rubric, "may not be more than 65536 bytes"},
		"a response too long":                {"response: " + long(262145) + "\n" + rubric, "may not be more than 262144 bytes"},
		"a context too long":                 {"context: [" + long(65537) + "]\n" + rubric, "may not be more than 65536 bytes"},
		"65 contexts":                        {"context: [" + strings.Repeat("c,", 65) + "]\n" + rubric, "must have at most 64 items"},
		"a server that is no name":           {"server: remote_api\n" + rubric, "server is the name of an object: lower-case letters, digits and dashes, as in my-server"},
		"an empty server":                    {`server: ""` + "\n" + rubric, "should be at least 1 chars long"},
		"a server too long":                  {"server: " + long(254) + "\n" + rubric, "may not be more than 253 bytes"},
		"a preset inline":                    {"rubric: {preset: groundedness@1, criteria: [{name: a, description: d}]}", ""},
		"a preset and a ref":                 {"rubric: {ref: x, preset: safety}", "set exactly one of ref"},
		"an unknown onDeferred":              {"onDeferred: Ignore\n" + rubric, `supported values: "Pass", "Fail"`},
		"onDeferred Pass":                    {"onDeferred: Pass\n" + rubric, ""},
		"ref with threshold and strict":      {"rubric: {ref: x, threshold: 0.9, strict: true}", ""},
		"ref with criteria":                  {"rubric: {ref: x, criteria: [{name: a, description: d}]}", "set exactly one of ref (a Rubric of this namespace), text, criteria, tree or preset"},
		"ref with text":                      {"rubric: {ref: x, text: a}", "set exactly one of ref"},
		"ref with a tree":                    {"rubric: {ref: x, tree: {ask: a, ifYes: {score: 1}, ifNo: {score: 0}}}", "set exactly one of ref"},
		"an empty rubric":                    {"rubric: {}", "set exactly one of ref"},
		"ref with aggregation":               {"rubric: {ref: x, aggregation: min}", "with ref only threshold and strict can be set here; change the rest in the Rubric"},
		"ref with requireEvidence":           {"rubric: {ref: x, requireEvidence: true}", "with ref only threshold and strict"},
		"ref with requiredGate":              {"rubric: {ref: x, requiredGate: zero}", "with ref only threshold and strict"},
		"ref with scale":                     {"rubric: {ref: x, scale: {unit: {}}}", "with ref only threshold and strict"},
		"ref with description":               {"rubric: {ref: x, description: d}", "with ref only threshold and strict"},
		"an empty ref":                       {`rubric: {ref: ""}`, "should be at least 1 chars long"},
		"a ref too long":                     {"rubric: {ref: " + long(254) + "}", "may not be more than 253 bytes"},
		"the rules of a rubric hold inline":  {"rubric: {text: a, aggregation: min}", "a text rubric takes no aggregation"},
		"an inline tree is unrolled":         {"rubric: {tree: " + chain(7, "ifYes", "ifNo") + "}", "a tree is at most 6 questions deep"},
		"rubrics":                            {"rubrics: [{name: a, ref: x}, {name: b, text: right, weight: 2}]", ""},
		"no rubrics in rubrics":              {"rubrics: []", "should have at least 1 items"},
		"9 rubrics":                          {"rubrics: [" + numbered(9, "{name: r%d, ref: x}") + "]", "must have at most 8 items"},
		"two rubrics of one name":            {"rubrics: [{name: a, ref: x}, {name: a, ref: z}]", "spec.rubrics[1]: Duplicate value"},
		"a rubric without a name":            {"rubrics: [{ref: x}]", "spec.rubrics[0].name: Required value"},
		"an empty name of a rubric":          {`rubrics: [{name: "", ref: x}]`, "should be at least 1 chars long"},
		"a name of a rubric too long":        {"rubrics: [{ref: x, name: " + long(129) + "}]", "may not be more than 128 bytes"},
		"a named rubric with two forms":      {"rubrics: [{name: a, ref: x, text: z}]", "set exactly one of ref"},
		"a tree among rubrics is unrolled":   {"rubrics: [{name: a, tree: " + chain(7, "ifNo", "ifYes") + "}]", "a tree is at most 6 questions deep"},
		"an unquoted yes among rubrics":      {"rubrics: [{name: a, tree: {ask: a, yes: {score: 1}, no: {score: 0}}}]", "write ifYes and ifNo"},
		"a weight of a rubric below 0":       {"rubrics: [{name: a, ref: x, weight: -1}]", "should be greater than or equal to 0"},
		"a weight of a rubric too big":       {"rubrics: [{name: a, ref: x, weight: 1000001}]", "should be less than or equal to 1000000"},
		"all weights of rubrics 0":           {"rubrics: [{name: a, ref: x, weight: 0}]", "every weight is 0, so no score can be made; give at least one rubric a weight above 0"},
		"a rubric of weight 0 beside others": {"rubrics: [{name: a, ref: x, weight: 0}, {name: b, ref: z}]", ""},
	})
}

func TestJudge(t *testing.T) {
	judge := func(fields string) string { return "rubric: {ref: x}\njudge: {" + fields + "}" }
	checkEvals(t, map[string]specCase{
		"nothing":                      {judge(""), ""},
		"a model":                      {judge("model: org/model-1.5:free@x+y"), ""},
		"an empty model":               {judge(`model: ""`), "should be at least 1 chars long"},
		"a model too long":             {judge("model: " + long(129)), "may not be more than 128 bytes"},
		"a model with a blank":         {judge("model: a b"), "a model name starts with a letter or digit and goes on with letters, digits and . _ : / @ + -, as in claude-sonnet-5-5"},
		"a model with a dash in front": {judge("model: -a"), "a model name starts with a letter or digit"},
		"an unknown provider":          {judge("provider: acme"), `supported values: "anthropic", "openai"`},
		"provider openai":              {judge("provider: openai"), ""},
		"temperature 2":                {judge("temperature: 2"), ""},
		"temperature above 2":          {judge("temperature: 2.1"), "should be less than or equal to 2"},
		"temperature below 0":          {judge("temperature: -0.1"), "should be greater than or equal to 0"},
		"a secret without a name":      {judge("secretRef: {}"), "name: Required value"},
		"a secret with an empty name":  {judge(`secretRef: {name: ""}`), "should be at least 1 chars long"},
		"a secret's name too long":     {judge("secretRef: {name: " + long(254) + "}"), "may not be more than 253 bytes"},
		"a URL":                        {judge("baseURL: http://example.com"), `unknown field "spec.judge.baseURL"`},
		"a jury of 1":                  {judge("jury: {size: 1}"), ""},
		"a jury of 15":                 {judge("jury: {size: 15, consensus: 1}"), ""},
		"a jury of 0":                  {judge("jury: {size: 0}"), "spec.judge.jury.size in body should be greater than or equal to 1"},
		"a jury of 16":                 {judge("jury: {size: 16}"), "should be less than or equal to 15"},
		"a jury without a size":        {judge("jury: {consensus: 0.5}"), "size: Required value"},
		"consensus 0":                  {judge("jury: {size: 3, consensus: 0}"), "should be greater than 0"},
		"consensus 1.01":               {judge("jury: {size: 3, consensus: 1.01}"), "should be less than or equal to 1"},
		"a panel":                      {judge("panel: [a, b], aggregate: majority, tieBreak: pass"), ""},
		"a panel of 1":                 {judge("panel: [a]"), "should have at least 2 items"},
		"a panel of 10":                {judge("panel: [" + numbered(10, "m%d") + "]"), "must have at most 9 items"},
		"a panel with a model twice":   {judge("panel: [a, a]"), "spec.judge.panel[1]: Duplicate value"},
		"a panel with a bad model":     {judge("panel: [a, b c]"), "a model name starts with a letter or digit"},
		"a panel with a jury":          {judge("panel: [a, b], jury: {size: 3}"), "a panel (several models) and a jury (one model several times) exclude each other; remove one of them"},
		"a panel with a model":         {judge("panel: [a, b], model: c"), "panel and model both choose the judge model; remove model, or put it into the panel"},
		"a panel with a provider":      {judge("panel: [a, b], provider: openai"), "each model of a panel finds its provider by its name; remove provider"},
		"aggregate without a panel":    {judge("aggregate: mean"), "aggregate and tieBreak belong to a panel; add panel, or remove them"},
		"tieBreak without a panel":     {judge("tieBreak: pass"), "aggregate and tieBreak belong to a panel; add panel, or remove them"},
		"an unknown aggregate":         {judge("panel: [a, b], aggregate: max"), `supported values: "mean", "median", "majority"`},
		"an unknown tieBreak":          {judge("panel: [a, b], tieBreak: coin"), `supported values: "fail", "pass"`},
		"panel with matrix.models":     {judge("panel: [a, b]") + "\nmatrix: {models: [c]}", "judge.panel and matrix.models both choose the judge model; remove one of them"},
		"model with matrix.models":     {judge("model: a") + "\nmatrix: {models: [c]}", "judge.model and matrix.models both choose the judge model; remove one of them"},
		"panel with matrix.prompts":    {judge("panel: [a, b]") + "\nmatrix: {prompts: [c]}", ""},
		"jury with matrix.models":      {judge("jury: {size: 3}") + "\nmatrix: {models: [c]}", ""},
	})
}

func TestMatrix(t *testing.T) {
	matrix := func(fields string) string { return "rubric: {ref: x}\nmatrix: {" + fields + "}" }
	checkEvals(t, map[string]specCase{
		"models and prompts":      {matrix("models: [a, b], prompts: [c, d]"), ""},
		"no axis":                 {matrix(""), "a matrix needs an axis: set models, prompts or both"},
		"an unknown axis":         {matrix("temperatures: [0, 1]"), `unknown field "spec.matrix.temperatures"`},
		"no models in models":     {matrix("models: []"), "should have at least 1 items"},
		"65 models":               {matrix("models: [" + numbered(65, "m%d") + "]"), "must have at most 64 items"},
		"a model twice":           {matrix("models: [a, a]"), "spec.matrix.models[1]: Duplicate value"},
		"a bad model":             {matrix("models: [a b]"), "a model name starts with a letter or digit"},
		"no prompts in prompts":   {matrix("prompts: []"), "should have at least 1 items"},
		"257 prompts":             {matrix("prompts: [" + numbered(257, "p%d") + "]"), "must have at most 256 items"},
		"a prompt twice":          {matrix("prompts: [a, a]"), "spec.matrix.prompts[1]: Duplicate value"},
		"an empty prompt":         {matrix(`prompts: [""]`), "should be at least 1 chars long"},
		"a prompt too long":       {matrix("prompts: [" + long(16385) + "]"), "may not be more than 16384 bytes"},
		"1024 cells":              {matrix("models: [" + numbered(32, "m%d") + "], prompts: [" + numbered(32, "p%d") + "]"), ""},
		"1025 cells":              {matrix("models: [" + numbered(5, "m%d") + "], prompts: [" + numbered(205, "p%d") + "]"), "the matrix has more than 1024 cells; shorten an axis, or split the eval"},
		"256 cells along an axis": {matrix("prompts: [" + numbered(256, "p%d") + "]"), ""},
	})
}

// numbered is the format n times, with the numbers from 0, separated by commas.
func numbered(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(items, ", ")
}
