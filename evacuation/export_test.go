package evacuation

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// What the tests in package evacuation_test see of the inside.

// Best is best.
func (p AdaptivePolicy) Best(link hypervisor.Bandwidth, vms []EvacuatingVM) int {
	return p.best(link, vms)
}

// Forecast is forecast.
func (p *Pace) Forecast(s *DrainSight, now time.Time) (p50, p95 time.Duration, known bool) {
	return p.forecast(s, now)
}
