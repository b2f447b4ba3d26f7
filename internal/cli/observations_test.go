package cli

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/predict"
	"github.com/godwit-vm/godwit/migration"
)

// logged returns a migration as a log has it: 8 GiB over 10 Gbit/s.
func logged(n int, traffic migration.Traffic) audit.Measured {
	began := time.Date(2026, 5, 2, 3, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Minute)
	return audit.Measured{VM: "default/v", Source: "n1", Target: "n2", Memory: 8 * hypervisor.GiB,
		Sent: 8 * hypervisor.GiB, Link: 10 * hypervisor.Gbit,
		Options: migration.Options{Traffic: traffic}, Began: began, Ended: began.Add(time.Duration(20+n%3) * time.Second),
		Downtime: 40 * time.Millisecond}
}

// A log of hosts that encrypt is read: what was encrypted is not fitted to, and how far the model is off it
// is learned.
func TestALogOfHostsThatEncryptIsFitted(t *testing.T) {
	var moves []audit.Measured
	for i := range 4 {
		moves = append(moves, logged(2*i, migration.TrafficEncrypted), logged(2*i+1, migration.TrafficAsConfigured))
	}
	all, err := ofLog("godwit.log", moves)
	if err != nil {
		t.Fatal(err)
	}
	r, err := predict.Fit(all, fake.QEMU())
	if err != nil {
		t.Fatal(err)
	}
	if r.Fitted != 4 || r.Errors.Measured("tls") != 4 || r.Before.All.Count != 4 {
		t.Errorf("fitted to %d, %d encrypted, %+v", r.Fitted, r.Errors.Measured("tls"), r.Before)
	}
}
