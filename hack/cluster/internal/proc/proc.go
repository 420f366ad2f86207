//go:build unix

// Package proc starts processes that may outlive their starter, remembers which process a pid meant, and stops
// exactly that process: a pid that the system has given to somebody else in the meantime is never signalled.
package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// pollEvery is how often Stop looks whether a process has ended.
const pollEvery = 20 * time.Millisecond

// Record names one process for good. It stays valid after the process ended and its pid was given away.
type Record struct {
	// Name is what the process is called in messages and file names, such as "kube-apiserver".
	Name string `json:"name"`
	// PID is also the id of the process group and session that the process leads.
	PID int `json:"pid"`
	// Started is the moment the process started, in the system's own notation; it tells two users of one pid apart.
	Started string `json:"started"`
	// Command is the program's path, for people who read the file.
	Command string `json:"command"`
}

// Start starts cmd as the leader of a session of its own, so that a signal from the terminal does not reach it, and
// returns its record. The caller either waits for cmd or leaves it to run on.
func Start(name string, cmd *exec.Cmd) (Record, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	if err := cmd.Start(); err != nil {
		return Record{}, fmt.Errorf("start %s: %w", name, err)
	}
	return Record{Name: name, PID: cmd.Process.Pid, Started: startedAt(cmd.Process.Pid), Command: cmd.Path}, nil
}

// Describe returns the record of a process that was started by other means, such as a child in the same session.
func Describe(name string, pid int, command string) Record {
	return Record{Name: name, PID: pid, Started: startedAt(pid), Command: command}
}

// Alive reports whether the recorded process, and not another one with its pid, still runs. A zombie does not run.
func (r Record) Alive() bool {
	return r.PID > 1 && r.Started != "" && startedAt(r.PID) == r.Started
}

// Signal sends sig to the recorded process alone. It is not an error when the process has ended.
func (r Record) Signal(sig syscall.Signal) error {
	if !r.Alive() {
		return nil
	}
	if err := syscall.Kill(r.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %s (pid %d): %w", r.Name, r.PID, err)
	}
	return nil
}

// KillGroup kills the recorded process and what is left of its process group.
func (r Record) KillGroup() {
	if r.leadsGroup() {
		_ = syscall.Kill(-r.PID, syscall.SIGKILL)
	}
	if r.Alive() {
		_ = syscall.Kill(r.PID, syscall.SIGKILL)
	}
}

// leadsGroup reports whether the process runs and has a process group of its own.
func (r Record) leadsGroup() bool {
	if !r.Alive() {
		return false
	}
	group, err := syscall.Getpgid(r.PID)
	return err == nil && group == r.PID
}

// Stop sends SIGTERM to the process, waits up to grace, and kills what is left of it and of the group that it leads.
// It fails only when the process cannot be ended within grace and ten seconds more.
func (r Record) Stop(ctx context.Context, grace time.Duration) error {
	led := r.leadsGroup()
	if err := r.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if r.gone(ctx, grace) {
		if led {
			// What it left behind in its group: the system gives no group's number away while the group has members.
			_ = syscall.Kill(-r.PID, syscall.SIGKILL)
		}
		return nil
	}
	r.KillGroup()
	// The kill has to be waited for even when ctx has ended: what follows may remove the process's files.
	if !r.gone(context.WithoutCancel(ctx), 10*time.Second) {
		return fmt.Errorf("stop %s: pid %d still runs after SIGKILL", r.Name, r.PID)
	}
	return nil
}

// gone waits until the process has ended, at most for d, and reports whether it has.
func (r Record) gone(ctx context.Context, d time.Duration) bool {
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for r.Alive() {
		select {
		case <-ctx.Done():
			return false
		case <-deadline.C:
			return !r.Alive()
		case <-tick.C:
		}
	}
	return true
}

// Write stores the record in a file, replacing what was there in one step.
func (r Record) Write(path string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// Read reads a record. A file that is not there gives a zero record, which is not alive.
func Read(path string) (Record, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, nil
	}
	if err != nil {
		return Record{}, err
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("read process record %s: %w", path, err)
	}
	return r, nil
}

// ReadAll reads every record of a folder, as file name pattern "*.json". Files that hold none are left out.
func ReadAll(pattern string) []Record {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil
	}
	var records []Record
	for _, p := range paths {
		if r, err := Read(p); err == nil && r.PID != 0 {
			records = append(records, r)
		}
	}
	return records
}
