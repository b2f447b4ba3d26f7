package boltstore_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/conformance"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/pki"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

var loopback = []net.IP{net.IPv4(127, 0, 0, 1)}

// authority makes an authority with a controller, a, and an admin, root, in a directory.
func authority(t testing.TB, dir string) *pki.Authority {
	t.Helper()
	a, err := pki.Init(filepath.Join(dir, "pki"), "test", time.Hour, time.Now())
	must(t, err)
	issue(t, a, pki.Request{Name: "a", IPs: loopback, Controller: true})
	issue(t, a, pki.Request{Name: "root", ClientOnly: true})
	return a
}

func issue(t testing.TB, a *pki.Authority, r pki.Request) pki.Dir {
	t.Helper()
	if r.Lasts == 0 {
		r.Lasts = time.Hour
	}
	dir, err := a.Issue(r, time.Now())
	must(t, err)
	return pki.Dir(dir)
}

func rootIsAdmin() boltstore.Access {
	return boltstore.Access{Certified: &boltstore.Names{Admins: []string{"root"}}}
}

// serveTLS serves a store at an address until what it returns is called, or the test ends.
func serveTLS(t testing.TB, s store.Store, at, dir string, refused func(string, error)) (address string, stop func()) {
	t.Helper()
	raw, err := net.Listen("tcp", at)
	must(t, err)
	l, err := boltstore.ListenTLS(raw, pki.Dir(filepath.Join(dir, "pki", "a")), refused)
	must(t, err)
	serving, cancel := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- boltstore.ServeTo(serving, s, l, rootIsAdmin()) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("ServeTo: %v", err)
		}
	})
	t.Cleanup(stop)
	return raw.Addr().String(), stop
}

