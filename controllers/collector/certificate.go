package collector

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// How long certificates last.
const (
	authorityLife = 10 * 365 * 24 * time.Hour
	servingLife   = 365 * 24 * time.Hour
	// clockSkew is how far the clocks of nodes may be behind.
	clockSkew = time.Hour
	// renewalInterval is how often a running Collector looks whether its certificate should be renewed.
	renewalInterval = time.Hour
)

// The keys of the Secret.
const (
	keyCACertificate = "ca.crt"
	keyCAKey         = "ca.key"
	keyCertificate   = corev1.TLSCertKey
	keyKey           = corev1.TLSPrivateKeyKey
)

// maxEnsureAttempts is how often replicas that write the Secret at once give way to each other.
const maxEnsureAttempts = 5

// Certificate is what a Collector serves with.
type Certificate struct {
	// CAPEM is the certificate of the authority, as PEM: what runners trust. See Collector.CA for the one of the moment.
	CAPEM []byte
	// TLS is the serving certificate and its key.
	TLS tls.Certificate

	renew func(ctx context.Context, now time.Time) (*Certificate, error)
}

// EnsureCertificate returns the certificate that is kept in a Secret, and makes the Secret, or what is lacking in it.
//
// The authority lasts 10 years and is never replaced: pods that run trust it. A serving certificate for hosts (DNS names
// and IP addresses) lasts a year; a new one is made when less than a third of that is left, or for other hosts.
// Replicas that do this at once end up with the same certificate. An authority that cannot be read, or has expired, is an
// error that says how to start anew.
//
// The client must not cache Secrets: it may read this one only.
func EnsureCertificate(ctx context.Context, cl client.Client, namespace, secretName string, hosts []string, now time.Time) (*Certificate, error) {
	e := ensurer{client: cl, key: client.ObjectKey{Namespace: namespace, Name: secretName}, hosts: slices.Clone(hosts)}
	if len(hosts) == 0 {
		return nil, errors.New("the collector's certificate needs a host: the DNS name of its Service")
	}
	return e.ensure(ctx, now)
}

type ensurer struct {
	client client.Client
	key    client.ObjectKey
	hosts  []string
}

func (e ensurer) ensure(ctx context.Context, now time.Time) (*Certificate, error) {
	for range maxEnsureAttempts {
		cert, err := e.once(ctx, now)
		if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
			continue // another replica was faster: read what it wrote
		}
		if err != nil {
			return nil, fmt.Errorf("certificate of the collector in Secret %s: %w", e.key, err)
		}
		cert.renew = e.ensure
		return cert, nil
	}
	return nil, fmt.Errorf("certificate of the collector in Secret %s: others changed it all the time; try again", e.key)
}

// once reads the Secret and writes it at most once.
func (e ensurer) once(ctx context.Context, now time.Time) (*Certificate, error) {
	secret := &corev1.Secret{}
	err := e.client.Get(ctx, e.key, secret)
	switch {
	case apierrors.IsNotFound(err):
		ca, err := newAuthority(now)
		if err != nil {
			return nil, err
		}
		secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: e.key.Namespace, Name: e.key.Name,
				Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
			},
			Type: corev1.SecretTypeOpaque,
			Data: map[string][]byte{},
		}
		cert, err := e.issue(secret, ca, now)
		if err != nil {
			return nil, err
		}
		return cert, e.client.Create(ctx, secret)
	case err != nil:
		return nil, err
	}
	if len(secret.Data) == 0 {
		// A Secret that was made empty, so that the operator need not be allowed to make Secrets.
		ca, err := newAuthority(now)
		if err != nil {
			return nil, err
		}
		return e.update(ctx, secret, ca, now)
	}
	ca, err := readAuthority(secret, now)
	if err != nil {
		return nil, fmt.Errorf("%w; delete the Secret and restart the operator to start anew: runs that are being graded by then end as errors, because their pods trust the old authority", err)
	}
	if cert, ok := e.read(secret, ca, now); ok {
		return cert, nil
	}
	return e.update(ctx, secret, ca, now)
}

func (e ensurer) update(ctx context.Context, secret *corev1.Secret, ca *authority, now time.Time) (*Certificate, error) {
	cert, err := e.issue(secret, ca, now)
	if err != nil {
		return nil, err
	}
	return cert, e.client.Update(ctx, secret) // with the resourceVersion that was read
}

