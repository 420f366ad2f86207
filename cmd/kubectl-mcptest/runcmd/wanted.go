package runcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/cluster"
	"github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/exit"
	"github.com/mcptest/mcptest-operator/engine/manifest"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

// maxPrefix is how long the part of a name before the server's own five characters may be: a run's name has 57.
const maxPrefix = 51

// runs are the EvalRuns to make.
func (o *Options) runs(ctx context.Context, client *cluster.Client) ([]*v1alpha1.EvalRun, error) {
	switch {
	case o.eval != "":
		if _, err := client.Eval(ctx, o.eval); err != nil {
			return nil, err
		}
		run := o.newRun(o.eval)
		run.Spec.EvalRef = &v1alpha1.EvalReference{Name: o.eval}
		if len(validation.IsValidLabelValue(o.eval)) == 0 {
			run.Labels = map[string]string{v1alpha1.LabelEval: o.eval}
		}
		return []*v1alpha1.EvalRun{run}, nil
	case o.Selector != "":
		return o.selected(ctx, client)
	}
	return o.fromFiles(ctx, client)
}

// newRun is an EvalRun with what the flags say.
func (o *Options) newRun(name string) *v1alpha1.EvalRun {
	run := &v1alpha1.EvalRun{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "EvalRun"}}
	if run.Name = o.Name; run.Name == "" {
		prefix := strings.ReplaceAll(name, ".", "-")
		run.GenerateName = strings.TrimRight(prefix[:min(len(prefix), maxPrefix)], "-") + "-"
	}
	o.override(run)
	return run
}

// override puts what the flags say into a run.
func (o *Options) override(run *v1alpha1.EvalRun) {
	if o.JudgeModel != "" {
		run.Spec.Judge = &v1alpha1.JudgeOverride{Model: v1alpha1.ModelName(o.JudgeModel)}
	}
	if usd := o.MaxCost.USD(); usd != nil {
		run.Spec.MaxCost = usd
	}
	if o.Parallelism != 0 {
		run.Spec.Parallelism = &o.Parallelism
	}
	if o.Concurrency != 0 {
		run.Spec.Concurrency = &o.Concurrency
	}
}

// selected is one run of all Evals with the labels.
func (o *Options) selected(ctx context.Context, client *cluster.Client) ([]*v1alpha1.EvalRun, error) {
	set := make(labels.Set, len(o.labels))
	for key, value := range o.labels {
		set[key] = string(value)
	}
	found, err := client.Evals(ctx, set.String())
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, exit.With(exit.NothingSelected, fmt.Errorf("no Eval of namespace %q has the labels %s; see kubectl get evals --show-labels", client.Namespace, o.Selector))
	}
	run := o.newRun("selected")
	run.Spec.EvalSelector = &v1alpha1.EvalSelector{MatchLabels: o.labels}
	return []*v1alpha1.EvalRun{run}, nil
}

// fromFiles is a run for each eval of the files, resolved with their rubrics and, for those they lack, the cluster's.
func (o *Options) fromFiles(ctx context.Context, client *cluster.Client) ([]*v1alpha1.EvalRun, error) {
	set, err := manifest.Load(o.Files, o.In)
	if err != nil {
		return nil, err
	}
	if ns := set.Namespace; ns != "" && ns != client.Namespace {
		if o.Kube.Namespace != nil && *o.Kube.Namespace != "" {
			return nil, fmt.Errorf("the manifests are of namespace %q and -n says %q; make them agree", ns, client.Namespace)
		}
		client.Namespace = ns
	}
	evals, err := set.Selected()
	for _, note := range set.Notes {
		fmt.Fprintln(o.ErrOut, "note:", note)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case len(evals) == 0:
		return nil, exit.With(exit.NothingSelected, errors.New("the files hold no Eval"))
	case len(evals) > 1 && o.Name != "":
		return nil, fmt.Errorf("--name names one run, and the files hold %d evals, each of which is a run of its own", len(evals))
	}
	if err := o.oneLimit(set.Runs, len(evals)); err != nil {
		return nil, err
	}
	var made []*v1alpha1.EvalRun
	for _, e := range evals {
		run, err := o.inline(ctx, client, set, e)
		if err != nil {
			return nil, fmt.Errorf("eval %q: %w", e.Name, err)
		}
		made = append(made, run)
	}
	return made, nil
}

// oneLimit refuses what several runs would multiply or lose: a limit of their cost, and what several EvalRuns say.
func (o *Options) oneLimit(runs []v1alpha1.EvalRun, evals int) error {
	limited := slices.ContainsFunc(runs, func(r v1alpha1.EvalRun) bool { return r.Spec.MaxCost != nil })
	judged := slices.ContainsFunc(runs, func(r v1alpha1.EvalRun) bool { return r.Spec.Judge != nil })
	switch {
	case len(runs) > 1 && (limited || judged):
		return errors.New("the files hold several EvalRuns with a maxCost or a judge of their own; name the files of one at a time")
	case evals > 1 && (limited || o.MaxCost.USD() != nil):
		return fmt.Errorf("maxCost bounds one run, and the files hold %d evals, each of which is a run of its own; apply them, and run them together with -l", evals)
	}
	return nil
}

// inline is the run of one eval of the files. What else their EvalRun says, when there is one, holds for it too.
func (o *Options) inline(ctx context.Context, client *cluster.Client, set *manifest.Set, e plan.NamedEval) (*v1alpha1.EvalRun, error) {
	spec := *e.Spec.DeepCopy()
	catalog := plan.Catalog{Rubrics: make(map[string]v1alpha1.RubricSpec), ConfigMaps: set.ConfigMaps}
	for _, name := range plan.ReferencesOf(&spec).Rubrics {
		if r, ok := set.Rubrics[name]; ok {
			catalog.Rubrics[name] = r
		} else if r, err := client.Rubric(ctx, name); err != nil {
			return nil, err
		} else if r != nil {
			catalog.Rubrics[name] = r.Spec
		}
	}
	from := spec.ResponseFrom
	if from != nil && set.ConfigMaps[from.ConfigMapKeyRef.Name] == nil {
		spec.ResponseFrom = nil // the cluster has it, or will say that it has not
	} else {
		from = nil
	}
	resolved, err := plan.Resolve(spec, catalog)
	if err != nil {
		return nil, err
	}
	if from != nil {
		resolved.ResponseFrom = from
	}
	resolved.Title = cmp.Or(resolved.Title, e.Name)
	run := o.newRun(e.Name)
	if len(set.Runs) == 1 {
		run.Spec = *set.Runs[0].Spec.DeepCopy()
		run.Spec.EvalRef, run.Spec.EvalSelector = nil, nil
		o.override(run)
	}
	run.Spec.Eval = &resolved
	return run, nil
}
