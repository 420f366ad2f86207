//go:build unix

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/mcptest/mcptest-operator/hack/cluster/internal/build"
	"github.com/mcptest/mcptest-operator/hack/cluster/internal/node"
	"github.com/mcptest/mcptest-operator/hack/cluster/internal/proc"
)

// Options describe the cluster that Up makes.
type Options struct {
	// Root is the folder that clusters live in, and Name the cluster's name.
	Root, Name string
	// Node is the kind of its only node.
	Node NodeKind
	// BinDir holds the components, and Version is theirs.
	BinDir, Version string
	// Images are what a process node can run, by reference. They are added to those the cluster has.
	Images map[string]node.Image
	// Self is the path of this tool, which runs the process node.
	Self string
	// Timeout bounds the whole start; zero means two minutes.
	Timeout time.Duration
	// Progress says what is going on.
	Progress *build.Progress
}

// portRetries is how often a start is tried with new ports after somebody else took one first.
const portRetries = 5

// errPortTaken says that a port was free when it was chosen and taken when it was needed.
var errPortTaken = errors.New("address already in use")

// Up starts a cluster, or what is missing of one, and waits until pods can run in it. It does nothing but add images
// when all of it runs. Two calls for one cluster wait for each other.
func Up(ctx context.Context, o Options) (Dir, error) {
	if err := CheckName(o.Name); err != nil {
		return "", err
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout,
		fmt.Errorf("the cluster was not ready within %s", o.Timeout))
	defer cancel()
	d := In(o.Root, o.Name)
	release, err := proc.Lock(ctx, d.lock(), func() {
		o.Progress.Note("cluster %s is being started or stopped by another process, waiting for it", o.Name)
	})
	if err != nil {
		return "", err
	}
	defer release()
	s, err := d.ReadState()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s = State{Name: o.Name, Node: o.Node, BinDir: o.BinDir, Version: o.Version}
	case err != nil:
		return "", err
	case s.Node != o.Node:
		return "", fmt.Errorf("cluster %s has a %s node, not %s: stop it first with `cluster down --name %s`", o.Name, s.Node, o.Node, o.Name)
	}
	done := o.Progress.Begin(fmt.Sprintf("starting cluster %s (Kubernetes %s, node: %s)", o.Name, s.Version, s.Node))
	err = start(ctx, d, &s, o)
	done(err)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return d, err
}

// start brings up what does not run.
func start(ctx context.Context, d Dir, s *State, o Options) error {
	for _, sub := range []string{"logs", "run", "pods"} {
		if err := os.MkdirAll(d.Path(sub), 0o700); err != nil {
			return err
		}
	}
	if err := node.AddImages(string(d), o.Images); err != nil {
		return err
	}
	p, err := openPKI(d)
	if err != nil {
		return err
	}
	for range portRetries {
		err = startOnce(ctx, d, s, o, p)
		if !errors.Is(err, errPortTaken) {
			return err
		}
		if stopErr := stopProcesses(ctx, d); stopErr != nil {
			return errors.Join(err, stopErr)
		}
		s.Ports = Ports{}
	}
	return fmt.Errorf("no free ports after %d attempts: %w", portRetries, err)
}

// startOnce starts what does not run with one choice of ports.
func startOnce(ctx context.Context, d Dir, s *State, o Options, p *pki) error {
	l := &launcher{dir: d, exited: make(chan string, 16)}
	host := "127.0.0.1"
	if s.Node == ContainerdNode {
		var err error
		if host, err = prepareContainerd(ctx, d, s); err != nil {
			return err
		}
	}
	if s.Ports == (Ports{}) {
		var err error
		if s.Ports, err = choosePorts(host); err != nil {
			return err
		}
	}
	c := plan{dir: d, binDir: s.BinDir, host: host, endpoints: s.Node == ContainerdNode, ports: s.Ports}
	if s.Server == c.server() && l.running("etcd") && l.running("kube-apiserver") {
		return startRest(ctx, l, c, s, o, p)
	}
	if err := l.stop(ctx, "kube-apiserver", "etcd"); err != nil {
		return err
	}
	s.Server = c.server()
	for _, id := range c.identities() {
		if err := p.issue(id); err != nil {
			return err
		}
	}
	for path, id := range map[string]identity{
		d.Kubeconfig(): {file: "admin", user: "admin", groups: []string{"system:masters"}},
		d.Path("pki", "kube-controller-manager.kubeconfig"): {file: "kube-controller-manager", user: "system:kube-controller-manager"},
		d.Path("pki", "kube-scheduler.kubeconfig"):          {file: "kube-scheduler", user: "system:kube-scheduler"},
	} {
		if err := p.kubeconfig(path, s.Server, id); err != nil {
			return err
		}
	}
	if err := d.writeState(*s); err != nil {
		return err
	}
	if err := l.start(c.etcd()); err != nil {
		return err
	}
	if err := l.start(c.apiserver()); err != nil {
		return err
	}
	return startRest(ctx, l, c, s, o, p)
}

