package daemon

import (
	"context"
	"io"

	"github.com/godwit-vm/godwit/hypervisor"
)

// consoles serves the consoles of the host's VMs until ctx ends or what it returns is called. An agent
// that cannot does without.
func (a *Agent) consoles(ctx context.Context) (hangUp func()) {
	hv, is := a.Hypervisor.(hypervisor.Consoler)
	if a.Console == "" || !is {
		return func() {}
	}
	l, err := ListenConsoles(a.Console)
	if err != nil {
		a.Log.Warn("serves no consoles", "error", err)
		return func() {}
	}
	record := a.recorder(a.trail("agent/"+string(a.Host), 0))
	s := ConsoleServer{
		Open: func(ctx context.Context, vm hypervisor.VMID) (io.ReadWriteCloser, error) {
			return hv.Console(ctx, vm)
		},
		Note: func(vm hypervisor.VMID, what string) { record.Note(a.Now(), a.Host, vm, what) }}
	ctx, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		s.Serve(ctx, l)
		close(ended)
	}()
	return func() {
		end()
		<-ended
	}
}
