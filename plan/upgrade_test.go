package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// readFleet reads a fleet in YAML.
func readFleet(name string, text []byte) (*inventory.Fleet, error) {
	s, err := config.Parse(name, text)
	if err != nil {
		return nil, err
	}
	return s.Fleet, nil
}

// upgrade plans for fleets in YAML. Without hosts all that are in both are upgraded.
func upgrade(t testing.TB, old, new string) (*inventory.Fleet, []inventory.Host, plan.UpgradePlan) {
	before, err := readFleet("old.yaml", []byte(old))
	if err != nil {
		t.Fatalf("%v\n%s", err, old)
	}
	after, err := readFleet("new.yaml", []byte(new))
	if err != nil {
		t.Fatalf("%v\n%s", err, new)
	}
	var hosts []hypervisor.HostName
	for _, h := range before.Hosts {
		if slices.ContainsFunc(after.Hosts, func(n inventory.Host) bool { return n.Name == h.Name }) {
			hosts = append(hosts, h.Name)
		}
	}
	if len(hosts) == 0 {
		for _, h := range before.Hosts {
			hosts = append(hosts, h.Name)
		}
	}
	return before, after.Hosts, plan.Upgrade(before, after.Hosts, hosts, evacuation.Params{})
}

const oldCPU = "arch: x86_64, cpuVendor: Intel, cpuModels: [Haswell], cpuFeatures: [avx, hle, sse]"

// VMs that an upgrade restarts or shuts down are named at their step.
func TestAnUpgradeSaysWhatItRestartsAndShutsDown(t *testing.T) {
	const hosts = `
hosts:
- {name: "n[1-2]", memory: 64GiB, cpus: 8}
`
	const fleet = hosts + `
vms:
- {name: plain, host: n1, memory: 1GiB}
- {name: gpu, host: n1, memory: 1GiB, strategy: LiveMigrateIfPossible, whyNot: it has a GPU}
`
	_, _, p := upgrade(t, fleet, hosts)
	if !p.Done() || len(p.Steps) != 2 {
		t.Fatalf("%+v", p)
	}
	gpu := 0
	for _, s := range p.Steps {
		if slices.Contains(s.Restarted, "default/plain") || s.Restarted == nil || s.ShutDown == nil || len(s.ShutDown) > 0 {
			t.Errorf("%+v", s)
		}
		if moved := slices.ContainsFunc(slices.Concat(s.Waves...), func(m plan.Move) bool { return m.VM == "default/gpu" }); moved {
			gpu++
			if !slices.Equal(s.Restarted, []hypervisor.VMID{"default/gpu"}) {
				t.Errorf("its move is a restart, and the step says %v", s.Restarted)
			}
		}
	}
	if gpu == 0 {
		t.Error("the VM was not moved")
	}
	before, err := readFleet("old.yaml", []byte(fleet))
	if err != nil {
		t.Fatal(err)
	}
	p = plan.Upgrade(before, before.Hosts, []hypervisor.HostName{"n1"},
		evacuation.Params{Terms: evacuation.Terms{OnUnmovable: evacuation.ShutDown}})
	if len(p.Steps) != 1 || !slices.Equal(p.Steps[0].ShutDown, []hypervisor.VMID{"default/gpu"}) || len(p.Steps[0].Restarted) > 0 {
		t.Errorf("%+v", p.Steps)
	}
}

// A VM that leaves by a restart is started anew: a host that is only too different for a live move takes it, and it may
// return.
func TestAnUpgradeAsksForARestartWhatARestartNeeds(t *testing.T) {
	for _, row := range []struct {
		how            string
		movable, stuck bool
	}{{"strategy: LiveMigrateIfPossible, whyNot: it has a GPU", true, false}, {"strategy: LiveMigrate", false, true}} {
		old := `
hosts:
- {name: "n[1-2]", memory: 64GiB, cpus: 8, ` + oldCPU + `, hypervisor: QEMU 9.2}
vms:
- {name: vm, host: n1, memory: 1GiB, ` + row.how + `}
`
		_, _, p := upgrade(t, old, `
hosts:
- {name: "n[1-2]", memory: 64GiB, cpus: 8, arch: x86_64, cpuVendor: Intel, cpuModels: [Skylake], cpuFeatures: [sse], hypervisor: QEMU 7.2}
`)
		if (len(p.Forward) == 0) != row.movable || p.Done() == row.stuck || len(p.Back) > 0 {
			t.Errorf("%s: %+v", row.how, p)
		}
	}
}