// issue makes a serving certificate and puts it and the authority into the Secret.
func (e ensurer) issue(secret *corev1.Secret, ca *authority, now time.Time) (*Certificate, error) {
	certPEM, keyPEM, err := ca.issue(e.hosts, now)
	if err != nil {
		return nil, err
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[keyCACertificate], secret.Data[keyCAKey] = ca.certPEM, ca.keyPEM
	secret.Data[keyCertificate], secret.Data[keyKey] = certPEM, keyPEM
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("reading the new certificate: %w", err)
	}
	return &Certificate{CAPEM: ca.certPEM, TLS: pair}, nil
}

// read returns the serving certificate of the Secret; false when a new one is needed.
func (e ensurer) read(secret *corev1.Secret, ca *authority, now time.Time) (*Certificate, bool) {
	pair, err := tls.X509KeyPair(secret.Data[keyCertificate], secret.Data[keyKey])
	if err != nil || pair.Leaf == nil {
		return nil, false
	}
	leaf := pair.Leaf
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	for _, host := range e.hosts {
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: now}); err != nil {
			return nil, false
		}
	}
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	// One that lasts as long as its authority cannot be made to last longer.
	if leaf.NotAfter.Sub(now) < life/3 && leaf.NotAfter.Before(ca.cert.NotAfter) {
		return nil, false
	}
	return &Certificate{CAPEM: ca.certPEM, TLS: pair}, true
}

// authority signs serving certificates.
type authority struct {
	cert            *x509.Certificate
	key             *ecdsa.PrivateKey
	certPEM, keyPEM []byte
}

func newAuthority(now time.Time) (*authority, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, err
	}
	template, err := newTemplate("mcptest-operator collector authority", now, authorityLife)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.MaxPathLenZero, template.BasicConstraintsValid = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the new authority: %w", err)
	}
	return &authority{cert: cert, key: key, certPEM: encode("CERTIFICATE", der), keyPEM: keyPEM}, nil
}

// readAuthority reads what newAuthority made.
func readAuthority(secret *corev1.Secret, now time.Time) (*authority, error) {
	certPEM, keyPEM := secret.Data[keyCACertificate], secret.Data[keyCAKey]
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil || pair.Leaf == nil {
		return nil, fmt.Errorf("its authority (%s and %s) cannot be read", keyCACertificate, keyCAKey)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	switch {
	case !ok:
		return nil, fmt.Errorf("its authority has a key of type %T, not ECDSA", pair.PrivateKey)
	case !pair.Leaf.IsCA:
		return nil, fmt.Errorf("%s is not the certificate of an authority", keyCACertificate)
	case now.After(pair.Leaf.NotAfter):
		return nil, fmt.Errorf("its authority expired on %s", pair.Leaf.NotAfter.Format(time.DateOnly))
	}
	return &authority{cert: pair.Leaf, key: key, certPEM: certPEM, keyPEM: keyPEM}, nil
}

// issue makes a serving certificate, which never outlives the authority.
func (a *authority) issue(hosts []string, now time.Time) (certPEM, keyPEM []byte, err error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	template, err := newTemplate("mcptest-operator collector", now, servingLife)
	if err != nil {
		return nil, nil, err
	}
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("making the serving certificate: %w", err)
	}
	return encode("CERTIFICATE", der), keyPEM, nil
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("writing a key: %w", err)
	}
	return key, encode("PRIVATE KEY", der), nil
}

func newTemplate(name string, now time.Time, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(life),
	}, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// renewCertificate looks after the certificate until ctx ends. What fails is tried again at the next look: there are
// months for it.
func (c *Collector) renewCertificate(ctx context.Context) {
	ticker := time.NewTicker(renewalInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.renewOnce(ctx)
		}
	}
}

func (c *Collector) renewOnce(ctx context.Context) {
	old := c.certificate.Load()
	if old.renew == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	fresh, err := old.renew(ctx, c.now())
	switch {
	case err != nil:
		c.log.Error(err, "the certificate could not be looked after")
		return
	case !bytes.Equal(fresh.CAPEM, old.CAPEM):
		c.log.Info("the certificate has another authority now: pods that were made before do not trust it, and their runs end as errors")
	case !fresh.TLS.Leaf.Equal(old.TLS.Leaf):
		c.log.Info("the certificate was renewed", "until", fresh.TLS.Leaf.NotAfter)
	}
	c.certificate.Store(fresh)
}
