//go:build unix

package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// Image is what the process node runs for an image reference.
type Image struct {
	// Rootfs is the folder that stands for the image's root: the command /manager runs Rootfs/manager.
	Rootfs string `json:"rootfs"`
	// Entrypoint runs when a container names no command.
	Entrypoint string `json:"entrypoint,omitempty"`
}

// ParseImage reads REF=ROOTFS_DIR[,entrypoint=PATH]. The folder is made absolute, and has to exist.
func ParseImage(s string) (ref string, image Image, err error) {
	ref, rest, ok := strings.Cut(s, "=")
	dir, option, hasOption := strings.Cut(rest, ",")
	if !ok || ref == "" || dir == "" {
		return "", Image{}, fmt.Errorf("image %q: write REF=ROOTFS_DIR or REF=ROOTFS_DIR,entrypoint=/program", s)
	}
	if image.Rootfs, err = filepath.Abs(dir); err != nil {
		return "", Image{}, err
	}
	if info, err := os.Stat(image.Rootfs); err != nil || !info.IsDir() {
		return "", Image{}, fmt.Errorf("image %q: %s is not a folder", s, image.Rootfs)
	}
	if hasOption {
		entrypoint, ok := strings.CutPrefix(option, "entrypoint=")
		if !ok || entrypoint == "" {
			return "", Image{}, fmt.Errorf("image %q: unknown option %q: the only one is entrypoint=/program", s, option)
		}
		image.Entrypoint = entrypoint
	}
	return ref, image, nil
}

// AddImages adds images to those that the node of a cluster knows. A running node takes them from then on.
func AddImages(clusterDir string, add map[string]Image) error {
	images, err := readImages(clusterDir)
	if err != nil {
		return err
	}
	maps.Copy(images, add)
	data, err := json.MarshalIndent(images, "", "  ")
	if err != nil {
		return err
	}
	path := imagesFile(clusterDir)
	if err := os.WriteFile(path+".tmp", append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

func imagesFile(clusterDir string) string { return filepath.Join(clusterDir, "images.json") }

func readImages(clusterDir string) (map[string]Image, error) {
	images := map[string]Image{}
	data, err := os.ReadFile(imagesFile(clusterDir))
	if errors.Is(err, fs.ErrNotExist) {
		return images, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &images); err != nil {
		return nil, fmt.Errorf("read %s: %w", imagesFile(clusterDir), err)
	}
	return images, nil
}

// findImage looks a reference up as it is written, and with the tag that a missing tag means.
func findImage(images map[string]Image, ref string) (Image, bool) {
	if image, ok := images[ref]; ok {
		return image, true
	}
	if short, ok := strings.CutSuffix(ref, ":latest"); ok {
		image, ok := images[short]
		return image, ok
	}
	image, ok := images[ref+":latest"]
	return image, ok
}
