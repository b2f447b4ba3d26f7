package pki

import (
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// An Entry is one certificate in the directory of an authority.
type Entry struct {
	// Name is whose it is; "" is the authority itself.
	Name string    `json:"name,omitempty"`
	Kind Kind      `json:"kind"`
	File string    `json:"file"`
	For  []string  `json:"for,omitempty"` // the names and addresses that it carries
	Ends time.Time `json:"ends"`
}

// A Kind is what the holder of a certificate is to a controller that serves the store.
type Kind string

// The kinds of certificates.
const (
	AuthorityKind  Kind = "authority"
	HostKind       Kind = "host"
	ControllerKind Kind = "controller"
	ClientKind     Kind = "client"
	// UnmarkedKind: an earlier version of godwit has issued it, which knew of no units. [Authority.Renew]
	// makes it a host's.
	UnmarkedKind Kind = "unmarked"
)

// kindOf returns the kind of a certificate in a file.
func kindOf(c *x509.Certificate, path string) Kind {
	_, host := Holder(c)
	switch {
	case c.IsCA:
		return AuthorityKind
	case host:
		return HostKind
	case slices.Contains(c.Subject.OrganizationalUnit, controllerUnit):
		return ControllerKind
	case unmarked(c, path):
		return UnmarkedKind
	}
	return ClientKind
}

// unmarked reports whether a certificate has no unit although its holder serves, which clients do not.
func unmarked(c *x509.Certificate, path string) bool {
	_, err := os.Lstat(filepath.Join(filepath.Dir(path), "server-cert.pem"))
	return err == nil && len(c.Subject.OrganizationalUnit) == 0
}

// List returns the certificates in a directory: the authority's first, then by name.
func List(dir string) (all []Entry, err error) {
	c, err := entry("", filepath.Join(dir, AuthorityCert))
	if err != nil {
		return nil, err
	}
	all = append(all, c)
	hosts, err := hostsIn(dir)
	for _, h := range hosts {
		for _, end := range ends(false) {
			c, err := entry(h, filepath.Join(dir, h, end+"-cert.pem"))
			switch {
			case errors.Is(err, fs.ErrNotExist) && end == "server": // of a client only
			case err != nil:
				return nil, err
			default:
				all = append(all, c)
			}
		}
	}
	return all, err
}

// hostsIn lists whose files are in a directory. What an issue left unfinished is none.
func hostsIn(dir string) (hosts []string, err error) {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		if f.IsDir() && names.MatchString(f.Name()) {
			hosts = append(hosts, f.Name())
		}
	}
	return hosts, err
}

func entry(name, path string) (Entry, error) {
	c, err := readCert(path)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Name: name, Kind: kindOf(c, path), File: path, For: c.DNSNames, Ends: c.NotAfter.UTC()}
	for _, ip := range c.IPAddresses {
		e.For = append(e.For, ip.String())
	}
	return e, nil
}

// A Renewal says which certificates are to be renewed, and for how long.
type Renewal struct {
	// Names are those whose certificates are renewed in any case. Default: those of all that end
	// within Before.
	Names []string
	// Before is how long before its end a certificate is renewed, that of the authority as well.
	Before time.Duration
	// Lasts is for how long those of hosts are valid from now on, Authority its own.
	Lasts, Authority time.Duration
}

// Renew renews the certificates that end soon, or those of names, and returns what it has written.
// Keys and names stay as they are. A certificate of the authority that was renewed is copied to
// all.
func (a *Authority) Renew(r Renewal, now time.Time) (done []Entry, err error) {
	all, err := List(a.dir)
	if err != nil {
		return nil, err
	}
	asked := map[string]bool{}
	for _, n := range r.Names {
		if _, err := os.Lstat(filepath.Join(a.dir, n)); !names.MatchString(n) || err != nil {
			return nil, fmt.Errorf("%.100q has no certificates in %s: godwit pki issue makes them", n, a.dir)
		}
		asked[n] = true
	}
	soon := func(e Entry) bool { return e.Ends.Before(now.Add(r.Before)) }
	for _, e := range all {
		switch {
		case e.Name == "" && soon(e):
			err = a.renewAll(r, now)
		case e.Name != "" && (asked[e.Name] || len(asked) == 0 && soon(e)):
			err = a.again(e.File, r.Lasts, now)
		default:
			continue
		}
		if err == nil {
			e, err = entry(e.Name, e.File)
		}
		if err != nil {
			return done, err
		}
		done = append(done, e)
	}
	return done, nil
}

// renewAll renews the authority, and gives its certificate to all.
func (a *Authority) renewAll(r Renewal, now time.Time) error {
	if err := a.renew(r.Authority, now); err != nil {
		return err
	}
	hosts, err := hostsIn(a.dir)
	for _, h := range hosts {
		err = errors.Join(err, writeCert(filepath.Join(a.dir, h, AuthorityCert), a.Cert))
	}
	return err
}

// again signs the key of a certificate anew.
func (a *Authority) again(path string, lasts time.Duration, now time.Time) error {
	c, err := readCert(path)
	if err != nil {
		return err
	}
	key, is := c.PublicKey.(*ecdsa.PublicKey)
	if !is || c.CheckSignatureFrom(a.Cert) != nil {
		return fmt.Errorf("%s was not made by this authority: it is not renewed", path)
	}
	if unmarked(c, path) {
		c.Subject.OrganizationalUnit, c.RawSubject = []string{hostUnit}, nil
	}
	return a.certify(path, c, key, lasts, now)
}

// Names returns what an entry is for, in words.
func (e Entry) Names() string { return strings.Join(e.For, ", ") }
