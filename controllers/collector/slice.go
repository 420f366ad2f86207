package collector

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

// maxAssignedLeaves bounds how many rows of runs are remembered with their Jobs: about 100 bytes each.
const maxAssignedLeaves = 200_000

// object identifies an object of a namespace for good.
type object struct {
	name string
	uid  types.UID
}

// grant is what a pod may do: grade these leaves, of this run, in this namespace.
type grant struct {
	namespace   string
	pod         object
	root        object
	concurrency int32
	leaves      []object
	// slice is the completion index of the pod, and pods how many of the Job run at once, at most.
	slice, pods int32
	// maxCost bounds what the run costs, in US dollars (S-42); nil: nothing does.
	maxCost *float64
}

// leaf finds a leaf of the grant by its name.
func (g *grant) leaf(name string) (object, error) {
	for _, leaf := range g.leaves {
		if leaf.name == name {
			return leaf, nil
		}
	}
	return object{}, refuse(http.StatusForbidden, reasonSlice, "%q is not a row of this pod's slice", name)
}

// grantOf finds the slice of a pod among the rows of its run.
func (c *Collector) grantOf(ctx context.Context, pod *corev1.Pod, job *batchv1.Job, root *v1alpha1.EvalRun, index int) (*grant, error) {
	completions := int32(1)
	if job.Spec.Completions != nil {
		completions = *job.Spec.Completions
	}
	key := assignmentKey{job: job.UID, completions: completions}
	assigned, ok := c.assignments.get(key)
	if !ok {
		leaves, err := c.leavesOf(ctx, root)
		if err != nil {
			return nil, err
		}
		assigned = assign(job, leaves)
		c.assignments.put(key, assigned)
	}
	if index >= len(assigned.slices) {
		return nil, refuse(http.StatusForbidden, reasonSlice, "the pod's completion index %d is not one of the Job's %d", index, completions)
	}
	own := assigned.slices[index]
	g := &grant{
		namespace: pod.Namespace, pod: object{pod.Name, pod.UID},
		root:        object{root.Name, root.UID},
		concurrency: v1alpha1.DefaultConcurrency,
		leaves:      assigned.leaves[own.From:own.To],
		slice:       int32(index),
		pods:        max(1, min(completions, ptr.Deref(job.Spec.Parallelism, completions))),
		maxCost:     root.Spec.MaxCost,
	}
	if root.Spec.Concurrency != nil {
		g.concurrency = *root.Spec.Concurrency
	}
	return g, nil
}

// leavesOf lists the leaves of a run. The Job of a run is made after its children, so all of them are there; but the
// cache may not have all of them yet, and a slice must never be cut from a part of them.
func (c *Collector) leavesOf(ctx context.Context, root *v1alpha1.EvalRun) ([]*v1alpha1.EvalRun, error) {
	ofRoot := []client.ListOption{client.InNamespace(root.Namespace), client.MatchingLabels{v1alpha1.LabelParent: root.Name}}
	names := &metav1.PartialObjectMetadataList{}
	names.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("EvalRunList"))
	if err := c.reader.List(ctx, names, ofRoot...); err != nil {
		return nil, fmt.Errorf("listing the children of %s live: %w", root.Name, err)
	}
	expected := make(map[types.UID]bool)
	for i := range names.Items {
		if owner := metav1.GetControllerOf(&names.Items[i]); owner != nil && owner.UID == root.UID {
			expected[names.Items[i].UID] = true
		}
	}
	children := &v1alpha1.EvalRunList{}
	if err := c.client.List(ctx, children, append(ofRoot, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("listing the children of %s: %w", root.Name, err)
	}
	leaves := runtree.Leaves(root, children.Items)
	if len(expected) == 0 && len(leaves) == 1 && leaves[0].UID == root.UID {
		return c.rootAsLeaf(ctx, root)
	}
	known := 0
	for _, leaf := range leaves {
		if expected[leaf.UID] {
			known++
		}
	}
	if known != len(expected) || known != len(leaves) {
		return nil, refuse(http.StatusServiceUnavailable, reasonNotReady, "the collector has not seen all rows of the run yet; come again")
	}
	return leaves, nil
}

