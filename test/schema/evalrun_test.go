package schema

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

func TestEvalRun(t *testing.T) {
	const eval = "evalRef: {name: weather}\n"
	const one = "set exactly one of evalRef (one Eval), evalSelector (the Evals with these labels) or eval (the eval itself)"
	checkSpecs(t, "EvalRun", map[string]specCase{
		"an evalRef":                          {eval, ""},
		"an evalSelector":                     {"evalSelector: {matchLabels: {team: a}}", ""},
		"an inline eval":                      {"eval: {response: r, rubric: {text: right}}", ""},
		"all of a run":                        {allOfARun, ""},
		"an unknown field":                    {eval + "paralelism: 4", `unknown field "spec.paralelism"`},
		"none of the three":                   {"suspend: true", one},
		"evalRef and evalSelector":            {eval + "evalSelector: {matchLabels: {team: a}}", one},
		"evalRef and eval":                    {eval + "eval: {rubric: {text: right}}", one},
		"evalSelector and eval":               {"evalSelector: {matchLabels: {team: a}}\neval: {rubric: {text: right}}", one},
		"row with eval":                       {"eval: {rubric: {text: right}}\nrow: {name: a, eval: a, cell: {model: m, prompt: p}}", ""},
		"row without eval":                    {eval + "row: {name: a, eval: a}", "row belongs to eval; the operator sets it on the children of a run"},
		"row without a name":                  {"eval: {rubric: {text: right}}\nrow: {eval: a}", "spec.row.name: Required value"},
		"row without an eval's name":          {"eval: {rubric: {text: right}}\nrow: {name: a}", "spec.row.eval: Required value"},
		"row with an empty name":              {"eval: {rubric: {text: right}}\nrow: {name: \"\", eval: a}", "should be at least 1 chars long"},
		"row with a name too long":            {"eval: {rubric: {text: right}}\nrow: {eval: a, name: " + long(513) + "}", "may not be more than 512 bytes"},
		"row with an eval's name too long":    {"eval: {rubric: {text: right}}\nrow: {name: a, eval: " + long(257) + "}", "may not be more than 256 bytes"},
		"row with a prompt too long":          {"eval: {rubric: {text: right}}\nrow: {name: a, eval: a, cell: {prompt: " + long(16385) + "}}", "may not be more than 16384 bytes"},
		"row with a bad model":                {"eval: {rubric: {text: right}}\nrow: {name: a, eval: a, cell: {model: a b}}", "a model name starts with a letter or digit"},
		"evalRef without a name":              {"evalRef: {}", "spec.evalRef.name: Required value"},
		"evalRef with an empty name":          {`evalRef: {name: ""}`, "should be at least 1 chars long"},
		"evalRef with a name too long":        {"evalRef: {name: " + long(254) + "}", "may not be more than 253 bytes"},
		"evalSelector without labels":         {"evalSelector: {}", "matchLabels: Required value"},
		"evalSelector with empty labels":      {"evalSelector: {matchLabels: {}}", "should have at least 1 properties"},
		"evalSelector with 17 labels":         {"evalSelector: {matchLabels: {" + numbered(17, "l%d: a") + "}}", "must have at most 16 items"},
		"evalSelector with a value too long":  {"evalSelector: {matchLabels: {a: " + long(64) + "}}", "may not be more than 63 bytes"},
		"the rules of an eval hold inline":    {"eval: {rubric: {text: right}, rubrics: [{name: a, ref: x}]}", "set exactly one of rubric (one) or rubrics"},
		"an inline tree is unrolled":          {"eval: {rubric: {tree: " + chain(7, "ifYes", "ifNo") + "}}", "a tree is at most 6 questions deep"},
		"an unquoted yes inline":              {"eval: {rubric: {tree: {ask: a, yes: {score: 1}, no: {score: 0}}}}", "write ifYes and ifNo"},
		"a judge without a model":             {eval + "judge: {}", "spec.judge.model: Required value"},
		"a judge with a bad model":            {eval + "judge: {model: a b}", "a model name starts with a letter or digit"},
		"maxCost":                             {eval + "maxCost: 0.5", ""},
		"maxCost 0":                           {eval + "maxCost: 0", "should be greater than 0"},
		"maxCost above a million":             {eval + "maxCost: 1000001", "should be less than or equal to 1000000"},
		"parallelism 0":                       {eval + "parallelism: 0", "should be greater than or equal to 1"},
		"parallelism 257":                     {eval + "parallelism: 257", "should be less than or equal to 256"},
		"concurrency 0":                       {eval + "concurrency: 0", "should be greater than or equal to 1"},
		"concurrency 257":                     {eval + "concurrency: 257", "should be less than or equal to 256"},
		"an empty queueName":                  {eval + `queueName: ""`, "should be at least 1 chars long"},
		"a queueName too long":                {eval + "queueName: " + long(64), "may not be more than 63 bytes"},
		"activeDeadlineSeconds 0":             {eval + "activeDeadlineSeconds: 0", "should be greater than or equal to 1"},
		"activeDeadlineSeconds above a week":  {eval + "activeDeadlineSeconds: 604801", "should be less than or equal to 604800"},
		"ttlSecondsAfterFinished 0":           {eval + "ttlSecondsAfterFinished: 0", ""},
		"ttlSecondsAfterFinished below 0":     {eval + "ttlSecondsAfterFinished: -1", "should be greater than or equal to 0"},
		"ttlSecondsAfterFinished of 2 years":  {eval + "ttlSecondsAfterFinished: 63072000", "should be less than or equal to 31536000"},
		"backoffLimitPerIndex 0":              {eval + "backoffLimitPerIndex: 0", ""},
		"backoffLimitPerIndex below 0":        {eval + "backoffLimitPerIndex: -1", "should be greater than or equal to 0"},
		"backoffLimitPerIndex 101":            {eval + "backoffLimitPerIndex: 101", "should be less than or equal to 100"},
		"a container in the podTemplate":      {eval + "podTemplate: {spec: {containers: []}}", `unknown field "spec.podTemplate.spec.containers"`},
		"65 labels of pods":                   {eval + "podTemplate: {metadata: {labels: {" + numbered(65, "l%d: a") + "}}}", "must have at most 64 items"},
		"65 annotations of pods":              {eval + "podTemplate: {metadata: {annotations: {" + numbered(65, "l%d: a") + "}}}", "must have at most 64 items"},
		"65 labels of nodes":                  {eval + "podTemplate: {spec: {nodeSelector: {" + numbered(65, "l%d: a") + "}}}", "must have at most 64 items"},
		"65 tolerations":                      {eval + "podTemplate: {spec: {tolerations: [" + numbered(65, "{key: k%d}") + "]}}", "must have at most 64 items"},
		"17 imagePullSecrets":                 {eval + "podTemplate: {spec: {imagePullSecrets: [" + numbered(17, "{name: s%d}") + "]}}", "must have at most 16 items"},
		"an imagePullSecret twice":            {eval + "podTemplate: {spec: {imagePullSecrets: [{name: a}, {name: a}]}}", "Duplicate value"},
		"an imagePullSecret without a name":   {eval + "podTemplate: {spec: {imagePullSecrets: [{}]}}", "name: Required value"},
		"a priorityClassName too long":        {eval + "podTemplate: {spec: {priorityClassName: " + long(254) + "}}", "may not be more than 253 bytes"},
		"a serviceAccountName too long":       {eval + "podTemplate: {spec: {serviceAccountName: " + long(254) + "}}", "may not be more than 253 bytes"},
		"a runtimeClassName too long":         {eval + "podTemplate: {spec: {runtimeClassName: " + long(254) + "}}", "may not be more than 253 bytes"},
		"resources that are no quantity":      {eval + "podTemplate: {spec: {resources: {limits: {memory: lots}}}}", "limits.memory in body should match"},
		"an affinity with an unknown operand": {eval + "podTemplate: {spec: {affinity: {nodeAfinity: {}}}}", `unknown field "spec.podTemplate.spec.affinity.nodeAfinity"`},
	})
}

