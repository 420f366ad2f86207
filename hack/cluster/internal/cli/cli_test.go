//go:build unix

package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const testMod = "module x\n\nrequire k8s.io/kubernetes v1.2.3\n\nrequire go.etcd.io/etcd/server/v3 v3.0.0\n"

func TestTheCommandsExitCodeIsTheTools(t *testing.T) {
	t.Setenv("USE_EXISTING_CLUSTER", "true") // starts nothing
	for name, tc := range map[string]struct {
		args []string
		want int
	}{
		"success":                   {[]string{"run", "--", "sh", "-c", "exit 0"}, 0},
		"a failure":                 {[]string{"run", "--", "sh", "-c", "exit 7"}, 7},
		"an end by signal":          {[]string{"run", "--", "sh", "-c", "kill -KILL $$"}, 137},
		"no such program":           {[]string{"run", "--", "no-such-program-here"}, 1},
		"no command":                {[]string{"run"}, 1},
		"an unknown kind of node":   {[]string{"up", "--node", "docker"}, 1},
		"a name that is a path":     {[]string{"up", "--name", "../x"}, 1},
		"an image without a root":   {[]string{"up", "--image", "app:1"}, 1},
		"images for a real node":    {[]string{"up", "--node", "none", "--image", "app:1=."}, 1},
		"both a name and all":       {[]string{"down", "--name", "x", "--all"}, 1},
		"a log that does not exist": {[]string{"logs", "etcd", "--root", "."}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Main([]byte(testMod), tc.args); got != tc.want {
				t.Errorf("exit code %d, want %d", got, tc.want)
			}
		})
	}
}

func TestACommandIsAskedToEndWithItsTool(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(ready); err == nil {
				cancel()
			}
		}
	}()
	script := "trap 'exit 9' TERM; touch " + ready + "; while :; do sleep 0.05; done"
	err := runChild(ctx, []string{"sh", "-c", script}, os.Environ(), "")
	var code exitError
	if !errors.As(err, &code) || code != 9 {
		t.Errorf("got %v, want the command's own exit code 9", err)
	}
}
