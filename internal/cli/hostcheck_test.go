package cli_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/cli"
)

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// host is a root with these files, in which everything else is well.
func host(t *testing.T, files map[string]string) cli.HostCheck {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return cli.HostCheck{Root: root, Userfaultfd: func() error { return nil },
		Clock: func() (bool, error) { return true, nil }, Now: func() time.Time { return now }}
}

// result finds what a check says, and requires that whatever is not ok says what to do.
func result(t *testing.T, c cli.HostCheck, check string) cli.HostResult {
	t.Helper()
	for _, r := range cli.CheckHost(t.Context(), c) {
		if (r.Status == cli.OK) != (r.Do == "") || r.Found == "" {
			t.Errorf("%+v: what is not ok says what to do", r)
		}
		if r.Check == check {
			return r
		}
	}
	t.Fatalf("there is no check %q", check)
	return cli.HostResult{}
}

func TestChecksOfAHost(t *testing.T) {
	const pages = "MemTotal: 100 kB\nHugePages_Total:      64\nHugePages_Free:  "
	const guests = "etc/systemd/system/multi-user.target.wants/libvirt-guests.service"
	broken := errors.New("it is broken")
	for _, row := range []struct {
		name, check string
		files       map[string]string
		change      func(*cli.HostCheck)
		status      cli.HostStatus
		found       string
	}{
		{"KVM can be opened", "KVM", map[string]string{"dev/kvm": ""}, nil, cli.OK, "can be opened"},
		{"there is no KVM", "KVM", nil, nil, cli.Failed, "dev/kvm is not there"},
		{"KVM is a directory", "KVM", map[string]string{"dev/kvm/x": ""}, nil, cli.Failed, "is a directory"},
		{"there is no KVM, and VMs are to run in software", "KVM", nil, func(c *cli.HostCheck) { c.Software = true },
			cli.Warning, "is not used"},
		{"KVM can be opened, although VMs are to run in software", "KVM", map[string]string{"dev/kvm": ""},
			func(c *cli.HostCheck) { c.Software = true }, cli.OK, "can be opened"},
		{"post-copy is possible", "userfaultfd", nil, nil, cli.OK, "possible"},
		{"post-copy is not", "userfaultfd", nil,
			func(c *cli.HostCheck) { c.Userfaultfd = func() error { return broken } }, cli.Warning, "broken"},
		{"huge pages are free", "huge pages", map[string]string{"proc/meminfo": pages + "3\nHugepagesize: 2048 kB\n"},
			nil, cli.OK, "3 of 64 pages of 2048 KiB are free"},
		{"none is free", "huge pages", map[string]string{"proc/meminfo": pages + "0\n"}, nil, cli.Warning,
			"0 of 64"},
		{"none is reserved", "huge pages", map[string]string{"proc/meminfo": ""}, nil, cli.OK, "none"},
		{"there is no /proc", "huge pages", nil, nil, cli.Warning, "no such file"},
		{"the clock is kept right", "clock", nil, nil, cli.OK, "keeps it right"},
		{"it is not", "clock", nil,
			func(c *cli.HostCheck) { c.Clock = func() (bool, error) { return false, nil } }, cli.Warning,
			"no service"},
		{"it is not known", "clock", nil,
			func(c *cli.HostCheck) { c.Clock = func() (bool, error) { return false, broken } }, cli.Warning,
			"broken"},
		{"VMs run with KVM", "hypervisor", nil, runs("QEMU 10.0, kvm", nil), cli.OK, "QEMU 10.0, kvm"},
		{"VMs run in software", "hypervisor", nil, runs("QEMU 10.0, tcg", nil), cli.Warning, "software"},
		{"nothing runs them", "hypervisor", nil, runs("", broken), cli.Failed, "broken"},
		{"libvirtd starts nothing", "autostart", nil, starts(nil), cli.OK, "starts no domain"},
		{"libvirtd starts domains", "autostart", nil, starts(nil, "web", "db"), cli.Warning, "web, db"},
		{"libvirtd does not say", "autostart", nil, starts(broken), cli.Warning, "broken"},
		{"libvirt-guests is not enabled", "libvirt-guests", nil, starts(nil), cli.OK, "not enabled"},
		{"libvirt-guests starts guests unless told otherwise", "libvirt-guests", map[string]string{guests: ""},
			starts(nil), cli.Warning, "starts the guests"},
		{"its settings are comments", "libvirt-guests", map[string]string{guests: "",
			"etc/default/libvirt-guests": "#ON_BOOT=ignore\n"}, starts(nil), cli.Warning, "starts the guests"},
		{"libvirt-guests starts none", "libvirt-guests", map[string]string{guests: "",
			"etc/default/libvirt-guests": "URIS=default\nON_BOOT=\"ignore\" # godwit does\n"}, starts(nil), cli.OK,
			"starts nothing"},
		{"elsewhere its settings are in another file", "libvirt-guests", map[string]string{guests: "",
			"etc/sysconfig/libvirt-guests": "ON_BOOT=ignore"}, starts(nil), cli.OK, "starts nothing"},
		{"the store answers", "store", nil,
			func(c *cli.HostCheck) { c.Store = func(context.Context) error { return nil } }, cli.OK, "answers"},
		{"it does not", "store", nil,
			func(c *cli.HostCheck) { c.Store = func(context.Context) error { return broken } }, cli.Failed,
			"broken"},
		{"an address of another host", "MTU", nil,
			func(c *cli.HostCheck) { c.Address = "192.0.2.1" }, cli.Failed, "no interface has the address"},
		{"an address of this host", "MTU", nil,
			func(c *cli.HostCheck) { c.Address = "127.0.0.1" }, cli.OK, "lo has"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := host(t, row.files)
			if row.change != nil {
				row.change(&c)
			}
			if r := result(t, c, row.check); r.Status != row.status || !strings.Contains(r.Found, row.found) {
				t.Errorf("%+v, want %s with %q", r, row.status, row.found)
			}
		})
	}
}

