package plan_test

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// checks sets how many fleets a property is checked with.
func checks(t *testing.T, n int) {
	f := flag.Lookup("rapid.checks")
	before := f.Value.String()
	if before != f.DefValue {
		return // a number was asked for
	}
	if err := f.Value.Set(strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(before) })
}

// TestPlanEqualsBruteForce: in small fleets a plan has as few moves as any, passes the
// verifier, and what cannot be done comes with a proof that passes it.
func TestPlanEqualsBruteForce(t *testing.T) {
	checks(t, 2000)
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		f := plan.Cramped(t)
		for i := range f.VMs { // some stand for a group that leaves together
			f.VMs[i].Members = rapid.SampledFrom([]int{0, 0, 0, 2, 3}).Draw(t, "members")
		}
		hosts := plan.Some(t, f)
		a := plan.Drain(f, hosts)
		fewest, left, away := bruteForce(f, hosts)
		possible := left == 0
		if err := whatif.CheckMoves(f, a.Waves); err != nil {
			t.Fatal(err)
		}
		moves := 0
		for _, m := range slices.Concat(a.Waves...) {
			moves += f.Weigh([]hypervisor.VMID{m.VM})
		}
		if !possible {
			if len(a.Left) == 0 || a.Proof == nil {
				t.Fatalf("what cannot be done is planned or not proven: %+v", a)
			}
			if err := whatif.CheckCertificate(f, hosts, a.Proof); err != nil {
				t.Fatalf("%+v: %v", a.Proof, err)
			}
			for _, c := range a.Further {
				if err := whatif.CheckCertificate(f, hosts, &c); err != nil {
					t.Fatalf("%+v: %v", c, err)
				}
			}
			if f.Weigh(a.Left) != left || !a.FewestLeft || a.MustStay != left || f.Weigh(a.Cannot) > left {
				t.Fatalf("%d have to stay, not %v: %+v", left, a.Left, a)
			}
			if stays(f, hosts, a.Waves) != left || a.Fewest && moves != fewest || moves < fewest {
				t.Fatalf("it takes %d moves to leave %d: %+v", fewest, left, a)
			}
			for _, vm := range a.Cannot {
				if away[vm] {
					t.Fatalf("%s can leave: %+v", vm, a)
				}
			}
			seen[string(a.Proof.Kind)+" "+string(a.Proof.Resource)]++
			return
		}
		if err := whatif.CheckEmpties(f, a.Waves, hosts); err != nil {
			t.Fatalf("it takes %d moves: %v", fewest, err)
		}
		if moves != fewest || !a.Fewest || a.Proof != nil || len(a.Left) > 0 || a.Least > moves {
			t.Fatalf("it takes %d moves, not %d: %+v", fewest, moves, a)
		}
		seen[fmt.Sprintf("%d more", moves-a.Least)]++
	})
	t.Log(seen)
}

// TestPlanOfPackedFleets: where not every arrangement can be looked at, plans and proofs
// pass the verifier all the same, and VMs stay only with a proof or when others have
// been asked to make room.
func TestPlanOfPackedFleets(t *testing.T) {
	checks(t, 50)
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		f := plan.Packed(t)
		hosts := plan.Some(t, f)
		a := plan.Drain(f, hosts)
		switch {
		case len(a.Left) == 0:
			if err := whatif.CheckEmpties(f, a.Waves, hosts); err != nil {
				t.Fatal(err)
			}
			seen[fmt.Sprintf("%d more", plan.Count(a.Waves)-a.Least)]++
		case a.Proof != nil:
			if err := whatif.CheckCertificate(f, hosts, a.Proof); err != nil {
				t.Fatalf("%+v: %v", a.Proof, err)
			}
			seen[string(a.Proof.Kind)+" "+string(a.Proof.Resource)]++
		default:
			seen["given up"]++
		}
		if err := whatif.CheckMoves(f, a.Waves); err != nil {
			t.Fatal(err)
		}
	})
	t.Log(seen)
}

