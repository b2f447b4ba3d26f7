package cli

import (
	"bytes"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/plan"
)

// TestAPlanThatTakesOtherLimitsIsWarnedOf, whether the controller's configuration is known or not.
func TestAPlanThatTakesOtherLimitsIsWarnedOf(t *testing.T) {
	for _, tt := range []struct {
		configured string // "" is not
		takes      *plan.DocumentLimits
		want       string
	}{
		{"", nil, ""},
		{"", &plan.DocumentLimits{PerCluster: 5, PerSource: 2}, ""},
		{"", &plan.DocumentLimits{PerCluster: 10, PerSource: 4}, "warning: the times of the plan hold with perCluster=10 perSource=4; " +
			"the defaults, which are taken without --config, are perCluster=5 perSource=2\n"},
		{"limits: {perCluster: 10}", &plan.DocumentLimits{PerCluster: 10, PerSource: 4},
			"warning: the times of the plan hold with perSource=4; the controller's configuration has perSource=2\n"},
		{"limits: {perTarget: 3}\nconfig: {bandwidthPerMigration: 1GiB/s}",
			&plan.DocumentLimits{PerCluster: 5, PerSource: 2, Bandwidth: 2 << 30},
			"warning: the times of the plan hold with perTarget=unlimited bandwidth=2GiB/s; " +
				"the controller's configuration has perTarget=3 bandwidth=1GiB/s\n"},
	} {
		settings, err := config.ParseSettings("controller.yaml", []byte("{}\n"))
		if tt.configured != "" {
			settings, err = config.ParseSettings("controller.yaml", []byte(tt.configured))
		}
		if err != nil {
			t.Fatal(err)
		}
		var errs bytes.Buffer
		d := &session{settings: settings, configured: tt.configured != "", err: &errs}
		d.warnLimits(&plan.Document{Limits: tt.takes})
		if errs.String() != tt.want {
			t.Errorf("%+v under %q:\n%s, want\n%s", tt.takes, tt.configured, &errs, tt.want)
		}
	}
}

// TestTheLimitsOfAPlanAreChecked when it is read.
func TestTheLimitsOfAPlanAreChecked(t *testing.T) {
	wrong := ""
	d := plan.Document{Format: plan.DocumentFormat, Name: "a", Batches: []plan.DocumentBatch{{Hosts: []hypervisor.HostName{"n1"}}},
		Limits: &plan.DocumentLimits{PerSource: -1}}
	d.Validate(func(field, _ string, _ ...any) { wrong += field })
	if wrong != "limits" {
		t.Errorf("it reports %q", wrong)
	}
}
