package inventory_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
)

func TestAHostOfWhichNothingIsSaidIsPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := hypervisor.Host{Name: "n1",
			Memory: hypervisor.Bytes(rapid.Int64Min(0).Draw(t, "memory")),
			CPUs:   rapid.IntMin(0).Draw(t, "CPUs"),
			Link:   hypervisor.Bandwidth(rapid.Int64Min(0).Draw(t, "link"))}
		shared := inventory.Shared{Racks: map[string]inventory.Rack{"r1": {Uplink: "1Gbit/s"}}}
		read := inventory.NewAttributeReader(shared, func(field, format string, args ...any) {
			t.Errorf("%s: "+format, append([]any{field}, args...)...)
		}).Host("hosts[0]", &inventory.HostAttributes{}, size)
		if diff := cmp.Diff(read, inventory.Plain(size)); diff != "" {
			t.Errorf("(-read +plain):\n%s", diff)
		}
	})
}
