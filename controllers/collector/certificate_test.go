package collector

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
)

const secretName = "collector-tls"

var hosts = []string{"collector.mcptest-system.svc", "127.0.0.1"}

func ensure(t *testing.T, cl client.Client, hosts []string, now time.Time) *Certificate {
	t.Helper()
	cert, err := EnsureCertificate(t.Context(), cl, namespace, secretName, hosts, now)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// trusts tells whether one who trusts a CA trusts a certificate for a host.
func trusts(ca []byte, cert *Certificate, host string, now time.Time) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	_, err := cert.TLS.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: now})
	return err
}

func TestTheCertificateIsMadeOnceAndKept(t *testing.T) {
	cl := fake.NewClientBuilder().WithScheme(newScheme()).Build()
	first := ensure(t, cl, hosts, epoch)
	again := ensure(t, cl, hosts, epoch.Add(24*time.Hour))
	if !bytes.Equal(first.CAPEM, again.CAPEM) || !first.TLS.Leaf.Equal(again.TLS.Leaf) {
		t.Error("a restart made another certificate")
	}
	for _, host := range hosts {
		if err := trusts(first.CAPEM, first, host, epoch); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if err := trusts(first.CAPEM, first, "other.example", epoch); err == nil {
		t.Error("it is good for another host")
	}
	secret := &corev1.Secret{}
	if err := cl.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: secretName}, secret); err != nil {
		t.Fatal(err)
	}
	if secret.Type != corev1.SecretTypeOpaque || len(secret.Data) != 4 {
		t.Errorf("type %s with %d keys", secret.Type, len(secret.Data))
	}
	if bytes.Contains(first.CAPEM, []byte("PRIVATE")) {
		t.Error("the public part holds a private key")
	}
}

func TestTheServingCertificateIsRenewedByTheSameAuthority(t *testing.T) {
	soon := epoch.Add(servingLife*2/3 - 2*time.Hour)
	for name, tc := range map[string]struct {
		hosts []string
		now   time.Time
		want  bool
	}{
		"not while a third of its life is left": {hosts, soon, false},
		"when less than a third is left":        {hosts, soon.Add(4 * time.Hour), true},
		"when it expired":                       {hosts, epoch.Add(servingLife + time.Hour), true},
		"for another host":                      {[]string{"collector.other.svc"}, epoch, true},
		"not for fewer hosts":                   {hosts[:1], epoch, false},
	} {
		t.Run(name, func(t *testing.T) {
			cl := fake.NewClientBuilder().WithScheme(newScheme()).Build()
			first := ensure(t, cl, hosts, epoch)
			next := ensure(t, cl, tc.hosts, tc.now)
			if !bytes.Equal(first.CAPEM, next.CAPEM) {
				t.Fatal("the authority changed")
			}
			if renewed := !first.TLS.Leaf.Equal(next.TLS.Leaf); renewed != tc.want {
				t.Errorf("renewed = %v, want %v", renewed, tc.want)
			}
			if err := trusts(first.CAPEM, next, tc.hosts[0], tc.now); err != nil {
				t.Errorf("one who trusts the old authority does not trust it: %v", err)
			}
		})
	}
}

func TestACertificateEndsWithItsAuthority(t *testing.T) {
	cl := fake.NewClientBuilder().WithScheme(newScheme()).Build()
	first := ensure(t, cl, hosts, epoch)
	end := epoch.Add(authorityLife)
	late := ensure(t, cl, hosts, end.Add(-24*time.Hour))
	if late.TLS.Leaf.NotAfter.After(end) {
		t.Errorf("it ends %v, the authority %v", late.TLS.Leaf.NotAfter, end)
	}
	if again := ensure(t, cl, hosts, end.Add(-12*time.Hour)); !again.TLS.Leaf.Equal(late.TLS.Leaf) {
		t.Error("one that cannot last longer is made again and again")
	}
	_, err := EnsureCertificate(t.Context(), cl, namespace, secretName, hosts, end.Add(time.Hour))
	if err == nil || !strings.Contains(err.Error(), "expired") || !strings.Contains(err.Error(), "delete the Secret") {
		t.Errorf("err = %v", err)
	}
	_ = first
}

func TestAnAuthorityThatCannotBeReadIsNotReplaced(t *testing.T) {
	for name, spoil := range map[string]func(map[string][]byte){
		"garbage":         func(d map[string][]byte) { d[keyCACertificate] = []byte("garbage") },
		"no key":          func(d map[string][]byte) { delete(d, keyCAKey) },
		"another's key":   func(d map[string][]byte) { d[keyCAKey] = d[keyKey] },
		"no authority":    func(d map[string][]byte) { d[keyCACertificate], d[keyCAKey] = d[keyCertificate], d[keyKey] },
		"everything gone": func(d map[string][]byte) { clear(d); d["note"] = []byte("mine") },
	} {
		t.Run(name, func(t *testing.T) {
			cl := fake.NewClientBuilder().WithScheme(newScheme()).Build()
			ensure(t, cl, hosts, epoch)
			secret := &corev1.Secret{}
			if err := cl.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: secretName}, secret); err != nil {
				t.Fatal(err)
			}
			spoil(secret.Data)
			if err := cl.Update(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			_, err := EnsureCertificate(t.Context(), cl, namespace, secretName, hosts, epoch)
			if err == nil || !strings.Contains(err.Error(), "delete the Secret") {
				t.Errorf("err = %v", err)
			}
			after := &corev1.Secret{}
			if err := cl.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: secretName}, after); err != nil || after.ResourceVersion != secret.ResourceVersion {
				t.Errorf("the Secret was written: %v", err)
			}
		})
	}
}

