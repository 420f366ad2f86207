// Package imagearchive writes container images as archives that containerd, Docker and Podman can load. It is for
// images that hold a static program or two; it knows no base images.
package imagearchive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Image describes an image of one layer.
type Image struct {
	// Ref is its full name, such as docker.io/library/pause:1.
	Ref string
	// Rootfs is the folder whose content becomes the image's root. Links in it are kept, owners are not: all belongs to root.
	Rootfs string
	// Entrypoint is what a container runs that names no command; User is who runs it, such as "65532".
	Entrypoint []string
	User       string
}

// epoch is the time of everything in an archive, so that the same content gives the same image.
var epoch = time.Unix(0, 0).UTC()

// config is the part of an image's configuration that matters here (OCI image-spec, config.md).
type config struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Config       struct {
		User       string   `json:"User,omitempty"`
		Entrypoint []string `json:"Entrypoint,omitempty"`
		WorkingDir string   `json:"WorkingDir"`
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// manifest is an entry of manifest.json in the archive format of `docker save`.
type manifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// Write writes the archive to out. The layer is held in memory while it is written.
func Write(out io.Writer, image Image) error {
	layer, err := layerOf(image.Rootfs)
	if err != nil {
		return fmt.Errorf("pack %s: %w", image.Rootfs, err)
	}
	diffID := digest(layer)
	c := config{Architecture: runtime.GOARCH, OS: "linux"}
	c.Config.User, c.Config.Entrypoint, c.Config.WorkingDir = image.User, image.Entrypoint, "/"
	c.RootFS.Type, c.RootFS.DiffIDs = "layers", []string{"sha256:" + diffID}
	configJSON, err := json.Marshal(c)
	if err != nil {
		return err
	}
	m := manifest{Config: digest(configJSON) + ".json", RepoTags: []string{image.Ref}, Layers: []string{diffID + "/layer.tar"}}
	manifestJSON, err := json.Marshal([]manifest{m})
	if err != nil {
		return err
	}
	w := tar.NewWriter(out)
	for _, f := range []struct {
		name string
		data []byte
	}{{m.Layers[0], layer}, {m.Config, configJSON}, {"manifest.json", manifestJSON}} {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.data)), ModTime: epoch}); err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	return w.Close()
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// layerOf packs a folder.
func layerOf(dir string) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return addEntry(w, filepath.ToSlash(rel), path, e)
	})
	if err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func addEntry(w *tar.Writer, name, path string, e fs.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	*h = tar.Header{Typeflag: h.Typeflag, Name: name, Linkname: h.Linkname, Size: h.Size, Mode: h.Mode, ModTime: epoch}
	if info.IsDir() {
		h.Name = strings.TrimSuffix(name, "/") + "/"
	}
	if err := w.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = io.Copy(w, f)
	return err
}