func runs(software string, err error) func(*cli.HostCheck) {
	return func(c *cli.HostCheck) {
		c.Hypervisor = func(context.Context) (string, error) { return software, err }
	}
}

func starts(err error, names ...string) func(*cli.HostCheck) {
	return func(c *cli.HostCheck) {
		c.Autostarted = func(context.Context) ([]string, error) { return names, err }
	}
}

func TestDisks(t *testing.T) {
	c := host(t, nil)
	c.Dirs = []string{t.TempDir(), filepath.Join(t.TempDir(), "none")}
	if r := result(t, c, "disk of "+c.Dirs[0]); !strings.Contains(r.Found, "MiB are free") {
		t.Errorf("%+v", r)
	}
	if r := result(t, c, "disk of "+c.Dirs[1]); r.Status != cli.Warning {
		t.Errorf("a directory that is not there: %+v", r)
	}
	c.Dirs = []string{"/proc"} // it has no room at all
	if r := result(t, c, "disk of /proc"); r.Status != cli.Failed {
		t.Errorf("a disk without room: %+v", r)
	}
}

func TestAPortThatIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	c := host(t, nil)
	c.Address, c.Port = "127.0.0.1", l.Addr().(*net.TCPAddr).Port
	if r := result(t, c, "port"); r.Status != cli.Warning || !strings.Contains(r.Found, "in use") {
		t.Errorf("%+v", r)
	}
	must(t, l.Close())
	if r := result(t, c, "port"); r.Status != cli.OK {
		t.Errorf("%+v", r)
	}
}

func TestPeers(t *testing.T) {
	for _, row := range []struct {
		ahead  time.Duration
		status cli.HostStatus
		found  string
	}{
		{0, cli.OK, "its clock agrees"},
		{-time.Second, cli.OK, "its clock agrees"},
		{time.Minute, cli.Failed, "its clock differs by 1m0s"},
		{-time.Hour, cli.Failed, "its clock differs by 59m59s"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", now.Add(row.ahead).Format(http.TimeFormat))
		}))
		c := host(t, nil)
		c.Peers = []string{s.Listener.Addr().String()}
		r := result(t, c, "host at "+c.Peers[0])
		if r.Status != row.status || !strings.Contains(r.Found, row.found) {
			t.Errorf("a clock that is %v ahead: %+v", row.ahead, r)
		}
		s.Close()
		if r := result(t, c, "host at "+c.Peers[0]); r.Status != cli.Failed {
			t.Errorf("a host that does not answer: %+v", r)
		}
	}
}

