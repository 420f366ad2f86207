package evalrun

import (
	"context"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"golang.org/x/sync/errgroup"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/condition"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

// maxWriters is how many objects of one run are written at once.
const maxWriters = 16

// kindEvalRun is the kind of the owners of what this package makes.
const kindEvalRun = "EvalRun"

// childrenOf are the children that a run with this plan has: one a row when there are several. evalNames are the names of
// the Evals by the title of their rows.
func childrenOf(root *v1alpha1.EvalRun, p *plan.Plan, evalNames map[string]string) []*v1alpha1.EvalRun {
	if len(p.Rows) == 1 {
		return nil
	}
	children := make([]*v1alpha1.EvalRun, len(p.Rows))
	for i := range p.Rows {
		row := &p.Rows[i]
		child := &v1alpha1.EvalRun{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: root.Namespace,
				Name:      runtree.ChildName(root.Name, i, len(p.Rows)),
				Labels: map[string]string{
					v1alpha1.LabelParent: root.Name,
					v1alpha1.LabelPlan:   plan.ShortDigest(p.Revision),
				},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(root, v1alpha1.GroupVersion.WithKind(kindEvalRun))},
			},
			Spec: v1alpha1.EvalRunSpec{Eval: row.Spec.DeepCopy(), Row: row.Row.DeepCopy()},
		}
		if name := evalNames[row.Eval]; name != "" && len(validation.IsValidLabelValue(name)) == 0 {
			child.Labels[v1alpha1.LabelEval] = name
		}
		children[i] = child
	}
	return children
}

// arranged is what is to be done so that a run has the children that it should have.
type arranged struct {
	// create are the children that are not there.
	create []*v1alpha1.EvalRun
	// remove are children of another plan: nothing was judged for them, because no Job was made.
	remove []metav1.PartialObjectMetadata
}

// arrange compares the children that a run should have with those that it has.
func arrange(want []*v1alpha1.EvalRun, have []metav1.PartialObjectMetadata) arranged {
	var a arranged
	wanted := make(map[string]string, len(want))
	for _, child := range want {
		wanted[child.Name] = child.Labels[v1alpha1.LabelPlan]
	}
	kept := make(map[string]bool, len(have))
	for _, child := range have {
		label, ok := wanted[child.Name]
		if ok && child.Labels[v1alpha1.LabelPlan] == label && child.DeletionTimestamp == nil {
			kept[child.Name] = true
		} else {
			a.remove = append(a.remove, child)
		}
	}
	for _, child := range want {
		if !kept[child.Name] {
			a.create = append(a.create, child)
		}
	}
	return a
}

// liveChildren lists the metadata of the children of a run, as the API server has them now.
func (r *Reconciler) liveChildren(ctx context.Context, root *v1alpha1.EvalRun) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kindEvalRun + "List"))
	err := r.Live.List(ctx, list, client.InNamespace(root.Namespace), client.MatchingLabels{v1alpha1.LabelParent: root.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the children: %w", err)
	}
	var own []metav1.PartialObjectMetadata
	for _, child := range list.Items {
		if metav1.IsControlledBy(&child, root) {
			own = append(own, child)
		}
	}
	return own, nil
}

// ensureChildren gives a run the children of a plan, and no others. It returns the runs that grade its rows, in the order
// of the rows: those that were there already as empty shells with a name.
func (r *Reconciler) ensureChildren(ctx context.Context, root *v1alpha1.EvalRun, p *plan.Plan) ([]*v1alpha1.EvalRun, *situation, error) {
	names, err := r.evalNames(ctx, root)
	if err != nil {
		return nil, nil, err
	}
	have, err := r.liveChildren(ctx, root)
	if err != nil {
		return nil, nil, err
	}
	want := childrenOf(root, p, names)
	todo := arrange(want, have)
	if len(todo.create)+len(todo.remove) > 0 {
		logf.FromContext(ctx).Info("making children", "create", len(todo.create), "remove", len(todo.remove))
	}
	if err := r.removeChildren(ctx, todo.remove); err != nil {
		return nil, nil, err
	}
	problem, err := r.createChildren(ctx, root, todo.create)
	return want, problem, err
}

// evalNames are the names of the Evals that a run names, by the title of their rows.
func (r *Reconciler) evalNames(ctx context.Context, root *v1alpha1.EvalRun) (map[string]string, error) {
	if root.Spec.Eval != nil {
		return nil, nil
	}
	evals, _, err := r.evalsOf(ctx, root)
	if err != nil {
		return nil, err
	}
	names := make(map[string]string, len(evals))
	for _, e := range evals {
		title := e.Name
		if e.Spec.Title != "" {
			title = e.Spec.Title
		}
		names[title] = e.Name
	}
	return names, nil
}

func (r *Reconciler) removeChildren(ctx context.Context, children []metav1.PartialObjectMetadata) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxWriters)
	for _, child := range children {
		group.Go(func() error {
			run := &v1alpha1.EvalRun{ObjectMeta: metav1.ObjectMeta{Namespace: child.Namespace, Name: child.Name}}
			err := r.Client.Delete(ctx, run, client.Preconditions{UID: &child.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting child %q of an older plan: %w", child.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (r *Reconciler) createChildren(ctx context.Context, root *v1alpha1.EvalRun, children []*v1alpha1.EvalRun) (*situation, error) {
	var problem atomic.Pointer[situation]
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxWriters)
	for _, child := range children {
		if problem.Load() != nil { // one is enough to tell, and thousands may be refused alike
			break
		}
		group.Go(func() error {
			p, err := r.createChild(ctx, root, child)
			if p != nil {
				problem.Store(p)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return problem.Load(), nil
}

// createChild makes one child. That it is there already is success when it is the same child.
func (r *Reconciler) createChild(ctx context.Context, root, child *v1alpha1.EvalRun) (*situation, error) {
	label := child.Labels[v1alpha1.LabelPlan]
	err := r.Client.Create(ctx, child)
	switch {
	case apierrors.IsAlreadyExists(err):
		there := &v1alpha1.EvalRun{}
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(child), there); err != nil {
			return nil, fmt.Errorf("reading child %q: %w", child.Name, err)
		}
		if !metav1.IsControlledBy(there, root) {
			problem := foreign(kindEvalRun, child.Name)
			return &problem, nil
		}
		if there.Labels[v1alpha1.LabelPlan] != label || there.DeletionTimestamp != nil {
			return nil, fmt.Errorf("child %q of an older plan is still being deleted", child.Name)
		}
		there.DeepCopyInto(child)
		return nil, nil
	case apierrors.IsInvalid(err), err != nil && refusedForSize(err):
		problem := condition.Invalid(fmt.Sprintf("row %q: %v", child.Spec.Row.Name, err))
		return &problem, nil
	case apierrors.IsForbidden(err): // a quota of EvalRuns; or the namespace is being deleted
		problem := condition.Missing(v1alpha1.ReasonPodsBlocked, fmt.Sprintf("the child runs are refused: %v", err))
		return &problem, nil
	case err != nil:
		return nil, fmt.Errorf("creating child %q: %w", child.Name, err)
	}
	return nil, nil
}
