package schema

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// specCase is a spec, and what the API server answers it with.
type specCase struct {
	spec string // YAML, as a person writes it
	want string // part of the refusal; empty: it is accepted
}

// checkSpecs sends each spec as kubectl does, with strict field validation, and stores nothing.
func checkSpecs(t *testing.T, kind string, tests map[string]specCase) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := manifest(t, kind, "case", tc.spec)
			checkAnswer(t, kind, c.Create(t.Context(), obj, client.DryRunAll, client.FieldValidation("Strict")), tc.want)
		})
	}
}

// within puts each spec into a field of another: the fields it names are then found under path.
func within(tests map[string]specCase, format string, columns int, path string) map[string]specCase {
	out := make(map[string]specCase, len(tests))
	for name, tc := range tests {
		out[name+", in "+path] = specCase{
			spec: fmt.Sprintf(format, indent(columns, tc.spec)),
			want: strings.ReplaceAll(tc.want, "spec.", path+"."),
		}
	}
	return out
}

// checkAnswer compares the answer of the API server with a part of a refusal, or with acceptance.
func checkAnswer(t *testing.T, kind string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && err == nil:
		t.Errorf("accepted; want a refusal with %q", want)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("refused with %q\nwant a refusal with %q", err, want)
	case want != "":
		refused[kind] = append(refused[kind], err.Error())
	}
}

// manifest is an object of a kind with a spec in YAML. As in kubectl, YAML becomes JSON by the rules of YAML 1.1.
func manifest(t *testing.T, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatalf("the test's own YAML: %v\n%s", err, spec)
	}
	obj.Object["spec"] = fields
	obj.SetAPIVersion("eval.mcptest.dev/v1alpha1")
	obj.SetKind(kind)
	obj.SetName(name)
	obj.SetNamespace(namespace)
	return obj
}

// stored creates an object for good, until the test ends.
func stored(t *testing.T, obj *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	if err := c.Create(t.Context(), obj, client.FieldValidation("Strict")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		gone := &metav1.PartialObjectMetadata{}
		gone.SetGroupVersionKind(obj.GroupVersionKind())
		gone.SetName(obj.GetName())
		gone.SetNamespace(obj.GetNamespace())
		// the test's context is over when its cleanups run
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := client.IgnoreNotFound(c.Delete(ctx, gone)); err != nil {
			t.Error(err)
		}
	})
	return obj
}

// long is a text of n characters.
func long(n int) string { return strings.Repeat("x", n) }

// indent puts every line of a YAML snippet n columns to the right.
func indent(n int, snippet string) string {
	pad := strings.Repeat(" ", n)
	return pad + strings.ReplaceAll(strings.TrimSuffix(snippet, "\n"), "\n", "\n"+pad)
}
