//go:build unix && !linux

package proc

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// startedAt returns when the process started, or "" when there is none or it has ended and waits to be reaped.
func startedAt(pid int) string {
	cmd := exec.Command("ps", "-o", "stat=", "-o", "lstart=", "-p", strconv.Itoa(pid))
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	state, started, ok := strings.Cut(strings.TrimSpace(string(out)), " ")
	if !ok || strings.HasPrefix(state, "Z") {
		return ""
	}
	return strings.TrimSpace(started)
}
