// Package pki is a private certificate authority for the hosts of a small cluster: one key in one
// directory signs what QEMU, libvirt, etcd and godwit's daemons show to each other.
//
//	DIR/ca-cert.pem, DIR/ca-key.pem    the authority
//	DIR/NAME/                          what a host or a person gets, under the names of QEMU
//
// A certificate is renewed with the key that it has. So a renewal replaces one file by one rename,
// a reader never finds a certificate beside the key of another, and what was signed before an
// authority was renewed is still signed by it. There is no list of revoked certificates: they end
// soon instead, and an authority whose key was stolen is replaced.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	_ "embed" // the group of RFC 7919
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/godwit-vm/godwit/internal/durable"
)

// The lifetimes that certificates get by default.
const (
	AuthorityLasts = 10 * 365 * 24 * time.Hour
	HostLasts      = 90 * 24 * time.Hour
	// RenewBefore is how long before its end a certificate is renewed.
	RenewBefore = 30 * 24 * time.Hour
)

// backdated is how far the clock of a host may be behind that of the authority.
const backdated = time.Hour

// The files of the authority, and of a host. Source: QEMU 7.2 docs/system/tls.rst.
const (
	AuthorityCert = "ca-cert.pem"
	authorityKey  = "ca-key.pem"
	dhParameters  = "dh-params.pem"
)

// group is ffdhe2048 of RFC 7919, which is no secret. Without it QEMU 7.2 computes a group for each
// VM that comes.
//
//go:embed dh-params.pem
var group []byte

// An Authority signs certificates.
type Authority struct {
	Cert *x509.Certificate
	dir  string
	key  *ecdsa.PrivateKey
}

// A Request is what a certificate is to say.
type Request struct {
	// Name names the host or the person. It is the common name, by which etcd knows a client.
	Name string
	// DNS and IPs are where the host is reached, besides Name.
	DNS []string
	IPs []net.IP
	// ClientOnly: a person, or a controller, that nothing connects to.
	ClientOnly bool
	// Controller: a controller that serves the store, and no host.
	Controller bool
	// Lasts is for how long it is valid. It ends with its authority at the latest.
	Lasts time.Duration
}

// names are those that fit into a path, and into a common name (RFC 5280, ub-common-name).
var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Init makes an authority in a directory. One that is there is never replaced: nothing that it has
// signed would be trusted any more.
func Init(dir, name string, lasts time.Duration, now time.Time) (*Authority, error) {
	if err := durable.Private(dir); err != nil {
		return nil, err
	}
	for _, file := range []string{AuthorityCert, authorityKey} {
		if _, err := os.Lstat(filepath.Join(dir, file)); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s has an authority (%s), which is not replaced: all that it has "+
				"signed would be refused: choose another directory", dir, file)
		}
	}
	key, err := newKey(filepath.Join(dir, authorityKey))
	if err != nil {
		return nil, err
	}
	a := &Authority{dir: dir, key: key}
	a.Cert = &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true,
		BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}
	return a, a.renew(lasts, now)
}

// Open reads the authority in a directory.
func Open(dir string) (*Authority, error) {
	if err := durable.Private(dir); err != nil {
		return nil, err
	}
	cert, err := readCert(filepath.Join(dir, AuthorityCert))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: godwit pki init makes an authority", err)
	}
	if err != nil {
		return nil, err
	}
	key, err := readKey(filepath.Join(dir, authorityKey))
	if err == nil && !key.PublicKey.Equal(cert.PublicKey) {
		err = fmt.Errorf("%s is not the key of %s", authorityKey, AuthorityCert)
	}
	if err != nil {
		return nil, err
	}
	return &Authority{Cert: cert, dir: dir, key: key}, nil
}

// renew signs the authority's own certificate.
func (a *Authority) renew(lasts time.Duration, now time.Time) error {
	c := *a.Cert
	valid(&c, lasts, now)
	signed, err := sign(&c, &c, &a.key.PublicKey, a.key)
	if err != nil {
		return err
	}
	if err := writeCert(filepath.Join(a.dir, AuthorityCert), signed); err != nil {
		return err
	}
	a.Cert = signed
	return nil
}

