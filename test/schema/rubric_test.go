package schema

import (
	"fmt"
	"strings"
	"testing"
)

// criterion is the YAML of one criterion with these fields beside its name and description.
func criterion(fields string) string {
	return "criteria:\n- name: a\n  description: says a\n" + indent(2, fields)
}

// checkRubrics checks specs of rubrics as Rubrics, as the rubric of an Eval, and as one of its rubrics.
func checkRubrics(t *testing.T, tests map[string]specCase) {
	t.Helper()
	checkSpecs(t, "Rubric", tests)
	for name, tc := range tests {
		// which form a rubric has is another rule in an eval, where ref is a fourth
		if strings.Contains(tc.want, "set exactly one of text") {
			delete(tests, name)
		}
	}
	one := within(tests, "rubric:\n%s", 2, "spec.rubric")
	checkSpecs(t, "Eval", one)
	checkSpecs(t, "Eval", within(tests, "rubrics:\n- name: inline\n%s", 2, "spec.rubrics[0]"))
	checkSpecs(t, "EvalRun", within(one, "eval:\n%s", 2, "spec.eval"))
}

func TestRubric(t *testing.T) {
	checkRubrics(t, map[string]specCase{
		"a text":                             {"text: is it right", ""},
		"criteria":                           {criterion(""), ""},
		"a tree":                             {"tree: {ask: a, ifYes: {score: 1, reason: good}, ifNo: {score: 0}}", ""},
		"all of a rubric":                    {"description: d\nthreshold: 0.8\nstrict: true\naggregation: min\nrequireEvidence: true\nrequiredGate: zero\nscale: {letter: {}}\n" + criterion("weight: 2"), ""},
		"an unknown field":                   {"text: a\ntreshold: 0.5", `unknown field "spec.treshold"`},
		"an unknown field of a criterion":    {criterion("wieght: 1"), `unknown field "spec.criteria[0].wieght"`},
		"none of text, criteria and tree":    {"threshold: 0.5", "set exactly one of text (one question), criteria (a weighted list), tree (yes/no questions) or preset (criteria beside it are added to the preset's)"},
		"text and criteria":                  {"text: a\n" + criterion(""), "set exactly one of text"},
		"text and tree":                      {"text: a\ntree: {ask: a, ifYes: {score: 1}, ifNo: {score: 0}}", "set exactly one of text"},
		"criteria and tree":                  {"tree: {ask: a, ifYes: {score: 1}, ifNo: {score: 0}}\n" + criterion(""), "set exactly one of text"},
		"a preset":                           {"preset: groundedness", ""},
		"a preset of a version":              {"preset: format-adherence@12\nthreshold: 0.9\nscale: {letter: {}}\nrequireEvidence: true", ""},
		"a preset with criteria":             {"preset: safety\n" + criterion("weight: 0"), ""},
		"a preset that is not there":         {"preset: beauty", "unknown preset; write helpfulness, groundedness, safety, format-adherence or conciseness"},
		"a preset of a version that is none": {"preset: safety@0", "unknown preset"},
		"a preset with a name too long":      {"preset: safety@" + strings.Repeat("1", 60), "may not be more than 64 bytes"},
		"a preset with text":                 {"preset: safety\ntext: a", "set exactly one of text"},
		"a preset with a tree":               {"preset: safety\ntree: {ask: a, ifYes: {score: 1}, ifNo: {score: 0}}", "set exactly one of text"},
		"threshold 0":                        {"text: a\nthreshold: 0", ""},
		"threshold 1":                        {"text: a\nthreshold: 1", ""},
		"threshold 1.5":                      {"text: a\nthreshold: 1.5", "spec.threshold in body should be less than or equal to 1"},
		"threshold below 0":                  {"text: a\nthreshold: -0.1", "spec.threshold in body should be greater than or equal to 0"},
		"threshold in words":                 {"text: a\nthreshold: high", `must be of type number: "string"`},
		"description too long":               {"text: a\ndescription: " + long(1025), "may not be more than 1024 bytes"},
		"empty text":                         {`text: ""`, "spec.text in body should be at least 1 chars long"},
		"blank text":                         {`text: " \t "`, "text is blank; say what a good answer is"},
		"text too long":                      {"text: " + long(16385), "may not be more than 16384 bytes"},
		"aggregation weighted_average":       {"aggregation: weighted_average\n" + criterion(""), ""},
		"aggregation worst":                  {"aggregation: worst\n" + criterion(""), ""},
		"an unknown aggregation":             {"aggregation: average\n" + criterion(""), `supported values: "weighted_average", "min", "worst"`},
		"aggregation with text":              {"text: a\naggregation: min", "a text rubric takes no aggregation: it has one score; remove aggregation"},
		"aggregation with a tree":            {"aggregation: min\ntree: {ask: a, ifYes: {score: 1}, ifNo: {score: 0}}", "a tree takes no aggregation: its score is the score of the leaf it reaches; remove aggregation"},
		"requireEvidence with criteria":      {"requireEvidence: true\n" + criterion(""), ""},
		"requireEvidence with text":          {"text: a\nrequireEvidence: true", "requireEvidence works with criteria only; move the question into criteria, or remove requireEvidence"},
		"requireEvidence with a tree":        {"requireEvidence: true\ntree: {ask: a, ifYes: {score: 1}, ifNo: {score: 0}}", "requireEvidence works with criteria only"},
		"requireEvidence false with text":    {"text: a\nrequireEvidence: false", ""},
		"requiredGate threshold":             {"requiredGate: threshold\n" + criterion(""), ""},
		"requiredGate with text":             {"text: a\nrequiredGate: zero", "requiredGate works with criteria only; remove it"},
		"requiredGate with a tree":           {"requiredGate: zero\ntree: {ask: a, ifYes: {score: 1}, ifNo: {score: 0}}", "requiredGate works with criteria only; remove it"},
		"an unknown requiredGate":            {"requiredGate: always\n" + criterion(""), `supported values: "threshold", "zero"`},
		"scale unit":                         {"text: a\nscale: {unit: {}}", ""},
		"scale boolean":                      {"text: a\nscale: {boolean: {}}", ""},
		"scale likert":                       {"text: a\nscale: {likert: {min: 1, max: 5}}", ""},
		"a scale of two kinds":               {"text: a\nscale: {unit: {}, letter: {}}", "set exactly one of unit: {}, likert: {min, max}, boolean: {} or letter: {}"},
		"a scale of no kind":                 {"text: a\nscale: {}", "set exactly one of unit: {}"},
		"an unknown scale":                   {"text: a\nscale: {stars: {}}", `unknown field "spec.scale.stars"`},
		"likert min equal to max":            {"text: a\nscale: {likert: {min: 5, max: 5}}", "likert.min must be below likert.max, as in {min: 1, max: 5}"},
		"likert min above max":               {"text: a\nscale: {likert: {min: 5, max: 1}}", "likert.min must be below likert.max"},
		"likert without max":                 {"text: a\nscale: {likert: {min: 1}}", "spec.scale.likert.max: Required value"},
		"likert max above 100":               {"text: a\nscale: {likert: {min: 1, max: 101}}", "should be less than or equal to 100"},
		"likert min below 0":                 {"text: a\nscale: {likert: {min: -1, max: 5}}", "should be greater than or equal to 0"},
		"a text for criteria":                {"criteria: all of it", `must be of type array: "string"`},
		"no criteria in criteria":            {"criteria: []", "should have at least 1 items"},
		"64 criteria":                        {"criteria:\n" + criteria(64), ""},
		"65 criteria":                        {"criteria:\n" + criteria(65), "must have at most 64 items"},
		"all weights 0":                      {criterion("weight: 0") + "\n- {name: b, description: b, weight: 0}", "every weight is 0, so no score can be made; give at least one criterion a weight above 0"},
		"some weights 0":                     {criterion("weight: 0") + "\n- {name: b, description: b}", ""},
		"two criteria of one name":           {criterion("") + "\n- {name: a, description: b}", "spec.criteria[1]: Duplicate value"},
		"a tree's yes":                       {"tree: {ask: a, yes: {score: 1}, no: {score: 0}}", "write ifYes and ifNo, not yes and no: YAML reads an unquoted yes as true and no as false"},
		"a tree's yes alone":                 {"tree: {ask: a, yes: {score: 1}, ifNo: {score: 0}}", "write ifYes and ifNo"},
		"a tree's no alone":                  {"tree: {ask: a, ifYes: {score: 1}, no: {score: 0}}", "write ifYes and ifNo"},
		"yes all the way down":               {"tree: {ask: a, yes: {ask: b, yes: {score: 1}, no: {score: 0}}, no: {score: 0}}", "write ifYes and ifNo"},
		"a tree's \"yes\" in quotes":         {`tree: {ask: a, "yes": {score: 1}, "no": {score: 0}}`, `unknown field "spec.tree.yes"`},
		"a question without ifNo":            {"tree: {ask: a, ifYes: {score: 1}}", "a node is either a question (ask, ifYes and ifNo) or a leaf"},
		"a question without ifYes":           {"tree: {ask: a, ifNo: {score: 1}}", "a node is either a question (ask, ifYes and ifNo) or a leaf"},
		"a question with a score":            {"tree: {ask: a, score: 1, ifYes: {score: 1}, ifNo: {score: 0}}", "a node is either a question (ask, ifYes and ifNo) or a leaf"},
		"a question with a reason":           {"tree: {ask: a, reason: r, ifYes: {score: 1}, ifNo: {score: 0}}", "a node is either a question (ask, ifYes and ifNo) or a leaf"},
		"a blank question":                   {`tree: {ask: " ", ifYes: {score: 1}, ifNo: {score: 0}}`, "a node is either a question (ask, ifYes and ifNo) or a leaf"},
		"a question too long":                {"tree: {ask: " + long(8193) + ", ifYes: {score: 1}, ifNo: {score: 0}}", "may not be more than 8192 bytes"},
		"a leaf with branches":               {"tree: {ask: a, ifYes: {score: 1, ifNo: {score: 0}}, ifNo: {score: 0}}", "a node is either a question (ask, ifYes and ifNo) or a leaf"},
		"an empty leaf":                      {"tree: {ask: a, ifYes: {}, ifNo: {score: 0}}", "spec.tree.ifYes: Invalid value: a node is either a question"},
		"a leaf with a reason only":          {"tree: {ask: a, ifYes: {reason: r}, ifNo: {score: 0}}", "a node is either a question (ask, ifYes and ifNo) or a leaf"},
		"a leaf above 1":                     {"tree: {ask: a, ifYes: {score: 2}, ifNo: {score: 0}}", "spec.tree.ifYes.score in body should be less than or equal to 1"},
		"a leaf's reason too long":           {"tree: {ask: a, ifYes: {score: 1, reason: " + long(2049) + "}, ifNo: {score: 0}}", "may not be more than 2048 bytes"},
		"a leaf for a root":                  {"tree: {score: 1}", "the first node of a tree is a question: write ask, ifYes and ifNo"},
		"an unknown field deep in a tree":    {"tree: {ask: a, ifYes: {score: 1, weight: 1}, ifNo: {score: 0}}", `unknown field "spec.tree.ifYes.weight"`},
		"a tree 6 questions deep, by yes":    {"tree: " + chain(6, "ifYes", "ifNo"), ""},
		"a tree 6 questions deep, by no":     {"tree: " + chain(6, "ifNo", "ifYes"), ""},
		"a tree 7 questions deep, by yes":    {"tree: " + chain(7, "ifYes", "ifNo"), "a tree is at most 6 questions deep: end it here with a score"},
		"a tree 7 questions deep, by no":     {"tree: " + chain(7, "ifNo", "ifYes"), "a tree is at most 6 questions deep: end it here with a score"},
		"a tree 9 questions deep":            {"tree: " + chain(9, "ifYes", "ifNo"), "a tree is at most 6 questions deep"},
		"a fault 6 questions deep":           {"tree: " + strings.Replace(chain(6, "ifYes", "ifNo"), "ask: q6", "ask: q6, score: 1", 1), "a node is either a question (ask, ifYes and ifNo) or a leaf"},
		"an unknown field at the last leaf":  {"tree: " + strings.Replace(chain(6, "ifYes", "ifNo"), "score: 1", "score: 1, weight: 1", 1), `unknown field "spec.tree.ifYes.ifYes.ifYes.ifYes.ifYes.ifYes.weight"`},
	})
}

