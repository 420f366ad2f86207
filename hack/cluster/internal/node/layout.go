//go:build unix

package node

import (
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/mcptest/mcptest-operator/hack/cluster/internal/proc"
)

// maxFileName is the longest name of a file on the systems that this runs on.
const maxFileName = 255

// podDir is the folder of a pod: PODS/NAMESPACE_NAME_UID. A name that makes it too long for a file name is cut.
func podDir(pods string, pod *corev1.Pod) string {
	name := pod.Name
	if over := len(pod.Namespace) + len(name) + len(pod.UID) + 2 - maxFileName; over > 0 {
		name = name[:len(name)-over]
	}
	return filepath.Join(pods, pod.Namespace+"_"+name+"_"+string(pod.UID))
}

// containerFiles are the files of one container, in POD_DIR/CONTAINER.
type containerFiles string

func (f containerFiles) path(name string) string { return filepath.Join(string(f), name) }

// pid holds the process id while the container runs, and only then.
func (f containerFiles) pid() string { return f.path("pid") }

// process is the record of the process, for whoever has to stop it without knowing its pod.
func (f containerFiles) process() string { return f.path("process.json") }

// log holds what the container wrote to standard output and standard error; previousLog that of the run before.
func (f containerFiles) log() string         { return f.path("log") }
func (f containerFiles) previousLog() string { return f.path("log.previous") }

// termination is the file that stands for terminationMessagePath.
func (f containerFiles) termination() string { return f.path("termination-log") }

func (f containerFiles) home() string { return f.path("home") }
func (f containerFiles) tmp() string  { return f.path("tmp") }

// volumeDir is the folder of a volume. Its parent cannot be a container's: names of containers begin with a letter or digit.
func volumeDir(podDir, volume string) string { return filepath.Join(podDir, ".volumes", volume) }

// KillLeftovers kills the processes of all pods under a folder: those of an agent that is gone.
func KillLeftovers(pods string) {
	for _, r := range proc.ReadAll(filepath.Join(pods, "*", "*", "process.json")) {
		r.KillGroup()
	}
	stale, err := filepath.Glob(filepath.Join(pods, "*", "*", "pid"))
	if err != nil {
		return
	}
	for _, f := range stale {
		_ = os.Remove(f)
	}
}
