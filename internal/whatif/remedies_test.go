package whatif_test

import (
	"context"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/internal/whatif"
)

// The judge is the plan with the remedy written into the fleet: it moves, as long as was said.
func TestARemedyHelpsWhereItIsWritten(t *testing.T) {
	testutil.Unraced(t)
	const fleet = `
hosts: [{name: "n[1-2]", memory: 64GiB, cpus: 32, link: 1Gbit/s}]
vms:
- {name: fast, host: n1, memory: 4GiB, dirty: 200MiB/s, workingSet: 2GiB, labels: {app: x}}
policies: [{name: p, selectors: {virtualMachineInstanceSelector: {app: x}}, allowPostCopy: false}]
`
	step := func(text string) whatif.Step {
		t.Helper()
		s, err := config.Parse("fleet.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		f, err := whatif.Ask(context.Background(), s, whatif.Question{Hosts: []hypervisor.HostName{"n1"}})
		if err != nil {
			t.Fatal(err)
		}
		return f.Waves[0][0]
	}
	was := step(fleet)
	if was.Moves || len(was.Remedies) == 0 {
		t.Fatalf("%+v", was)
	}
	last := was.Remedies[len(was.Remedies)-1]
	if last.Option != "restart" || last.Risk == "" || last.DowntimeMilliseconds < 1000 || last.Seconds < 1 {
		t.Errorf("the last resort: %+v", last)
	}
	for _, r := range was.Remedies[:len(was.Remedies)-1] {
		now := step(strings.Replace(fleet, "allowPostCopy: false", r.Option+": true", 1))
		if !now.Moves || len(now.Remedies) != 0 || *now.Seconds < r.Seconds*0.95-0.1 || *now.Seconds > r.Seconds*1.05+0.1 {
			t.Errorf("%+v: it takes %v s, moves %v", r, *now.Seconds, now.Moves)
		}
		if (r.Option == "allowPostCopy") != (r.Risk != "") || (r.Option == "allowAutoConverge") != (r.BrownoutPercent > 0) {
			t.Errorf("%+v", r)
		}
	}
}

// By hand: n1 has four VMs of 4 GiB and n2 room for one. One more host like n1, with 16 GiB, takes three.
func TestOneMoreHostIsARemedy(t *testing.T) {
	ask := func(text string) *whatif.Forecast {
		t.Helper()
		s, err := config.Parse("fleet.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		f, err := whatif.Ask(context.Background(), s, whatif.Question{Hosts: []hypervisor.HostName{"n1"}})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	const fleet = `
hosts: [{name: n1, memory: 16GiB, cpus: 32}, {name: n2, memory: 4GiB, cpus: 32}]
vms: [{name: "v[1-4]", host: n1, memory: 4GiB, class: idle, strategy: LiveMigrate}]
`
	f := ask(fleet)
	if len(f.Left) != 3 || f.Spare == nil || *f.Spare != (whatif.Spare{Hosts: 1, Like: "n1"}) {
		t.Errorf("%d stay, %+v", len(f.Left), f.Spare)
	}
	if f := ask(strings.Replace(fleet, "strategy: LiveMigrate", "strategy: None", 1)); len(f.Left) != 4 || f.Spare != nil {
		t.Errorf("hosts help VMs that no drain moves: %+v", f.Spare)
	}
	if f := ask(strings.Replace(fleet, "n2, memory: 4GiB", "n2, memory: 16GiB", 1)); len(f.Left) != 0 || f.Spare != nil {
		t.Errorf("hosts help where none is needed: %+v", f.Spare)
	}
}