// authority signs certificates in a directory, as QEMU names them.
func authority(t *testing.T, dir, host string, until time.Time) {
	t.Helper()
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(9000 * time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	signer := write(t, dir, "ca", root, root, nil)
	for i, name := range []string{"server", "client"} {
		write(t, dir, name, &x509.Certificate{SerialNumber: big.NewInt(int64(i + 2)),
			NotBefore: now.Add(-time.Hour), NotAfter: until, IPAddresses: []net.IP{net.ParseIP(host)},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsage(i + 1), x509.ExtKeyUsage(2 - i)}}, root, signer)
	}
}

func write(t *testing.T, dir, name string, cert, by *x509.Certificate, signer *ecdsa.PrivateKey) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	if signer == nil {
		signer = key
	}
	signed, err := x509.CreateCertificate(rand.Reader, cert, by, &key.PublicKey, signer)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	for kind, text := range map[string]*pem.Block{"cert": {Type: "CERTIFICATE", Bytes: signed},
		"key": {Type: "PRIVATE KEY", Bytes: secret}} {
		must(t, os.WriteFile(filepath.Join(dir, name+"-"+kind+".pem"), pem.EncodeToMemory(text), 0o600))
	}
	return key
}

func TestCertificates(t *testing.T) {
	const year = 365 * 24 * time.Hour
	const server, client, ca = "TLS server-cert.pem", "TLS client-cert.pem", "TLS ca-cert.pem"
	for _, row := range []struct {
		name, check string
		until       time.Duration
		spoil       func(t *testing.T, dir string)
		status      cli.HostStatus
		found       string
	}{
		{"a good one", server, year / 2, nil, cli.OK, "it ends on 2027-05-28"},
		{"a good one of a client", client, year / 2, nil, cli.OK, "it ends on 2027-05-28"},
		{"the authority's", ca, year, nil, cli.OK, "it ends on 2027-12-06"},
		{"one that ends soon", server, 24 * time.Hour, nil, cli.Warning, "it ends on 2026-11-27"},
		{"one that has ended", client, -time.Minute, nil, cli.Failed, "it ended on 2026-11-26"},
		{"one without its key", server, year / 2, func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, "server-key.pem")))
		}, cli.Failed, "no such file"},
		{"one with another key", server, year / 2, func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, "client-key.pem"), filepath.Join(dir, "server-key.pem")))
		}, cli.Failed, "private key does not match"},
		{"one of another authority", server, year / 2, func(t *testing.T, dir string) {
			other := t.TempDir()
			authority(t, other, "127.0.0.1", now.Add(year/2))
			for _, name := range []string{"server-cert.pem", "server-key.pem"} {
				must(t, os.Rename(filepath.Join(other, name), filepath.Join(dir, name)))
			}
		}, cli.Failed, "certificate signed by unknown authority"},
		{"no authority", ca, year / 2, func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "ca-cert.pem"), []byte("text"), 0o600))
		}, cli.Failed, "there is no certificate in it"},
		{"one of another address", server, year / 2, func(t *testing.T, dir string) {
			authority(t, dir, "192.0.2.1", now.Add(year/2))
		}, cli.Warning, "192.0.2.1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := host(t, nil)
			c.TLS, c.Address = t.TempDir(), "127.0.0.1"
			authority(t, c.TLS, "127.0.0.1", now.Add(row.until))
			if row.spoil != nil {
				row.spoil(t, c.TLS)
			}
			if r := result(t, c, row.check); r.Status != row.status || !strings.Contains(r.Found, row.found) {
				t.Errorf("%+v, want %s with %q", r, row.status, row.found)
			}
		})
	}
	c := host(t, nil)
	c.TLS, c.PSK = t.TempDir(), true
	if r := result(t, c, "TLS keys.psk"); r.Status != cli.Failed {
		t.Errorf("a key that is not there: %+v", r)
	}
	must(t, os.WriteFile(filepath.Join(c.TLS, "keys.psk"), []byte("qemu:abc\n"), 0o600))
	if r := result(t, c, "TLS keys.psk"); r.Status != cli.OK {
		t.Errorf("%+v", r)
	}
}
