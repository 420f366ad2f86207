package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"
)

// crdWith is the CRD of a kind with this spec.
func crdWith(t *testing.T, spec schema) []byte {
	t.Helper()
	crd := apiextensionsv1.CustomResourceDefinition{
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com",
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Kind: "Thing"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema{Type: "object", Properties: map[string]schema{"spec": spec}}},
			}},
		},
	}
	crd.APIVersion, crd.Kind, crd.Name = "apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.example.com"
	out, err := yaml.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPatchingAFinishedCRDChangesNothing(t *testing.T) {
	once, trees, err := patch(crdWith(t, *specWith(openNode())))
	if err != nil || trees != 3 {
		t.Fatalf("patch: %d trees, error %v; want 3 and none", trees, err)
	}
	twice, trees, err := patch(once)
	if err != nil || trees != 0 {
		t.Fatalf("patch again: %d trees, error %v; want none and none", trees, err)
	}
	if diff := cmp.Diff(string(once), string(twice)); diff != "" {
		t.Errorf("patching again (-once +twice):\n%s", diff)
	}
}

func TestACRDHoldsNothingOfTheServers(t *testing.T) {
	out, _, err := patch(crdWith(t, *specWith(openNode())))
	if err != nil {
		t.Fatal(err)
	}
	for _, unwanted := range []string{"\nstatus:", "creationTimestamp"} {
		if strings.Contains(string(out), unwanted) {
			t.Errorf("the CRD contains %q", unwanted)
		}
	}
}

func TestWhatRunRefuses(t *testing.T) {
	long := schema{Type: "object", Description: strings.Repeat("x", MaxBytes), Properties: map[string]schema{"tree": openNode()}}
	tests := map[string]struct{ content, want string }{
		"no file":              {"", "no files: name the CRDs"},
		"no tree in any file":  {string(crdWith(t, schema{Type: "object"})), "no tree was found"},
		"a CRD that is no CRD": {"kind: [", "reading the CRD"},
		"an unknown field":     {"kind: CustomResourceDefinition\nspecs: {}\n", `unknown field "specs"`},
		"a CRD too big":        {string(crdWith(t, long)), "shorten descriptions or rules"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var paths []string
			if tc.content != "" {
				paths = []string{filepath.Join(t.TempDir(), "crd.yaml")}
				if err := os.WriteFile(paths[0], []byte(tc.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := run(paths); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("run: error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// The CRDs of this project are what the API server's own code accepts: the schemas are structural, the CEL rules
// compile, and their estimated cost stays within its budgets.
func TestTheAPIServerAcceptsTheCRDs(t *testing.T) {
	paths, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no CRDs (error %v): run make generate", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var v1 apiextensionsv1.CustomResourceDefinition
			if err := yaml.UnmarshalStrict(text, &v1); err != nil {
				t.Fatal(err)
			}
			apiextensionsv1.SetDefaults_CustomResourceDefinition(&v1)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)
			v1.Status.StoredVersions = []string{"v1alpha1"}
			var crd apiextensions.CustomResourceDefinition
			if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&v1, &crd, nil); err != nil {
				t.Fatal(err)
			}
			for _, err := range validation.ValidateCustomResourceDefinition(context.Background(), &crd) {
				t.Error(err)
			}
		})
	}
}
