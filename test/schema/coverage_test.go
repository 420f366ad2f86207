package schema

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// refused holds, for each kind, what its refusals said that were expected.
var refused = map[string][]string{}

// unprovoked returns the CEL rules of the schemas, by kind and message, that no test provoked.
func unprovoked(ctx context.Context) ([]string, error) {
	var out []string
	for plural, k := range kinds {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKey{Name: plural + "." + v1alpha1.GroupVersion.Group}, crd); err != nil {
			return nil, err
		}
		check := func(_ string, s apiextensionsv1.JSONSchemaProps) {
			for _, rule := range s.XValidations {
				if !slices.ContainsFunc(refused[k.kind], func(said string) bool { return strings.Contains(said, rule.Message) }) {
					out = append(out, fmt.Sprintf("%s: %s", k.kind, rule.Message))
				}
			}
		}
		root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		check("", *root)
		walk(*root, plural, check)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