func dialTLS(t testing.TB, dir string, addresses ...string) *boltstore.Client {
	t.Helper()
	c, err := boltstore.DialTLS(addresses, pki.Dir(filepath.Join(dir, "pki", "root")))
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

// serveDirTLS is serveDir over TLS, at the address in the file "tls".
func serveDirTLS(dir string, address []byte) error {
	s, err := boltstore.Open(filepath.Join(dir, "godwit.db"))
	if err != nil {
		return err
	}
	raw, err := net.Listen("tcp", string(address))
	if err != nil {
		return err
	}
	l, err := boltstore.ListenTLS(raw, pki.Dir(filepath.Join(dir, "pki", "a")), nil)
	if err != nil {
		return err
	}
	fmt.Println("serving")
	return boltstore.ServeTo(ctx, s, l, rootIsAdmin())
}

// freeAddress is one at which nothing listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

// TestTLSConformance: the store is the same over TLS as over a socket, also when its server is killed or cut off.
func TestTLSConformance(t *testing.T) {
	testutil.Long(t)
	conformance.Store(t, func(t *testing.T) conformance.Subject {
		dir := newDir(t)
		authority(t, dir)
		at := freeAddress(t)
		must(t, os.WriteFile(filepath.Join(dir, "tls"), []byte(at), 0o600))
		kill := startServer(t, dir)
		w := newTCPWire(t, at)
		return remoteSubject(dir, dialTLS(t, dir, w.path), w, kill)
	})
}

// TestTheNextControllerIsAsked when one is gone, and a wait goes on there.
func TestTheNextControllerIsAsked(t *testing.T) {
	dir := newDir(t)
	authority(t, dir)
	s := newStore(t, dir)
	one, stopOne := serveTLS(t, s, "127.0.0.1:0", dir, nil)
	two, stopTwo := serveTLS(t, s, "127.0.0.1:0", dir, nil)
	client := dialTLS(t, dir, one, two)
	put := func(name string) error {
		_, err := client.Put(ctx, vmOn(name, "n1"))
		if errors.Is(err, store.Unanswered) { // on a connection that was kept: asked again
			_, err = client.Put(ctx, vmOn(name, "n1"))
		}
		return err
	}
	must(t, put("a"))
	stopOne()
	must(t, put("b"))
	stopTwo()
	wantError(t, put("c"), store.Unavailable, one, two)
	again, _ := serveTLS(t, s, one, dir, nil)
	if err := put("c"); err != nil {
		t.Errorf("at %s, which is back: %v", again, err)
	}
	c, err := client.Changes(ctx, store.Everything, 0)
	must(t, err)
	if len(c.Records) != 3 {
		t.Errorf("%d records, want 3", len(c.Records))
	}
}

// TestRenewedCertificatesAreRead by servers and clients that run, and one that has ended is refused.
func TestRenewedCertificatesAreRead(t *testing.T) {
	dir := newDir(t)
	a := authority(t, dir)
	refusals := make(chan error, 16)
	at, _ := serveTLS(t, newStore(t, dir), "127.0.0.1:0", dir, func(_ string, err error) {
		select {
		case refusals <- err:
		default:
		}
	})
	client := dialTLS(t, dir, at)
	_, err := client.Put(ctx, vmOn("v", "n1"))
	must(t, err)
	renew := func(name string, lasts time.Duration) {
		t.Helper()
		must(t, client.Close()) // the next call shakes hands
		_, err := a.Renew(pki.Renewal{Names: []string{name}, Lasts: lasts, Authority: time.Hour}, time.Now())
		must(t, err)
	}
	renew("root", -time.Minute)
	_, err = client.Get(ctx, vmOn("v", "").Key())
	wantError(t, err, store.Unavailable, "tls: ")
	if err := <-refusals; !strings.Contains(err.Error(), "expired") {
		t.Errorf("the server says %v", err)
	}
	_, err = client.Put(ctx, vmOn("w", "n1"))
	if !errors.Is(err, store.Unanswered) && !errors.Is(err, store.Unavailable) {
		t.Errorf("a write with a certificate that has ended: %v", err)
	}
	renew("root", time.Minute)
	_, err = client.Get(ctx, vmOn("v", "").Key())
	must(t, err)
	renew("a", -time.Minute)
	_, err = client.Put(ctx, vmOn("w", "n1"))
	wantError(t, err, store.Unavailable, "expired") // the client saw it before it sent anything
	renew("a", time.Minute)
	if r, err := client.Get(ctx, vmOn("w", "").Key()); err != nil || r != nil {
		t.Errorf("what was refused is stored: %v, %v", r, err)
	}
}

// TestSilentPeersKeepNoOtherWaiting: one that does not shake hands, many that do not, one that holds all
// the connections that its certificate may have, and one that says something else.
func TestSilentPeersKeepNoOtherWaiting(t *testing.T) {
	dir := newDir(t)
	a := authority(t, dir)
	greedy := issue(t, a, pki.Request{Name: "n1"})
	refusals := make(chan error, 1024)
	at, _ := serveTLS(t, newStore(t, dir), "127.0.0.1:0", dir, func(_ string, err error) { refusals <- err })
	client := dialTLS(t, dir, at)
	var held []net.Conn
	defer func() {
		for _, c := range held {
			_ = c.Close()
		}
	}()
	for range 20 { // fewer than an address may have
		c, err := net.Dial("tcp", at)
		must(t, err)
		held = append(held, c)
	}
	_, err := client.Put(soon(t), vmOn("v", "n1"))
	must(t, err)
	plain, err := net.Dial("tcp", at)
	must(t, err)
	held = append(held, plain)
	_, err = plain.Write([]byte("POST /Get HTTP/1.1\r\nHost: x\r\n\r\n"))
	must(t, err)
	if err := <-refusals; !strings.Contains(err.Error(), "first record does not look like a TLS handshake") {
		t.Errorf("a peer without TLS is refused: %v", err)
	}
	for range boltstore.PerName {
		c, err := boltstore.DialOne(ctx, at, greedy)
		must(t, err)
		held = append(held, c)
	}
	var full error
	testutil.Eventually(t, "the last connection is refused", func() error {
		c, err := boltstore.DialOne(ctx, at, greedy)
		must(t, err)
		held = append(held, c)
		select {
		case full = <-refusals:
			return nil
		default:
			return errors.New("not yet")
		}
	})
	if !strings.Contains(full.Error(), "connections already") {
		t.Errorf("it says %v", full)
	}
	_, err = client.Put(soon(t), vmOn("w", "n1"))
	must(t, err)
}

// TestPeersThatShakeNoHandsKeepNoOtherOut: so many that no more are taken, from several addresses. The oldest gives way.
func TestPeersThatShakeNoHandsKeepNoOtherOut(t *testing.T) {
	dir := newDir(t)
	authority(t, dir)
	refusals := make(chan error, 1024)
	at, _ := serveTLS(t, newStore(t, dir), "127.0.0.1:0", dir, func(_ string, err error) { refusals <- err })
	var held []net.Conn
	defer func() {
		for _, c := range held {
			_ = c.Close()
		}
	}()
	for i := range 256 {
		from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i/32))}}
		c, err := from.DialContext(ctx, "tcp", at)
		must(t, err)
		held = append(held, c)
	}
	_, err := dialTLS(t, dir, at).Put(soon(t), vmOn("v", "n1"))
	must(t, err)
	if err := <-refusals; !strings.Contains(err.Error(), "too many handshakes began after its own") {
		t.Errorf("a peer is refused: %v", err)
	}
	must(t, held[0].SetReadDeadline(time.Now().Add(testutil.Limit(5*time.Second))))
	if _, err := held[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the oldest hears %v", err)
	}
}

