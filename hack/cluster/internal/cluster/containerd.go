//go:build unix

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/mcptest/mcptest-operator/hack/cluster/internal/imagearchive"
	"github.com/mcptest/mcptest-operator/hack/cluster/internal/proc"
)

// The containerd node keeps what must have short paths (sockets) or a plain file system (layers, volumes) outside the
// cluster's folder. Down removes both.
const (
	runRoot  = "/run/mcptest-cluster"
	dataRoot = "/var/lib/mcptest-cluster"
)

// pauseImage is the image of the process that holds a pod's namespaces.
const pauseImage = "cluster.local/pause:1"

// realNode is where a containerd node has its things.
type realNode struct {
	dir    Dir
	binDir string
	name   string
	subnet int
}

func (n realNode) id() string { return fmt.Sprintf("%s-%d", n.dir.Name(), n.subnet) }
func (n realNode) run(e ...string) string {
	return filepath.Join(append([]string{runRoot, n.id()}, e...)...)
}
func (n realNode) data(e ...string) string {
	return filepath.Join(append([]string{dataRoot, n.id()}, e...)...)
}
func (n realNode) config(e string) string { return n.dir.Path("containerd", e) }
func (n realNode) socket() string         { return n.run("containerd.sock") }

// bridge is the network device that the pods are connected to; 15 characters are the most that Linux allows.
func (n realNode) bridge() string { return fmt.Sprintf("mcptest%d", n.subnet) }

// gateway is the node's address in the pods' network. The API server, the kubelet and the DNS server listen there.
func (n realNode) gateway() string { return fmt.Sprintf("10.%d.0.1", n.subnet) }
func (n realNode) podCIDR() string { return fmt.Sprintf("10.%d.0.0/24", n.subnet) }

// cgroup is the control group that all pods of the cluster live under.
func (n realNode) cgroup() string { return "/mcptest-" + n.id() }

// prepareContainerd installs what is missing, makes the network, and returns the address of the node.
func prepareContainerd(ctx context.Context, d Dir, s *State) (string, error) {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return "", errors.New("a containerd node needs Linux and root: use --node process, which needs neither")
	}
	if err := installRuntime(ctx); err != nil {
		return "", err
	}
	release, err := proc.Lock(ctx, filepath.Join(runRoot, "lock"), nil)
	if err != nil {
		return "", err
	}
	defer release()
	if err := onlyOne(d, s.Subnet); err != nil {
		return "", err
	}
	if s.Subnet == 0 {
		if s.Subnet, err = freeSubnet(); err != nil {
			return "", err
		}
	}
	n := realNode{dir: d, binDir: s.BinDir, name: s.NodeName, subnet: s.Subnet}
	// The subnet is written down before anything is named after it, so that Down finds it all.
	if err := d.writeState(*s); err != nil {
		return "", err
	}
	for _, dir := range []string{n.run(), n.data(), d.Path("containerd")} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return "", err
		}
	}
	return n.gateway(), n.network(ctx)
}

// onlyOne refuses a second containerd node: the rules that lead to Services are the machine's, not a cluster's.
func onlyOne(d Dir, subnet int) error {
	own := fmt.Sprintf("%s-%d", d.Name(), subnet)
	entries, err := os.ReadDir(runRoot)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != own {
			return fmt.Errorf("another containerd node (%s) uses this machine, and there can be only one: stop it with `cluster down`, or remove %s if it is long gone",
				e.Name(), filepath.Join(runRoot, e.Name()))
		}
	}
	return nil
}

// freeSubnet finds a network 10.N.0.0/24 that no device of this machine is in.
func freeSubnet() (int, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return 0, err
	}
	for n := 200; n < 255; n++ {
		_, want, err := net.ParseCIDR(fmt.Sprintf("10.%d.0.0/24", n))
		if err != nil {
			return 0, err
		}
		free := true
		for _, a := range addrs {
			if have, ok := a.(*net.IPNet); ok && (have.Contains(want.IP) || want.Contains(have.IP)) {
				free = false
			}
		}
		if free {
			return n, nil
		}
	}
	return 0, errors.New("no free network among 10.200.0.0/24 to 10.254.0.0/24")
}

// network makes the bridge and lets the kernel forward between pods, Services and the world.
func (n realNode) network(ctx context.Context) error {
	if _, err := net.InterfaceByName(n.bridge()); err != nil {
		if err := runTool(ctx, "ip", "link", "add", n.bridge(), "type", "bridge"); err != nil {
			return err
		}
	}
	if err := runTool(ctx, "ip", "addr", "replace", n.gateway()+"/24", "dev", n.bridge()); err != nil {
		return err
	}
	if err := runTool(ctx, "ip", "link", "set", n.bridge(), "up"); err != nil {
		return err
	}
	_ = runTool(ctx, "modprobe", "br_netfilter") // built in where there is no such module
	// Answers between two pods of this bridge pass the Service rules only with the second setting.
	for file, need := range map[string]string{
		"/proc/sys/net/ipv4/ip_forward":                "the kernel cannot forward packets",
		"/proc/sys/net/bridge/bridge-nf-call-iptables": "the kernel has no br_netfilter",
	} {
		if err := os.WriteFile(file, []byte("1\n"), 0o644); err != nil {
			return fmt.Errorf("%s: %w", need, err)
		}
	}
	return nil
}

