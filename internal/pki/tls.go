package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// The organizational units of certificates; those of people have none.
// Source: Kubernetes knows a kubelet by the organization system:nodes in the same way.
const (
	hostUnit       = "godwit-host"
	controllerUnit = "godwit-controller"
)

// Holder returns whose a certificate is: the common name, and whether that is a host.
func Holder(c *x509.Certificate) (name string, host bool) {
	return c.Subject.CommonName, slices.Contains(c.Subject.OrganizationalUnit, hostUnit)
}

// Authorities reads a file of certificates of authorities, as a pool and one by one.
func Authorities(path string) (*x509.CertPool, []*x509.Certificate, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	pool, all := x509.NewCertPool(), []*x509.Certificate(nil)
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		pool.AddCert(c)
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, nil, fmt.Errorf("%s: there is no certificate in it", path)
	}
	return pool, all, nil
}

// A Dir is a directory with the files of a host, a person or a controller, under the names of QEMU.
// Each call reads them anew: they are renewed in place.
type Dir string

// Server returns what a server shows to clients, whose certificates it demands.
func (d Dir) Server() (*tls.Config, error) {
	roots, pair, err := d.read("server")
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair},
		ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert,
		// A session that is resumed would outlive the authority that its client was trusted by.
		SessionTicketsDisabled: true}, nil
}

// Client returns what a client shows to a server that has to have a name, or an IP address.
func (d Dir) Client(server string) (*tls.Config, error) {
	roots, pair, err := d.read("client")
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: server,
		// It is shown whatever authorities the server names: then that says what is wrong with it.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }}, nil
}

// read reads the certificates of one side.
func (d Dir) read(side string) (*x509.CertPool, tls.Certificate, error) {
	roots, _, err := Authorities(filepath.Join(string(d), AuthorityCert))
	pair, errPair := tls.LoadX509KeyPair(filepath.Join(string(d), side+"-cert.pem"),
		filepath.Join(string(d), side+"-key.pem"))
	return roots, pair, errors.Join(err, errPair)
}
