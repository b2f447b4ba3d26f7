package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// certificates DIR… makes an authority for each directory, and writes there what a host of its
// own needs, for the name host.godwit.test.
func certificates(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: certificates DIR…")
	}
	for _, name := range args {
		dir := ts.MkAbs(name)
		ts.Check(os.MkdirAll(dir, 0o700))
		a := &signer{ts: ts, dir: dir}
		a.sign("ca", &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true,
			BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign})
		for end, usage := range map[string]x509.ExtKeyUsage{
			"server": x509.ExtKeyUsageServerAuth, "client": x509.ExtKeyUsageClientAuth} {
			a.sign(end, &x509.Certificate{Subject: pkix.Name{CommonName: "host.godwit.test"},
				DNSNames: []string{"host.godwit.test"}, KeyUsage: x509.KeyUsageDigitalSignature,
				ExtKeyUsage: []x509.ExtKeyUsage{usage}})
		}
	}
}

// A signer signs certificates; the first is its own.
type signer struct {
	ts   *testscript.TestScript
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// sign writes a certificate and its key.
func (a *signer) sign(name string, c *x509.Certificate) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.ts.Check(err)
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	if a.cert == nil {
		a.cert, a.key = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), a.key)
	a.ts.Check(err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	a.ts.Check(err)
	a.write(name+"-cert.pem", "CERTIFICATE", der)
	a.write(name+"-key.pem", "PRIVATE KEY", secret)
	if c == a.cert {
		a.cert, err = x509.ParseCertificate(der)
		a.ts.Check(err)
	}
}

func (a *signer) write(name, kind string, der []byte) {
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	a.ts.Check(os.WriteFile(filepath.Join(a.dir, name), text, 0o600))
}
