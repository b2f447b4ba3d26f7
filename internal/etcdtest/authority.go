package etcdtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority certifies members and clients, for one test.
type Authority struct {
	// File holds the certificate that all others are signed by.
	File string

	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority returns an authority with a key of its own.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{dir: t.TempDir(), key: newKey(t)}
	about := certificate("authority")
	about.IsCA, about.BasicConstraintsValid = true, true
	about.KeyUsage = x509.KeyUsageCertSign
	a.cert = about // it signs itself
	der := a.sign(t, about, &a.key.PublicKey)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.File = a.write(t, "ca.crt", "CERTIFICATE", der)
	return a
}

// Issue answers the files of a certificate, for a server at the given addresses as for a
// client, and of its key.
func (a *Authority) Issue(t testing.TB, name string, hosts ...string) (cert, key string) {
	t.Helper()
	about := certificate(name)
	about.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			about.IPAddresses = append(about.IPAddresses, ip)
			continue
		}
		about.DNSNames = append(about.DNSNames, h)
	}
	own := newKey(t)
	der, err := x509.MarshalECPrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	return a.write(t, name+".crt", "CERTIFICATE", a.sign(t, about, &own.PublicKey)),
		a.write(t, name+".key", "EC PRIVATE KEY", der)
}

// client is the TLS configuration of the test's own client.
func (a *Authority) client(t testing.TB) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(a.Issue(t, "test"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool,
		Certificates: []tls.Certificate{pair}}
}

func certificate(name string) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:   pkix.Name{CommonName: name, Organization: []string{"godwit's tests"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *Authority) sign(t testing.TB, about *x509.Certificate, key *ecdsa.PublicKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, about, a.cert, key, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func (a *Authority) write(t testing.TB, name, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(a.dir, name)
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
