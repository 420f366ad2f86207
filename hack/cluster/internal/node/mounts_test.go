//go:build unix

package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestMountPathsAreRewrittenWhereTheyStandAsPaths(t *testing.T) {
	ms, err := containerMounts(&corev1.Container{
		TerminationMessagePath: "/dev/termination-log",
		VolumeMounts: []corev1.VolumeMount{
			{Name: "token", MountPath: "/var/run/x"},
			{Name: "deep", MountPath: "/var/run/x/deep/"},
			{Name: "tmp", MountPath: "/tmp"},
			{Name: "cfg", MountPath: "/etc/app.yaml", SubPath: "app.yaml"},
			{Name: "expr", MountPath: "/logs", SubPathExpr: "$(POD)"},
		},
	}, "/tmp/pods/p", "/tmp/pods/p/c", func(string) string { return "pod-1" })
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"/var/run/x":                   "/tmp/pods/p/.volumes/token",
		"--token=/var/run/x/token":     "--token=/tmp/pods/p/.volumes/token/token",
		"file:///var/run/x/a":          "file:///tmp/pods/p/.volumes/token/a",
		"/var/run/x/deep/a:/var/run/x": "/tmp/pods/p/.volumes/deep/a:/tmp/pods/p/.volumes/token",
		"/var/run/xy":                  "/var/run/xy",
		"/srv/var/run/x":               "/srv/var/run/x",
		"https://host/tmp":             "https://host/tmp",
		"/tmp":                         "/tmp/pods/p/.volumes/tmp",
		"/etc/app.yaml":                "/tmp/pods/p/.volumes/cfg/app.yaml",
		"/etc/app.yaml.bak":            "/etc/app.yaml.bak",
		"/logs/a":                      "/tmp/pods/p/.volumes/expr/pod-1/a",
		"/dev/termination-log":         "/tmp/pods/p/c/termination-log",
		"":                             "",
		"plain / text":                 "plain / text",
	} {
		if got := ms.rewrite(in); got != want {
			t.Errorf("rewrite(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestMountsThatLeadOutOfTheVolumeAreRefused(t *testing.T) {
	for name, m := range map[string]corev1.VolumeMount{
		"the root":          {Name: "v", MountPath: "/"},
		"a relative path":   {Name: "v", MountPath: "data"},
		"a subPath upwards": {Name: "v", MountPath: "/data", SubPath: "../other"},
		"an expanded one":   {Name: "v", MountPath: "/data", SubPathExpr: "$(UP)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := containerMounts(&corev1.Container{VolumeMounts: []corev1.VolumeMount{m}}, "/p", "/p/c", func(string) string { return "../.." })
			if err == nil {
				t.Error("accepted")
			}
		})
	}
}

func FuzzRewriteKeepsWhatIsNoMount(f *testing.F) {
	f.Add("--token=/var/run/x/token")
	f.Add("/data/data//data")
	f.Fuzz(func(t *testing.T, s string) {
		if got := (mounts{}).rewrite(s); got != s {
			t.Errorf("without mounts %q became %q", s, got)
		}
		// A mount whose path is its own folder must change nothing, wherever it is found.
		if got := (mounts{{inside: "/data", host: "/data"}}).rewrite(s); got != s {
			t.Errorf("with a mount onto itself %q became %q", s, got)
		}
	})
}
