package qmp_test

import (
	"path/filepath"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backend"
)

// BenchmarkPut is what a note costs, which the downtime of a move has two of.
func BenchmarkPut(b *testing.B) {
	for name, durable := range map[string]bool{"durable": true, "against death": false} {
		b.Run(name, func(b *testing.B) {
			j, err := qmp.Open(filepath.Join(b.TempDir(), "j"))
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			d := &qmp.DomainRecord{Domain: backend.Domain{VM: hypervisor.VM{ID: "default/web",
				Memory: 1 << 30, CPUs: 4}}}
			for b.Loop() {
				if err := j.Put(d, durable); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
