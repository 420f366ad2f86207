//go:build unix

package build

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestVersionsComeFromTheModule(t *testing.T) {
	gomod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	v, err := ReadVersions(gomod)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(v.Kubernetes, "v1.") || !strings.HasPrefix(v.Etcd, "v3.") {
		t.Errorf("got %+v", v)
	}
	if _, err := ReadVersions([]byte("module x\n")); err == nil {
		t.Error("a module without Kubernetes was accepted")
	}
}

// tiny is a module with one program, and what builds it.
func tiny(t *testing.T) (*Builder, []Component, func(source string)) {
	t.Helper()
	source := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/tiny\n\ngo 1.26\n")
	set := func(program string) { write("main.go", program) }
	set("package main\n\nfunc main() {}\n")
	b := &Builder{Source: source, BinDir: filepath.Join(t.TempDir(), "bin"), Versions: Versions{Kubernetes: "v1.2.3", Etcd: "v3.0.0"}}
	return b, []Component{{Name: "tiny", Package: "./", FirstTime: "seconds"}}, set
}

func TestAComponentIsBuiltOnceUntilSomethingChanges(t *testing.T) {
	b, components, set := tiny(t)
	var out bytes.Buffer
	b.Progress = NewProgress(&out)
	built := func(what string) bool {
		t.Helper()
		out.Reset()
		if err := b.Build(t.Context(), components); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return strings.Contains(out.String(), "building tiny (1/1, seconds the first time) ... done in")
	}
	got := map[string]bool{"first": built("first"), "again": built("again")}
	set("package main\n\nfunc main() { println() }\n")
	got["changed source"] = built("changed source")
	b.Versions.Kubernetes = "v1.2.4"
	got["changed version"] = built("changed version")
	if err := os.WriteFile(filepath.Join(b.BinDir, "tiny"), []byte("a person's own"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(b.BinDir, stampDir, "tiny")); err != nil {
		t.Fatal(err)
	}
	got["without a stamp"] = built("without a stamp")
	want := map[string]bool{"first": true, "again": false, "changed source": true, "changed version": true, "without a stamp": false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("builds (-want +got):\n%s", diff)
	}
}

func TestParallelCallersBuildOnce(t *testing.T) {
	b, components, _ := tiny(t)
	var mu sync.Mutex
	var out bytes.Buffer
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var own bytes.Buffer
			each := *b
			each.Progress = NewProgress(&own)
			err := each.Build(t.Context(), components)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			out.Write(own.Bytes())
		})
	}
	wg.Wait()
	if got := strings.Count(out.String(), "done in"); got != 1 {
		t.Errorf("built %d times, want once:\n%s", got, out.String())
	}
}

func TestACompilersComplaintIsShown(t *testing.T) {
	b, components, set := tiny(t)
	set("package main\n\nfunc main() { undefined() }\n")
	err := b.Build(t.Context(), components)
	if err == nil || !strings.Contains(err.Error(), "build tiny") || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(b.BinDir, "tiny")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a failed build left a binary: %v", err)
	}
}

func TestALongStepShowsThatItIsAlive(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	p := NewProgress(writer)
	p.every = time.Millisecond
	done := p.Begin("building x")
	seen, buf := "", make([]byte, 256)
	for strings.Count(seen, "building x ... 0s") < 2 {
		n, err := reader.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		seen += string(buf[:n])
	}
	done(nil)
	_ = writer.Close()
}