// TestAHostHasOneAddressOfIPv4AndManyOfIPv6 that count as one.
func TestAHostHasOneAddressOfIPv4AndManyOfIPv6(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1:7443":               "10.0.0.1",
		"[::ffff:10.0.0.1]:7443":      "10.0.0.1",
		"[2001:db8:1:2:3:4:5:6]:7443": "2001:db8:1:2::/64",
		"[2001:db8:1:2::1]:7443":      "2001:db8:1:2::/64",
		"[2001:db8:1:3::1]:7443":      "2001:db8:1:3::/64",
		"[fe80::1%lo]:7443":           "fe80::/64",
	} {
		a, err := net.ResolveTCPAddr("tcp", address)
		must(t, err)
		if got := boltstore.PlaceOf(a); got != want {
			t.Errorf("%s is at %s, want %s", address, got, want)
		}
	}
}

// say sends a request as it is, and returns what reads the answer.
func say(t testing.TB, at string, as pki.Dir, op, body string) (answer func() (string, error)) {
	t.Helper()
	c, err := boltstore.DialOne(ctx, at, as)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = fmt.Fprintf(c, "POST /%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", op, len(body), body)
	must(t, err)
	return func() (string, error) {
		must(t, c.SetReadDeadline(time.Now().Add(testutil.Limit(5*time.Second))))
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return "", err
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		return string(text), err
	}
}

// TestAnAgentThatWaitsKeepsNoOtherWaiting: what takes memory is decoded one after the other, and a wait, which may
// say that it does, is over then. What carries no record is short.
func TestAnAgentThatWaitsKeepsNoOtherWaiting(t *testing.T) {
	dir := newDir(t)
	a := authority(t, dir)
	n1, n2 := issue(t, a, pki.Request{Name: "n1"}), issue(t, a, pki.Request{Name: "n2"})
	at, _ := serveTLS(t, newStore(t, dir), "127.0.0.1:0", dir, nil)
	speaks := fmt.Sprintf(`{"Speaks":{"Protocol":%d,"Record":%d},"Note":"Packed"`, boltstore.Protocol, store.Format)
	client := dialTLS(t, dir, at)
	now, err := client.Changes(ctx, store.Feed{Host: "n1"}, 0)
	must(t, err)
	waits := say(t, at, n1, "Wait", fmt.Sprintf(`%s,"Host":"bjE=","Since":%d}`, speaks, now.Next))
	said, err := say(t, at, n1, "Get", speaks+`,"Host":"bjE="}`)() // the wait has been read, as a rule
	if err != nil {
		t.Fatalf("another read of the same agent: %v %s", err, said)
	}
	if said, err = say(t, at, n2, "Put", speaks+`}`)(); err != nil || !strings.Contains(said, "of nothing") {
		t.Errorf("a write of another agent: %v %s", err, said)
	}
	_, err = client.Put(soon(t), vmOn("v", "n1"))
	must(t, err)
	if said, err = waits(); err != nil || strings.Contains(said, "rror\":{") {
		t.Errorf("the wait: %v %s", err, said)
	}
	long := speaks + `,"Host":"` + strings.Repeat("n", 64<<10) + `"}`
	for _, op := range []string{"Get", "Changes", "Wait"} {
		if said, err = say(t, at, n1, op, long)(); err != nil || !strings.Contains(said, "more than 65536 bytes") {
			t.Errorf("%s of 64 KiB and more: %v %.200s", op, err, said)
		}
	}
}

// slowPuts is a store whose writes of hosts last until they are let go.
type slowPuts struct {
	store.Store
	began chan hypervisor.HostName
	end   chan struct{}
}

func (s *slowPuts) Put(ctx context.Context, r store.Record, while ...store.Record) (store.Record, error) {
	s.began <- r.(*store.Host).Host.Name
	<-s.end
	return s.Store.Put(ctx, r, while...)
}

