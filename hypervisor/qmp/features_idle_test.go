package qmp_test

import (
	"net"
	"testing"
)

// TestIdleConnectionsDelayNoMigration: the port where other hosts reach one is open to all of its
// network. A migration is accepted at the first attempt while more connections are idle there than
// the host holds.
func TestIdleConnectionsDelayNoMigration(t *testing.T) {
	ports := freePorts(t)
	l := newLab(t, accelerator(t), overTCP(ports))
	vm := l.vm("suite/traveller", calm)
	l.start("n1", vm)
	for range 1100 {
		c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", portText(ports["n2"])))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if err := l.send("job", vm.ID, options{}); err != nil {
		t.Fatalf("beside idle connections: %v", err)
	}
	l.arrives("job", vm.ID)
}
