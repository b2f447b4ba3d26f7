package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/sim"
)

// A group that is to be on one host leaves a drained host exactly when one other host has room for all of
// it, and then it is on one host again.
func TestAGroupLeavesADrainedHostWhenOneOtherHasRoomForAllOfIt(t *testing.T) {
	left, stayed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		b.WriteString("until: 6h\nevictionStrategy: LiveMigrate\ngroups: {g: {policy: affinity}}\nhosts:\n" +
			"- {name: n0, memory: 64GiB, cpus: 64, link: 10Gbit/s}\n")
		hosts := rapid.IntRange(1, 3).Draw(t, "other hosts")
		memory, cpus := make([]int, hosts), make([]int, hosts)
		for i := range hosts {
			memory[i], cpus[i] = rapid.IntRange(1, 12).Draw(t, "GiB"), rapid.IntRange(1, 10).Draw(t, "CPUs")
			fmt.Fprintf(&b, "- {name: n%d, memory: %dGiB, cpus: %d, link: 10Gbit/s}\n", i+1, memory[i], cpus[i])
		}
		if n := rapid.IntRange(0, 2).Draw(t, "at once"); n > 0 {
			fmt.Fprintf(&b, "limits: {perSource: %d, perTarget: %d}\n", n, rapid.IntRange(0, 1).Draw(t, "into one"))
		}
		b.WriteString("vms:\n")
		needMemory, needCPUs, members := 0, 0, rapid.IntRange(2, 4).Draw(t, "members")
		for i := range members {
			m, c := rapid.IntRange(1, 4).Draw(t, "memory"), rapid.IntRange(1, 3).Draw(t, "vcpus")
			needMemory, needCPUs = needMemory+m, needCPUs+c
			fmt.Fprintf(&b, "- {name: v%d, host: n0, memory: %dGiB, cpus: %d, class: idle, groups: g}\n", i, m, c)
		}
		for i := range hosts {
			if m := rapid.IntRange(0, memory[i]).Draw(t, "taken"); m > 0 {
				memory[i], cpus[i] = memory[i]-m, cpus[i]-1
				fmt.Fprintf(&b, "- {name: x%d, host: n%d, memory: %dGiB, cpus: 1, class: idle}\n", i, i+1, m)
			}
		}
		fits := false
		for i := range hosts {
			fits = fits || needMemory <= memory[i] && needCPUs <= cpus[i]
		}
		s, err := config.Parse("drawn.yaml", []byte(b.String()))
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		w, err := s.Build(s.Config(1))
		if err != nil {
			t.Fatal(err)
		}
		w.At(time.Second, sim.Drain{Host: "n0"})
		w.Run(s.Until)
		at := map[hypervisor.HostName]bool{}
		for i := range members {
			at[w.VM(hypervisor.VMID(fmt.Sprintf("default/v%d", i))).Host] = true
		}
		switch {
		case len(at) != 1:
			t.Fatalf("the group is on %v\n%s", at, b.String())
		case at["n0"] == fits:
			t.Fatalf("a host has room for all: %v, and they are on %v\n%s", fits, at, b.String())
		case fits:
			left++
		default:
			stayed++
		}
	})
	if left == 0 || stayed == 0 {
		t.Errorf("%d left and %d stayed: nothing was tested", left, stayed)
	}
}

// A drain is withdrawn while a group leaves: what has begun to leave is followed by the rest, so that the
// group is on one host again, and a group of which nothing has begun stays.
func TestAGroupIsOnOneHostAgainAfterADrainWasWithdrawnHalfWay(t *testing.T) {
	back, completed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.IntRange(2, 4).Draw(t, "members")
		text := fmt.Sprintf(`
until: 6h
evictionStrategy: LiveMigrate
groups: {g: {policy: affinity}}
limits: {perSource: %d}
hosts:
- {name: "n[0-2]", memory: 32GiB, cpus: 64, link: 10Gbit/s}
vms:
- {name: "v[0-%d]", host: n0, memory: 4GiB, cpus: 1, class: idle, groups: g}
- {name: x, host: n0, memory: 4GiB, cpus: 1, class: idle}
`, rapid.IntRange(1, 2).Draw(t, "at once"), members-1)
		s, err := config.Parse("drawn.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s.Controller.Evacuation.Mode = rapid.SampledFrom([]evacuation.Mode{evacuation.QueueAll,
			evacuation.FreeSpots}).Draw(t, "mode")
		w, err := s.Build(s.Config(1))
		if err != nil {
			t.Fatal(err)
		}
		w.At(time.Second, sim.Drain{Host: "n0"})
		after := time.Duration(rapid.IntRange(0, 12_000).Draw(t, "withdrawn after"))
		w.At(time.Second+after*time.Millisecond, sim.Undrain{Host: "n0"})
		if rapid.Bool().Draw(t, "the controller dies") {
			writings := rapid.IntRange(0, 40).Draw(t, "after writings")
			w.At(time.Second, sim.CrashController{For: time.Minute, After: &writings})
		}
		w.Run(s.Until)
		at := map[hypervisor.HostName]bool{}
		for i := range members {
			vm := w.VM(hypervisor.VMID(fmt.Sprintf("default/v%d", i)))
			if at[vm.Host] = true; vm.EvacuateFrom != "" {
				t.Fatalf("%s is marked for ever", vm.VM.ID)
			}
		}
		switch {
		case len(at) != 1:
			t.Fatalf("the group is on %v, %v after the drain", at, after*time.Millisecond)
		case at["n0"]:
			back++
		default:
			completed++
		}
		if v := w.Result().Violations; len(v) > 0 {
			t.Fatal(v)
		}
	})
	if back == 0 || completed == 0 {
		t.Errorf("%d stayed and %d left: nothing was tested", back, completed)
	}
}