func TestWhatCannotMoveOrNotReturnIsFound(t *testing.T) {
	old := `
evictionStrategy: LiveMigrate
hosts:
- {name: "n[1-3]", memory: 64GiB, cpus: 8, ` + oldCPU + `, machines: [pc-q35-5.2, pc-q35-7.2], hypervisor: QEMU 7.2}
vms:
- {name: plain, host: n1, memory: 1GiB, platform: {cpuModel: Haswell}}
- {name: hle, host: n1, memory: 1GiB, platform: {cpuFeatures: [hle]}}
- {name: ancient, host: n2, memory: 1GiB, platform: {cpuModel: Haswell, machine: pc-q35-5.2}}
- {name: host-cpu, host: n3, memory: 1GiB}
`
	_, _, p := upgrade(t, old, `
hosts:
- {name: "n[1-3]", memory: 64GiB, cpus: 8, arch: x86_64, cpuVendor: Intel, cpuModels: [Haswell, Icelake],
   cpuFeatures: [avx, avx512f, hle, sse], machines: [pc-q35-7.2, pc-q35-9.2], hypervisor: QEMU 9.2}
`)
	if len(p.Forward) != 1 || p.Forward[0].VM != "default/ancient" ||
		p.Forward[0].Refusals[0].Why[0].Check != "machine" {
		t.Errorf("cannot move: %+v", p.Forward)
	}
	var back []string
	for _, b := range p.Back {
		back = append(back, string(b.VM)+":"+b.Refusals[0].Why[0].Check)
	}
	if !slices.Contains(back, "default/host-cpu:cpu-older") {
		t.Errorf("cannot return: %v", back)
	}
	// What cannot move to a new host leaves the last old one nowhere to go.
	if p.Done() || !p.Proven || len(p.Steps) != 2 || len(p.Stuck) != 1 ||
		!slices.Contains(p.Stuck[0].Left, "default/ancient") {
		t.Errorf("%+v", p)
	}
	// Without it there is an order.
	_, _, p = upgrade(t, strings.ReplaceAll(old, "machine: pc-q35-5.2", "machine: pc-q35-7.2"), `
hosts:
- {name: "n[1-3]", memory: 64GiB, cpus: 8, arch: x86_64, cpuVendor: Intel, cpuModels: [Haswell], cpuFeatures: [avx, hle, sse],
   machines: [pc-q35-7.2], hypervisor: QEMU 9.2}
`)
	if !p.Done() || p.Proven || len(p.Steps) != 3 || len(p.Forward) != 0 {
		t.Errorf("%+v", p)
	}
}

// New hosts beside the old ones, which are taken away.
func TestNewHostsReplaceOldOnes(t *testing.T) {
	_, _, p := upgrade(t, `
hosts: [{name: "a[1-2]", memory: 16GiB, cpus: 8}]
vms:
- {name: "v[1-6]", host: a1, memory: 2GiB}
- {name: w, host: a2, memory: 1GiB}
`, `
hosts: [{name: "b[1-2]", memory: 16GiB, cpus: 8}]
`)
	if !p.Done() || len(p.Added) != 2 || len(p.Steps) != 2 || p.Steps[0].Host != "a2" {
		t.Errorf("%+v", p)
	}
	for _, s := range p.Steps {
		if !s.Once {
			t.Errorf("%s: its VMs move twice", s.Host)
		}
	}
}