func TestTheNameOfAnEvalRun(t *testing.T) {
	const root, child = "evalRef: {name: a}", "eval: {rubric: {text: right}}\nrow: {name: a, eval: a}"
	tests := map[string]struct{ name, spec, want string }{
		"57 characters":            {long(57), root, ""},
		"58 characters":            {long(58), root, "the name of an EvalRun has at most 57 characters: its children and pods are named after it"},
		"63 characters of a child": {long(63), child, ""},
		"64 characters of a child": {long(64), child, "the name of an EvalRun has at most 57 characters"},
		"a dot":                    {"weather.v2", root, "the name of an EvalRun has no dots: its Job and pods are named after it; use dashes"},
		"a dash":                   {"weather-v2", root, ""},
		"a capital":                {"Weather", root, "a lowercase RFC 1123 subdomain"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := manifest(t, "EvalRun", tc.name, tc.spec)
			checkAnswer(t, "EvalRun", c.Create(t.Context(), obj, client.DryRunAll, client.FieldValidation("Strict")), tc.want)
		})
	}
}

// allOfARun has every field that a person may set beside evalSelector, eval and row, which exclude evalRef.
const allOfARun = `
evalRef: {name: weather}
judge: {model: claude-x}
maxCost: 0.25
parallelism: 2
concurrency: 8
suspend: true
queueName: team-a
activeDeadlineSeconds: 600
ttlSecondsAfterFinished: 3600
backoffLimitPerIndex: 1
podTemplate:
  metadata: {labels: {a: b}, annotations: {c: d}}
  spec:
    nodeSelector: {disk: ssd}
    tolerations: [{key: a, operator: Exists}]
    priorityClassName: low
    serviceAccountName: runner
    runtimeClassName: gvisor
    imagePullSecrets: [{name: registry}]
    resources: {requests: {cpu: 100m}, limits: {memory: 256Mi}}
    affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}
`

