//go:build unix

package node

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// dataLink is the link that all files of a volume are reached through. Programs that follow changes of mounted
// files watch it, so it is what a kubelet makes too: the files change all at once, when the link does.
const dataLink = "..data"

// writeVolume makes dir hold exactly the files of p. Readers see the old files or the new ones, never a mixture.
func writeVolume(dir string, p payload) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name := range p {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("the path %q leads out of the volume", name)
		}
	}
	old, _ := os.Readlink(filepath.Join(dir, dataLink))
	if old != "" && same(filepath.Join(dir, old), p) {
		return nil
	}
	fresh, err := os.MkdirTemp(dir, "..data-")
	if err != nil {
		return err
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		return err
	}
	for _, name := range sortedKeys(p) {
		target := filepath.Join(fresh, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, p[name].data, 0o600); err != nil {
			return err
		}
		if err := os.Chmod(target, p[name].mode); err != nil {
			return err
		}
	}
	tmp := filepath.Join(dir, "..data.tmp")
	_ = os.Remove(tmp)
	if err := os.Symlink(filepath.Base(fresh), tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, filepath.Join(dir, dataLink)); err != nil {
		return err
	}
	if err := linkTop(dir, p); err != nil {
		return err
	}
	if old != "" {
		return os.RemoveAll(filepath.Join(dir, old))
	}
	return nil
}

// linkTop makes the first element of every path a link through dataLink, and removes links that lead nowhere now.
func linkTop(dir string, p payload) error {
	want := map[string]bool{}
	for name := range p {
		top, _, _ := strings.Cut(filepath.ToSlash(name), "/")
		want[top] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		if want[e.Name()] {
			delete(want, e.Name())
		} else if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	for top := range want {
		if err := os.Symlink(filepath.Join(dataLink, top), filepath.Join(dir, top)); err != nil {
			return err
		}
	}
	return nil
}

// same reports whether a folder holds exactly the files of p.
func same(dir string, p payload) bool {
	found := 0
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if want, ok := p[filepath.ToSlash(name)]; !ok || !bytes.Equal(want.data, data) {
			return fmt.Errorf("%s differs", name)
		}
		found++
		return nil
	})
	return err == nil && found == len(p)
}
