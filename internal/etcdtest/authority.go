package etcdtest

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/pki"
)

// lasts is how long certificates are valid.
const lasts = 24 * time.Hour

// Authority certifies members and clients, for one test, as godwit pki does.
type Authority struct {
	// File holds the certificate that all others are signed by.
	File string

	own *pki.Authority
}

// NewAuthority returns an authority with a key of its own.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pki")
	own, err := pki.Init(dir, "godwit's tests", lasts, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &Authority{File: filepath.Join(dir, pki.AuthorityCert), own: own}
}

// Issue answers the files of a certificate and of its key: for a server at the given IP addresses
// or, without any, for a client. etcd knows a client by the name.
func (a *Authority) Issue(t testing.TB, name string, addresses ...string) (cert, key string) {
	t.Helper()
	r := pki.Request{Name: name, ClientOnly: len(addresses) == 0, Lasts: lasts}
	for _, at := range addresses {
		r.IPs = append(r.IPs, net.ParseIP(at))
	}
	dir, err := a.own.Issue(r, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	side := "server"
	if r.ClientOnly {
		side = "client"
	}
	return filepath.Join(dir, side+"-cert.pem"), filepath.Join(dir, side+"-key.pem")
}

// client is the TLS configuration of the test's own client.
func (a *Authority) client(t testing.TB) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(a.Issue(t, "test"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.own.Cert)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool,
		Certificates: []tls.Certificate{pair}}
}
