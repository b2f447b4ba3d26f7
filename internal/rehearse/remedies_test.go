package rehearse_test

import (
	"context"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/rehearse"
)

// The judge is the plan with the remedy written into the fleet: it moves, as long as was said.
func TestARemedyHelpsWhereItIsWritten(t *testing.T) {
	const fleet = `
hosts: [{name: "n[1-2]", memory: 64GiB, cpus: 32, link: 1Gbit/s}]
vms:
- {name: fast, host: n1, memory: 4GiB, dirty: 200MiB/s, workingSet: 2GiB, labels: {app: x}}
policies: [{name: p, selectors: {virtualMachineInstanceSelector: {app: x}}, allowPostCopy: false}]
`
	step := func(text string) rehearse.Step {
		t.Helper()
		s, err := config.Parse("fleet.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		f, err := rehearse.Ask(context.Background(), s, rehearse.Question{Hosts: []hypervisor.HostName{"n1"}})
		if err != nil {
			t.Fatal(err)
		}
		return f.Waves[0][0]
	}
	was := step(fleet)
	if was.Moves || len(was.Remedies) == 0 {
		t.Fatalf("%+v", was)
	}
	for _, r := range was.Remedies {
		now := step(strings.Replace(fleet, "allowPostCopy: false", r.Option+": true", 1))
		if !now.Moves || len(now.Remedies) != 0 || now.Seconds < r.Seconds*0.95-0.1 || now.Seconds > r.Seconds*1.05+0.1 {
			t.Errorf("%+v: it takes %v s, moves %v", r, now.Seconds, now.Moves)
		}
		if (r.Option == "allowPostCopy") != (r.Risk != "") || (r.Option == "allowAutoConverge") != (r.BrownoutPercent > 0) {
			t.Errorf("%+v", r)
		}
	}
}
