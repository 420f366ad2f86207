package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
)

// ErrDeleted says that a run was deleted while it was followed.
var ErrDeleted = errors.New("the run was deleted")

// againAfter is how long the next look waits after a watch ended or the cluster could not be reached.
const againAfter = time.Second

// Follow watches a run until it ended, and returns it then. changed is called for each state of it that is seen, one
// after the other; its error ends the watch. When the cluster cannot be reached Follow tries again until ctx ends.
func (c *Client) Follow(ctx context.Context, name string, changed func(*v1alpha1.EvalRun) error) (*v1alpha1.EvalRun, error) {
	for {
		run := &v1alpha1.EvalRun{}
		err := c.rest.Get().Namespace(c.Namespace).Resource(runs).Name(name).Do(ctx).Into(run)
		switch {
		case apierrors.IsNotFound(err):
			return nil, fmt.Errorf("follow %q: %w", name, ErrDeleted)
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return nil, explained(err, fmt.Sprintf("follow %q", name))
		case err == nil:
			ended, err := c.watch(ctx, run, changed)
			if err != nil || ended != nil {
				return ended, err
			}
		}
		timer := time.NewTimer(againAfter)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		case <-timer.C:
		}
	}
}

// watch follows a run from a state on; nil without an error when the watch ended before the run did.
func (c *Client) watch(ctx context.Context, run *v1alpha1.EvalRun, changed func(*v1alpha1.EvalRun) error) (*v1alpha1.EvalRun, error) {
	if done, err := seen(run, changed); done || err != nil {
		return run, err
	}
	w, err := c.watchRun(ctx, run.Name, run.ResourceVersion)
	if err != nil {
		return nil, nil // Follow looks again
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case event, ok := <-w.ResultChan():
			now, isRun := event.Object.(*v1alpha1.EvalRun)
			switch {
			case !ok, !isRun, event.Type == watch.Error:
				return nil, nil // Follow looks again
			case event.Type == watch.Deleted || now.UID != run.UID:
				return nil, fmt.Errorf("follow %q: %w", run.Name, ErrDeleted)
			}
			if done, err := seen(now, changed); done || err != nil {
				return now, err
			}
		}
	}
}

func seen(run *v1alpha1.EvalRun, changed func(*v1alpha1.EvalRun) error) (bool, error) {
	if err := changed(run); err != nil {
		return false, err
	}
	return runtree.IsComplete(run), nil
}