// bruteForce finds how few VMs can be left on the hosts, the fewest moves to there, and who is on
// other hosts in some arrangement, if some have to stay; arrangement by arrangement.
func bruteForce(f *plan.Fleet, drained []hypervisor.HostName) (moves, left int,
	away map[hypervisor.VMID]bool) {
	away = map[hypervisor.VMID]bool{}
	names := make([]hypervisor.HostName, len(f.VMs))
	for i := range f.VMs {
		names[i] = f.VMs[i].Home
	}
	left = 1 << 30
	seen := map[string]bool{}
	layers := [][][]hypervisor.HostName{{names}} // by the moves that lead there
	for n := 0; n < len(layers) && left > 0; n++ {
		for i := 0; i < len(layers[n]); i++ {
			at := layers[n][i]
			key := fmt.Sprint(at)
			if seen[key] {
				continue
			}
			seen[key] = true
			stay := 0
			for i, host := range at {
				if slices.Contains(drained, host) {
					stay += f.VMs[i].Weight()
				} else {
					away[f.VMs[i].ID] = true
				}
			}
			if stay < left {
				moves, left = n, stay
			}
			for _, after := range neighbours(f, drained, at) {
				moved := slices.IndexFunc(f.VMs, func(v plan.VM) bool {
					i, _ := f.VMAt(v.ID)
					return after[i] != at[i]
				})
				to := n + f.VMs[moved].Weight()
				for len(layers) <= to {
					layers = append(layers, nil)
				}
				layers[to] = append(layers[to], after)
			}
		}
	}
	return moves, left, away
}

// stays counts the VMs that are on the hosts after the moves.
func stays(f *plan.Fleet, drained []hypervisor.HostName, waves []plan.Wave) int {
	at := map[hypervisor.VMID]hypervisor.HostName{}
	for i := range f.VMs {
		at[f.VMs[i].ID] = f.VMs[i].Home
	}
	for _, m := range slices.Concat(waves...) {
		at[m.VM] = m.Target
	}
	n := 0
	for vm, host := range at {
		if slices.Contains(drained, host) {
			n += f.Weigh([]hypervisor.VMID{vm})
		}
	}
	return n
}

// neighbours returns what one move makes of an arrangement, by reservations of its own.
func neighbours(
	f *plan.Fleet, drained, at []hypervisor.HostName,
) (all [][]hypervisor.HostName) {
	index := placement.NewIndex(0)
	index.Use(f.Filters...)
	for _, h := range f.Hosts {
		h.UsedMemory, h.UsedCPUs, h.Groups, h.Load = 0, 0, nil, &placement.Load{}
		h.Cordoned = h.Cordoned || slices.Contains(drained, h.Name)
		index.Update(h)
	}
	for i := range f.VMs {
		index.Reserve(&f.VMs[i].VM, at[i])
		index.Arrive(at[i])
	}
	for i := range f.VMs {
		v := &f.VMs[i]
		o := placement.Options{Source: at[i], Move: index.CompareHosts(&v.VM, at[i])}
		for _, h := range f.Hosts {
			if v.Pinned == "" && len(index.Check(&v.VM, h.Name, o)) == 0 {
				after := slices.Clone(at)
				after[i] = h.Name
				all = append(all, after)
			}
		}
	}
	return all
}

// TestALinkThatHasDisksToCarryIsSpared: n2 gets the VM with the large disk, and n3 the others,
// which together have more memory.
func TestALinkThatHasDisksToCarryIsSpared(t *testing.T) {
	f := &plan.Fleet{}
	for _, name := range []hypervisor.HostName{"n1", "n2", "n3"} {
		f.Hosts = append(f.Hosts, placement.Host{Name: name, Memory: 100 * hypervisor.GiB,
			CPUs: 100, Load: &placement.Load{}})
	}
	for i, disk := range []hypervisor.Bytes{hypervisor.TiB, 0, 0, 0} {
		f.VMs = append(f.VMs, plan.VM{Home: "n1", VM: placement.VM{Disk: disk, CPUs: 1,
			Memory: hypervisor.Bytes(5-i) * hypervisor.GiB,
			ID:     hypervisor.VMID(fmt.Sprint("v", i))}})
	}
	targets := map[hypervisor.HostName]int{}
	for _, m := range slices.Concat(plan.Drain(plan.Settled(f), []hypervisor.HostName{
		"n1"}).Waves...) {
		targets[m.Target]++
	}
	if targets["n2"] != 1 || targets["n3"] != 3 {
		t.Errorf("so many go to each: %v", targets)
	}
}
