package fake_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// withDisk is aVM with so much on a local disk, and as much again on a shared one.
func withDisk(id vmid, size hypervisor.Bytes) hypervisor.VM {
	return aVM(id).WithDisks([]hypervisor.Disk{{Name: "scratch", Size: size},
		{Name: "root", Path: "/shared/root", Size: size}})
}

// copying has "vm", with a local disk of 100 GiB, on its way from n1 to n2 for 10 s.
func copying(t tester, load fake.Workload, o hypervisor.TransferOptions) (*world,
	hypervisor.JobID) {
	w := newWorld(t, sure())
	w.ok(w.Host("n1").Boot(withDisk("vm", 100*gib), load))
	job := w.begin(move{vm: withDisk("vm", 100*gib), from: "n1", to: "n2", options: o})
	w.pass(10 * time.Second)
	return w, job
}

func TestLocalDisksTakeTheWireBeforeMemory(t *testing.T) {
	const disk = hypervisor.TiB
	w := newWorld(t, fake.Model{})
	w.ok(w.Host("n1").Boot(withDisk("vm", disk), fake.Workload{}))
	job := w.begin(move{vm: withDisk("vm", disk), from: "n1", to: "n2"})
	w.pass(0)
	if p := w.progress("n1", job); p.Remaining != disk+4*gib || p.Disks != disk ||
		p.Total != 4*gib || p.Sent != 0 {
		t.Errorf("it begins with %+v", p)
	}
	w.pass(10 * time.Minute)
	sent := (10 * hypervisor.Gbit).In(10 * time.Minute)
	if p := w.progress("n1", job); p.Status != hypervisor.JobActive || p.Iteration != 0 ||
		p.Sent != sent || p.Remaining != disk+4*gib-sent || p.Bandwidth != 10*hypervisor.Gbit {
		t.Errorf("after ten minutes it is %+v, want %v sent", p, sent)
	}
	w.untilStatus("n1", job, hypervisor.JobSucceeded)
	want := disk.At(10*hypervisor.Gbit) + (4 * gib).At(10*hypervisor.Gbit)
	if took := w.Now().Sub(epoch); took < want || took > want+time.Second {
		t.Errorf("it took %v, want %v", took, want)
	}
	if p := w.progress("n1", job); p.Sent < disk+4*gib || p.Remaining != 0 || p.Iteration < 1 {
		t.Errorf("in the end it is %+v", p)
	}
}

func TestDisksShareTheWireAsMemoryDoes(t *testing.T) {
	w := newWorld(t, fake.Model{})
	w.ok(w.Host("n1").Boot(withDisk("disks", 100*gib), fake.Workload{}))
	w.boot("n1", "memory", wild)
	disks := w.begin(move{vm: withDisk("disks", 100*gib), from: "n1", to: "n2"})
	w.pass(time.Second)
	w.begin(move{vm: aVM("memory"), from: "n1", to: "n3"})
	w.pass(time.Second)
	if got := w.progress("n1", disks).Bandwidth; got != 5*hypervisor.Gbit {
		t.Errorf("beside another it has %v", got)
	}
	w.ok(w.Host("n1").Adjust(ctx, disks, hypervisor.SetBandwidth{Limit: hypervisor.Gbit}))
	w.pass(time.Second)
	if got := w.progress("n1", disks).Bandwidth; got != hypervisor.Gbit {
		t.Errorf("under a cap it has %v", got)
	}
	w.ok(w.CutLink("n1", "n2"))
	stalled := w.progress("n1", disks).Sent
	w.pass(time.Hour)
	if p := w.progress("n1", disks); p.Sent != stalled || p.Status != hypervisor.JobActive {
		t.Errorf("cut off after %v it is %+v", stalled, p)
	}
	w.ok(w.HealLink("n1", "n2"))
	w.untilStatus("n1", disks, hypervisor.JobSucceeded)
}

func TestATransferEndsWhileItsDisksAreCopied(t *testing.T) {
	w, job := copying(t, mild, hypervisor.TransferOptions{})
	w.ok(w.Host("n1").Adjust(ctx, job, hypervisor.Cancel{}))
	w.wantStates(t, hypervisor.Running, hypervisor.Absent)
	p := w.progress("n1", job)
	if p.Status != hypervisor.JobCancelled || p.Sent < 10*gib || p.Remaining < 80*gib {
		t.Errorf("cancelled it is %+v", p)
	}
	w.pass(time.Hour)
	w.wantStates(t, hypervisor.Running, hypervisor.Absent)

	w, job = copying(t, mild, hypervisor.TransferOptions{})
	w.ok(w.KillDomain("n2", "vm"))
	w.wantStates(t, hypervisor.Running, hypervisor.Absent)
	if p := w.progress("n1", job); p.Status != hypervisor.JobFailed {
		t.Errorf("without its target it is %+v", p)
	}
}

func TestPostCopyWaitsForTheDisks(t *testing.T) {
	w, job := copying(t, wild, hypervisor.TransferOptions{PostCopy: true})
	wantKind(t, w.Host("n1").Adjust(ctx, job, hypervisor.StartPostCopy{}), hypervisor.Conflict)
	w.until("its memory moves", func() bool { return w.progress("n1", job).Iteration == 1 })
	if p := w.progress("n1", job); p.Sent != 100*gib || p.Remaining != 4*gib {
		t.Errorf("when memory begins to move it is %+v", p)
	}
	w.ok(w.Host("n1").Adjust(ctx, job, hypervisor.StartPostCopy{}))
	w.untilStatus("n1", job, hypervisor.JobSucceeded)
	if p := w.progress("n1", job); p.Mode != hypervisor.PostCopy || p.Sent < 104*gib {
		t.Errorf("in the end it is %+v", p)
	}
}

// Memory moves as it does without disks, only later.
func TestDisksPostponeATransferByWhatTheWireNeedsForThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := rapid.SampledFrom([]fake.Model{{}, sure(), fake.QEMU()}).Draw(t, "model")
		load := rapid.SampledFrom([]fake.Workload{{}, mild,
			{Rate: 8e8, Hot: gib / 4, ColdRate: 1e7, Cold: gib, Zero: 300}}).Draw(t, "load")
		slow := hypervisor.Bandwidth(rapid.Int64Range(3e8, 2e9).Draw(t, "cap"))
		size := hypervisor.Bytes(rapid.Int64Range(1, int64(512*gib)).Draw(t, "disk"))
		took := func(vm hypervisor.VM) time.Duration {
			w := newWorld(t, model)
			w.ok(w.Host("n1").Boot(vm, load))
			job := w.begin(move{vm: vm, from: "n1", to: "n2",
				options: hypervisor.TransferOptions{Bandwidth: slow, AutoConverge: true}})
			w.untilStatus("n1", job, hypervisor.JobSucceeded)
			return w.Now().Sub(epoch)
		}
		got := took(withDisk("vm", size)) - took(aVM("vm"))
		if want := size.At(min(slow, 10*hypervisor.Gbit)); got != want {
			t.Fatalf("with %v on disks it takes %v longer, want %v", size, got, want)
		}
	})
}
