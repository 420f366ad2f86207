// Command schemagen writes the JSON Schema of mcptest YAML files, for editors, from the CustomResourceDefinition of Eval:
// the bounds, values and descriptions are those of the manifests that such a file is rewritten to.
//
//	go run ./hack/schemagen config/crd/bases/eval.mcptest.dev_evals.yaml engine/convert/mcptest/schema.json
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "schemagen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("name the CRD of Eval and the file to write")
	}
	in, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	out, err := generate(in)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return os.WriteFile(args[1], out, 0o644) //nolint:gosec // a schema that everybody may read
}

// generate makes the schema of a CRD.
func generate(in []byte) ([]byte, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(in, &crd); err != nil {
		return nil, fmt.Errorf("reading the CRD: %w", err)
	}
	if len(crd.Spec.Versions) == 0 || crd.Spec.Versions[0].Schema == nil {
		return nil, errors.New("the CRD has no schema")
	}
	spec, ok := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	if !ok {
		return nil, errors.New("the CRD has no spec")
	}
	root, err := file(&spec)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err = enc.Encode(root)
	return out.Bytes(), err
}
