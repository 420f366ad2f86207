//go:build unix

package cluster

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	cri "k8s.io/cri-client/pkg"

	"github.com/mcptest/mcptest-operator/hack/cluster/internal/proc"
)

// sandboxTimeout bounds the removal of all pods.
const sandboxTimeout = 60 * time.Second

// stopContainerdNode undoes startContainerdNode and prepareContainerd, as far as either got: pods with their networks
// and mounts, programs, rules, the bridge, folders.
func stopContainerdNode(ctx context.Context, d Dir, stop func(string, time.Duration) error) error {
	s, err := d.ReadState()
	if errors.Is(err, fs.ErrNotExist) || err == nil && (s.Node != ContainerdNode || s.Subnet == 0) {
		return nil
	}
	if err != nil {
		return err
	}
	n := realNode{dir: d, binDir: s.BinDir, name: s.NodeName, subnet: s.Subnet}
	errs := []error{stop("kubelet", stopGrace), stop("kube-proxy", stopGrace), stop("coredns", stopGrace)}
	if r, err := proc.Read(d.Path("run", "containerd.json")); err == nil && r.Alive() {
		if err := n.removeSandboxes(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	errs = append(errs, stop("containerd", nodeGrace))
	n.killRest()
	errs = append(errs, n.unmount(), n.removeRules(ctx))
	if _, err := net.InterfaceByName(n.bridge()); err == nil {
		errs = append(errs, runTool(ctx, "ip", "link", "del", n.bridge()))
	}
	n.removeCgroup()
	n.removeLogLinks()
	errs = append(errs, os.RemoveAll(n.data()), os.RemoveAll(n.run()))
	_ = os.Remove(dataRoot) // when empty
	return errors.Join(errs...)
}

// removeSandboxes stops and removes all pods through the interface that the kubelet uses, which takes their network
// down too.
func (n realNode) removeSandboxes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sandboxTimeout)
	defer cancel()
	service, err := cri.NewRemoteRuntimeService(ctx, "unix://"+n.socket(), 15*time.Second, nil, false)
	if err != nil {
		return err
	}
	sandboxes, err := service.ListPodSandbox(ctx, &runtimeapi.PodSandboxFilter{})
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range sandboxes {
		if err := service.StopPodSandbox(ctx, s.Id); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, service.RemovePodSandbox(ctx, s.Id))
	}
	return errors.Join(errs...)
}

// killRest kills what a containerd that died by itself left behind: the shims that belong to its socket and the
// processes in the pods' control group.
func (n realNode) killRest() {
	procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return
	}
	for _, file := range procs {
		line, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(line), "containerd-shim") || !strings.Contains(string(line), "\x00"+n.socket()+"\x00") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	n.eachCgroup(func(dir string) {
		data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			return
		}
		for _, field := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
}

// unmount unmounts everything under the node's folders, the deepest first.
func (n realNode) unmount() error {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	var points []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 1 && (strings.HasPrefix(fields[1], n.run()+"/") || strings.HasPrefix(fields[1], n.data()+"/")) {
			points = append(points, strings.ReplaceAll(fields[1], `\040`, " "))
		}
	}
	sort.Sort(sort.Reverse(sort.StringSlice(points)))
	var errs []error
	for _, p := range points {
		errs = append(errs, unmountLazily(p))
	}
	return errors.Join(errs...)
}

// removeRules deletes what kube-proxy told the kernel: two tables, which may not be there. The kubelet is configured to
// make no rules, and the network plugins removed theirs with the pods.
func (n realNode) removeRules(ctx context.Context) error {
	for _, family := range []string{"ip", "ip6"} {
		if runTool(ctx, "nft", "list", "table", family, "kube-proxy") == nil {
			if err := runTool(ctx, "nft", "delete", "table", family, "kube-proxy"); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeCgroup makes the control group that the kubelet is told to use, in every hierarchy there is.
func (n realNode) makeCgroup() error {
	for _, root := range cgroupRoots() {
		if err := os.MkdirAll(filepath.Join(root, n.cgroup()), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// cgroupRoots are the mounted hierarchies: one with cgroup v2, one a controller with cgroup v1.
func cgroupRoots() []string {
	const root = "/sys/fs/cgroup"
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		return []string{root}
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil
	}
	var roots []string
	for _, e := range entries {
		if e.IsDir() {
			roots = append(roots, filepath.Join(root, e.Name()))
		}
	}
	return roots
}

// eachCgroup visits the cluster's control groups, the deepest first.
func (n realNode) eachCgroup(visit func(dir string)) {
	for _, root := range cgroupRoots() {
		var dirs []string
		_ = filepath.WalkDir(filepath.Join(root, n.cgroup()), func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				dirs = append(dirs, path)
			}
			return nil // a group that went while we looked is what we want
		})
		for i := len(dirs) - 1; i >= 0; i-- {
			visit(dirs[i])
		}
	}
}

// removeCgroup removes the control groups. Killed processes leave theirs a moment later, hence the attempts.
func (n realNode) removeCgroup() {
	for range 20 {
		left := 0
		n.eachCgroup(func(dir string) {
			if err := syscall.Rmdir(dir); err != nil {
				left++
			}
		})
		if left == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// removeLogLinks removes the links to the pods' logs that a kubelet makes in a fixed place.
func (n realNode) removeLogLinks() {
	links, err := filepath.Glob("/var/log/containers/*.log")
	if err != nil {
		return
	}
	for _, l := range links {
		if target, err := os.Readlink(l); err == nil && strings.HasPrefix(target, n.data()+"/") {
			_ = os.Remove(l)
		}
	}
}