func TestCriterion(t *testing.T) {
	checkRubrics(t, map[string]specCase{
		"all of a criterion":               {criterion("weight: 2\nrequired: true\nguard: true\nthreshold: 0.9\nwhen: {regex: x}\nexamples: [{response: r, score: 1}]\nindicators: {good: g, bad: b}\nscoreRanges: {\"0\": w, \"5\": m, \"10\": r}"), ""},
		"without a name":                   {"criteria: [{description: d}]", "spec.criteria[0].name: Required value"},
		"without a description":            {"criteria: [{name: a}]", "spec.criteria[0].description: Required value"},
		"an empty name":                    {`criteria: [{name: "", description: d}]`, "spec.criteria[0].name in body should be at least 1 chars long"},
		"a blank name":                     {`criteria: [{name: " ", description: d}]`, "name and description must not be blank; say in description what the judge looks at"},
		"a blank description":              {`criteria: [{name: a, description: " "}]`, "name and description must not be blank"},
		"a name too long":                  {"criteria: [{name: " + long(129) + ", description: d}]", "may not be more than 128 bytes"},
		"a name as long as may be":         {"criteria: [{name: " + long(128) + ", description: d}]", ""},
		"a description too long":           {"criteria: [{name: a, description: " + long(8193) + "}]", "may not be more than 8192 bytes"},
		"a weight below 0":                 {criterion("weight: -1"), "should be greater than or equal to 0"},
		"a weight above a million":         {criterion("weight: 1000001"), "should be less than or equal to 1000000"},
		"a threshold above 1":              {criterion("threshold: 1.01"), "should be less than or equal to 1"},
		"a threshold below 0":              {criterion("threshold: -1"), "should be greater than or equal to 0"},
		"when contains":                    {criterion("when: {contains: x}"), ""},
		"when with both":                   {criterion("when: {contains: x, regex: z}"), "set exactly one of contains (a text) or regex (a regular expression)"},
		"when with neither":                {criterion("when: {}"), "set exactly one of contains"},
		"when contains nothing":            {criterion(`when: {contains: ""}`), "should be at least 1 chars long"},
		"when contains too much":           {criterion("when: {contains: " + long(1025) + "}"), "may not be more than 1024 bytes"},
		"when with an empty regex":         {criterion(`when: {regex: ""}`), "should be at least 1 chars long"},
		"when with a regex too long":       {criterion("when: {regex: " + long(1025) + "}"), "may not be more than 1024 bytes"},
		"scoreRanges without 0":            {criterion(`scoreRanges: {"5": m}`), `scoreRanges must say what a score of 0 means; add a key "0"`},
		"scoreRanges with key 11":          {criterion(`scoreRanges: {"0": w, "11": m}`), `the keys of scoreRanges are whole numbers from "0" to "10"`},
		"scoreRanges with a word as a key": {criterion(`scoreRanges: {"0": w, good: m}`), "the keys of scoreRanges are whole numbers"},
		"scoreRanges with unquoted keys":   {criterion("scoreRanges: {0: w, 10: r}"), ""},
		"scoreRanges empty":                {criterion("scoreRanges: {}"), "should have at least 1 properties"},
		"a range without a description":    {criterion(`scoreRanges: {"0": ""}`), "should be at least 1 chars long"},
		"a range too long":                 {criterion(`scoreRanges: {"0": ` + long(2049) + "}"), "may not be more than 2048 bytes"},
		"an example without a score":       {criterion("examples: [{response: r}]"), "examples[0].score: Required value"},
		"an example without a response":    {criterion("examples: [{score: 1}]"), "examples[0].response: Required value"},
		"an example of an empty response":  {criterion(`examples: [{response: "", score: 1}]`), "should be at least 1 chars long"},
		"an example above 1":               {criterion("examples: [{response: r, score: 8}]"), "should be less than or equal to 1"},
		"an example below 0":               {criterion("examples: [{response: r, score: -1}]"), "should be greater than or equal to 0"},
		"an example too long":              {criterion("examples: [{score: 1, response: " + long(8193) + "}]"), "may not be more than 8192 bytes"},
		"33 examples":                      {criterion("examples: [" + strings.Repeat("{response: r, score: 1},", 33) + "]"), "must have at most 32 items"},
		"no indicators in indicators":      {criterion("indicators: {}"), "say what good work looks like in good, what bad work looks like in bad, or both"},
		"one indicator":                    {criterion("indicators: {bad: b}"), ""},
		"a good indicator too long":        {criterion("indicators: {good: " + long(4097) + "}"), "may not be more than 4096 bytes"},
		"a bad indicator too long":         {criterion("indicators: {bad: " + long(4097) + "}"), "may not be more than 4096 bytes"},
	})
}

// criteria is a list of n criteria.
func criteria(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "- {name: c%d, description: d}\n", i)
	}
	return b.String()
}

// chain is a tree with n questions on the way along one branch; the other branches are leaves.
func chain(n int, way, other string) string {
	node := "{score: 1}"
	for i := n; i >= 1; i-- {
		node = fmt.Sprintf("{ask: q%d, %s: %s, %s: {score: 0}}", i, way, node, other)
	}
	return node
}
