package qmp_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
)

// A line is a connection whose end is counted.
type line struct {
	*net.UnixConn
	once sync.Once
	end  func()
}

// Close ends it.
func (l *line) Close() error {
	l.once.Do(l.end)
	return l.UnixConn.Close()
}

// A host that is closed while it sends holds no connection to the target's host.
func TestCloseHangsUp(t *testing.T) {
	var mu sync.Mutex
	lines := 0
	count := func(by int) {
		mu.Lock()
		defer mu.Unlock()
		lines += by
	}
	l := newLab(t, accelerator(t), func(c *qmp.Config) {
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			count(1)
			return &line{UnixConn: conn.(*net.UnixConn), end: func() { count(-1) }}, nil
		}
	})
	vm := l.vm("suite/leaving", calm)
	l.start("n1", vm)
	l.begin("job", vm.ID, options{Bandwidth: 1 << 20})
	l.Until("n1", "job", hypervisor.JobActive)
	if err := l.hosts["n1"].Close(); err != nil {
		t.Error(err)
	}
	delete(l.hosts, "n1")
	if mu.Lock(); lines != 0 {
		t.Errorf("%d connections to other hosts are open", lines)
	}
	mu.Unlock()
	l.reopen("n1")
}
