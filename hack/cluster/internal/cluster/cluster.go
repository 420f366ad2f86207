//go:build unix

// Package cluster starts, checks and stops local Kubernetes clusters. Each cluster has a folder of its own that holds
// everything about it, and ports of its own, so that any number of them run beside each other.
//
//	cluster.json        what the cluster is: node kind, addresses, versions
//	kubeconfig          an administrator's access
//	images.json         what the process node can run
//	pki/  etcd/  logs/  certificates, data, one log a component
//	run/                one process record a component
//	pods/               the pods of the process node
//	containerd/         the state of the containerd node
package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"

	"github.com/mcptest/mcptest-operator/hack/cluster/internal/build"
	"github.com/mcptest/mcptest-operator/hack/cluster/internal/proc"
)

// NodeKind says what runs the pods of a cluster.
type NodeKind string

const (
	// ProcessNode runs containers as local processes. It needs neither root nor a container runtime.
	ProcessNode NodeKind = "process"
	// ContainerdNode is a kubelet with containerd and runc. It needs root and Linux.
	ContainerdNode NodeKind = "containerd"
	// NoNode leaves pods pending.
	NoNode NodeKind = "none"
)

// ParseNodeKind reads the value of --node.
func ParseNodeKind(s string) (NodeKind, error) {
	switch k := NodeKind(s); k {
	case ProcessNode, ContainerdNode, NoNode:
		return k, nil
	}
	return "", fmt.Errorf("unknown kind of node %q: write process, containerd or none", s)
}

// Components returns the programs that a cluster with this kind of node consists of.
func (k NodeKind) Components() []build.Component {
	if k == ContainerdNode {
		return append(build.ControlPlane(), build.RealNode()...)
	}
	return build.ControlPlane()
}

// nameRE keeps names short and safe in paths, host names and certificates.
var nameRE = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// CheckName says what is wrong with a cluster's name.
func CheckName(name string) error {
	if !nameRE.MatchString(name) {
		return fmt.Errorf("%q is not a name for a cluster: write 1 to 40 lower-case letters, digits and hyphens", name)
	}
	return nil
}

// Dir is a cluster's folder.
type Dir string

// In returns the folder of a named cluster under root.
func In(root, name string) Dir { return Dir(filepath.Join(root, name)) }

// Path returns a path in the folder.
func (d Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{string(d)}, elem...)...)
}

// Name is the cluster's name, the last element of its folder.
func (d Dir) Name() string { return filepath.Base(string(d)) }

// Kubeconfig is the administrator's kubeconfig.
func (d Dir) Kubeconfig() string { return d.Path("kubeconfig") }

// Log is where a component logs to.
func (d Dir) Log(component string) string { return d.Path("logs", component+".log") }

// lock is the file whose lock is held while the cluster is started or stopped. It stays when the folder is removed.
func (d Dir) lock() string {
	return filepath.Join(filepath.Dir(string(d)), ".locks", d.Name())
}

// State is what cluster.json holds.
type State struct {
	Name    string   `json:"name"`
	Node    NodeKind `json:"node"`
	BinDir  string   `json:"binDir"`
	Version string   `json:"version"`
	// Server is the address of the API server, such as https://127.0.0.1:40123.
	Server string `json:"server"`
	Ports  Ports  `json:"ports"`
	// NodeName is the name of the cluster's only node; empty for NoNode.
	NodeName string `json:"nodeName,omitempty"`
	// Subnet is the number of the pods' network, 10.SUBNET.0.0/24, of a containerd node.
	Subnet int `json:"subnet,omitempty"`
}

// Ports are those that the control plane listens on.
type Ports struct {
	EtcdClient int `json:"etcdClient"`
	EtcdPeer   int `json:"etcdPeer"`
	API        int `json:"api"`
}

// ReadState reads cluster.json. A cluster that does not exist gives fs.ErrNotExist.
func (d Dir) ReadState() (State, error) {
	var s State
	data, err := os.ReadFile(d.Path("cluster.json"))
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("read %s: %w", d.Path("cluster.json"), err)
	}
	return s, nil
}

func (d Dir) writeState(s State) error { return writeJSON(d.Path("cluster.json"), s) }

// Running returns the recorded components that run.
func (d Dir) Running() []proc.Record {
	var alive []proc.Record
	for _, r := range proc.ReadAll(d.Path("run", "*.json")) {
		if r.Alive() {
			alive = append(alive, r)
		}
	}
	return alive
}

// List returns the folders of all clusters under root, by name.
func List(root string) ([]Dir, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var dirs []Dir
	for _, e := range entries {
		if e.IsDir() && nameRE.MatchString(e.Name()) {
			dirs = append(dirs, In(root, e.Name()))
		}
	}
	sort.Slice(dirs, func(i, j int) bool { return dirs[i] < dirs[j] })
	return dirs, nil
}

// writeJSON replaces a file in one step.
func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
