//go:build unix

package node

import (
	"fmt"
	"path"
	"path/filepath"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// mount says which folder or file of this machine stands for a path in a container.
type mount struct{ inside, host string }

// mounts are a container's, the longest path first.
type mounts []mount

// containerMounts lists the mounts of a container, with the file of the termination message among them. expand
// replaces $(VAR) in a subPathExpr.
func containerMounts(c *corev1.Container, podDir string, files containerFiles, expand func(string) string) (mounts, error) {
	var ms mounts
	for _, m := range c.VolumeMounts {
		inside := path.Clean(m.MountPath)
		if !path.IsAbs(inside) || inside == "/" {
			return nil, fmt.Errorf("mount path %q of volume %q cannot be used by a process node: write an absolute path other than /", m.MountPath, m.Name)
		}
		sub := m.SubPath
		if m.SubPathExpr != "" {
			sub = expand(m.SubPathExpr)
		}
		if sub != "" && !filepath.IsLocal(sub) {
			return nil, fmt.Errorf("subPath %q of volume %q leads out of the volume", sub, m.Name)
		}
		ms = append(ms, mount{inside: inside, host: filepath.Join(volumeDir(podDir, m.Name), sub)})
	}
	if p := path.Clean(c.TerminationMessagePath); path.IsAbs(p) && p != "/" {
		ms = append(ms, mount{inside: p, host: files.termination()})
	}
	sort.SliceStable(ms, func(i, j int) bool { return len(ms[i].inside) > len(ms[j].inside) })
	return ms, nil
}

// rewrite replaces the paths of mounts wherever they stand in s as a path: "--token=/var/run/x/token" and
// "file:///var/run/x" hold /var/run/x, "/srv/var/run/x" and "/var/run/xy" do not. What was put in is not looked at again.
func (ms mounts) rewrite(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if m, ok := ms.at(s, i); ok {
			b.WriteString(m.host)
			i += len(m.inside)
			continue
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

// at returns the mount whose path stands at s[i:].
func (ms mounts) at(s string, i int) (mount, bool) {
	if s[i] != '/' || (i > 0 && partOfName(s[i-1])) {
		return mount{}, false
	}
	for _, m := range ms {
		end := i + len(m.inside)
		if strings.HasPrefix(s[i:], m.inside) && (end == len(s) || !partOfName(s[end])) {
			return m, true
		}
	}
	return mount{}, false
}

// host returns where a path of the container lies on this machine, and whether it lies in a mount.
func (ms mounts) host(inside string) (string, bool) {
	inside = path.Clean(inside)
	for _, m := range ms {
		if inside == m.inside {
			return m.host, true
		}
		if rest, ok := strings.CutPrefix(inside, m.inside+"/"); ok {
			return filepath.Join(m.host, rest), true
		}
	}
	return "", false
}

// partOfName reports whether c continues the name of a file.
func partOfName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-~+@%", c) >= 0 || c >= 0x80
}
