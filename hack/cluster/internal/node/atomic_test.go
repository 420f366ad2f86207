//go:build unix

package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// content reads a volume as a program does, through its links.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name()[0] == '.' {
			continue
		}
		root := filepath.Join(dir, e.Name())
		resolved, err := filepath.EvalSymlinks(root)
		if err != nil {
			t.Fatal(err)
		}
		err = filepath.WalkDir(resolved, func(p string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, _ := filepath.Rel(resolved, p)
			data, err := os.ReadFile(p)
			got[filepath.Join(e.Name(), rel)] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return got
}

func TestAVolumeHoldsExactlyItsFilesAfterEveryChange(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "v")
	for _, want := range []map[string]string{
		{"a": "1", "deep/er/b": "2"},
		{"a": "1", "deep/er/b": "changed", "deep/c": "3"},
		{"d": "4"},
		{},
	} {
		p := payload{}
		for name, data := range want {
			p[name] = file{data: []byte(data), mode: 0o440}
		}
		if err := writeVolume(dir, p); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, content(t, dir)); diff != "" {
			t.Errorf("volume (-want +got):\n%s", diff)
		}
		before, err := os.Readlink(filepath.Join(dir, dataLink))
		if err != nil {
			t.Fatal(err)
		}
		if err := writeVolume(dir, p); err != nil {
			t.Fatal(err)
		}
		if after, _ := os.Readlink(filepath.Join(dir, dataLink)); after != before {
			t.Error("the same files were written again")
		}
	}
	if err := writeVolume(dir, payload{"../x": {}}); err == nil {
		t.Error("a path that leads out of the volume was accepted")
	}
}
