//go:build unix

package cluster

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/mcptest/mcptest-operator/hack/cluster/internal/build"
	"github.com/mcptest/mcptest-operator/hack/cluster/internal/node"
	"github.com/mcptest/mcptest-operator/hack/cluster/internal/proc"
)

// stopGrace is how long a component may take to end by itself. The data of these clusters is thrown away, so that
// nothing is lost by not waiting for open watches.
const stopGrace = 2 * time.Second

// nodeGrace leaves the node's agent the time to end its pods.
const nodeGrace = 10 * time.Second

// AfterDown says what becomes of a stopped cluster's folder.
type AfterDown string

const (
	// RemoveFolder removes it.
	RemoveFolder AfterDown = "remove"
	// KeepFolder leaves data and logs: the next Up starts the same cluster again.
	KeepFolder AfterDown = "keep"
)

// Down stops a cluster: its pods, its node, its control plane. It is no error when there is none.
func Down(ctx context.Context, d Dir, after AfterDown, progress *build.Progress) error {
	release, err := proc.Lock(ctx, d.lock(), func() {
		progress.Note("cluster %s is being started or stopped by another process, waiting for it", d.Name())
	})
	if err != nil {
		return err
	}
	defer release()
	if _, err := os.Stat(string(d)); err != nil {
		return nil
	}
	if err := stopProcesses(ctx, d); err != nil {
		return err
	}
	if after == KeepFolder {
		return nil
	}
	return os.RemoveAll(string(d))
}

// stopProcesses ends everything that was recorded: first what uses the cluster, then its pods, then the rest.
func stopProcesses(ctx context.Context, d Dir) error {
	stop := func(name string, grace time.Duration) error {
		path := d.Path("run", name+".json")
		r, err := proc.Read(path)
		if err != nil || r.PID == 0 {
			return err
		}
		if err := r.Stop(ctx, grace); err != nil {
			return err
		}
		return os.Remove(path)
	}
	errs := []error{stop(CommandRecord, stopGrace), stop("node", nodeGrace)}
	node.KillLeftovers(d.Path("pods"))
	errs = append(errs, stopContainerdNode(ctx, d, stop))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, r := range proc.ReadAll(d.Path("run", "*.json")) {
		wg.Go(func() {
			err := stop(r.Name, stopGrace)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// CommandRecord is the name under which the command of `cluster run` is recorded.
const CommandRecord = "command"
