package libvirt_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
)

func TestAnAddressComesBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringN(1, 20, 60)
		want := libvirt.TargetAddress{Peer: word.Draw(t, "peer"),
			Host: hypervisor.HostName(word.Draw(t, "host")),
			Job:  hypervisor.JobID(word.Draw(t, "job")), Hold: rapid.Bool().Draw(t, "hold"),
			Token: word.Draw(t, "token"),
			VM: hypervisor.VM{ID: hypervisor.VMID(word.Draw(t, "vm")), CPUs: 2,
				Memory:   hypervisor.Bytes(rapid.Int64Min(1).Draw(t, "memory")),
				Hardware: &hypervisor.Hardware{Pins: [][]int{{0, 1}, {2}}}}}
		got, err := libvirt.ParseAddress(hypervisor.Address(want.String()))
		if err != nil || !got.VM.Equal(want.VM) {
			t.Fatalf("%q is %+v, %v", want.String(), got, err)
		}
		got.VM, want.VM = hypervisor.VM{}, hypervisor.VM{}
		if got.Peer != want.Peer || got.Host != want.Host || got.Job != want.Job ||
			got.Hold != want.Hold || got.Token != want.Token {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

func TestWhatIsNoAddressIsRefused(t *testing.T) {
	good := libvirt.TargetAddress{Peer: "qemu+tcp://n2/system", Job: "j", Token: "t"}.String()
	for _, bad := range []string{"", "tcp:10.0.0.1:4444", "%", good + strings.Repeat("x", 1<<17),
		strings.Replace(good, "job=j", "", 1), strings.Replace(good, "libvirt:", "qmp:", 1),
		strings.Replace(good, "vm=%7B", "vm=%5B", 1),
		strings.Replace(good, "token=t", "token=", 1)} {
		got, err := libvirt.ParseAddress(hypervisor.Address(bad))
		if err == nil {
			t.Errorf("%q is read as %+v", bad, got)
		}
	}
}