func TestReplicasThatStartAtOnceShareOneCertificate(t *testing.T) {
	// Each replica reads before any of them wrote.
	var reads sync.WaitGroup
	reads.Add(2)
	var first sync.Map
	cl := fake.NewClientBuilder().WithScheme(newScheme()).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, obj, opts...)
			if _, again := first.LoadOrStore(ctx.Value(replica{}), true); !again {
				reads.Done()
				reads.Wait()
			}
			return err
		},
	}).Build()
	certs := make([]*Certificate, 2)
	var all sync.WaitGroup
	for i := range certs {
		all.Go(func() {
			ctx := context.WithValue(t.Context(), replica{}, i)
			cert, err := EnsureCertificate(ctx, cl, namespace, secretName, hosts, epoch)
			if err != nil {
				t.Error(err)
			}
			certs[i] = cert
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	if !bytes.Equal(certs[0].CAPEM, certs[1].CAPEM) || !certs[0].TLS.Leaf.Equal(certs[1].TLS.Leaf) {
		t.Error("two replicas serve with different certificates")
	}
}

type replica struct{}

// started starts a collector on a port of its own and stops it with the test.
func started(t *testing.T, w *world, cert *Certificate) string {
	t.Helper()
	log := logr.Discard()
	w.collector = New(Options{Client: w.cached, Reader: w.live, BindAddress: "127.0.0.1:0", Certificate: cert, Now: w.clock, Log: &log})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.collector.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start: %v", err)
		}
		if w.collector.ReadyCheck(nil) == nil {
			t.Error("a collector that ended is ready")
		}
	})
	address, err := w.collector.Address(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return "https://" + address
}

func tokenFile(t *testing.T, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheClientAndTheServerSpeakTLS13WithTheirOwnAuthority(t *testing.T) {
	w := newRun(t, 2, 1, "clear")
	w.now = time.Now()
	cl := fake.NewClientBuilder().WithScheme(newScheme()).Build()
	cert := ensure(t, cl, hosts, w.now)
	url := started(t, w, cert)
	path := tokenFile(t, "pod-0")
	c, err := wire.NewClient(wire.ClientOptions{URL: url, CA: cert.CAPEM, TokenFile: path})
	if err != nil {
		t.Fatal(err)
	}
	slice, err := c.Slice(t.Context())
	if err != nil || len(slice.Leaves) != 2 {
		t.Fatalf("slice = %+v, %v", slice, err)
	}
	leaf, err := c.Leaf(t.Context(), "run-0")
	if err != nil || leaf.Name != "run-0" {
		t.Errorf("leaf = %+v, %v", leaf, err)
	}
	if err := c.PostJudgments(t.Context(), wire.Judgments{}); err != nil {
		t.Error(err)
	}
	receipt, err := c.PostFindings(t.Context(), "run-0", findingsOf(answered("clear", 1, "ok")))
	if err != nil || receipt.Outcome != "Passed" {
		t.Errorf("receipt = %+v, %v", receipt, err)
	}
	if _, err := c.Leaf(t.Context(), "../../slice"); wire.Status(err) != http.StatusForbidden {
		t.Errorf("a name with slashes: %v", err)
	}
	// The token is read anew for each request.
	if err := os.WriteFile(path, []byte("stale"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Slice(t.Context()); wire.Status(err) != http.StatusUnauthorized || wire.Temporary(err) {
		t.Errorf("err = %v", err)
	}
	// Another authority is not trusted, and asking again does not help.
	other := ensure(t, fake.NewClientBuilder().WithScheme(newScheme()).Build(), hosts, w.now)
	c, err = wire.NewClient(wire.ClientOptions{URL: url, CA: other.CAPEM, TokenFile: path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Slice(t.Context()); err == nil || wire.Temporary(err) {
		t.Errorf("err = %v, temporary %v", err, wire.Temporary(err))
	}
	// Nor is an old TLS spoken.
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert.CAPEM)
	conn, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), &tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS12})
	if err == nil {
		_ = conn.Close()
		t.Error("TLS 1.2 was accepted")
	}
}

func TestARenewedCertificateIsServedWithoutARestart(t *testing.T) {
	w := newRun(t, 1, 1, "clear")
	// A serving certificate of which less than a third is left.
	w.now = time.Now()
	cl := fake.NewClientBuilder().WithScheme(newScheme()).Build()
	old := ensure(t, cl, hosts, w.now.Add(-servingLife*3/4))
	stale := *old
	url := started(t, w, &stale)
	served := func() *x509.Certificate {
		t.Helper()
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(old.CAPEM)
		conn, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), &tls.Config{RootCAs: roots})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0]
	}
	if !served().Equal(old.TLS.Leaf) {
		t.Fatal("another certificate is served")
	}
	w.collector.renewOnce(t.Context())
	if got := served(); got.Equal(old.TLS.Leaf) || got.NotAfter.Before(w.now.Add(servingLife-2*time.Hour)) {
		t.Errorf("the certificate that is served ends %v", got.NotAfter)
	}
	if !bytes.Equal(w.collector.CA(), old.CAPEM) {
		t.Error("the authority changed")
	}
}
