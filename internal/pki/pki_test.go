package pki_test

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/pki"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// issued is an authority of 100 days, and the directory of a host of 90 days.
func issued(t *testing.T) (a *pki.Authority, dir, host string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "pki")
	a, err := pki.Init(dir, "test", 100*day, now)
	must(t, err)
	host, err = a.Issue(pki.Request{Name: "n1", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Lasts: 90 * day}, now)
	must(t, err)
	return a, dir, host
}

func TestKeysAreClosedToOthers(t *testing.T) {
	_, dir, _ := issued(t)
	must(t, filepath.WalkDir(dir, func(path string, f fs.DirEntry, err error) error {
		must(t, err)
		about, err := f.Info()
		must(t, err)
		if about.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, about.Mode())
		}
		return nil
	}))
}

// end returns when the certificate in a file ends, which has to belong to its key.
func end(t *testing.T, dir, side string) time.Time {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, side+"-cert.pem"), filepath.Join(dir, side+"-key.pem"))
	must(t, err)
	return pair.Leaf.NotAfter
}

// TestRenewal: by hand, what ends when. No certificate outlives its authority.
func TestRenewal(t *testing.T) {
	a, dir, host := issued(t)
	renewal := pki.Renewal{Before: 30 * day, Lasts: 90 * day, Authority: 1000 * day}
	renew := func(at time.Time, want int) {
		t.Helper()
		if done, err := a.Renew(renewal, at); err != nil || len(done) != want {
			t.Errorf("at %v: %d renewed, %v; want %d", at, len(done), err, want)
		}
	}
	renew(now.Add(60*day), 0)
	if got := end(t, host, "server"); !got.Equal(now.Add(90 * day)) {
		t.Errorf("it ends at %v", got)
	}
	renew(now.Add(61*day), 2) // the authority has 39 days left, and the host's become as short
	for _, side := range []string{"server", "client"} {
		if got := end(t, host, side); !got.Equal(now.Add(100 * day)) {
			t.Errorf("%s ends at %v, and the authority after 100 days", side, got)
		}
	}
	renew(now.Add(71*day), 3)
	if got := end(t, host, "server"); !got.Equal(now.Add(161 * day)) {
		t.Errorf("it ends at %v, want 161 days", got)
	}
	ours, err := os.ReadFile(filepath.Join(dir, pki.AuthorityCert))
	must(t, err)
	theirs, err := os.ReadFile(filepath.Join(host, pki.AuthorityCert))
	must(t, err)
	if !bytes.Equal(ours, theirs) {
		t.Error("the host has the old authority")
	}
	if _, err := a.Issue(pki.Request{Name: "n2", Lasts: day}, now.Add(2000*day)); err == nil {
		t.Error("an authority that has ended signs")
	}
}

// TestAnAuthoritySignsForNoOther: what another authority has signed is neither renewed nor valid.
func TestAnAuthoritySignsForNoOther(t *testing.T) {
	a, dir, _ := issued(t)
	_, _, foreign := issued(t)
	for _, file := range []string{"server-cert.pem", "server-key.pem"} {
		text, err := os.ReadFile(filepath.Join(foreign, file))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, "n1", file), text, 0o600))
	}
	if _, err := a.Renew(pki.Renewal{Names: []string{"n1"}, Lasts: day, Authority: day}, now); err == nil {
		t.Error("the certificate of another authority is renewed")
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(foreign, "server-cert.pem"), filepath.Join(foreign, "server-key.pem"))
	must(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(a.Cert)
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now}); err == nil {
		t.Error("it is valid")
	}
}

// TestAnInterruptedIssueIsIssuedAgain: what was left unfinished is no host.
func TestAnInterruptedIssueIsIssuedAgain(t *testing.T) {
	a, dir, _ := issued(t)
	must(t, os.Mkdir(filepath.Join(dir, ".unfinished-1"), 0o700))
	_, err := a.Issue(pki.Request{Name: "n2", Lasts: day}, now)
	must(t, err)
	all, err := pki.List(dir)
	must(t, err)
	if len(all) != 5 {
		t.Errorf("%d certificates, want 5: %+v", len(all), all)
	}
	again, err := pki.Open(dir)
	must(t, err)
	if !again.Cert.Equal(a.Cert) {
		t.Error("it is another authority")
	}
}

// TestWhoseACertificateIs: hosts are told from people and controllers, also when an earlier version of
// godwit has issued the certificate and it was renewed.
func TestWhoseACertificateIs(t *testing.T) {
	a, dir, host := issued(t)
	person, err := a.Issue(pki.Request{Name: "bob", ClientOnly: true, Lasts: day}, now)
	must(t, err)
	boss, err := a.Issue(pki.Request{Name: "boss", Controller: true, Lasts: day}, now)
	must(t, err)
	check := func(of, side, name string, isHost bool) {
		t.Helper()
		pair, err := tls.LoadX509KeyPair(filepath.Join(of, side+"-cert.pem"), filepath.Join(of, side+"-key.pem"))
		must(t, err)
		if got, is := pki.Holder(pair.Leaf); got != name || is != isHost {
			t.Errorf("%s of %s: %s, host %v; want %s, %v", side, of, got, is, name, isHost)
		}
	}
	check(host, "server", "n1", true)
	check(host, "client", "n1", true)
	check(person, "client", "bob", false)
	check(boss, "server", "boss", false)
	check(boss, "client", "boss", false)
	kinds := func(want string) {
		t.Helper()
		all, err := pki.List(dir)
		must(t, err)
		var got []string
		for _, e := range all {
			got = append(got, e.Name+" "+string(e.Kind))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("the kinds are %s\nwant          %s", text, want)
		}
	}
	kinds(" authority, bob client, boss controller, boss controller, n1 host, n1 host")

	former := func(of, side string) { // without a unit, as it was
		pair, err := tls.LoadX509KeyPair(filepath.Join(of, side+"-cert.pem"), filepath.Join(of, side+"-key.pem"))
		must(t, err)
		c := *pair.Leaf
		c.Subject.OrganizationalUnit, c.RawSubject = nil, nil
		text, err := os.ReadFile(filepath.Join(dir, "ca-key.pem"))
		must(t, err)
		block, _ := pem.Decode(text)
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		must(t, err)
		der, err := x509.CreateCertificate(rand.Reader, &c, a.Cert, c.PublicKey, key)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(of, side+"-cert.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	}
	former(host, "server")
	former(host, "client")
	former(person, "client")
	check(host, "client", "n1", false)
	kinds(" authority, bob client, boss controller, boss controller, n1 unmarked, n1 unmarked")
	_, err = a.Renew(pki.Renewal{Names: []string{"n1", "bob", "boss"}, Lasts: day, Authority: day}, now)
	must(t, err)
	check(host, "server", "n1", true)
	check(host, "client", "n1", true)
	check(person, "client", "bob", false)
	check(boss, "client", "boss", false)
	kinds(" authority, bob client, boss controller, boss controller, n1 host, n1 host")
}
