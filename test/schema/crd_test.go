package schema

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// kinds are the plurals of the kinds, with a spec of each.
var kinds = map[string]struct{ kind, spec string }{
	"rubrics":  {"Rubric", "text: right"},
	"evals":    {"Eval", "rubric: {ref: a}"},
	"evalruns": {"EvalRun", "evalRef: {name: a}"},
}

func TestTheStatusIsThereBeforeTheOperatorLooks(t *testing.T) {
	for plural, k := range kinds {
		t.Run(plural, func(t *testing.T) {
			obj := stored(t, manifest(t, k.kind, "fresh", k.spec))
			got, found, err := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
			if err != nil || !found || got != -1 {
				t.Errorf("status.observedGeneration of a new object is %d (found %t, error %v), want -1", got, found, err)
			}
		})
	}
}

func TestNamesOfTheKinds(t *testing.T) {
	want := map[string]apiextensionsv1.CustomResourceDefinitionNames{
		"rubrics":  {Plural: "rubrics", Singular: "rubric", Kind: "Rubric", ListKind: "RubricList", ShortNames: []string{"rb"}, Categories: []string{"mcptest"}},
		"evals":    {Plural: "evals", Singular: "eval", Kind: "Eval", ListKind: "EvalList", Categories: []string{"mcptest"}},
		"evalruns": {Plural: "evalruns", Singular: "evalrun", Kind: "EvalRun", ListKind: "EvalRunList", ShortNames: []string{"er"}, Categories: []string{"mcptest"}},
	}
	for plural := range kinds {
		t.Run(plural, func(t *testing.T) {
			if diff := cmp.Diff(want[plural], crdOf(t, plural).Status.AcceptedNames); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKubectlGetsByShortNameAndCategory(t *testing.T) {
	for _, k := range kinds {
		stored(t, manifest(t, k.kind, "named", k.spec))
	}
	tests := map[string]struct {
		what string
		want []string
	}{
		"rb":      {"rb", []string{"rubric.eval.mcptest.dev/named"}},
		"er":      {"er", []string{"evalrun.eval.mcptest.dev/named"}},
		"mcptest": {"mcptest", []string{"eval.eval.mcptest.dev/named", "evalrun.eval.mcptest.dev/named", "rubric.eval.mcptest.dev/named"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := kubectl(t.Context(), "get", tc.what, "-n", namespace, "-o", "name")
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			got := strings.Fields(out)
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("kubectl get %s (-want +got):\n%s", tc.what, diff)
			}
		})
	}
}

// What kubectl get prints: the columns of the API server's own table, those of -o wide in brackets.
func TestPrintedColumns(t *testing.T) {
	tests := map[string]struct {
		status  map[string]any
		columns []string
		cells   []any
	}{
		"rubrics": {
			status:  map[string]any{"kind": "text", "judgeCalls": int64(1), "conditions": conditions("Ready")},
			columns: []string{"Name", "Kind", "Threshold", "Calls", "Ready", "Age"},
			cells:   []any{"printed", "text", nil, int64(1), "True"},
		},
		"evals": {
			status:  map[string]any{"rows": int64(4), "judgeCalls": int64(8), "conditions": conditions("Ready"), "lastRun": map[string]any{"name": "r1", "outcome": "Passed", "score": 0.75}},
			columns: []string{"Name", "Ready", "Rows", "Calls", "Last Outcome", "Score", "(Last Run)", "Age"},
			cells:   []any{"printed", "True", int64(4), int64(8), "Passed", 0.75, "r1"},
		},
		"evalruns": {
			status:  map[string]any{"outcome": "Failed", "summary": map[string]any{"rows": int64(4), "score": 0.5, "costUSD": 0.25, "passed": int64(1), "failed": int64(2), "deferred": int64(1), "errored": int64(0)}},
			columns: []string{"Name", "Outcome", "Score", "Rows", "Cost", "Age", "(Standing)", "(Passed)", "(Failed)", "(Deferred)", "(Errored)", "(Row)"},
			cells:   []any{"printed", "Failed", 0.5, int64(4), 0.25},
		},
	}
	for plural, k := range kinds {
		t.Run(plural, func(t *testing.T) {
			tc := tests[plural]
			obj := stored(t, manifest(t, k.kind, "printed", k.spec))
			obj.Object["status"] = tc.status
			if err := c.Status().Update(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			table := tableOf(t, plural, "printed")
			columns := make([]string, 0, len(table.ColumnDefinitions))
			for _, col := range table.ColumnDefinitions {
				name := col.Name
				if col.Priority > 0 {
					name = "(" + name + ")"
				}
				columns = append(columns, name)
			}
			if diff := cmp.Diff(tc.columns, columns); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
			if len(table.Rows) != 1 {
				t.Fatalf("%d rows, want 1", len(table.Rows))
			}
			if diff := cmp.Diff(tc.cells, table.Rows[0].Cells[:len(tc.cells)]); diff != "" {
				t.Errorf("cells (-want +got):\n%s", diff)
			}
		})
	}
}

// conditions is a list of one condition that is True.
func conditions(kind string) []any {
	return []any{map[string]any{"type": kind, "status": "True", "reason": "Valid", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}}
}

// tableOf asks for an object as kubectl get does.
func tableOf(t *testing.T, plural, name string) *metav1.Table {
	t.Helper()
	cfg := rest.CopyConfig(config)
	cfg.APIPath = "/apis"
	cfg.GroupVersion = &schema.GroupVersion{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version}
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(clientgoscheme.Scheme).WithoutConversion()
	rc, err := rest.RESTClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	table := &metav1.Table{}
	err = rc.Get().Namespace(namespace).Resource(plural).Name(name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Into(table)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// deepInTree matches the fields of the third question of a tree, and of those under it: they are those of the second.
var deepInTree = regexp.MustCompile(`\.tree(\.(ifYes|ifNo)){2}\.`)

func TestEveryFieldOfASpecHasADescription(t *testing.T) {
	for plural := range kinds {
		t.Run(plural, func(t *testing.T) {
			fields := 0
			walk(*schemaOf(t, plural), plural, func(path string, s apiextensionsv1.JSONSchemaProps) {
				if path == plural || !strings.HasPrefix(path, plural+".spec") {
					return
				}
				fields++
				if strings.TrimSpace(s.Description) == "" && !deepInTree.MatchString(path) {
					t.Errorf("%s has no description: kubectl explain says nothing about it", path)
				}
			})
			if fields < 100 {
				t.Errorf("only %d fields under spec were looked at", fields)
			}
		})
	}
}

func TestKubectlExplains(t *testing.T) {
	tests := map[string]string{
		"eval.spec.rubric.criteria":                      "Named questions, each judged by a call of its own.",
		"eval.spec.rubric.tree":                          "A question that is answered yes or no.",
		"rubric.spec.tree.ifYes":                         "A yes/no question.",
		"evalrun.spec.podTemplate.spec.affinity":         "Describes node affinity scheduling rules for the pod.",
		"evalrun.status.evalSpec":                        "Its fields are those of the spec of an Eval.",
		"evalrun.spec.eval.rubrics.criteria.scoreRanges": "What whole scores from 0 to 10 mean",
	}
	for field, want := range tests {
		t.Run(field, func(t *testing.T) {
			out, err := kubectl(t.Context(), "explain", field)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if text := strings.Join(strings.Fields(out), " "); !strings.Contains(text, want) {
				t.Errorf("kubectl explain %s does not say %q:\n%s", field, want, out)
			}
		})
	}
}

// The CRDs can also be applied by a client that keeps a copy of the object in an annotation of at most 256 KiB, as
// kubectl apply without --server-side and Argo CD by default do.
func TestTheCRDsFitIntoTheAnnotationOfAClientSideApply(t *testing.T) {
	out, err := kubectl(t.Context(), "apply", "--dry-run=server", "-k", crdDir)
	if err != nil {
		t.Errorf("kubectl apply --dry-run=server: %v\n%s", err, out)
	}
}

// crdOf is a CRD as the API server has it.
func crdOf(t *testing.T, plural string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: plural + "." + v1alpha1.GroupVersion.Group}, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

func schemaOf(t *testing.T, plural string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	return crdOf(t, plural).Spec.Versions[0].Schema.OpenAPIV3Schema
}

// walk visits every field below a schema, with its path. The items of a list are their list's.
func walk(s apiextensionsv1.JSONSchemaProps, path string, visit func(string, apiextensionsv1.JSONSchemaProps)) {
	for name, p := range s.Properties {
		visit(path+"."+name, p)
		walk(p, path+"."+name, visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(*s.Items.Schema, path+"[]", visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		walk(*s.AdditionalProperties.Schema, path+"{}", visit)
	}
}