// drawnUpgrade draws a small fleet of three generations of hosts, and what becomes of it.
func drawnUpgrade(t *rapid.T) (old, new string) {
	features := []string{"[a]", "[a, b]", "[a, b, c]"}
	var o, n strings.Builder
	o.WriteString("evictionStrategy: LiveMigrate\nhosts:\n")
	n.WriteString("hosts:\n")
	hosts := rapid.IntRange(2, 4).Draw(t, "hosts")
	for i := range hosts {
		was := rapid.IntRange(0, 2).Draw(t, "was")
		is := rapid.IntRange(0, 2).Draw(t, "is")
		for b, f := range map[*strings.Builder]string{&o: features[was], &n: features[is]} {
			fmt.Fprintf(b, "- {name: h%d, memory: %dGiB, cpus: 8, arch: x86_64, cpuFeatures: %s}\n", i,
				2+i%2, f)
		}
	}
	o.WriteString("vms:\n")
	for i := range rapid.IntRange(1, 5).Draw(t, "vms") {
		need := features[rapid.IntRange(0, 1).Draw(t, "need")]
		fmt.Fprintf(&o, "- {name: v%d, host: h%d, memory: 1GiB, platform: {cpuModel: m, cpuFeatures: %s}}\n", i,
			rapid.IntRange(0, hosts-1).Draw(t, "host"), need)
	}
	old = strings.ReplaceAll(o.String(), "arch: x86_64,", "arch: x86_64, cpuModels: [m],")
	return old, strings.ReplaceAll(n.String(), "arch: x86_64,", "arch: x86_64, cpuModels: [m],")
}

// The judges are the verifier of moves, step by step, and brute force: where some order with some
// targets upgrades all hosts, one is found; and what is proven to be impossible is.
func TestUpgradesAgainstBruteForce(t *testing.T) {
	possible, found := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		old, new := drawnUpgrade(t)
		before, err := readFleet("old.yaml", []byte(old))
		if err != nil {
			t.Skip(err)
		}
		after, err := readFleet("new.yaml", []byte(new))
		if err != nil {
			t.Fatal(err)
		}
		var hosts []hypervisor.HostName
		for _, h := range before.Hosts {
			hosts = append(hosts, h.Name)
		}
		if len(plan.FromInventory(before).VMs) == 0 || overfull(before) {
			t.Skip("a host is overcommitted")
		}
		p := plan.Upgrade(before, after.Hosts, hosts, evacuation.Params{})
		followUpgrade(t, before, after.Hosts, &p)
		can := bruteUpgrade(before, after.Hosts)
		if can {
			possible++
		}
		if p.Done() {
			found++
		}
		if p.Done() && !can || p.Proven && can {
			t.Fatalf("done %v, proven %v, by brute force %v\n%s%s%+v", p.Done(), p.Proven, can, old, new, p)
		}
		if can && !p.Done() {
			t.Logf("missed:\n%s%s", old, new)
		}
	})
	t.Logf("of %d that are possible %d were found", possible, found)
	if possible < 10 || found < possible*95/100 {
		t.Errorf("of %d that are possible %d were found", possible, found)
	}
}

func overfull(f *inventory.Fleet) bool {
	used := map[hypervisor.HostName]hypervisor.Bytes{}
	for _, v := range f.VMs {
		used[v.Host] += v.Memory
	}
	return slices.ContainsFunc(f.Hosts, func(h inventory.Host) bool { return used[h.Name] > h.Memory })
}

// followUpgrade checks every step with the verifier.
func followUpgrade(t *rapid.T, f *inventory.Fleet, after []inventory.Host, p *plan.UpgradePlan) {
	now := *f
	for _, s := range p.Steps {
		if err := whatif.CheckEmpties(plan.FromInventory(&now), s.Waves, []hypervisor.HostName{s.Host}); err != nil {
			t.Fatalf("%s: %v", s.Host, err)
		}
		now.VMs, now.Hosts = slices.Clone(now.VMs), slices.Clone(now.Hosts)
		for _, m := range slices.Concat(s.Waves...) {
			at := slices.IndexFunc(now.VMs, func(v inventory.VM) bool { return v.ID == m.VM })
			now.VMs[at].Host = m.Target
		}
		at := slices.IndexFunc(now.Hosts, func(h inventory.Host) bool { return h.Name == s.Host })
		to := slices.IndexFunc(after, func(h inventory.Host) bool { return h.Name == s.Host })
		now.Hosts[at] = after[to]
	}
}

