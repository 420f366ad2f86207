//go:build unix

package cluster

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
)

const (
	serviceCIDR = "10.96.0.0/16"
	// apiServiceIP is the address of the Service "kubernetes", the first of serviceCIDR.
	apiServiceIP = "10.96.0.1"
	issuer       = "https://kubernetes.default.svc"
)

// plan is what the command lines of the control plane are made from.
type plan struct {
	dir    Dir
	binDir string
	// host is the address that the API server binds and is reached at.
	host string
	// endpoints says whether the Service "kubernetes" leads to the API server: only where pods have a network.
	endpoints bool
	ports     Ports
}

// command is one program to run.
type command struct {
	name string
	path string
	args []string
	// env is added to the environment of the tool.
	env []string
}

func (p plan) server() string {
	return "https://" + net.JoinHostPort(p.host, strconv.Itoa(p.ports.API))
}

func (p plan) pki(file string) string { return p.dir.Path("pki", file) }

func (p plan) bin(name string) string { return filepath.Join(p.binDir, name) }

func (p plan) etcd() command {
	client := fmt.Sprintf("https://127.0.0.1:%d", p.ports.EtcdClient)
	peer := fmt.Sprintf("https://127.0.0.1:%d", p.ports.EtcdPeer)
	return command{name: "etcd", path: p.bin("etcd"), args: []string{
		"--name=local", "--data-dir=" + p.dir.Path("etcd"),
		"--unsafe-no-fsync=true", // the data of a throw-away cluster need not survive a power cut
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=local=" + peer,
		"--cert-file=" + p.pki("etcd.crt"), "--key-file=" + p.pki("etcd.key"),
		"--trusted-ca-file=" + p.pki("ca.crt"), "--client-cert-auth=true",
		"--peer-cert-file=" + p.pki("etcd.crt"), "--peer-key-file=" + p.pki("etcd.key"),
		"--peer-trusted-ca-file=" + p.pki("ca.crt"), "--peer-client-cert-auth=true",
		"--log-level=warn", "--auto-compaction-retention=1h",
	}}
}

func (p plan) apiserver() command {
	reconciler := "--endpoint-reconciler-type=none"
	if p.endpoints {
		reconciler = "--endpoint-reconciler-type=lease"
	}
	return command{name: "kube-apiserver", path: p.bin("kube-apiserver"), args: []string{
		fmt.Sprintf("--etcd-servers=https://127.0.0.1:%d", p.ports.EtcdClient),
		"--etcd-cafile=" + p.pki("ca.crt"),
		"--etcd-certfile=" + p.pki("etcd-client.crt"), "--etcd-keyfile=" + p.pki("etcd-client.key"),
		"--bind-address=" + p.host, "--advertise-address=" + p.host, fmt.Sprintf("--secure-port=%d", p.ports.API),
		reconciler, "--kubelet-preferred-address-types=InternalIP",
		"--tls-cert-file=" + p.pki("kube-apiserver.crt"), "--tls-private-key-file=" + p.pki("kube-apiserver.key"),
		"--client-ca-file=" + p.pki("ca.crt"),
		"--kubelet-certificate-authority=" + p.pki("ca.crt"),
		"--kubelet-client-certificate=" + p.pki("apiserver-kubelet.crt"),
		"--kubelet-client-key=" + p.pki("apiserver-kubelet.key"),
		"--service-account-key-file=" + p.pki("sa.pub"), "--service-account-signing-key-file=" + p.pki("sa.key"),
		"--service-account-issuer=" + issuer, "--api-audiences=" + issuer,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction,PodSecurity",
		"--service-cluster-ip-range=" + serviceCIDR, "--allow-privileged=true",
		"--profiling=false", "--v=1",
	}}
}

func (p plan) controllerManager() command {
	return command{name: "kube-controller-manager", path: p.bin("kube-controller-manager"), args: []string{
		"--kubeconfig=" + p.pki("kube-controller-manager.kubeconfig"),
		"--service-account-private-key-file=" + p.pki("sa.key"), "--root-ca-file=" + p.pki("ca.crt"),
		"--cluster-signing-cert-file=" + p.pki("ca.crt"), "--cluster-signing-key-file=" + p.pki("ca.key"),
		"--use-service-account-credentials=true", "--leader-elect=false", "--secure-port=0",
		// Each of its fifty controllers asks for a token when it starts: at the default rate that takes five seconds.
		"--kube-api-qps=300", "--kube-api-burst=600",
		"--profiling=false", "--v=1",
	}}
}

func (p plan) scheduler() command {
	return command{name: "kube-scheduler", path: p.bin("kube-scheduler"), args: []string{
		"--kubeconfig=" + p.pki("kube-scheduler.kubeconfig"),
		"--kube-api-qps=300", "--kube-api-burst=600",
		"--leader-elect=false", "--secure-port=0", "--profiling=false", "--v=1",
	}}
}

// identities are the certificates of the control plane.
func (p plan) identities() []identity {
	loopback := net.IPv4(127, 0, 0, 1)
	return []identity{
		{file: "etcd", user: "etcd", dns: []string{"localhost"}, ips: []net.IP{loopback}},
		{file: "etcd-client", user: "kube-apiserver-etcd-client"},
		{file: "apiserver-kubelet", user: "kube-apiserver-kubelet-client", groups: []string{"system:masters"}},
		{
			file: "kube-apiserver", user: "kube-apiserver",
			dns: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
			ips: []net.IP{loopback, net.ParseIP(p.host), net.ParseIP(apiServiceIP)},
		},
	}
}

// nodeIdentity is the certificate of a node, for its own requests and for what it serves.
func nodeIdentity(node, host string) identity {
	return identity{
		file: "node", user: "system:node:" + node, groups: []string{"system:nodes"},
		dns: []string{node, "localhost"}, ips: []net.IP{net.ParseIP(host), net.IPv4(127, 0, 0, 1)},
	}
}
