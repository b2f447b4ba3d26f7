package placement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A fleet is what a transcript has described so far. Commands:
//
//	host n1 gib=64 [cpus=16] [reserved=GIB] [ratio=1.5] [zone=a] [rack=r1]
//	     [arch=x86_64] [version=7] [tenants=shop] [meta=key:value] [down] [closed] [maintenance]
//	vm web gib=24 [cpus=4] [on=n1] [zone=a] [group=db,policy,max,domain] [arch=..]
//	     [spec=key:want] [tenant=shop] [with=x] [without=x] [device=gpu]
//	decide web [host=n2] [force=yes|no] [compat] [ignore=n3] [rebuild] [reserve]
//	explain web [host=n2] …   as decide, with every verdict
//	confirm web host=n2 [force=yes]   under the reservation that decide … reserve made
//	reserve web n2 / cancel web n2    without asking
//	debts
type chooseFleet struct {
	index *placement.Index
	vms   map[string]*placement.VM
	on    map[string]hypervisor.HostName
	debts []placement.PolicyViolation
}

func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		f := &chooseFleet{index: placement.NewIndex(0), vms: map[string]*placement.VM{},
			on: map[string]hypervisor.HostName{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "host":
				return f.host(t, d)
			case "vm":
				return f.vm(t, d)
			case "decide", "explain", "confirm":
				return f.ask(t, d)
			case "debts":
				return f.listDebts()
			case "reserve", "cancel":
				change := f.index.Reserve
				if d.Cmd == "cancel" {
					change = f.index.Cancel
				}
				host := hypervisor.HostName(d.CmdArgs[1].Key)
				return fmt.Sprint(change(f.vms[d.CmdArgs[0].Key], host))
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

func word(t *testing.T, d *datadriven.TestData, key, otherwise string) string {
	if d.HasArg(key) {
		d.ScanArgs(t, key, &otherwise)
	}
	return otherwise
}

func number(t *testing.T, d *datadriven.TestData, key string, otherwise int) int {
	if d.HasArg(key) {
		d.ScanArgs(t, key, &otherwise)
	}
	return otherwise
}

func (f *chooseFleet) host(t *testing.T, d *datadriven.TestData) string {
	total := int64(number(t, d, "gib", 64)) * int64(gib)
	facts := &placement.Facts{
		Memory: placement.DeviceInventory{Total: total,
			Reserved: int64(number(t, d, "reserved", 0)) * int64(gib)},
		Zone: word(t, d, "zone", ""), Maintenance: d.HasArg("maintenance"),
		Hypervisor: placement.Hypervisor{Kind: "QEMU", Version: number(t, d, "version", 0)},
	}
	if ratio := word(t, d, "ratio", ""); ratio != "" {
		if _, err := fmt.Sscan(ratio, &facts.Memory.Ratio); err != nil {
			d.Fatalf(t, "%v", err)
		}
	}
	if arch := word(t, d, "arch", ""); arch != "" {
		facts.CPU = &placement.CPU{Arch: arch}
	}
	meta := map[string]string{}
	if key, value, ok := strings.Cut(word(t, d, "meta", ""), ":"); ok {
		meta[key] = value
	}
	if tenants := word(t, d, "tenants", ""); tenants != "" {
		meta["filter_tenant_id"] = tenants
	}
	if len(meta) > 0 {
		facts.Aggregates = []*placement.Aggregate{placement.NewAggregate("meta", meta)}
	}
	h := placement.Host{Name: hypervisor.HostName(d.CmdArgs[0].Key), CPUs: number(t, d, "cpus", 64),
		Memory: hypervisor.Bytes(facts.Memory.Capacity()), Down: d.HasArg("down"),
		Cordoned: d.HasArg("closed"), Facts: facts, Load: &placement.Load{}}
	if rack := word(t, d, "rack", ""); rack != "" {
		h.Labels = placement.Labels{"rack": rack}
	}
	f.index.Update(h)
	return "ok"
}

func (f *chooseFleet) vm(t *testing.T, d *datadriven.TestData) string {
	name := d.CmdArgs[0].Key
	vm := &placement.VM{ID: hypervisor.VMID(name), CPUs: number(t, d, "cpus", 4),
		Memory: hypervisor.Bytes(number(t, d, "gib", 8)) * gib}
	c := &vm.Constraints
	c.Tenant, c.Platform.Arch = word(t, d, "tenant", ""), word(t, d, "arch", "")
	if zone := word(t, d, "zone", ""); zone != "" {
		c.Zones = []string{zone}
	}
	if key, want, ok := strings.Cut(word(t, d, "spec", ""), ":"); ok {
		c.Specs = map[string]string{key: strings.ReplaceAll(want, "_", " ")}
	}
	if with := word(t, d, "with", ""); with != "" {
		c.With = []hypervisor.VMID{hypervisor.VMID(with)}
	}
	if without := word(t, d, "without", ""); without != "" {
		c.Without = []hypervisor.VMID{hypervisor.VMID(without)}
	}
	if text := word(t, d, "group", ""); text != "" {
		parts := strings.Split(text+"///", "/")
		rule := placement.GroupRule{Group: parts[0], Policy: placement.GroupPolicy(parts[1]),
			Domain: parts[3]}
		if parts[2] != "" {
			if _, err := fmt.Sscan(parts[2], &rule.Max); err != nil {
				d.Fatalf(t, "%v", err)
			}
		}
		c.Groups = []placement.GroupRule{rule}
	}
	f.vms[name] = vm
	if on := hypervisor.HostName(word(t, d, "on", "")); on != "" {
		if !f.index.Reserve(vm, on) || !f.index.Arrive(on) {
			d.Fatalf(t, "%s cannot be on %s", name, on)
		}
		f.on[name] = on
	}
	return "ok"
}

func (f *chooseFleet) ask(t *testing.T, d *datadriven.TestData) string {
	name := d.CmdArgs[0].Key
	r := &placement.Request{VM: f.vms[name], Host: hypervisor.HostName(word(t, d, "host", "")),
		Source: f.on[name], Compat: d.HasArg("compat"), Rebuild: d.HasArg("rebuild")}
	if err := r.Force.UnmarshalText([]byte(word(t, d, "force", "absent"))); err != nil {
		d.Fatalf(t, "%v", err)
	}
	if ignored := word(t, d, "ignore", ""); ignored != "" {
		r.Ignored = []hypervisor.HostName{hypervisor.HostName(ignored)}
	}
	c := &placement.Config{}
	switch d.Cmd {
	case "confirm":
		h, _ := f.index.Get(r.Host)
		return lines(placement.Confirm(c, r, &h, f.index.Hosts()), "confirmed")
	case "explain":
		return explain(placement.Explain(c, r, f.index.Hosts()))
	}
	decision := placement.Decide(c, r, f.index.Hosts())
	if d.HasArg("reserve") && decision.Outcome == placement.Accepted {
		f.index.Reserve(r.VM, decision.Host)
		f.debts = append(f.debts, decision.Debts...)
	}
	return decide(decision)
}

func (f *chooseFleet) listDebts() string {
	var all []string
	for _, debt := range f.debts {
		all = append(all, fmt.Sprintf("%s on %s by %s: %v", debt.VM, debt.Host, debt.Action,
			debt.Reason))
	}
	slices.Sort(all)
	return strings.Join(append(all, fmt.Sprintf("debts: %d", len(all))), "\n")
}

func lines(why []placement.Reason, otherwise string) string {
	var all []string
	for _, r := range why {
		all = append(all, "  "+r.String())
	}
	if len(all) == 0 {
		return otherwise
	}
	return strings.Join(all, "\n")
}

func decide(d placement.Decision) string {
	head := string(d.Outcome)
	for _, part := range []string{string(d.Host), string(d.Code), string(d.Action)} {
		if part != "" {
			head += " " + part
		}
	}
	if len(d.Why) > 0 {
		head += "\n" + lines(d.Why, "")
	}
	for _, debt := range d.Debts {
		head += "\n  debt: " + debt.String()
	}
	return head
}

func explain(e placement.Explanation) string {
	text := decide(e.Decision)
	for _, v := range e.Hosts {
		text += fmt.Sprintf("\n%s %s", v.Host, strings.TrimSpace(lines(v.Why, "takes it")))
	}
	for _, c := range e.Histogram {
		text += fmt.Sprintf("\n%s×%d", c.Check, c.Hosts)
	}
	for _, m := range e.Nearest {
		text += "\n" + m.String()
	}
	return text
}