// bruteUpgrade tries every order, and for each VM every host with room whose processor it knows. The rules
// are written anew here: memory, and the features that the VM asks for.
func bruteUpgrade(f *inventory.Fleet, after []inventory.Host) bool {
	type state struct {
		at   string // host of each VM, as digits
		done int    // bits
	}
	hosts := len(f.Hosts)
	index := map[hypervisor.HostName]int{}
	for i, h := range f.Hosts {
		index[h.Name] = i
	}
	host := func(s state, i int) *inventory.Host {
		if s.done>>i&1 == 1 {
			return &after[i]
		}
		return &f.Hosts[i]
	}
	fits := func(s state, vm, to int) bool {
		h, used := host(s, to), hypervisor.Bytes(0)
		for i := range f.VMs {
			if int(s.at[i]-'0') == to {
				used += f.VMs[i].Memory
			}
		}
		for _, need := range f.VMs[vm].Placement.Platform.CPUFeatures {
			if !slices.Contains(h.Facts.CPU.Features, need) {
				return false
			}
		}
		return used+f.VMs[vm].Memory <= h.Memory
	}
	start := state{}
	for _, v := range f.VMs {
		start.at += fmt.Sprint(index[v.Host])
	}
	seen, queue := map[state]bool{start: true}, []state{start}
	push := func(s state) {
		if !seen[s] {
			seen[s], queue = true, append(queue, s)
		}
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if s.done == 1<<hosts-1 {
			return true
		}
		for i := range hosts {
			if s.done>>i&1 == 0 && !strings.ContainsRune(s.at, rune('0'+i)) {
				push(state{s.at, s.done | 1<<i})
			}
		}
		for vm := range f.VMs {
			for to := range hosts {
				if int(s.at[vm]-'0') != to && fits(s, vm, to) {
					push(state{s.at[:vm] + fmt.Sprint(to) + s.at[vm+1:], s.done})
				}
			}
		}
	}
	return false
}

// VMs that are alike are looked at once: the answers are those of a look at each, whatever is known of its host.
func TestAnUpgradeAnswersForEachVM(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cpu := func(what string) string {
			return rapid.SampledFrom([]string{"", ", arch: x86_64, cpuModels: [a], cpuFeatures: [x]",
				", arch: x86_64, cpuModels: [a, b], cpuFeatures: [x, y]", ", hypervisor: QEMU 9.2"}).Draw(t, what)
		}
		var old, new, vms strings.Builder
		n := rapid.IntRange(2, 4).Draw(t, "hosts")
		for i := range n {
			fmt.Fprintf(&old, "- {name: n%d, memory: 64GiB, cpus: 8%s}\n", i, cpu("before"))
			fmt.Fprintf(&new, "- {name: n%d, memory: 64GiB, cpus: 8%s}\n", i, cpu("after"))
			for j := range 3 {
				fmt.Fprintf(&vms, "- {name: v%d-%d, host: n%d, memory: 1GiB%s}\n", i, j, i,
					rapid.SampledFrom([]string{"", ", platform: {cpuModel: b}", ", platform: {cpuFeatures: [x]}"}).Draw(t, "asks"))
			}
		}
		before, err := readFleet("old.yaml", []byte("evictionStrategy: LiveMigrate\nhosts:\n"+old.String()+"vms:\n"+vms.String()))
		if err != nil {
			t.Fatal(err)
		}
		after, err := readFleet("new.yaml", []byte("hosts:\n"+new.String()))
		if err != nil {
			t.Fatal(err)
		}
		var hosts []hypervisor.HostName
		for i := range before.Hosts {
			hosts = append(hosts, before.Hosts[i].Name)
		}
		p := plan.Upgrade(before, after.Hosts, hosts, evacuation.Params{})
		for i := range before.VMs {
			v := &before.VMs[i]
			cannot := slices.ContainsFunc(p.Forward, func(o plan.Incompatible) bool { return o.VM == v.ID })
			if want := !taken(before, v, after.Hosts); cannot != want {
				t.Fatalf("%s cannot move: %v, want %v\n%s%s%s", v.ID, cannot, want, &old, &vms, &new)
			}
		}
	})
}

// taken reports whether a host takes a VM as it is on its own.
func taken(before *inventory.Fleet, v *inventory.VM, hosts []inventory.Host) bool {
	var from *placement.Facts
	for i := range before.Hosts {
		if before.Hosts[i].Name == v.Host {
			from = before.Hosts[i].Facts
		}
	}
	vm := inventory.PlacementVM(v)
	for i := range hosts {
		h := inventory.PlacementHost(&hosts[i])
		if len(placement.Check(&vm, &h, placement.Options{Move: &placement.Move{Source: from}})) == 0 {
			return true
		}
	}
	return false
}
