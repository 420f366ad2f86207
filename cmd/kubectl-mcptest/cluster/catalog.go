package cluster

import (
	"context"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

// Catalog reads what an eval refers to. What is not there is not in it.
func (c *Client) Catalog(ctx context.Context, spec *v1alpha1.EvalSpec) (plan.Catalog, error) {
	catalog := plan.Catalog{Rubrics: make(map[string]v1alpha1.RubricSpec), ConfigMaps: make(map[string]map[string]string)}
	refs := plan.ReferencesOf(spec)
	for _, name := range refs.Rubrics {
		found, err := c.Rubric(ctx, name)
		if err != nil {
			return catalog, err
		}
		if found != nil {
			catalog.Rubrics[name] = found.Spec
		}
	}
	for _, name := range refs.ConfigMaps {
		data, err := c.ConfigMap(ctx, name)
		if err != nil {
			return catalog, err
		}
		if data != nil {
			catalog.ConfigMaps[name] = data
		}
	}
	return catalog, nil
}
