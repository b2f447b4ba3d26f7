package pki

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"

	"github.com/godwit-vm/godwit/internal/durable"
)

// readPEM reads the first block of a file, which has to be of a kind.
func readPEM(path, kind string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s: it has no %s in PEM: copy it from a backup", path, kind)
	}
	return block.Bytes, nil
}

func writePEM(path, kind string, der []byte) error {
	return durable.WriteText(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), true)
}

func readCert(path string) (*x509.Certificate, error) {
	der, err := readPEM(path, "CERTIFICATE")
	if err != nil {
		return nil, err
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

func writeCert(path string, c *x509.Certificate) error { return writePEM(path, "CERTIFICATE", c.Raw) }

// readKey reads a key that others cannot read.
func readKey(path string) (*ecdsa.PrivateKey, error) {
	about, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !about.Mode().IsRegular() || about.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %v, and a key is a file that only its owner reads: chmod 0600",
			path, about.Mode())
	}
	der, err := readPEM(path, "PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	ec, is := key.(*ecdsa.PrivateKey)
	if !is {
		return nil, fmt.Errorf("%s is a %T, and not the key of an elliptic curve", path, key)
	}
	return ec, nil
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "PRIVATE KEY", der)
}