// rootAsLeaf is a run that grades its only row itself. Its row was frozen before its Job was made.
func (c *Collector) rootAsLeaf(ctx context.Context, root *v1alpha1.EvalRun) ([]*v1alpha1.EvalRun, error) {
	if row, _ := runtree.Graded(root); row != nil {
		return []*v1alpha1.EvalRun{root}, nil
	}
	live := &v1alpha1.EvalRun{}
	if err := c.reader.Get(ctx, client.ObjectKeyFromObject(root), live); err != nil {
		return nil, fmt.Errorf("reading run %s live: %w", root.Name, err)
	}
	if row, _ := runtree.Graded(live); row == nil || live.UID != root.UID {
		return nil, notSettled()
	}
	return []*v1alpha1.EvalRun{live}, nil
}

func notSettled() error {
	return refuse(http.StatusServiceUnavailable, reasonNotReady, "what the run grades is not settled yet; come again")
}

// getSlice answers GET /v1/slice.
func (c *Collector) getSlice(e *exchange) (any, error) {
	slice := wire.Slice{
		Run: e.grant.root.name, Concurrency: int(e.grant.concurrency), Limited: e.grant.maxCost != nil, Prices: c.prices,
	}
	for _, leaf := range e.grant.leaves {
		run, err := find[v1alpha1.EvalRun](e.ctx, c, e.grant.namespace, leaf.name, leaf.uid)
		if err != nil {
			return nil, err
		}
		// A leaf that was deleted has nothing to be graded, and nobody to take its report.
		next := wire.SliceLeaf{Name: leaf.name, Done: run == nil || run.Status.Report != nil}
		if slice.Limited && !next.Done {
			next.Calls = callsLeft(run)
		}
		slice.Leaves = append(slice.Leaves, next)
	}
	return slice, nil
}

// callsLeft is how many questions of a leaf have no answer yet, at most.
func callsLeft(leaf *v1alpha1.EvalRun) int32 {
	row, spec := runtree.Graded(leaf)
	if row == nil {
		return 0
	}
	calls := plan.Calls(spec)
	for _, j := range leaf.Status.Judgments {
		if j.Score != nil {
			calls--
		}
	}
	return max(0, calls)
}

// getLeaf answers GET /v1/leaves/{name}. It is read live: a judgment that the cache does not know yet would be paid
// for twice.
func (c *Collector) getLeaf(e *exchange) (any, error) {
	leaf, err := e.grant.leaf(e.request.PathValue("name"))
	if err != nil {
		return nil, err
	}
	run, err := c.readLive(e.ctx, e.grant, leaf)
	if err != nil {
		return nil, err
	}
	row, spec := runtree.Graded(run)
	if row == nil {
		return nil, notSettled()
	}
	answer := wire.Leaf{Name: run.Name, Row: *row, Done: run.Status.Report != nil}
	if !answer.Done {
		answer.Spec, answer.Judgments = *spec, run.Status.Judgments
	}
	return answer, nil
}

// assignment says which slice has which leaves.
type assignment struct {
	leaves []object
	slices []plan.Slice
}

func assign(job *batchv1.Job, leaves []*v1alpha1.EvalRun) *assignment {
	a := &assignment{slices: runtree.Slices(job, leaves)}
	for _, leaf := range leaves {
		a.leaves = append(a.leaves, object{leaf.Name, leaf.UID})
	}
	return a
}

// assignmentKey: the rows of a Job, and what they cost, never change.
type assignmentKey struct {
	job         types.UID
	completions int32
}

// assignmentCache remembers assignments, the oldest of which are forgotten first.
type assignmentCache struct {
	mu      sync.Mutex
	entries map[assignmentKey]*assignment
	order   []assignmentKey
	leaves  int
}

func newAssignmentCache() *assignmentCache {
	return &assignmentCache{entries: make(map[assignmentKey]*assignment)}
}

func (c *assignmentCache) get(key assignmentKey) (*assignment, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.entries[key]
	return a, ok
}

func (c *assignmentCache) put(key assignmentKey, a *assignment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[key]; ok {
		return
	}
	c.entries[key] = a
	c.order = append(c.order, key)
	c.leaves += len(a.leaves)
	for c.leaves > maxAssignedLeaves && len(c.order) > 1 {
		oldest := c.order[0]
		c.order = slices.Delete(c.order, 0, 1)
		c.leaves -= len(c.entries[oldest].leaves)
		delete(c.entries, oldest)
	}
}
