package policy_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/sim/simtest"
)

// mine lets VMs leave by name, and two at once; a VM whose migration has failed comes after those that failed less
// often: else one that never converges keeps the others waiting where few may leave at a time. Make it yours.
type mine struct{}

func (mine) Compare(_ hypervisor.Bandwidth, a, b evacuation.EvacuatingVM) int {
	return cmp.Or(cmp.Compare(a.Failed, b.Failed), strings.Compare(string(a.VM), string(b.VM)))
}

func (mine) Admit(_ hypervisor.Bandwidth, _ evacuation.EvacuatingVM, others []evacuation.EvacuatingVM) bool {
	return len(others) < 2
}

func TestMine(t *testing.T) {
	simtest.Check(t, simtest.Turmoil(), simtest.Evacuation("mine", mine{}))
}