// startContainerdNode starts containerd, the DNS server, the kubelet and kube-proxy.
func startContainerdNode(ctx context.Context, l *launcher, c plan, s *State, p *pki) error {
	n := realNode{dir: l.dir, binDir: s.BinDir, name: s.NodeName, subnet: s.Subnet}
	if l.running("containerd") && l.running("coredns") && l.running("kubelet") && l.running("kube-proxy") {
		return nil
	}
	if err := n.writeConfigs(); err != nil {
		return err
	}
	for path, id := range map[string]identity{
		l.dir.Path("pki", "node.kubeconfig"):       nodeIdentity(n.name, n.gateway()),
		l.dir.Path("pki", "kube-proxy.kubeconfig"): {file: "kube-proxy", user: "system:kube-proxy"},
		l.dir.Path("pki", "coredns.kubeconfig"):    {file: "coredns", user: "coredns", groups: []string{"system:masters"}},
	} {
		if err := p.kubeconfig(path, s.Server, id); err != nil {
			return err
		}
	}
	if err := l.start(command{name: "containerd", path: toolPath("containerd"), args: []string{"--config", n.config("containerd.toml")}}); err != nil {
		return err
	}
	if err := l.until(ctx, "containerd", n.containerdReady); err != nil {
		return err
	}
	if err := n.importPause(ctx); err != nil {
		return err
	}
	if err := n.makeCgroup(); err != nil {
		return err
	}
	path := "PATH=/usr/sbin:/usr/bin:/sbin:/bin:" + os.Getenv("PATH")
	for _, cmd := range []command{
		{name: "coredns", path: c.bin("coredns"), args: []string{"-conf", n.config("Corefile")}},
		{name: "kubelet", path: c.bin("kubelet"), env: []string{path}, args: []string{
			"--config=" + n.config("kubelet.yaml"), "--kubeconfig=" + l.dir.Path("pki", "node.kubeconfig"),
			"--hostname-override=" + n.name, "--node-ip=" + n.gateway(), "--root-dir=" + n.data("kubelet"), "--v=1",
		}},
		{name: "kube-proxy", path: c.bin("kube-proxy"), env: []string{path}, args: []string{
			"--config=" + n.config("kube-proxy.yaml"), "--hostname-override=" + n.name,
		}},
	} {
		if err := l.start(cmd); err != nil {
			return err
		}
	}
	return nil
}

// containerdReady asks containerd for its version.
func (n realNode) containerdReady(ctx context.Context) error { return n.ctr(ctx, "version") }

// ctr runs containerd's own client.
func (n realNode) ctr(ctx context.Context, args ...string) error {
	return runTool(ctx, "ctr", append([]string{"--address", n.socket(), "--namespace", "k8s.io"}, args...)...)
}

// importPause makes the pause image from the program that was built with the other components.
func (n realNode) importPause(ctx context.Context) error {
	root, err := os.MkdirTemp(n.run(), "pause-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(root) }()
	program, err := os.ReadFile(filepath.Join(n.binDir, "pause"))
	if err != nil {
		return err
	}
	rootfs := filepath.Join(root, "rootfs")
	if err := os.MkdirAll(rootfs, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(rootfs, "pause"), program, 0o755); err != nil {
		return err
	}
	archive := filepath.Join(root, "pause.tar")
	f, err := os.Create(archive)
	if err != nil {
		return err
	}
	image := imagearchive.Image{Ref: pauseImage, Rootfs: rootfs, Entrypoint: []string{"/pause"}}
	if err := errors.Join(imagearchive.Write(f, image), f.Close()); err != nil {
		return err
	}
	return n.ctr(ctx, "images", "import", archive)
}

// Load imports image archives into a cluster with a containerd node.
func Load(ctx context.Context, d Dir, archives []string) error {
	s, err := d.ReadState()
	if err != nil {
		return fmt.Errorf("there is no cluster %s: %w", d.Name(), err)
	}
	if s.Node != ContainerdNode {
		return fmt.Errorf("cluster %s has a %s node: give it programs with `cluster up --name %s --image REF=ROOTFS_DIR`", d.Name(), s.Node, d.Name())
	}
	n := realNode{dir: d, binDir: s.BinDir, name: s.NodeName, subnet: s.Subnet}
	for _, a := range archives {
		if err := n.ctr(ctx, "images", "import", a); err != nil {
			return err
		}
	}
	return nil
}

// runTool runs a program of the system and shows what it said when it fails.
func runTool(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, toolPath(name), args...)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// toolPath finds a program of the system, also where only root's PATH leads.
func toolPath(name string) string {
	if p, err := exec.LookPath(name); err == nil {
		return p
	}
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/local/bin"} {
		p := filepath.Join(dir, name)
		if info, err := os.Stat(p); err == nil && !info.IsDir() {
			return p
		}
	}
	return name
}