// TestPackedRecordsAreReadOneAfterTheOther: however the request writes that its record is packed.
func TestPackedRecordsAreReadOneAfterTheOther(t *testing.T) {
	dir := newDir(t)
	a := authority(t, dir)
	s := &slowPuts{newStore(t, dir), make(chan hypervisor.HostName), make(chan struct{})}
	at, _ := serveTLS(t, s, "127.0.0.1:0", dir, nil)
	var packed bytes.Buffer
	put := func(host, text string) func() (string, error) {
		return say(t, at, issue(t, a, pki.Request{Name: host}), "Put", fmt.Sprintf(
			`{"Speaks":{"Protocol":%d,"Record":%d},"Record":{"Key":{"Kind":"host","Name":%q},"Version":0,"Text":%s}}`,
			boltstore.Protocol, store.Format, base64.StdEncoding.EncodeToString([]byte(host)), text))
	}
	in := func(host string) string {
		packed.Reset()
		z := gzip.NewWriter(&packed)
		_, err := fmt.Fprintf(z, `{"Host":{"Name":%q}}`, host)
		must(t, errors.Join(err, z.Close()))
		return base64.StdEncoding.EncodeToString(packed.Bytes())
	}
	answers := []func() (string, error){put("n1", `{"format":2,"packed":"`+in("n1")+`"}`)}
	if got := <-s.began; got != "n1" {
		t.Fatalf("%s writes", got)
	}
	answers = append(answers, put("n2", `{"\u0046ormat":2,"\u0050acked":"`+in("n2")+`"}`),
		put("n3", `{"Format":1,"Record":{"Host":{"Name":"n3"}}}`))
	if got := <-s.began; got != "n3" { // it is not packed, and does not wait
		t.Errorf("%s is read while another packed record is", got)
	}
	s.end <- struct{}{}
	s.end <- struct{}{}
	if got := <-s.began; got != "n2" {
		t.Errorf("%s is written last", got)
	}
	s.end <- struct{}{}
	for i, answer := range answers {
		if said, err := answer(); err != nil || strings.Contains(said, "rror\":{") {
			t.Errorf("n%d: %v %s", i+1, err, said)
		}
	}
}

