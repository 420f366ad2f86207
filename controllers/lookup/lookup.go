// Package lookup reads what evals refer to, for a plan: Rubrics from the cache, ConfigMaps live, and only those that
// are named.
package lookup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

// Catalog reads all Rubrics of a namespace, and the ConfigMaps that evals name. What is not there is not in the catalog.
func Catalog(ctx context.Context, cached, live client.Reader, namespace string, evals []plan.NamedEval) (plan.Catalog, error) {
	catalog := plan.Catalog{Rubrics: map[string]v1alpha1.RubricSpec{}, ConfigMaps: map[string]map[string]string{}}
	rubrics := &v1alpha1.RubricList{}
	if err := cached.List(ctx, rubrics, client.InNamespace(namespace)); err != nil {
		return catalog, fmt.Errorf("listing the rubrics: %w", err)
	}
	for _, r := range rubrics.Items {
		catalog.Rubrics[r.Name] = r.Spec
	}
	for i := range evals {
		for _, name := range plan.ReferencesOf(&evals[i].Spec).ConfigMaps {
			if _, known := catalog.ConfigMaps[name]; known {
				continue
			}
			cm := &corev1.ConfigMap{}
			err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cm)
			switch {
			case apierrors.IsNotFound(err):
			case err != nil:
				return catalog, fmt.Errorf("reading ConfigMap %q: %w", name, err)
			default:
				catalog.ConfigMaps[name] = cm.Data
			}
		}
	}
	return catalog, nil
}

// NeedsConfigMap tells whether one of the evals takes its response from a ConfigMap, whose changes nobody watches.
func NeedsConfigMap(evals []plan.NamedEval) bool {
	for i := range evals {
		if evals[i].Spec.ResponseFrom != nil {
			return true
		}
	}
	return false
}
