//go:build unix

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// cniDirs are where distributions put the network plugins.
var cniDirs = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// installRuntime installs what a containerd node needs and the machine does not have.
func installRuntime(ctx context.Context) error {
	var missing []string
	for program, pkg := range map[string]string{
		"containerd": "containerd", "ctr": "containerd", "runc": "runc", "nft": "nftables", "iptables": "iptables",
		"ip": "iproute2", "conntrack": "conntrack",
	} {
		if _, err := exec.LookPath(toolPath(program)); err != nil {
			missing = append(missing, pkg)
		}
	}
	if cniDir() == "" {
		missing = append(missing, "containernetworking-plugins")
	}
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("a containerd node needs these packages: %s", strings.Join(missing, " "))
	}
	if err := runTool(ctx, "apt-get", "update", "-qq"); err != nil {
		return err
	}
	return runTool(ctx, "env", append([]string{
		"DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-qq", "--no-install-recommends",
	}, missing...)...)
}

func cniDir() string {
	for _, dir := range cniDirs {
		if _, err := os.Stat(filepath.Join(dir, "bridge")); err == nil {
			return dir
		}
	}
	return ""
}

// writeConfigs writes the configuration of every program of the node.
func (n realNode) writeConfigs() error {
	if err := os.MkdirAll(n.config("cni"), 0o700); err != nil {
		return err
	}
	var errs []error
	for name, text := range map[string]string{
		"containerd.toml": n.containerdConfig(), "cni/10-cluster.conflist": n.cniConfig(), "kubelet.yaml": n.kubeletConfig(),
		"kube-proxy.yaml": n.proxyConfig(), "Corefile": n.corefile(),
	} {
		errs = append(errs, os.WriteFile(n.config(name), []byte(text), 0o600))
	}
	return errors.Join(errs...)
}

// containerdConfig gives containerd a root, a state and a socket of its own. Without restrict_oom_score_adj a
// container cannot be started where CAP_SYS_RESOURCE is missing.
func (n realNode) containerdConfig() string {
	return fmt.Sprintf(`version = 2
root = %q
state = %q
[grpc]
  address = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = true
  disable_tcp_service = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
`, n.data("containerd"), n.run("state"), n.socket(), pauseImage, cniDir(), n.config("cni"))
}

func (n realNode) cniConfig() string {
	return fmt.Sprintf(`{
  "cniVersion": "1.0.0",
  "name": %q,
  "plugins": [
    {
      "type": "bridge", "bridge": %q, "isGateway": true, "ipMasq": true, "hairpinMode": true,
      "ipam": {
        "type": "host-local", "dataDir": %q,
        "ranges": [[{"subnet": %q, "gateway": %q}]], "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`, n.bridge(), n.bridge(), n.data("cni"), n.podCIDR(), n.gateway())
}

// kubeletConfig lets the kubelet start on machines with cgroup v1, swap, or a full disk, which matter little here.
func (n realNode) kubeletConfig() string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
port: 10250
readOnlyPort: 0
healthzPort: 0
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[2]q}
authorization: {mode: Webhook}
tlsCertFile: %[3]q
tlsPrivateKeyFile: %[4]q
cgroupDriver: cgroupfs
cgroupRoot: %[5]q
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
containerRuntimeEndpoint: unix://%[6]s
clusterDNS: [%[1]s]
clusterDomain: cluster.local
podLogsDir: %[7]q
volumePluginDir: %[8]q
evictionHard: {memory.available: 1Mi, nodefs.available: 1Mi, imagefs.available: 1Mi}
imageGCHighThresholdPercent: 100
registryPullQPS: 0
eventRecordQPS: 0
kubeAPIQPS: 100
kubeAPIBurst: 200
`, n.gateway(), n.dir.Path("pki", "ca.crt"), n.dir.Path("pki", "node.crt"), n.dir.Path("pki", "node.key"),
		n.cgroup(), n.socket(), n.data("pod-logs"), n.data("plugins"))
}

// proxyConfig chooses nftables: its rules are in a table of their own, which Down can delete whole.
func (n realNode) proxyConfig() string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clusterCIDR: %q
clientConnection: {kubeconfig: %q}
healthzBindAddress: ""
metricsBindAddress: ""
nodePortAddresses: ["%s/32"]
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`, n.podCIDR(), n.dir.Path("pki", "kube-proxy.kubeconfig"), n.gateway())
}

// corefile serves the names of Services to the pods, and asks the machine's own servers for the rest.
func (n realNode) corefile() string {
	upstream := ""
	if data, err := os.ReadFile("/etc/resolv.conf"); err == nil && strings.Contains(string(data), "nameserver") {
		upstream = "\n    forward . /etc/resolv.conf"
	}
	return fmt.Sprintf(`.:53 {
    bind %s
    errors
    kubernetes cluster.local in-addr.arpa {
        kubeconfig %s %s
        pods insecure
        fallthrough in-addr.arpa
        ttl 5
    }%s
    cache 5
}
`, n.gateway(), n.dir.Path("pki", "coredns.kubeconfig"), n.dir.Name(), upstream)
}
