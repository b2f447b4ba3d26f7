//go:build linux

package libvirttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// certificates makes, once, a directory with certificates under the names that
// QEMU looks for, and those that libvirt's clients look for.
var certificates = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(world.root, "tls")
	if err := makeCertificates(dir); err != nil {
		return "", fmt.Errorf("make certificates: %w", err)
	}
	return dir, nil
})

func makeCertificates(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	ca := template("lab CA")
	ca.IsCA = true
	ca.KeyUsage = x509.KeyUsageCertSign
	caKey, err := sign(dir, "ca", ca, ca, nil)
	if err != nil {
		return err
	}
	for n, who := range []string{"server", "client"} {
		c := template("localhost")
		c.SerialNumber = big.NewInt(int64(n) + 2)
		// libvirt refuses a certificate that may not encipher keys, which the key of an
		// elliptic curve never does.
		c.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
		c.DNSNames = []string{"localhost", HostA, HostB}
		for _, address := range []string{"127.0.0.1", "10.99.0.1", "10.99.0.2"} {
			c.IPAddresses = append(c.IPAddresses, net.ParseIP(address).To4())
		}
		if _, err := sign(dir, who, c, ca, caKey); err != nil {
			return err
		}
	}
	return errors.Join(os.Symlink("ca-cert.pem", filepath.Join(dir, "cacert.pem")),
		os.Symlink("client-cert.pem", filepath.Join(dir, "clientcert.pem")),
		os.Symlink("client-key.pem", filepath.Join(dir, "clientkey.pem")))
}

func template(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{SerialNumber: big.NewInt(1), BasicConstraintsValid: true,
		Subject:   pkix.Name{Organization: []string{"lab"}, CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0)}
}

// sign writes a new key and its certificate, signed by the parent's key or, without
// one, by itself.
func sign(dir, name string, c, parent *x509.Certificate, by *ecdsa.PrivateKey) (
	*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if by == nil {
		by = key
	}
	cert, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name)
	return key, errors.Join(
		writePEM(path+"-cert.pem", "CERTIFICATE", cert),
		writePEM(path+"-key.pem", "PRIVATE KEY", private))
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
