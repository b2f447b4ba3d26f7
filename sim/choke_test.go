package sim_test

import (
	"testing"

	"github.com/godwit-vm/godwit/internal/config"
)

// mass moves over links that carry one of them at a time: requested, as a drain, and over a link that is
// slower at its other end. The limits are the default ones, and no order is configured.
var mass = map[string]string{
	"requested": `
hosts:
- {name: "n[0-2]", memory: 32GiB, cpus: 32, link: 500Mbit/s}
vms:
- {name: "v[1-8]", host: n0, memory: 2GiB, cpus: 1, dirty: 48MB/s, workingSet: 96MB, coldDirty: 2MB/s}
until: 2h
events:
- 0s migrate v[1-4] to=n2
- 0s migrate v[5-8] to=n1
`,
	"drained": `
evictionStrategy: LiveMigrate
hosts:
- {name: "n[0-2]", memory: 32GiB, cpus: 32, link: 500Mbit/s}
vms:
- {name: "v[1-8]", host: n0, memory: 2GiB, cpus: 1, dirty: 48MB/s, workingSet: 96MB, coldDirty: 2MB/s}
until: 2h
events:
- 0s drain n0
`,
	"into one slow host": `
hosts:
- {name: "n[0-1]", memory: 64GiB, cpus: 32, link: 10Gbit/s}
- {name: n2, memory: 64GiB, cpus: 32, link: 500Mbit/s}
vms:
- {name: "v[1-4]", host: n0, memory: 2GiB, cpus: 1, dirty: 48MB/s, workingSet: 96MB, coldDirty: 2MB/s}
- {name: "v[5-8]", host: n1, memory: 2GiB, cpus: 1, dirty: 48MB/s, workingSet: 96MB, coldDirty: 2MB/s}
until: 2h
events:
- 0s migrate v[1-8] to=n2
`,
}

func TestMassMovesWithDefaultLimitsDoNotChokeALink(t *testing.T) {
	for name, text := range mass {
		s, err := config.Parse(name+".yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.Build(s.Config(1))
		if err != nil {
			t.Fatal(err)
		}
		w.Run(s.Until)
		if r := w.Result(); r.Migrations.Succeeded != 8 || r.Migrations.Failed != 0 || len(r.Violations) > 0 {
			t.Errorf("%s: %d succeeded, %d failed, %v", name, r.Migrations.Succeeded, r.Migrations.Failed, r.Violations)
		}
	}
}

// Where what guests dirty is not measured, a drain learns it: each VM fails once at most, and then has the
// link alone.
func TestADrainWithoutMeasuredRatesEndsOverASlowLink(t *testing.T) {
	s, err := config.Parse("drained.yaml", []byte("unmeasured: true\n"+mass["drained"]))
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Build(s.Config(1))
	if err != nil {
		t.Fatal(err)
	}
	w.Run(s.Until)
	if r := w.Result(); r.Migrations.Succeeded != 8 || r.Migrations.Failed > 8 {
		t.Errorf("%d succeeded, %d failed", r.Migrations.Succeeded, r.Migrations.Failed)
	}
}
