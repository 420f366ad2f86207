package evalrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/condition"
	"github.com/mcptest/mcptest-operator/controllers/lookup"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/nearest"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

// planRow is a row of a run, resolved.
type planRow = plan.Row

// plan plans a run of what is there now. When it cannot, the status says why and the plan is nil.
func (r *Reconciler) plan(ctx context.Context, s *scope) (*plan.Plan, error) {
	evals, problem, err := r.evalsOf(ctx, s.run)
	if err != nil {
		return nil, err
	}
	if problem != nil {
		report(s.run, *problem, r.now())
		return nil, nil
	}
	catalog, err := lookup.Catalog(ctx, r.Client, r.Live, s.run.Namespace, evals)
	if err != nil {
		return nil, err
	}
	options := plan.Options{DefaultJudgeModel: r.DefaultJudgeModel}
	if s.run.Spec.Judge != nil {
		options.JudgeModel = s.run.Spec.Judge.Model
	}
	p, err := plan.Make(evals, catalog, options)
	if problem := problemOf(s.run, p, r.Prices, err); problem != nil {
		if lookup.NeedsConfigMap(evals) { // no watch tells when one changes
			s.requeue = recheckMissing
		}
		report(s.run, *problem, r.now())
		return nil, nil
	}
	return p, nil
}

// evalsOf are the evals that a run names, in the order of their names.
func (r *Reconciler) evalsOf(ctx context.Context, run *v1alpha1.EvalRun) ([]plan.NamedEval, *situation, error) {
	if run.Spec.Eval != nil {
		return []plan.NamedEval{{Name: run.Name, Spec: *run.Spec.Eval}}, nil, nil
	}
	if ref := run.Spec.EvalRef; ref != nil {
		eval := &v1alpha1.Eval{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: ref.Name}, eval)
		if apierrors.IsNotFound(err) {
			return r.noSuchEval(ctx, run)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("reading the eval: %w", err)
		}
		return []plan.NamedEval{{Name: eval.Name, Spec: eval.Spec}}, nil, nil
	}
	want := client.MatchingLabels{}
	for key, value := range run.Spec.EvalSelector.MatchLabels {
		want[key] = string(value)
	}
	list := &v1alpha1.EvalList{}
	if err := r.Client.List(ctx, list, client.InNamespace(run.Namespace), want); err != nil {
		return nil, nil, fmt.Errorf("listing the evals: %w", err)
	}
	if len(list.Items) == 0 {
		problem := condition.Missing(v1alpha1.ReasonNothingSelected, "no Eval of this namespace has the labels "+labelText(want))
		return nil, &problem, nil
	}
	evals := make([]plan.NamedEval, len(list.Items))
	for i, e := range list.Items {
		evals[i] = plan.NamedEval{Name: e.Name, Spec: e.Spec}
	}
	slices.SortFunc(evals, func(a, b plan.NamedEval) int { return cmp.Compare(a.Name, b.Name) })
	return evals, nil, nil
}

func (r *Reconciler) noSuchEval(ctx context.Context, run *v1alpha1.EvalRun) ([]plan.NamedEval, *situation, error) {
	list := &v1alpha1.EvalList{}
	if err := r.Client.List(ctx, list, client.InNamespace(run.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing the evals: %w", err)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	name := run.Spec.EvalRef.Name
	err := &plan.NotFoundError{Kind: "Eval", Name: name, Nearest: nearest.Name(name, names)}
	problem := condition.Missing(v1alpha1.ReasonEvalNotFound, err.Error())
	return nil, &problem, nil
}

func labelText(labels map[string]string) string {
	var pairs []string
	for key, value := range labels {
		pairs = append(pairs, key+"="+value)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

// problemOf says why a plan cannot be run; nil when it can.
func problemOf(run *v1alpha1.EvalRun, p *plan.Plan, prices judge.Prices, err error) *situation {
	var problem situation
	var notFound *plan.NotFoundError
	switch {
	case errors.As(err, &notFound):
		reason := v1alpha1.ReasonConfigMapNotFound
		if notFound.Kind == plan.KindRubric {
			reason = v1alpha1.ReasonRubricNotFound
		}
		problem = condition.Missing(reason, err.Error())
	case err != nil:
		problem = condition.Invalid(err.Error())
	default:
		text := cmp.Or(secretConflict(p.Rows), unpriced(run, p.Rows, prices), tooBig(run, p))
		if text == "" {
			return nil
		}
		problem = condition.Invalid(text)
	}
	return &problem
}

// secretConflict says which rows cannot be graded by one Job, because their keys are in different Secrets.
func secretConflict(rows []planRow) string {
	first := -1
	for i := range rows {
		switch {
		case rows[i].Calls == 0:
		case first < 0:
			first = i
		case keysOf(&rows[i]) != keysOf(&rows[first]):
			return fmt.Sprintf("judge.secretRef: row %q takes its keys from Secret %q, and row %q from Secret %q; a run has one Secret: run these evals separately",
				rows[first].Name, keysOf(&rows[first]), rows[i].Name, keysOf(&rows[i]))
		}
	}
	return ""
}

// unpriced says which row of a run with maxCost is judged by a model whose price nobody knows (S-42); empty when there is
// none. Which model judges rows that name none, only the runner knows: it ends them as errors.
func unpriced(run *v1alpha1.EvalRun, rows []planRow, prices judge.Prices) string {
	if run.Spec.MaxCost == nil {
		return ""
	}
	for i := range rows {
		named := rows[i].Spec.Judge
		if rows[i].Calls == 0 || named == nil || named.Model == "" && len(named.Panel) == 0 {
			continue
		}
		models, err := judge.ResolveModel(named, "", "", judge.EveryKey())
		if err != nil {
			continue // nobody is asked, at no cost: the row ends as an error that says why
		}
		if model, ok := prices.Priced(models); !ok {
			return fmt.Sprintf("maxCost: the model %s of row %q has no known price, so that nobody can tell when the money is spent; "+
				"ask for it in the chart's value prices, as in prices: {%s: {input: 1, output: 5}}, in US dollars per million tokens; "+
				"or choose a model with a price, or leave maxCost out", model, rows[i].Name, model)
		}
	}
	return ""
}

// keysOf names the Secret that a row's keys come from, the default one included.
func keysOf(row *planRow) string { return cmp.Or(secretOf(row), v1alpha1.DefaultJudgeSecret) }

// secretOf names the Secret with the keys of a row's judge; empty for the default one.
func secretOf(row *planRow) string {
	if row.Spec.Judge == nil || row.Spec.Judge.SecretRef == nil {
		return ""
	}
	return row.Spec.Judge.SecretRef.Name
}

// freeze writes into the status what a run grades. A single row is kept there whole; several become children.
func freeze(run *v1alpha1.EvalRun, p *plan.Plan) {
	s := &run.Status
	s.Digest = p.Digest
	s.ProjectedCalls = p.Calls
	s.Summary = &v1alpha1.Summary{Rows: int32(len(p.Rows))}
	s.EvalSpec, s.Row = nil, nil
	if len(p.Rows) == 1 {
		row := p.Rows[0]
		s.EvalSpec, s.Row = row.Spec.DeepCopy(), row.Row.DeepCopy()
	}
}
