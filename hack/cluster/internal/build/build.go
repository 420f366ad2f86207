//go:build unix

// Package build compiles the parts of a Kubernetes cluster from the Go module proxy. Versions are those of the
// go.mod beside it; nothing else is downloaded from anywhere.
package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/mcptest/mcptest-operator/hack/cluster/internal/proc"
)

// Component is one program of a cluster.
type Component struct {
	// Name is the file name of the binary.
	Name string
	// Package is what `go build` is given, and Module the folder (under the module's own) to run it in.
	Package, Module string
	// FirstTime says how long the build takes from an empty cache on a machine of two cores, for people who wait.
	FirstTime string
}

const k8s = "k8s.io/kubernetes/cmd/"

// ControlPlane returns what every cluster needs.
func ControlPlane() []Component {
	return []Component{
		{Name: "etcd", Package: "./cmd/etcd", FirstTime: "about 1 min"},
		{Name: "kube-apiserver", Package: k8s + "kube-apiserver", FirstTime: "about 3 min"},
		{Name: "kube-controller-manager", Package: k8s + "kube-controller-manager", FirstTime: "about 1 min"},
		{Name: "kube-scheduler", Package: k8s + "kube-scheduler", FirstTime: "seconds"},
		{Name: "kubectl", Package: k8s + "kubectl", FirstTime: "about 30 s"},
	}
}

// RealNode returns what a node with a kubelet and a container runtime needs in addition.
func RealNode() []Component {
	return []Component{
		{Name: "kubelet", Package: k8s + "kubelet", FirstTime: "about 30 s"},
		{Name: "kube-proxy", Package: k8s + "kube-proxy", FirstTime: "seconds"},
		{Name: "pause", Package: "./cmd/pause", FirstTime: "seconds"},
		{Name: "coredns", Package: "./", Module: "coredns", FirstTime: "about 1 min"},
	}
}

// Builder builds components into one folder.
type Builder struct {
	// Source is the folder of the module that names the versions (hack/cluster).
	Source string
	// BinDir is where the binaries go; the name of the Kubernetes version is usually its last element.
	BinDir string
	// Versions are those of the go.mod of Source.
	Versions Versions
	// Progress says what is being built; nil discards it.
	Progress *Progress
}

// Versions are what a cluster consists of, such as v1.36.3 and v3.6.8.
type Versions struct{ Kubernetes, Etcd string }

// ReadVersions reads the versions from the text of a go.mod.
func ReadVersions(gomod []byte) (Versions, error) {
	f, err := modfile.ParseLax("go.mod", gomod, nil)
	if err != nil {
		return Versions{}, err
	}
	var v Versions
	for _, r := range f.Require {
		switch r.Mod.Path {
		case "k8s.io/kubernetes":
			v.Kubernetes = r.Mod.Version
		case "go.etcd.io/etcd/server/v3":
			v.Etcd = r.Mod.Version
		}
	}
	if v.Kubernetes == "" || v.Etcd == "" {
		return Versions{}, errors.New("go.mod does not require both k8s.io/kubernetes and go.etcd.io/etcd/server/v3")
	}
	return v, nil
}

// Build builds the components that are not there yet. Several callers at once wait for each other and build once.
//
// A binary is kept while its stamp names the same module versions, Go version and platform. A binary without a stamp
// was put there by a person, and is used as it is.
func (b *Builder) Build(ctx context.Context, components []Component) error {
	stamps, err := b.stamps(ctx, components)
	if err != nil {
		return err
	}
	if len(b.missing(components, stamps)) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(b.BinDir, stampDir), 0o755); err != nil {
		return err
	}
	release, err := proc.Lock(ctx, filepath.Join(b.BinDir, stampDir, "lock"), func() {
		b.Progress.Note("another process builds the components, waiting for it")
	})
	if err != nil {
		return err
	}
	defer release()
	todo := b.missing(components, stamps) // the one that held the lock may have built them
	for i, c := range todo {
		done := b.Progress.Begin(fmt.Sprintf("building %s (%d/%d, %s the first time)", c.Name, i+1, len(todo), c.FirstTime))
		err := b.build(ctx, c, stamps[c.Name])
		done(err)
		if err != nil {
			return err
		}
	}
	return nil
}

const stampDir = ".stamps"

// missing returns the components that have to be built.
func (b *Builder) missing(components []Component, stamps map[string]string) []Component {
	var todo []Component
	for _, c := range components {
		_, binErr := os.Stat(filepath.Join(b.BinDir, c.Name))
		have, stampErr := os.ReadFile(filepath.Join(b.BinDir, stampDir, c.Name))
		if binErr == nil && (errors.Is(stampErr, os.ErrNotExist) || string(have) == stamps[c.Name]) {
			continue
		}
		todo = append(todo, c)
	}
	return todo
}

// stamps describes, by component, everything that its binary depends on.
func (b *Builder) stamps(ctx context.Context, components []Component) (map[string]string, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	cmd.Dir = b.Source
	version, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ask the go command for its version (is Go installed and on PATH?): %w", err)
	}
	stamps := map[string]string{}
	for _, c := range components {
		sources, err := b.sources(c)
		if err != nil {
			return nil, err
		}
		stamps[c.Name] = fmt.Sprintf("kubernetes %s etcd %s %s %s/%s%s\n", b.Versions.Kubernetes, b.Versions.Etcd,
			strings.TrimSpace(string(version)), runtime.GOOS, runtime.GOARCH, sources)
	}
	return stamps, nil
}

// sources returns a digest of a component's own files, when it is not a package of another module.
func (b *Builder) sources(c Component) (string, error) {
	if !strings.HasPrefix(c.Package, "./") {
		return "", nil
	}
	dir := filepath.Join(b.Source, c.Module, c.Package)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(h, "%s %d\n", e.Name(), len(data))
		_, _ = h.Write(data)
	}
	return fmt.Sprintf(" %x", h.Sum(nil)[:8]), nil
}

// build compiles one component and puts it in its place in one step.
func (b *Builder) build(ctx context.Context, c Component, stamp string) error {
	out := filepath.Join(b.BinDir, c.Name)
	tmp := filepath.Join(b.BinDir, stampDir, c.Name+".new")
	defer func() { _ = os.Remove(tmp) }()
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", b.ldflags(), "-o", tmp, c.Package)
	cmd.Dir = filepath.Join(b.Source, c.Module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("build %s: %w", c.Name, context.Cause(ctx))
		}
		return fmt.Errorf("build %s: %w\n%s", c.Name, err, lastLines(output.String(), 20))
	}
	if err := os.Rename(tmp, out); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.BinDir, stampDir, c.Name), []byte(stamp), 0o644)
}

// ldflags makes the binaries smaller and lets them report their version.
func (b *Builder) ldflags() string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(b.Versions.Kubernetes, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	const pkg = "k8s.io/component-base/version."
	return fmt.Sprintf("-s -w -X %sgitVersion=%s -X %sgitMajor=%s -X %sgitMinor=%s", pkg, b.Versions.Kubernetes, pkg, major, pkg, minor)
}

// lastLines returns the last n lines of s.
func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
