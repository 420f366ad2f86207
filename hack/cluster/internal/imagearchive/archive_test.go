package imagearchive

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func files(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	got := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = data
	}
}

func TestAnArchiveHoldsTheRootAndSaysHowToRunIt(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "app"), []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	image := Image{Ref: "example.com/app:1", Rootfs: dir, Entrypoint: []string{"/bin/app"}, User: "65532"}
	var first, second bytes.Buffer
	if err := Write(&first, image); err != nil {
		t.Fatal(err)
	}
	if err := Write(&second, image); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same content gave two different archives")
	}
	archive := files(t, first.Bytes())
	var ms []manifest
	if err := json.Unmarshal(archive["manifest.json"], &ms); err != nil || len(ms) != 1 {
		t.Fatalf("manifest.json: %v, %d entries", err, len(ms))
	}
	if diff := cmp.Diff([]string{image.Ref}, ms[0].RepoTags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	var c config
	if err := json.Unmarshal(archive[ms[0].Config], &c); err != nil {
		t.Fatal(err)
	}
	layer := archive[ms[0].Layers[0]]
	if want := []string{"sha256:" + digest(layer)}; !cmp.Equal(want, c.RootFS.DiffIDs) || c.Config.User != "65532" || !cmp.Equal(c.Config.Entrypoint, image.Entrypoint) {
		t.Errorf("configuration %+v does not describe the image", c)
	}
	if got := string(files(t, layer)["bin/app"]); got != "program" {
		t.Errorf("/bin/app holds %q", got)
	}
}
