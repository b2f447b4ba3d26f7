package qmp_test

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/pki"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// hostname is what the certificates of targets carry.
const hostname = "target.godwit.test"

// An authority makes certificates as godwit pki does.
type authority struct {
	t   testing.TB
	own *pki.Authority
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	own, err := pki.Init(filepath.Join(t.TempDir(), "pki"), name, 24*time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &authority{t, own}
}

// credentials returns the directory of a host that is source and target.
func (a *authority) credentials() string {
	a.t.Helper()
	dir, err := a.own.Issue(pki.Request{Name: hostname, IPs: []net.IP{net.IPv4(127, 0, 0, 1)},
		Lasts: 24 * time.Hour}, time.Now())
	if err != nil {
		a.t.Fatal(err)
	}
	return dir
}

// writeParameters gives credentials the Diffie-Hellman group ffdhe2048 of RFC 7919. Without
// them QEMU 7.2 computes a group for each target: 0.2 s mostly, but many seconds at times.
func writeParameters(t testing.TB, dir string) {
	t.Helper()
	group, err := os.ReadFile("../../internal/pki/dh-params.pem")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "dh-params.pem"), group, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sharedKey writes a key that both ends know, and returns its directory.
func sharedKey(t testing.TB) string {
	t.Helper()
	dir, key := t.TempDir(), make([]byte, 32)
	rand.Read(key)
	text := "qemu:" + hex.EncodeToString(key) + "\n"
	if err := os.WriteFile(filepath.Join(dir, "keys.psk"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	writeParameters(t, dir)
	return dir
}

// encrypted opens a lab with a link between its hosts, which has credentials.
func encrypted(t *testing.T, tls func(name) *qmp.TLS) (*lab, *link) {
	l, wire := linked(t, func(c *qmp.Config) {
		c.TLS, c.Timeout = tls(c.Name), testutil.Limit(30*time.Second)
	})
	if why := supports(l, hypervisor.CanEncrypt); why != "" {
		t.Skip(why)
	}
	return l, wire
}

func TestAMigrationIsEncrypted(t *testing.T) {
	authority := newAuthority(t, "godwit test")
	dir, secret := authority.credentials(), sharedKey(t)
	x509, psk := &qmp.TLS{Dir: dir, Hostname: hostname}, &qmp.TLS{Dir: secret, PSK: true}
	for _, row := range []struct {
		name    string
		tls     *qmp.TLS
		options options
	}{
		{"with certificates", x509, options{}},
		{"with certificates, over two channels", x509, options{Channels: 2}},
		{"with certificates, compressed", x509, options{Compression: true}},
		{"with a shared key", psk, options{}},
		{"with a shared key, over two channels", psk, options{Channels: 2}},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, _ := encrypted(t, func(name) *qmp.TLS { return row.tls })
			vm := l.vm("suite/traveller", calm)
			l.start("n1", vm)
			l.begin("job", vm.ID, row.options)
			l.arrives("job", vm.ID)
		})
	}
	t.Run("with certificates, by IP address over TCP", func(t *testing.T) {
		ports := freePorts(t)
		l := newLab(t, accelerator(t), func(c *qmp.Config) {
			overTCP(ports)(c)
			c.TLS = &qmp.TLS{Dir: dir}
		})
		vm := l.vm("suite/traveller", calm)
		l.start("n1", vm)
		l.begin("job", vm.ID, options{})
		l.arrives("job", vm.ID)
	})
	t.Run("with certificates, in post-copy", func(t *testing.T) {
		l, _ := encrypted(t, func(name) *qmp.TLS { return x509 })
		needPostCopy(l, 0)
		vm := l.vm("suite/traveller", calm)
		l.start("n1", vm)
		l.postCopies("job", vm.ID, options{})
		l.arrives("job", vm.ID)
	})
}

// An encrypted VM moves there, back and there again: the ends change their sides.
func TestAnEncryptedMigrationGoesBack(t *testing.T) {
	dir := newAuthority(t, "godwit test").credentials()
	l, _ := encrypted(t, func(name) *qmp.TLS { return &qmp.TLS{Dir: dir, Hostname: hostname} })
	vm := l.vm("suite/traveller", calm)
	l.start("n1", vm)
	from, to := name("n1"), name("n2")
	for _, j := range []job{"there", "back", "there again"} {
		j = l.moveWith(j, vm, [2]name{from, to}, options{})
		l.sound(to, vm.ID)
		l.release(j, vm.ID, from, to)
		from, to = to, from
	}
	l.ends(from, vm.ID)
}

// Without agreement about who is who, nothing is sent and the VM stays.
func TestAMigrationToAStrangerFails(t *testing.T) {
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	mine, foreign, secret := ours.credentials(), theirs.credentials(), sharedKey(t)
	for _, row := range []struct {
		name string
		at   map[name]*qmp.TLS
	}{
		{"whose certificate another authority signed", map[name]*qmp.TLS{
			"n1": {Dir: mine, Hostname: hostname}, "n2": {Dir: foreign, Hostname: hostname}}},
		{"whose certificate carries another name", map[name]*qmp.TLS{
			"n1": {Dir: mine, Hostname: "other.godwit.test"}, "n2": {Dir: mine}}},
		{"who encrypts nothing", map[name]*qmp.TLS{"n1": {Dir: mine, Hostname: hostname}}},
		{"who encrypts, from one who does not", map[name]*qmp.TLS{"n2": {Dir: mine}}},
		{"with another shared key", map[name]*qmp.TLS{"n1": {Dir: secret, PSK: true},
			"n2": {Dir: sharedKey(t), PSK: true}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var ear pattern
			l, wire := linked(t, func(c *qmp.Config) { c.TLS = row.at[c.Name] })
			wire.overhear = ear.hear
			vm := l.vm("suite/traveller", calm)
			l.start("n1", vm)
			ear.want(l.page("n1", vm.ID))
			if err := l.send("job", vm.ID, options{}); err == nil {
				l.Eventually("it has failed", func() bool {
					p := l.Progress("n1", "job")
					if p.Status == hypervisor.JobSucceeded {
						t.Fatal("it succeeded")
					}
					return p.Status == hypervisor.JobFailed
				})
				t.Log(l.Progress("n1", "job").Error)
			} else {
				t.Log(err)
			}
			if row.at["n1"] != nil && ear.heard() {
				t.Error("memory was on the wire")
			}
			l.stays("job", vm.ID)
		})
	}
}

func TestCredentialsThatAreMissingAreInvalid(t *testing.T) {
	empty := t.TempDir()
	l, _ := encrypted(t, func(name) *qmp.TLS { return &qmp.TLS{Dir: empty} })
	vm := l.vm("suite/traveller", calm)
	l.start("n1", vm)
	backendtest.Refused(t, l.send("job", vm.ID, options{}), hypervisor.Invalid, "credentials",
		empty)
	l.stays("job", vm.ID)
}

// A pattern is looked for in all that passes a link.
type pattern struct {
	mu    sync.Mutex
	bytes []byte
	tail  []byte
	found bool
}

func (p *pattern) want(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes = b
}

// hear looks at one piece. What is split between pieces of one connection may be
// missed, where connections mix; a page passes in one piece often enough.
func (p *pattern) hear(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes == nil {
		return
	}
	p.tail = append(p.tail, b...)
	p.found = p.found || bytes.Contains(p.tail, p.bytes)
	if extra := len(p.tail) - len(p.bytes); extra > 0 {
		p.tail = bytes.Clone(p.tail[extra:])
	}
}

func (p *pattern) heard() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.found
}

