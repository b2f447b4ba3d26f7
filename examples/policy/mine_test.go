package policy_test

import (
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/sim/simtest"
)

// mine lets VMs leave by name, and two at once. Make it yours.
type mine struct{}

func (mine) Compare(_ hypervisor.Bandwidth, a, b evacuation.EvacuatingVM) int {
	return strings.Compare(string(a.VM), string(b.VM))
}

func (mine) Admit(_ hypervisor.Bandwidth, _ evacuation.EvacuatingVM, others []evacuation.EvacuatingVM) bool {
	return len(others) < 2
}

func TestMine(t *testing.T) {
	simtest.Check(t, simtest.Turmoil(), simtest.Evacuation("mine", mine{}))
}
