//go:build linux && libvirt_dlopen

package conn

import (
	"context"
	"fmt"
	"sync"
	"time"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// The oldest far ends that are accepted. libvirt 6.0 is the first that names the
// disks of a domain by their nodes (-blockdev), as copying disks with a migration and
// plugging them needs; for that it wants QEMU 4.2, whose parallel migration (4.0)
// and post-copy recovery (3.0) are then there, too.
const (
	oldestLibvirt = 6_000_000
	oldestQEMU    = 4_002_000
)

// A link is one connection of libvirt's. It ends once and never comes back.
type link struct {
	conn *libvirt.Connect
	// lost is closed when the connection is; why is then set.
	lost chan struct{}
	why  error
	once sync.Once
	told chan struct{} // closed when libvirt has called the close callback
	// watched says that the close callback is registered; handlers are the others.
	watched  bool
	handlers []int

	first *link // the lane that it belongs to, if it is one; itself if it is the first

	mu    sync.Mutex
	users int // calls under way, and 1 while its owner keeps it
	gone  chan struct{}
}

// dial opens a connection, and checks one whose events are wanted. It returns
// when libvirt does, which may be never while a daemon hangs.
func (c *Config) dial(tell func(Event)) (*link, error) {
	if err := Enter(); err != nil {
		return nil, backend.Errorf(hypervisor.Unsupported, "libvirt.so.0 cannot be loaded: %s: "+
			"apt-get install libvirt0", words(err))
	}
	conn, err := libvirt.NewConnect(c.URI)
	if err != nil {
		Leave()
		return nil, c.unreachable(err)
	}
	l := &link{conn: conn, lost: make(chan struct{}), told: make(chan struct{}),
		users: 1, gone: make(chan struct{})}
	err = l.watch(c)
	if err == nil && tell != nil {
		if err = check(conn); err == nil {
			err = l.subscribe(tell)
		}
	}
	if err != nil {
		l.leave()
		return nil, within("connect to "+Shown(c.URI), err)
	}
	return l, nil
}

// unreachable says why there is no connection, and what may help.
func (c *Config) unreachable(err error) error {
	kind := hypervisor.Transient // nothing was done, and the daemon may come
	switch k := Classify(err); k {
	case hypervisor.Invalid, hypervisor.Unsupported:
		kind = k
	}
	return backend.Errorf(kind,
		"connect to %s: %s: is its libvirtd (or virtqemud) running, and may we "+
			"talk to it?", Shown(c.URI), words(err))
}

// watch makes libvirt notice that the daemon is gone, and tell.
func (l *link) watch(c *Config) error {
	seconds := int(c.KeepAliveInterval / time.Second)
	if err := l.conn.SetKeepAlive(seconds, uint(c.KeepAliveCount)); err != nil {
		return classify("keep-alive", err)
	}
	err := l.conn.RegisterCloseCallback(func(_ *libvirt.Connect, r libvirt.ConnectCloseReason) {
		l.lose(fmt.Errorf("connection to %s lost: %s", Shown(c.URI), reason(r)))
		close(l.told)
	})
	if err != nil {
		return classify("register a close callback", err)
	}
	l.watched = true
	return nil
}

// reason says why libvirt closed a connection.
func reason(r libvirt.ConnectCloseReason) string {
	switch r {
	case libvirt.CONNECT_CLOSE_REASON_EOF:
		return "the daemon closed it or died"
	case libvirt.CONNECT_CLOSE_REASON_KEEPALIVE:
		return "the daemon did not answer keep-alive messages"
	case libvirt.CONNECT_CLOSE_REASON_CLIENT:
		return "the client closed it"
	}
	return "input or output failed"
}

// lose marks the connection as lost. It does not block, so that libvirt may call it.
func (l *link) lose(why error) {
	l.once.Do(func() {
		l.why = why
		close(l.lost)
	})
}

func (l *link) isLost() bool {
	select {
	case <-l.lost:
		return true
	default:
		return false
	}
}

// inspect marks the connection as lost if libvirt knows that it is. It asks no daemon.
func (l *link) inspect(cause error) {
	if alive, err := l.conn.IsAlive(); err == nil && !alive {
		l.lose(fmt.Errorf("connection lost: %w", bare(cause)))
	}
}

// enter counts a call that is under way.
func (l *link) enter() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users++
}

// leave ends a call, or the owner's interest. The last one closes the connection,
// which may take as long as the daemon hangs.
func (l *link) leave() {
	l.mu.Lock()
	l.users--
	last := l.users == 0
	l.mu.Unlock()
	if last {
		l.close()
		close(l.gone)
	}
}

// close lets libvirt free the connection. Of one that was lost, libvirt must first
// have called back: it holds a lock while it does, lets go of its own reference then,
// and would free the lock that it holds if that reference were the last.
func (l *link) close() {
	defer Leave()
	for _, id := range l.handlers {
		_ = l.conn.DomainEventDeregister(id) // here it is forgotten even if it fails there
	}
	if l.watched && l.conn.UnregisterCloseCallback() != nil { // it is lost
		<-l.told
		_ = l.conn.UnregisterCloseCallback() // it fails, and waits for the lock
	}
	_, _ = l.conn.Close()
}

// check refuses a far end that is not a QEMU that we know how to use.
func check(conn *libvirt.Connect) error {
	driver, err := conn.GetType()
	if err != nil {
		return observing(classify("ask for the hypervisor", err))
	}
	if driver != "QEMU" {
		return backend.Errorf(hypervisor.Unsupported,
			"the hypervisor is %s: only QEMU's VMs can be moved",
			driver)
	}
	lib, err := conn.GetLibVersion()
	if err != nil {
		return observing(classify("ask for libvirt's version", err))
	}
	qemu, err := conn.GetVersion()
	if err != nil {
		return observing(classify("ask for QEMU's version (is qemu-system-x86 installed?)", err))
	}
	return checkVersions(lib, qemu)
}

// checkVersions refuses versions that are too old, in libvirt's notation:
// 1,000,000 × major + 1,000 × minor + release.
func checkVersions(lib, qemu uint32) error {
	if lib >= oldestLibvirt && qemu >= oldestQEMU {
		return nil
	}
	return backend.Errorf(hypervisor.Unsupported,
		"it has libvirt %s and QEMU %s: at least libvirt %s "+
			"and QEMU %s are needed: upgrade the host", version(lib), version(qemu),
		version(oldestLibvirt), version(oldestQEMU))
}

// version writes a version in libvirt's notation for people.
func version(v uint32) string {
	return fmt.Sprintf("%d.%d.%d", v/1_000_000, v/1_000%1_000, v%1_000)
}

// await answers what dial does, or gives up with the context; a connection that comes
// later is closed. When dial has returned, whenever that is, done is called.
func (c *Config) await(ctx context.Context, tell func(Event), done func()) (*link, error) {
	type answer struct {
		link *link
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		l, err := c.dial(tell)
		done()
		answers <- answer{l, err}
	}()
	select {
	case a := <-answers:
		return a.link, a.err
	case <-ctx.Done():
		go func() {
			if a := <-answers; a.link != nil {
				a.link.leave()
			}
		}()
		return nil, backend.Errorf(hypervisor.Transient, "connect to %s: %w: does its libvirtd hang?",
			Shown(c.URI), context.Cause(ctx))
	}
}
