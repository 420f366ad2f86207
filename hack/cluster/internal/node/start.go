//go:build unix

package node

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcptest/mcptest-operator/hack/cluster/internal/proc"
)

// problem is why a container cannot be started, in the kubelet's terms. It is tried again until it is gone.
type problem struct {
	reason, message string
	// passing says that the cause goes away by itself in a moment: the API server learns a little later than the
	// node which objects the node may read. It is reported only when it stays.
	passing bool
}

// exit is the end of a container's process.
type exit struct {
	container *container
	state     *os.ProcessState
}

// start starts a container's process. The container's state says that it runs when there is no problem.
func (w *worker) start(ctx context.Context, c *container) *problem {
	image, p := w.image(c.spec)
	if p != nil {
		return p
	}
	vars, err := containerVariables(ctx, w.pod, c.spec, w.agent)
	if err != nil {
		return &problem{reason: "CreateContainerConfigError", message: err.Error(), passing: apierrors.IsForbidden(err)}
	}
	files := containerFiles(filepath.Join(w.dir, c.spec.Name))
	ms, err := containerMounts(c.spec, w.dir, files, vars.expand)
	if err != nil {
		return &problem{reason: "CreateContainerConfigError", message: err.Error()}
	}
	command, err := commandLine(c.spec, image, vars, ms)
	if err != nil {
		return &problem{reason: "CreateContainerError", message: err.Error()}
	}
	log, err := openLog(files)
	if err != nil {
		return &problem{reason: "CreateContainerError", message: err.Error()}
	}
	defer func() { _ = log.Close() }()
	systemVariables(vars, w.pod, image, ms, files)
	cmd := &exec.Cmd{
		Path: command[0], Args: command, Env: vars.environ(ms), Dir: workingDir(c.spec, image, ms, files),
		Stdout: log, Stderr: log,
	}
	w.launch(c, cmd, files)
	return nil
}

// image finds what runs for the container, or says what a kubelet says about an image that it cannot get.
func (w *worker) image(spec *corev1.Container) (Image, *problem) {
	images, err := readImages(w.agent.opts.ClusterDir)
	if err != nil {
		return Image{}, &problem{reason: "ErrImagePull", message: err.Error()}
	}
	if image, ok := findImage(images, spec.Image); ok {
		return image, nil
	}
	const hint = "a process node knows only the images it was given: cluster up --image REF=ROOTFS_DIR"
	if spec.ImagePullPolicy == corev1.PullNever {
		return Image{}, &problem{
			reason:  "ErrImageNeverPull",
			message: fmt.Sprintf("Container image %q is not present with pull policy of Never (%s)", spec.Image, hint),
		}
	}
	return Image{}, &problem{
		reason:  "ImagePullBackOff",
		message: fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", spec.Image, hint),
	}
}

// commandLine is the program's path on this machine with its arguments.
func commandLine(spec *corev1.Container, image Image, vars *variables, ms mounts) ([]string, error) {
	command := spec.Command
	if len(command) == 0 && image.Entrypoint != "" {
		command = []string{image.Entrypoint}
	}
	if len(command) == 0 {
		return nil, errors.New("no command specified: name one in the container, or an entrypoint with --image REF=ROOTFS_DIR,entrypoint=/program")
	}
	line := make([]string, 0, len(command)+len(spec.Args))
	for i, s := range append(append([]string{}, command...), spec.Args...) {
		s = vars.expand(s)
		if i == 0 {
			line = append(line, program(s, image, ms))
			continue
		}
		line = append(line, ms.rewrite(s))
	}
	return line, nil
}

// binDirs is where a container's runtime looks for programs that are named without a folder.
var binDirs = []string{"usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin"}

// program is where a program of the container lies on this machine: in a volume or in the image.
func program(name string, image Image, ms mounts) string {
	if host, ok := ms.host(name); ok {
		return host
	}
	if !strings.Contains(name, "/") {
		for _, dir := range binDirs {
			p := filepath.Join(image.Rootfs, dir, name)
			if info, err := os.Stat(p); err == nil && !info.IsDir() {
				return p
			}
		}
	}
	return filepath.Join(image.Rootfs, filepath.Clean("/"+name))
}

// systemVariables adds what a runtime adds to the environment that the pod specifies. There is no more than that:
// nothing of the node's own environment reaches a container.
func systemVariables(vars *variables, pod *corev1.Pod, image Image, ms mounts, files containerFiles) {
	var path []string
	for _, dir := range binDirs {
		path = append(path, filepath.Join(image.Rootfs, dir))
	}
	vars.setDefault("PATH", strings.Join(path, string(filepath.ListSeparator)))
	vars.setDefault("HOME", files.home())
	hostname := pod.Spec.Hostname
	if hostname == "" {
		hostname = pod.Name
	}
	vars.setDefault("HOSTNAME", hostname)
	tmp := files.tmp()
	if host, ok := ms.host("/tmp"); ok {
		tmp = host
	}
	vars.setDefault("TMPDIR", tmp)
}

