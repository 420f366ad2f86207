package collector

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

const (
	// maxWrites is how often a status is written before the runner is told to come again.
	maxWrites = 6
	// maxObjectBytes is how long a leaf may get as JSON. etcd takes requests of at most 1.5 MiB (its default), in which
	// the object stands as JSON. Of these, 128 KiB are left to what is not counted here: managed fields, conditions, the
	// summary, and the envelope of the request.
	maxObjectBytes = 1536<<10 - 128<<10
	// maxJudgmentsBytes bounds status.judgments as JSON. Judgments and report (at most 256 KiB) are never there
	// together: the report takes the place of the judgments. So a leaf with everything in it (a response of 256 KiB, a
	// prompt of 64 KiB, rubrics, and up to 0.5 MiB of context) fits with 512 KiB of judgments; where the spec is longer,
	// what is left after it is the bound.
	maxJudgmentsBytes = 512 << 10
)

// readLive reads a leaf of a grant live.
func (c *Collector) readLive(ctx context.Context, g *grant, leaf object) (*v1alpha1.EvalRun, error) {
	run := &v1alpha1.EvalRun{}
	err := c.reader.Get(ctx, client.ObjectKey{Namespace: g.namespace, Name: leaf.name}, run)
	switch {
	case apierrors.IsNotFound(err), err == nil && run.UID != leaf.uid:
		return nil, leafGone(leaf)
	case err != nil:
		return nil, fmt.Errorf("reading leaf %s live: %w", leaf.name, err)
	}
	return run, nil
}

func leafGone(leaf object) error {
	return refuse(http.StatusNotFound, reasonLeaf, "EvalRun %s is gone", leaf.name)
}

// change changes the status of a leaf in place. It returns false when there is nothing to write.
type change func(run *v1alpha1.EvalRun) (bool, error)

// write changes the status of a leaf: from what the cache has at first, live after that version turned out to be an
// old one. A write that another one overtook is made again from what is there then, so that nothing is overwritten.
func (c *Collector) write(ctx context.Context, g *grant, leaf object, change change) error {
	return c.writePart(ctx, g, leaf, statusOf, change)
}

// writePart is write for changes to a part of the status only: part copies what the patch is made from.
func (c *Collector) writePart(ctx context.Context, g *grant, leaf object, part func(*v1alpha1.EvalRun) *v1alpha1.EvalRun, change change) error {
	for attempt := range maxWrites {
		run, err := c.readForWrite(ctx, g, leaf, attempt)
		if err != nil {
			return err
		}
		before := part(run)
		changed, err := change(run)
		if err != nil || !changed {
			return err
		}
		err = c.client.Status().Patch(ctx, part(run), client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		switch {
		case err == nil:
			return nil
		case apierrors.IsNotFound(err):
			return leafGone(leaf)
		case apierrors.IsInvalid(err):
			return refuse(http.StatusUnprocessableEntity, reasonJudgments, "the API server does not take what was made of this: %v", err)
		case !apierrors.IsConflict(err):
			return fmt.Errorf("writing the status of %s: %w", leaf.name, err)
		}
		c.metrics.conflicts.Inc()
		if err := pause(ctx, attempt); err != nil {
			return fmt.Errorf("writing the status of %s: %w", leaf.name, err)
		}
	}
	return refuse(http.StatusServiceUnavailable, reasonConflicts, "EvalRun %s is being changed all the time; come again", leaf.name)
}

// readForWrite returns a copy of a leaf that may be changed.
func (c *Collector) readForWrite(ctx context.Context, g *grant, leaf object, attempt int) (*v1alpha1.EvalRun, error) {
	if attempt > 0 {
		return c.readLive(ctx, g, leaf)
	}
	cached, err := find[v1alpha1.EvalRun](ctx, c, g.namespace, leaf.name, leaf.uid)
	switch {
	case err != nil:
		return nil, err
	case cached == nil:
		return nil, leafGone(leaf)
	}
	// What changes of a leaf is its status; the spec, which may be long, stays shared with the cache and is not touched.
	run := *cached
	cached.Status.DeepCopyInto(&run.Status)
	return &run, nil
}

// statusOf is the part of a leaf that a patch of its status is made from: without what the collector never changes,
// so that no patch holds it and no time is spent on comparing it.
func statusOf(run *v1alpha1.EvalRun) *v1alpha1.EvalRun {
	out := versionOf(run)
	run.Status.DeepCopyInto(&out.Status)
	out.Status.EvalSpec, out.Status.Row = nil, nil
	return out
}

// versionOf is a run of which nothing is known but which version of it this is.
func versionOf(run *v1alpha1.EvalRun) *v1alpha1.EvalRun {
	return &v1alpha1.EvalRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: run.Namespace, Name: run.Name, ResourceVersion: run.ResourceVersion,
	}}
}

// room is how many bytes judgments or a report of a leaf may take, as JSON.
func room(run *v1alpha1.EvalRun) int {
	rest := *run
	rest.ManagedFields = nil
	rest.Status.Judgments, rest.Status.Report = nil, nil
	return maxObjectBytes - encodedLen(rest)
}

func encodedLen(v any) int {
	data, err := json.Marshal(v)
	if err != nil { // the types of the API always marshal
		return maxObjectBytes
	}
	return len(data)
}

// pause waits 5 ms and twice as long after each attempt, give or take a half.
func pause(ctx context.Context, attempt int) error {
	wait := 5 * time.Millisecond << attempt
	timer := time.NewTimer(wait/2 + rand.N(wait)) //nolint:gosec // jitter, no secret
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
