// Command crdgen finishes the CustomResourceDefinitions that controller-gen wrote, in place:
// it unrolls the question trees, which a Go type cannot express, and keeps the result small.
//
//	go run ./hack/crdgen config/crd/bases/*.yaml
package main

import (
	"errors"
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// MaxBytes bounds the JSON of one CRD. From 262144 bytes on `kubectl apply` without --server-side fails, and with it
// a default Argo CD sync: both keep a copy of the object in an annotation. etcd would take 1.5 MiB.
const MaxBytes = 256_000

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "crdgen:", err)
		os.Exit(1)
	}
}

// run patches each of the files. It fails when no file holds a tree: then the fields of TreeNode were renamed,
// and the CRDs would accept anything below the first question.
func run(paths []string) error {
	if len(paths) == 0 {
		return errors.New("no files: name the CRDs, as in config/crd/bases/*.yaml")
	}
	trees := 0
	for _, path := range paths {
		in, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		out, n, err := patch(in)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := os.WriteFile(path, out, 0o644); err != nil { //nolint:gosec // a manifest that everybody may read
			return err
		}
		trees += n
	}
	if trees == 0 {
		return errors.New("no tree was found in the schemas: a node is known by its fields ask, ifYes, ifNo and score")
	}
	return nil
}

// patch returns the finished form of one CRD, and how many trees it unrolled.
func patch(in []byte) ([]byte, int, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(in, &crd); err != nil {
		return nil, 0, fmt.Errorf("reading the CRD: %w", err)
	}
	trees := 0
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			return nil, 0, fmt.Errorf("version %s has no schema", v.Name)
		}
		slim(v.Schema.OpenAPIV3Schema)
		walkBelow(v.Schema.OpenAPIV3Schema, forUsers)
		spec, ok := v.Schema.OpenAPIV3Schema.Properties["spec"]
		if !ok {
			return nil, 0, fmt.Errorf("version %s has no spec", v.Name)
		}
		trees += unroll(&spec)
		v.Schema.OpenAPIV3Schema.Properties["spec"] = spec
	}
	out, err := encode(&crd)
	return out, trees, err
}
