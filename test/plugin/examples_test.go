package plugin

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestExamplesAreAdmitted(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	ns := namespace(t)
	strict := client.WithFieldValidation(c, "Strict")
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for dec := yaml.NewYAMLOrJSONDecoder(f, 4096); ; {
			var o unstructured.Unstructured
			if err := dec.Decode(&o.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if len(o.Object) == 0 {
				continue
			}
			o.SetNamespace(ns)
			if err := strict.Create(t.Context(), &o); err != nil {
				t.Errorf("%s: %s %s: %v", path, o.GetKind(), o.GetName(), err)
			}
		}
	}
}
