//go:build unix

package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// certLife is how long certificates are valid: a cluster of this kind is a thing of days.
const certLife = 365 * 24 * time.Hour

// pki is a cluster's certificate authority. The same one signs for servers and clients.
type pki struct {
	dir  Dir
	cert *x509.Certificate
	key  crypto.Signer
}

// identity describes one certificate.
type identity struct {
	// file is the base name of the .crt and .key under pki/.
	file string
	// user and groups are who the API server takes the holder for.
	user   string
	groups []string
	// dns and ips make it a server's certificate too.
	dns []string
	ips []net.IP
}

// openPKI loads the authority of a cluster, and makes it the first time.
func openPKI(d Dir) (*pki, error) {
	if err := os.MkdirAll(d.Path("pki"), 0o700); err != nil {
		return nil, err
	}
	p := &pki{dir: d}
	certPEM, err := os.ReadFile(p.path("ca.crt"))
	if errors.Is(err, fs.ErrNotExist) {
		return p, p.create()
	}
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(p.path("ca.key"))
	if err != nil {
		return nil, err
	}
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, fmt.Errorf("%s or ca.key beside it is not PEM", p.path("ca.crt"))
	}
	if p.cert, err = x509.ParseCertificate(certBlock.Bytes); err != nil {
		return nil, err
	}
	p.key, err = x509.ParseECPrivateKey(keyBlock.Bytes)
	return p, err
}

func (p *pki) path(file string) string { return p.dir.Path("pki", file) }

// create makes the authority and the key pair that signs service account tokens.
func (p *pki) create() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := certTemplate("cluster-"+p.dir.Name()+"-ca", nil)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	if p.cert, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	p.key = key
	sa, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	saPublic, err := x509.MarshalPKIXPublicKey(sa.Public())
	if err != nil {
		return err
	}
	return errors.Join(
		p.writePEM("sa.key", "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(sa)),
		p.writePEM("sa.pub", "PUBLIC KEY", saPublic),
		p.writeKey("ca.key", key),
		// Last, because this file says that the authority is complete.
		p.writePEM("ca.crt", "CERTIFICATE", der),
	)
}

// issue makes a certificate and key; what was there before is replaced, since addresses may have changed.
func (p *pki) issue(id identity) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := certTemplate(id.user, id.groups)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(id.dns)+len(id.ips) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		template.DNSNames, template.IPAddresses = id.dns, id.ips
	}
	der, err := x509.CreateCertificate(rand.Reader, template, p.cert, key.Public(), p.key)
	if err != nil {
		return fmt.Errorf("issue a certificate for %s: %w", id.user, err)
	}
	return errors.Join(p.writeKey(id.file+".key", key), p.writePEM(id.file+".crt", "CERTIFICATE", der))
}

// kubeconfig issues a client certificate and writes a kubeconfig that holds it.
func (p *pki) kubeconfig(path, server string, id identity) error {
	if err := p.issue(id); err != nil {
		return err
	}
	cert, certErr := os.ReadFile(p.path(id.file + ".crt"))
	key, keyErr := os.ReadFile(p.path(id.file + ".key"))
	ca, caErr := os.ReadFile(p.path("ca.crt"))
	if err := errors.Join(certErr, keyErr, caErr); err != nil {
		return err
	}
	cfg := clientcmdapi.NewConfig()
	name := p.dir.Name()
	cfg.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	cfg.AuthInfos[id.file] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	cfg.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: id.file}
	cfg.CurrentContext = name
	return clientcmd.WriteToFile(*cfg, path)
}

func (p *pki) writeKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return p.writePEM(file, "EC PRIVATE KEY", der)
}

func (p *pki) writePEM(file, kind string, der []byte) error {
	return os.WriteFile(p.path(file), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

func certTemplate(user string, groups []string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // crypto/rand does not fail
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: user, Organization: groups},
		NotBefore:    time.Now().Add(-5 * time.Minute), // clocks differ
		NotAfter:     time.Now().Add(certLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}