// The fields of the spec of an EvalRun, each with two values. Every one but suspend is held after creation.
var heldFields = map[string][2]string{
	"evalRef":                 {"{name: a}", "{name: b}"},
	"evalSelector":            {"{matchLabels: {a: b}}", "{matchLabels: {a: c}}"},
	"eval":                    {"{rubric: {text: a}}", "{rubric: {text: b}}"},
	"row":                     {"{name: a, eval: a}", "{name: b, eval: a}"},
	"judge":                   {"{model: a}", "{model: b}"},
	"maxCost":                 {"1", "2"},
	"parallelism":             {"1", "2"},
	"concurrency":             {"1", "2"},
	"queueName":               {"a", "b"},
	"activeDeadlineSeconds":   {"1", "2"},
	"ttlSecondsAfterFinished": {"1", "2"},
	"backoffLimitPerIndex":    {"1", "2"},
	"podTemplate":             {"{metadata: {labels: {a: b}}}", "{metadata: {labels: {a: c}}}"},
}

func TestTheSpecOfAnEvalRunIsHeld(t *testing.T) {
	const want = "the spec of an EvalRun cannot be changed, except for suspend; make a new EvalRun"
	for field, value := range heldFields {
		// what stands beside the field, and what stands without it, so that both specs are valid
		beside, without := "evalRef: {name: z}\n", "evalRef: {name: z}\n"
		switch field {
		case "row":
			beside, without = "eval: {rubric: {text: a}}\n", "eval: {rubric: {text: a}}\n"
		case "evalRef":
			beside, without = "", "evalSelector: {matchLabels: {z: z}}\n"
		case "evalSelector", "eval":
			beside = ""
		}
		with := func(value string) string { return beside + field + ": " + value }
		for name, change := range map[string][2]string{
			"changed": {with(value[0]), with(value[1])},
			"added":   {without, with(value[0])},
			"removed": {with(value[0]), without},
		} {
			t.Run(field+" "+name, func(t *testing.T) {
				obj := stored(t, manifest(t, "EvalRun", "held", change[0]))
				checkAnswer(t, "EvalRun", update(t, obj, change[1]), want)
				checkAnswer(t, "EvalRun", update(t, obj, change[0]), "")
			})
		}
	}
}

func TestEveryFieldOfAnEvalRunIsHeldOrSuspend(t *testing.T) {
	for field := range schemaOf(t, "evalruns").Properties["spec"].Properties {
		if _, held := heldFields[field]; !held && field != "suspend" {
			t.Errorf("spec.%s is in no test of this file: is it held?", field)
		}
	}
}

func TestSuspendCanBeChanged(t *testing.T) {
	for name, change := range map[string][2]string{
		"added":   {"evalRef: {name: a}", "evalRef: {name: a}\nsuspend: true"},
		"changed": {"evalRef: {name: a}\nsuspend: true", "evalRef: {name: a}\nsuspend: false"},
		"removed": {"evalRef: {name: a}\nsuspend: true", "evalRef: {name: a}"},
	} {
		t.Run(name, func(t *testing.T) {
			obj := stored(t, manifest(t, "EvalRun", "held", change[0]))
			checkAnswer(t, "EvalRun", update(t, obj, change[1]), "")
		})
	}
}

// update gives a stored object another spec.
func update(t *testing.T, obj *unstructured.Unstructured, spec string) error {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatalf("the test's own YAML: %v", err)
	}
	changed := obj.DeepCopy()
	changed.Object["spec"] = fields
	return c.Update(t.Context(), changed, client.DryRunAll, client.FieldValidation("Strict"))
}

// The frozen spec in the status was checked on its way in: the API server does not check it again, and keeps it whole.
func TestTheFrozenSpecIsKeptAsItIs(t *testing.T) {
	obj := stored(t, manifest(t, "EvalRun", "frozen", "evalRef: {name: a}"))
	spec := "rubric: {tree: " + chain(6, "ifYes", "ifNo") + "}\nprompt: " + strings.Repeat("p", 1000)
	var frozen map[string]any
	if err := yaml.Unmarshal([]byte(spec), &frozen); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedMap(obj.Object, frozen, "status", "evalSpec"); err != nil {
		t.Fatal(err)
	}
	if err := c.Status().Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	var run v1alpha1.EvalRun
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), &run); err != nil {
		t.Fatal(err)
	}
	node, depth := run.Status.EvalSpec.Rubric.Tree, 0
	for ; node.Ask != ""; node = node.IfYes {
		depth++
	}
	if depth != v1alpha1.MaxTreeDepth || node.Score == nil || *node.Score != 1 {
		t.Errorf("the frozen tree came back %d questions deep with the leaf %+v, want 6 and a score of 1", depth, node)
	}
}
