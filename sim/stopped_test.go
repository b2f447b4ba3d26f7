package sim_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/sim/simtest"
)

// stoppedBy notes which VMs their owners have stopped, and which of those started anew
// nevertheless.
func stoppedBy(off map[hypervisor.VMID]bool, again *string) func(*played, sim.Entry) {
	return func(_ *played, e sim.Entry) {
		switch {
		case e.What == "stop":
			off[e.VM] = true
		case e.What == "start":
			delete(off, e.VM)
		case e.What == "starts anew" && off[e.VM]:
			*again = e.String()
		}
	}
}

// Whenever in a drain an owner stops a VM: it stays off, wherever it is then.
func TestAVMThatIsStoppedDuringADrainStaysOff(t *testing.T) {
	for at := time.Duration(0); at < 20*time.Second; at += 200 * time.Millisecond {
		s, err := simtest.Parse("world", fmt.Appendf(nil, `
hosts:
- {name: "n[1-2]", memory: 64GiB, cpus: 64, link: 1Gbit/s}
vms:
- {name: v1, host: n1, memory: 4GiB, class: idle}
- {name: v2, host: n1, memory: 4GiB, class: web}
limits: {perSource: 1}
events:
- 0s drain n1
- %[1]dms stop v1
- %[1]dms stop v2
`, at.Milliseconds()))
		if err != nil {
			t.Fatal(err)
		}
		var again string
		p := play(t, s, sim.Seeded(1), stoppedBy(map[hypervisor.VMID]bool{}, &again))
		if wrong := p.wrong(); again != "" || wrong != "" {
			t.Fatalf("stopped at %v: %s\n%s", at, again, wrong)
		}
		for _, v := range p.scenario.Fleet.VMs {
			c := p.Network().Copies(v.ID)
			if r := p.VM(v.ID); len(c) != 1 || c[0].State != hypervisor.Shutoff || !r.Ended {
				t.Errorf("stopped at %v, %s is %v and its record %+v", at, v.ID, c, r)
			}
		}
	}
}

// Whatever else is asked for, and whatever breaks: who is stopped does not start again.
func TestWhoIsStoppedDoesNotStartAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chance := simtest.Drawn(t)
		s := restless().Make(chance)
		var again string
		p := play(t, s, chance, stoppedBy(map[hypervisor.VMID]bool{}, &again))
		if wrong := p.wrong(); again != "" || wrong != "" {
			t.Fatalf("%s\n%s\n%s", again, wrong, s)
		}
	})
}

// A VM that is off starts elsewhere when its host is drained. The host that it is given to has lost
// its power, which is not known yet: its old host keeps what rests there until the VM has started.
func TestWhatRestsIsKeptUntilItHasStartedElsewhere(t *testing.T) {
	const world = `
hosts:
- {name: n1, memory: 12GiB, cpus: 64, link: 10Gbit/s}
- {name: n2, memory: 16GiB, cpus: 64, link: 10Gbit/s}
vms:
- {name: v1, host: n2, memory: 4GiB, class: idle}
- {name: v2, host: n2, memory: 8GiB, class: idle}
config: {maxDowntimeMs: 300}
limits: {perCluster: 1, perSource: 1, perTarget: 0}
mode: QueueAll
events:
- 0s drain n2
- 1ms stop v2
- 1ms stop v1
- 5004ms start v1
- 0ms crash n1%s
`
	kept := 0
	for seed := range uint64(40) {
		for _, lasts := range []string{"", " for=10m"} {
			p := playText(t, seed, fmt.Sprintf(world, lasts))
			c := p.Network().Copies("default/v1")
			if len(c) != 1 {
				t.Fatalf("seed %d%s: it is %v\n%s", seed, lasts, c, p.trace.String())
			}
			if v := p.VM("default/v1"); v.Host != c[0].Host {
				kept++
			}
		}
	}
	if kept == 0 {
		t.Error("it was never given to the host that had died")
	}
}

// Host n1 lives and was said to be off: its second agent serves an empty directory. Until operators have
// started its machine anew it changes nothing, and the disk that is to be detached there needs no reason of
// its own.
func TestAChangeOnADistrustedHostNeedsNoReason(t *testing.T) {
	p := playText(t, 1, `
hosts:
- {name: n1, memory: 16GiB, cpus: 64, link: 10Gbit/s}
- {name: n3, memory: 16GiB, cpus: 64, link: 10Gbit/s}
vms:
- {name: v2, host: n1, memory: 4GiB, class: idle}
events:
- 0s empty-directory n1 for=20m
- 130s dead n1
- 0s detach-disk v2 data
`)
	if h := p.HostRecord("n1"); h.Refuted() == "" {
		t.Errorf("%+v was not wrongly said to be off", h)
	}
	if v := p.VM("default/v2"); len(v.DiskChanges) != 1 || v.DiskChanges[0].Why != "" {
		t.Errorf("what is to change is %+v", v.DiskChanges)
	}
}
