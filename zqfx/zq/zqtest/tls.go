package zqtest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// WithTLS has the server speak TLS alone, with a certificate for localhost and
// 127.0.0.1 from an authority of its own. The server's Options, URL and Client
// say so; [Server.TLSConfig] is for clients made elsewhere.
func WithTLS() ServerOption { return withIdentity(false) }

// WithMutualTLS is [WithTLS] with a server that refuses a client without a
// certificate of the same authority.
func WithMutualTLS() ServerOption { return withIdentity(true) }

func withIdentity(mutual bool) ServerOption {
	return serverOption(func(in *instance) {
		id, err := newIdentity(mutual)
		in.tls, in.fault = id, errors.Join(in.fault, err)
	})
}

// TLSConfig is what a client needs to reach a server with TLS: its authority,
// and with [WithMutualTLS] a certificate. Each call gives a config of its own;
// nil for a server without TLS.
func (s *Server) TLSConfig() *tls.Config {
	if s.in.tls == nil {
		return nil
	}
	return s.in.tls.clientConfig()
}

// CAFile is the path of the authority's certificate in PEM, as SSL_CERT_FILE
// takes it; "" for a server without TLS.
func (s *Server) CAFile() string {
	if s.in.tls == nil {
		return ""
	}
	return filepath.Join(s.in.dir, caFile)
}

// The files that a server with TLS reads.
const (
	caFile   = "ca.pem"
	certFile = "server.pem"
	keyFile  = "server.key"
)

// identity is a server's certificate, its authority's, and a client's.
type identity struct {
	mutual         bool
	ca, server     []byte // certificates in PEM
	key            []byte // the server's, in PEM
	authorities    *x509.CertPool
	client         tls.Certificate
	validFromUntil [2]time.Time
}

func newIdentity(mutual bool) (*identity, error) {
	now := time.Now()
	id := &identity{mutual: mutual, validFromUntil: [2]time.Time{now.Add(-time.Hour), now.Add(24 * time.Hour)}}
	authority := id.template(1, "zqtest authority")
	authority.IsCA, authority.BasicConstraintsValid = true, true
	authority.KeyUsage = x509.KeyUsageCertSign
	caKey, err := newKey()
	if err != nil {
		return nil, err
	}
	id.ca, err = sign(authority, authority, caKey, caKey)
	if err != nil {
		return nil, err
	}
	server := id.template(2, "zqtest server")
	server.DNSNames, server.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if id.server, id.key, err = issue(server, authority, caKey); err != nil {
		return nil, err
	}
	client := id.template(3, "zqtest client")
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	cert, key, err := issue(client, authority, caKey)
	if err != nil {
		return nil, err
	}
	if id.client, err = tls.X509KeyPair(cert, key); err != nil {
		return nil, err
	}
	id.authorities = x509.NewCertPool()
	if !id.authorities.AppendCertsFromPEM(id.ca) {
		return nil, errors.New("zqtest: the authority's certificate is none")
	}
	return id, nil
}

func (id *identity) template(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: id.validFromUntil[0], NotAfter: id.validFromUntil[1], KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// issue makes a key and a certificate for it, both in PEM.
func issue(template, authority *x509.Certificate, caKey *ecdsa.PrivateKey) (cert, key []byte, err error) {
	own, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	if cert, err = sign(template, authority, own, caKey); err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(own)
	return cert, inPEM("PRIVATE KEY", der), err
}

func sign(template, authority *x509.Certificate, own, caKey *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, authority, own.Public(), caKey)
	return inPEM("CERTIFICATE", der), err
}

func inPEM(kind string, der []byte) []byte {
	var b bytes.Buffer
	_ = pem.Encode(&b, &pem.Block{Type: kind, Bytes: der}) // a buffer takes it all
	return b.Bytes()
}

func (id *identity) clientConfig() *tls.Config {
	c := &tls.Config{RootCAs: id.authorities, MinVersion: tls.VersionTLS12}
	if id.mutual {
		c.Certificates = []tls.Certificate{id.client}
	}
	return c
}

// args are the settings of a server that has been given the files.
func (id *identity) args(dir string) []string {
	ask := "no"
	if id.mutual {
		ask = "yes"
	}
	return []string{
		"--tls-ca-cert-file", filepath.Join(dir, caFile), "--tls-cert-file", filepath.Join(dir, certFile),
		"--tls-key-file", filepath.Join(dir, keyFile), "--tls-auth-clients", ask, "--tls-protocols", "TLSv1.2 TLSv1.3",
	}
}

func (id *identity) write(dir string) error {
	return errors.Join(
		os.WriteFile(filepath.Join(dir, caFile), id.ca, 0o600),
		os.WriteFile(filepath.Join(dir, certFile), id.server, 0o600),
		os.WriteFile(filepath.Join(dir, keyFile), id.key, 0o600),
	)
}