// startRest waits for the API server and starts everything that talks to it.
func startRest(ctx context.Context, l *launcher, c plan, s *State, o Options, p *pki) error {
	client, err := Client(l.dir)
	if err != nil {
		return err
	}
	if err := l.until(ctx, "the API server to be ready", apiReady(client)); err != nil {
		return err
	}
	for _, cmd := range []command{c.controllerManager(), c.scheduler()} {
		if err := l.start(cmd); err != nil {
			return err
		}
	}
	switch s.Node {
	case ProcessNode:
		s.NodeName = s.Name + "-node"
		err = startProcessNode(l, c, s, o, p)
	case ContainerdNode:
		s.NodeName = s.Name + "-node"
		err = startContainerdNode(ctx, l, c, s, p)
	}
	if err != nil {
		return err
	}
	if err := l.dir.writeState(*s); err != nil {
		return err
	}
	if err := l.until(ctx, "the default service account", defaultServiceAccount(client)); err != nil {
		return err
	}
	if s.NodeName == "" {
		return nil
	}
	return l.until(ctx, "node "+s.NodeName+" to be ready", nodeReady(client, s.NodeName))
}

// startProcessNode runs this tool once more, as the node's agent.
func startProcessNode(l *launcher, c plan, s *State, o Options, p *pki) error {
	if l.running("node") {
		return nil
	}
	id := nodeIdentity(s.NodeName, c.host)
	if err := p.kubeconfig(l.dir.Path("pki", "node.kubeconfig"), s.Server, id); err != nil {
		return err
	}
	return l.start(command{name: "node", path: o.Self, args: []string{"node", "--dir", string(l.dir), "--node-name", s.NodeName}})
}

// choosePorts finds three free ports. All are held until the last is found, so that they differ.
func choosePorts(apiHost string) (Ports, error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	free := func(host string) (int, error) {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		held = append(held, l)
		return l.Addr().(*net.TCPAddr).Port, nil
	}
	var p Ports
	var errs [3]error
	p.EtcdClient, errs[0] = free("127.0.0.1")
	p.EtcdPeer, errs[1] = free("127.0.0.1")
	p.API, errs[2] = free(apiHost)
	return p, errors.Join(errs[:]...)
}

// launcher starts components and notices when one of them ends.
type launcher struct {
	dir Dir
	// exited receives the name of each component that was started here and ended.
	exited chan string
}

func (l *launcher) record(name string) string { return l.dir.Path("run", name+".json") }

// running reports whether the component runs, whoever started it.
func (l *launcher) running(name string) bool {
	r, err := proc.Read(l.record(name))
	return err == nil && r.Alive()
}

// start starts a component that does not run yet, with its output in its log.
func (l *launcher) start(c command) error {
	if l.running(c.name) {
		return nil
	}
	log, err := os.OpenFile(l.dir.Log(c.name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(c.path, c.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = string(l.dir), log, log
	cmd.Env = append(os.Environ(), c.env...)
	r, err := proc.Start(c.name, cmd)
	if err != nil {
		return err
	}
	go func() {
		_ = cmd.Wait()
		select {
		case l.exited <- c.name:
		default: // nobody waits any more
		}
	}()
	return r.Write(l.record(c.name))
}

// stop ends components in the order given.
func (l *launcher) stop(ctx context.Context, names ...string) error {
	for _, name := range names {
		r, err := proc.Read(l.record(name))
		if err != nil {
			return err
		}
		if err := r.Stop(ctx, stopGrace); err != nil {
			return err
		}
	}
	return nil
}

// until polls ready until it returns nil. It fails early when a component ends, and shows that component's last words.
func (l *launcher) until(ctx context.Context, what string, ready func(context.Context) error) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := ready(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case name := <-l.exited:
			return l.died(name)
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w%s", what, err, l.lastWords())
		case <-tick.C:
		}
	}
}

// died explains why a component ended.
func (l *launcher) died(name string) error {
	words := tail(l.dir.Log(name), 15)
	if strings.Contains(words, errPortTaken.Error()) {
		return fmt.Errorf("%s: %w", name, errPortTaken)
	}
	return fmt.Errorf("%s ended; the end of its log %s:\n%s", name, l.dir.Log(name), words)
}

// lastWords returns the end of each log, for a start that took too long.
func (l *launcher) lastWords() string {
	var b strings.Builder
	for _, r := range proc.ReadAll(l.dir.Path("run", "*.json")) {
		state := "runs"
		if !r.Alive() {
			state = "ended"
		}
		_, _ = fmt.Fprintf(&b, "\n--- %s (%s), %s\n%s", r.Name, state, l.dir.Log(r.Name), tail(l.dir.Log(r.Name), 5))
	}
	return b.String()
}

// tail returns the last lines of a file, of at most 16 KiB.
func tail(path string, lines int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	const limit = 16 << 10
	if end, err := f.Seek(0, 2); err == nil {
		_, _ = f.Seek(max(0, end-limit), 0)
	}
	buf := make([]byte, limit)
	n, _ := f.Read(buf)
	all := strings.Split(strings.TrimRight(string(buf[:n]), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