// TestAnAgentFollowsTheFeedsOfItsHostOnly: a feed that is of a host and of leases is of none.
func TestAnAgentFollowsTheFeedsOfItsHostOnly(t *testing.T) {
	dir := newDir(t)
	a, s := authority(t, dir), newStore(t, dir)
	at, _ := serveTLS(t, s, "127.0.0.1:0", dir, nil)
	agent, err := boltstore.DialTLS([]string{at}, issue(t, a, pki.Request{Name: "n1"}))
	must(t, err)
	t.Cleanup(func() { must(t, agent.Close()) })
	for _, f := range []store.Feed{{Host: "n1"}, store.Leases} {
		if _, err := agent.Changes(ctx, f, 0); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
	for _, f := range []store.Feed{{Host: "n2"}, {Host: "n2", Leases: true}, {Host: "n1", Leases: true}, store.Everything} {
		_, err := agent.Changes(ctx, f, 0)
		wantError(t, err, store.Forbidden, "reads what concerns its host")
		wantError(t, agent.Wait(ctx, f, 1), store.Forbidden, "reads what concerns its host")
	}
	root := dialTLS(t, dir, at)
	for says, f := range map[string]store.Feed{"no feed of the leases of one host": {Host: "n1", Leases: true},
		"at most 1024 are taken": {Host: hypervisor.HostName(strings.Repeat("n", 1025))}} {
		_, err := root.Changes(ctx, f, 0)
		wantError(t, err, store.Unreadable, says)
		wantError(t, root.Wait(ctx, f, 1), store.Unreadable, says)
	}
	_, err = s.Changes(ctx, store.Feed{Host: "n1", Leases: true}, 0)
	wantError(t, err, store.Unreadable, "no feed")
	wantError(t, s.Wait(ctx, store.Feed{Host: "n1", Leases: true}, 1), store.Unreadable, "no feed")
}

// TestOnlyTheHostsOfAMigrationReadTheAddressOfItsTarget: another agent cannot write what it has read either.
func TestOnlyTheHostsOfAMigrationReadTheAddressOfItsTarget(t *testing.T) {
	dir, m := newDir(t), onTheWay()
	a, s := authority(t, dir), newStore(t, dir)
	at, _ := serveTLS(t, s, "127.0.0.1:0", dir, nil)
	_, err := s.Put(ctx, m)
	must(t, err)
	for _, n := range []hypervisor.HostName{"n1", "n2", "n3"} {
		c, err := boltstore.DialTLS([]string{at}, issue(t, a, pki.Request{Name: string(n)}))
		must(t, err)
		t.Cleanup(func() { must(t, c.Close()) })
		want := []hypervisor.Address{m.Target.Address, m.Target.Address}
		if n == "n3" {
			want = []hypervisor.Address{"hidden"} // and nothing of it is in what follows its own host
		}
		if got := addresses(t, c, m, store.Feed{Host: n}); !slices.Equal(got, want) {
			t.Errorf("%s reads %q, want %q", n, got, want)
		}
		r, err := c.Get(ctx, m.Key())
		must(t, err)
		if _, err = c.Put(ctx, r); errors.Is(err, store.Forbidden) != (n == "n3") {
			t.Errorf("%s writes what it has read: %v", n, err)
		}
	}
	if r, err := s.Get(ctx, m.Key()); err != nil || r.(*store.Migration).Target.Address != m.Target.Address {
		t.Errorf("the store has %+v, %v", r, err)
	}
}

// TestAServerThatServesNoStoreIsNotAsked: another service with a certificate of the same authority.
func TestAServerThatServesNoStoreIsNotAsked(t *testing.T) {
	dir := newDir(t)
	a := authority(t, dir)
	config, err := pki.Dir(filepath.Join(dir, "pki", "a")).Server()
	must(t, err)
	at := otherService(t, config)
	_, err = dialTLS(t, dir, at).Put(ctx, vmOn("v", "n1"))
	wantError(t, err, store.Unavailable, "it serves no store of godwit")
	// A host of the cluster that calls itself the controller.
	thief := issue(t, a, pki.Request{Name: "n7", DNS: []string{"n7.test"}})
	config, err = thief.Server()
	must(t, err)
	_, err = dialTLS(t, dir, otherService(t, config)).Put(ctx, vmOn("v", "n1"))
	wantError(t, err, store.Unavailable, "certificate")
}

// otherService shakes hands with all that connect, and says nothing.
func otherService(t testing.TB, config *tls.Config) (at string) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	must(t, err)
	var group sync.WaitGroup
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.(*tls.Conn).HandshakeContext(ctx)
			_ = c.Close()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		group.Wait()
	})
	return l.Addr().String()
}

// TestAPeerCannotFillTheAuditLog: by hand, which refusals are told.
func TestAPeerCannotFillTheAuditLog(t *testing.T) {
	var r boltstore.Refusals
	now, told := time.Unix(1e9, 0), 0
	for range 1000 {
		if _, is := r.Take("n1", now); is {
			told++
		}
	}
	if told != 100 {
		t.Errorf("%d of 1000 at once are told, want 100", told)
	}
	if untold, is := r.Take("n2", now); !is || untold != 0 {
		t.Errorf("of another: %v, %d before it", is, untold)
	}
	if untold, is := r.Take("n1", now.Add(2*time.Second)); !is || untold != 900 {
		t.Errorf("two seconds later: %v, %d before it, want 900", is, untold)
	}
	if untold, is := r.Take("n1", now.Add(2*time.Second)); !is || untold != 0 {
		t.Errorf("and once more: %v, %d before it", is, untold)
	}
	if _, is := r.Take("n1", now.Add(2*time.Second)); is {
		t.Error("there is a third")
	}
}

// TestACertificateThatHasEndedIsNotUsedForLong: a connection that was made with it ends.
func TestACertificateThatHasEndedIsNotUsedForLong(t *testing.T) {
	dir := newDir(t)
	a := authority(t, dir)
	*boltstore.Lives = 0
	defer func() { *boltstore.Lives = time.Minute }()
	at, stop := serveTLS(t, newStore(t, dir), "127.0.0.1:0", dir, nil)
	defer stop()
	client := dialTLS(t, dir, at)
	_, err := client.Put(ctx, vmOn("v", "n1"))
	must(t, err)
	_, err = a.Renew(pki.Renewal{Names: []string{"root"}, Lasts: -time.Minute, Authority: time.Hour}, time.Now())
	must(t, err)
	_, err = client.Get(ctx, vmOn("v", "").Key())
	wantError(t, err, store.Unavailable, "tls: ")
}