// page reads what the guest has in a page that it never writes again: half of it,
// which is found nowhere else.
func (l *lab) page(n name, id vmid) []byte {
	l.T.Helper()
	const size = guest.PageSize / 2
	path := filepath.Join(l.dir, "page")
	defer os.Remove(path)
	m, err := l.hosts[n].Monitor(id)
	if err == nil {
		err = m.Execute(testutil.Context(l.T, testutil.DefaultLimit), "pmemsave", map[string]any{
			"val": guest.Base + calm.Fill - size, "size": size, "filename": path}, nil)
	}
	if err != nil {
		l.T.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil || bytes.Count(page, []byte{0}) > size/8 {
		l.T.Fatalf("the page is no pattern: %v", err)
	}
	return page
}

// A listener on the network sees the guest's memory, and its disks, only when
// they are not encrypted.
func TestAnEavesdropperSeesNoMemory(t *testing.T) {
	dir, secret := newAuthority(t, "godwit test").credentials(), sharedKey(t)
	for _, row := range []struct {
		name    string
		tls     *qmp.TLS
		options options
		sees    bool
	}{
		{"without encryption it is there to be read", nil, options{}, true},
		{"with certificates it is not", &qmp.TLS{Dir: dir, Hostname: hostname}, options{}, false},
		{"with certificates that are required it is not", &qmp.TLS{Dir: dir, Hostname: hostname},
			options{Encryption: hypervisor.EncryptRequired}, false},
		{"with certificates that are not to be used it is there", &qmp.TLS{Dir: dir, Hostname: hostname},
			options{Encryption: hypervisor.EncryptOff}, true},
		{"with certificates and two channels it is not",
			&qmp.TLS{Dir: dir, Hostname: hostname}, options{Channels: 2}, false},
		{"with a shared key it is not", &qmp.TLS{Dir: secret, PSK: true}, options{}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			var memory, disk pattern
			l, wire := linked(t, func(c *qmp.Config) { c.TLS = row.tls })
			wire.overhear = func(b []byte) { memory.hear(b); disk.hear(b) }
			vm := backendtest.WithDisks(l.vm("suite/traveller", calm), hypervisor.Disk{Name: "data",
				Size: 4 * mib})
			contents := l.furnish("n1", vm)
			l.start("n1", vm)
			memory.want(l.page("n1", vm.ID))
			disk.want(contents["data"][8192 : 8192+2048])
			l.begin("job", vm.ID, row.options)
			l.Until("n1", "job", hypervisor.JobSucceeded)
			if memory.heard() != row.sees || disk.heard() != row.sees {
				t.Errorf("memory was read: %v, disk: %v; want %v", memory.heard(), disk.heard(),
					row.sees)
			}
			l.sound("n2", vm.ID)
			l.release("job", vm.ID, "n1", "n2")
			l.Do("n2", vm.ID, hypervisor.Kill{})
			l.same("n2", contents)
			l.Do("n2", vm.ID, hypervisor.Forget{})
			l.empty()
		})
	}
}
