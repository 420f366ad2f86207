//go:build unix

package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

func TestNamesAreSafeInPathsAndCertificates(t *testing.T) {
	for name, ok := range map[string]bool{
		"dev": true, "a": true, "run-1b": true, strings.Repeat("x", 40): true,
		"": false, "-a": false, "a-": false, "A": false, "../x": false, "a/b": false, ".locks": false, strings.Repeat("x", 41): false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("CheckName(%q) = %v, want accepted: %v", name, err, ok)
		}
	}
}

func TestAnUnknownKindOfNodeIsRefusedWithTheKnownOnes(t *testing.T) {
	if _, err := ParseNodeKind("docker"); err == nil || !strings.Contains(err.Error(), "process, containerd or none") {
		t.Errorf("got %v", err)
	}
}

func TestTheControlPlaneTrustsOnlyItsOwnAuthority(t *testing.T) {
	d := In(t.TempDir(), "pki")
	p, err := openPKI(d)
	if err != nil {
		t.Fatal(err)
	}
	again, err := openPKI(d)
	if err != nil {
		t.Fatal(err)
	}
	if !again.cert.Equal(p.cert) {
		t.Error("opening an authority a second time made another one")
	}
	c := plan{dir: d, host: "10.200.0.1"}
	for _, id := range c.identities() {
		if err := again.issue(id); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.LoadX509KeyPair(d.Path("pki", "kube-apiserver.crt"), d.Path("pki", "kube-apiserver.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(p.cert)
	for _, name := range []string{"127.0.0.1", "10.200.0.1", apiServiceIP, "kubernetes.default.svc"} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("the API server's certificate at %s: %v", name, err)
		}
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: "example.com", Roots: roots}); err == nil {
		t.Error("the API server's certificate is good for any name")
	}
	if err := p.kubeconfig(d.Kubeconfig(), "https://127.0.0.1:1", identity{file: "admin", user: "admin", groups: []string{"system:masters"}}); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", d.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	admin, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"system:masters"}, admin.Leaf.Subject.Organization); diff != "" {
		t.Errorf("the administrator's groups (-want +got):\n%s", diff)
	}
	for _, file := range []string{d.Kubeconfig(), d.Path("pki", "ca.key"), d.Path("pki", "sa.key")} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v: others can read it", file, info.Mode())
		}
	}
}

func TestChosenPortsDifferAndAreFree(t *testing.T) {
	p, err := choosePorts("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if p.API == p.EtcdClient || p.API == p.EtcdPeer || p.EtcdClient == p.EtcdPeer {
		t.Errorf("ports are not distinct: %+v", p)
	}
	for _, port := range []int{p.API, p.EtcdClient, p.EtcdPeer} {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			t.Errorf("port %d is not free: %v", port, err)
			continue
		}
		_ = l.Close()
	}
}

func TestAComponentThatEndsIsNamedWithItsLastWords(t *testing.T) {
	for name, tc := range map[string]struct {
		script    string
		want      []string
		portTaken bool
	}{
		"a failure shows the end of the log": {script: "echo first; echo cannot do it >&2; exit 1", want: []string{"etcd ended", "cannot do it"}},
		"a taken port is recognised":         {script: "echo 'listen tcp 127.0.0.1:1: bind: address already in use'; exit 1", portTaken: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := In(t.TempDir(), "c")
			for _, sub := range []string{"logs", "run"} {
				if err := os.MkdirAll(d.Path(sub), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			l := &launcher{dir: d, exited: make(chan string, 1)}
			if err := l.start(command{name: "etcd", path: "/bin/sh", args: []string{"-c", tc.script}}); err != nil {
				t.Fatal(err)
			}
			err := l.until(t.Context(), "etcd", func(context.Context) error { return errors.New("not ready") })
			if err == nil {
				t.Fatal("no error")
			}
			if errors.Is(err, errPortTaken) != tc.portTaken {
				t.Errorf("recognised a taken port: %v, want %v", !tc.portTaken, tc.portTaken)
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
		})
	}
}

func TestDownEndsWhatWasRecordedAndRemovesTheFolder(t *testing.T) {
	for name, tc := range map[string]struct {
		after AfterDown
		left  bool
	}{"removed": {RemoveFolder, false}, "kept": {KeepFolder, true}} {
		t.Run(name, func(t *testing.T) {
			d := In(t.TempDir(), "c")
			for _, sub := range []string{"logs", "run"} {
				if err := os.MkdirAll(d.Path(sub), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.writeState(State{Name: "c", Node: ProcessNode}); err != nil {
				t.Fatal(err)
			}
			l := &launcher{dir: d, exited: make(chan string, 2)}
			for _, n := range []string{"etcd", "kube-apiserver"} {
				if err := l.start(command{name: n, path: "/bin/sh", args: []string{"-c", "sleep 60 & wait"}}); err != nil {
					t.Fatal(err)
				}
			}
			running := d.Running()
			if len(running) != 2 {
				t.Fatalf("%d components run, want 2", len(running))
			}
			if err := Down(t.Context(), d, tc.after, nil); err != nil {
				t.Fatal(err)
			}
			for _, r := range running {
				if r.Alive() {
					t.Errorf("%s still runs", r.Name)
				}
			}
			if _, err := os.Stat(string(d)); (err == nil) != tc.left {
				t.Errorf("the folder is there: %v, want %v", err == nil, tc.left)
			}
			if err := Down(t.Context(), d, RemoveFolder, nil); err != nil {
				t.Errorf("stopping what is stopped: %v", err)
			}
		})
	}
}

func TestTheNetworkConfigurationIsWhatThePluginsRead(t *testing.T) {
	n := realNode{dir: In(t.TempDir(), `odd "name`), subnet: 203}
	var conf struct {
		Plugins []struct {
			Bridge string
			IPAM   struct {
				Ranges [][]struct{ Subnet, Gateway string }
			}
		}
	}
	if err := json.Unmarshal([]byte(n.cniConfig()), &conf); err != nil {
		t.Fatal(err)
	}
	r := conf.Plugins[0].IPAM.Ranges[0][0]
	if conf.Plugins[0].Bridge != "mcptest203" || r.Subnet != "10.203.0.0/24" || r.Gateway != "10.203.0.1" {
		t.Errorf("got %+v", conf)
	}
	if len(n.bridge()) > 15 {
		t.Errorf("%s is too long for a network device", n.bridge())
	}
}

func TestListFindsClustersAndNothingElse(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"b", "a", ".locks"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	got, err := List(root)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Dir{In(root, "a"), In(root, "b")}, got); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if got, err := List(filepath.Join(root, "none")); err != nil || len(got) != 0 {
		t.Errorf("without a folder: %v, %v", got, err)
	}
}