// valid sets when a certificate begins and ends.
func valid(c *x509.Certificate, lasts time.Duration, now time.Time) {
	c.NotBefore, c.NotAfter = now.Add(-backdated), now.Add(lasts)
}

// sign signs a certificate and reads back what was signed.
func sign(c, parent *x509.Certificate, key *ecdsa.PublicKey, by *ecdsa.PrivateKey) (
	*x509.Certificate, error) {
	c.SerialNumber = nil // x509 draws one
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key, by)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// Issue makes the files of a host or a person, and returns their directory. They appear there all
// at once. What was issued before is never replaced: see [Authority.Renew].
func (a *Authority) Issue(r Request, now time.Time) (dir string, err error) {
	if !names.MatchString(r.Name) {
		return "", fmt.Errorf("%.100q is not a name: write 1 to 64 of a-z A-Z 0-9 . _ -", r.Name)
	}
	dir = filepath.Join(a.dir, r.Name)
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s is there: godwit pki renew %s renews its certificates; for new keys "+
			"remove the directory first", dir, r.Name)
	}
	made, err := os.MkdirTemp(a.dir, ".unfinished-")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(made))
		}
	}()
	if err := a.fill(made, r, now); err != nil {
		return "", err
	}
	return dir, os.Rename(made, dir)
}

// fill writes the files of a host or a person.
func (a *Authority) fill(dir string, r Request, now time.Time) error {
	err := errors.Join(writeCert(filepath.Join(dir, AuthorityCert), a.Cert),
		durable.WriteText(filepath.Join(dir, dhParameters), group, true))
	for _, end := range ends(r.ClientOnly) {
		if err == nil {
			err = a.pair(dir, end, r, now)
		}
	}
	return err
}

// ends are the sides for which there are certificates.
func ends(clientOnly bool) []string {
	if clientOnly {
		return []string{"client"}
	}
	return []string{"server", "client"}
}

// pair writes a new key and its certificate. Members of etcd are clients of each other with the
// certificate that they serve with.
func (a *Authority) pair(dir, end string, r Request, now time.Time) error {
	key, err := newKey(filepath.Join(dir, end+"-key.pem"))
	if err != nil {
		return err
	}
	c := &x509.Certificate{Subject: pkix.Name{CommonName: r.Name}, BasicConstraintsValid: true,
		// libvirt refuses a certificate that may not encipher keys, which such a key never does.
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	switch {
	case r.ClientOnly:
	case r.Controller:
		c.Subject.OrganizationalUnit = []string{controllerUnit}
	default:
		c.Subject.OrganizationalUnit = []string{hostUnit}
	}
	if end == "server" {
		c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		c.DNSNames, c.IPAddresses = r.DNS, r.IPs
		if ip := net.ParseIP(r.Name); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append([]string{r.Name}, r.DNS...)
		}
	}
	return a.certify(filepath.Join(dir, end+"-cert.pem"), c, &key.PublicKey, r.Lasts, now)
}

// certify signs a certificate and replaces the file.
func (a *Authority) certify(path string, c *x509.Certificate, key *ecdsa.PublicKey,
	lasts time.Duration, now time.Time) error {
	if !now.Before(a.Cert.NotAfter) {
		return fmt.Errorf("the authority ended on %s: godwit pki renew renews it first",
			a.Cert.NotAfter.UTC().Format(time.DateOnly))
	}
	valid(c, lasts, now)
	if c.NotAfter.After(a.Cert.NotAfter) {
		c.NotAfter = a.Cert.NotAfter
	}
	signed, err := sign(c, a.Cert, key, a.key)
	if err != nil {
		return err
	}
	return writeCert(path, signed)
}

// newKey makes a key in a file that is not there yet.
func newKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return key, writeKey(path, key)
}
