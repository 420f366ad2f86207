//go:build unix

package proc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func start(t *testing.T, script string) Record {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	r, err := Start("sleeper", cmd)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }()
	t.Cleanup(r.KillGroup)
	return r
}

func TestStopEndsAProcessThatIgnoresSIGTERM(t *testing.T) {
	r := start(t, "trap '' TERM; while :; do sleep 0.05; done")
	if !r.Alive() {
		t.Fatal("a process that was just started is not alive")
	}
	if err := r.Stop(t.Context(), 200*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if r.Alive() {
		t.Error("still alive after Stop")
	}
}

func TestAPidThatNowMeansAnotherProcessIsNotSignalled(t *testing.T) {
	r := start(t, "exec sleep 60")
	stale := r
	stale.Started = "an earlier time"
	if stale.Alive() {
		t.Error("a record with another start time counts as alive")
	}
	if err := stale.Stop(t.Context(), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	stale.KillGroup()
	if !r.Alive() {
		t.Error("the process that has the pid now was killed")
	}
}

func TestARecordSurvivesItsFile(t *testing.T) {
	r := start(t, "exec sleep 60")
	path := filepath.Join(t.TempDir(), "r.json")
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != r || !got.Alive() {
		t.Errorf("read %+v, want %+v, alive", got, r)
	}
	none, err := Read(path + ".none")
	if err != nil || none.Alive() {
		t.Errorf("a missing file: %+v, %v; want a zero record", none, err)
	}
}

func TestLockIsExclusiveAndGivesUpWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	release, err := Lock(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gaveUp := errors.New("gave up")
	if _, err := Lock(ctx, path, func() { cancel(gaveUp) }); !errors.Is(err, gaveUp) {
		t.Errorf("second lock: %v, want %v", err, gaveUp)
	}
	release()
	release, err = Lock(t.Context(), path, func() { t.Error("waited for a lock that was released") })
	if err != nil {
		t.Fatal(err)
	}
	release()
}

func TestStopEndsWhatTheProcessLeftBehindInItsGroup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "child")
	r := start(t, "sleep 60 & echo $! >"+path+".tmp; mv "+path+".tmp "+path+"; wait")
	deadline := time.Now().Add(5 * time.Second)
	var child Record
	for child.PID == 0 && time.Now().Before(deadline) {
		if data, err := os.ReadFile(path); err == nil {
			pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
			if err != nil {
				t.Fatal(err)
			}
			child = Describe("child", pid, "sleep")
		}
	}
	if !child.Alive() {
		t.Fatal("the child did not start")
	}
	if err := r.Stop(t.Context(), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if !child.gone(t.Context(), 5*time.Second) {
		t.Error("the child still runs")
	}
}
