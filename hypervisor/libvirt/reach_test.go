//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor/libvirt"
)

// A host whose libvirtd hangs keeps no caller waiting that asks another host's.
func TestAPeerThatHangsKeepsNoOtherWaiting(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	n := &libvirt.Node{Timeout: time.Minute,
		Translate: func(peer string) string { return "qemu+tcp://" + peer + "/system" }}
	ctx, giveUp := context.WithCancel(t.Context())
	hung := make(chan error, 1)
	go func() {
		_, err := n.Reach(ctx, silent.Addr().String())
		hung <- err
	}()
	caller, err := silent.Accept() // from now on it waits for an answer
	if err != nil {
		t.Fatal(err)
	}
	other := make(chan error, 1)
	go func() {
		_, err := n.Reach(t.Context(), closed.Addr().String())
		other <- err
	}()
	select {
	case err = <-other:
	case <-time.After(20 * time.Second):
		t.Error("another host was not asked while one hung")
	}
	giveUp()
	<-hung
	if err == nil {
		t.Error("there was an answer at a port that is closed")
	}
	_ = caller.Close()
	_ = silent.Close()
}