func workingDir(spec *corev1.Container, image Image, ms mounts, files containerFiles) string {
	if spec.WorkingDir == "" {
		return files.home()
	}
	if host, ok := ms.host(spec.WorkingDir); ok {
		return host
	}
	return filepath.Join(image.Rootfs, filepath.Clean("/"+spec.WorkingDir))
}

// openLog makes the container's folder and an empty log; the log of the run before is kept once.
func openLog(files containerFiles) (*os.File, error) {
	for _, dir := range []string{files.home(), files.tmp()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if err := os.Rename(files.log(), files.previousLog()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.WriteFile(files.termination(), nil, 0o666); err != nil {
		return nil, err
	}
	return os.OpenFile(files.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

// launch starts the process and takes care that its end is heard of. A program that cannot be started has ended
// with exit code 128, as under a runtime.
func (w *worker) launch(c *container, cmd *exec.Cmd, files containerFiles) {
	if c.started {
		c.restarts++
	}
	id := make([]byte, 32)
	_, _ = rand.Read(id) // crypto/rand does not fail
	c.started, c.waiting, c.id = true, nil, "process://"+hex.EncodeToString(id)
	began := metav1.Now()
	record, err := proc.Start(c.spec.Name, cmd)
	if err != nil {
		w.event(corev1.EventTypeWarning, "Failed", "Error: %v", err)
		c.ended(&corev1.ContainerStateTerminated{
			ExitCode: 128, Reason: "StartError", Message: err.Error(), ContainerID: c.id, StartedAt: began, FinishedAt: metav1.Now(),
		})
		return
	}
	c.running = &corev1.ContainerStateRunning{StartedAt: began}
	if err := errors.Join(record.Write(files.process()), os.WriteFile(files.pid(), []byte(strconv.Itoa(record.PID)+"\n"), 0o600)); err != nil {
		w.log.Error("cannot write the process id", "container", c.spec.Name, "err", err)
	}
	w.processes[c] = record
	w.event(corev1.EventTypeNormal, "Started", "Container started")
	go func() {
		_ = cmd.Wait()
		// What the main process leaves behind ends with it, as the processes of a container do.
		_ = syscall.Kill(-record.PID, syscall.SIGKILL)
		w.exits <- exit{container: c, state: cmd.ProcessState}
	}()
}

// exited notes the end of a process.
func (w *worker) exited(e exit) {
	c := e.container
	files := containerFiles(filepath.Join(w.dir, c.spec.Name))
	delete(w.processes, c)
	_ = os.Remove(files.pid())
	_ = os.Remove(files.process())
	t := &corev1.ContainerStateTerminated{
		ExitCode: exitCode(e.state), Reason: "Completed", ContainerID: c.id, FinishedAt: metav1.Now(),
	}
	if c.running != nil {
		t.StartedAt = c.running.StartedAt
	}
	if t.ExitCode != 0 {
		t.Reason = "Error"
	}
	t.Message = terminationMessage(c.spec, w.dir, files, t.ExitCode)
	c.ended(t)
	w.log.Info("container ended", "container", c.spec.Name, "exitCode", t.ExitCode,
		"after", t.FinishedAt.Sub(t.StartedAt.Time).Round(time.Millisecond))
}

// exitCode is the process's own, or 128 and the number of the signal that ended it.
func exitCode(s *os.ProcessState) int32 {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return int32(128 + ws.Signal())
	}
	return int32(s.ExitCode())
}

const (
	// maxTerminationMessage is the kubelet's limit for one container.
	maxTerminationMessage = 4096
	// maxLogMessage is its limit for a message that is taken from the log, with at most so many lines.
	maxLogMessage, maxLogLines = 2048, 80
)

// terminationMessage is what the container left at terminationMessagePath or, when it failed, left nothing there and
// asked for it, the end of its log.
func terminationMessage(spec *corev1.Container, podDir string, files containerFiles, code int32) string {
	message := readEnd(files.termination(), maxTerminationMessage)
	if message == "" {
		// The path may lie in a volume, and the program may have found it there without being told the path.
		volumes := *spec
		volumes.TerminationMessagePath = ""
		if ms, err := containerMounts(&volumes, podDir, files, func(s string) string { return s }); err == nil {
			if host, ok := ms.host(spec.TerminationMessagePath); ok {
				message = readEnd(host, maxTerminationMessage)
			}
		}
	}
	if message != "" || code == 0 || spec.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		return message
	}
	lines := strings.SplitAfter(readEnd(files.log(), maxLogMessage), "\n")
	return strings.Join(lines[max(0, len(lines)-maxLogLines-1):], "")
}

// readEnd returns the last n bytes of a file, or nothing.
func readEnd(path string, n int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	end, err := f.Seek(0, 2)
	if err != nil {
		return ""
	}
	buf := make([]byte, min(n, end))
	read, _ := f.ReadAt(buf, max(0, end-n))
	return strings.ToValidUTF8(string(buf[:read]), "\uFFFD")
}
