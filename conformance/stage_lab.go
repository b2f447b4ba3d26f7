package conformance

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// complete sets the defaults.
func (l *Lab) complete() {
	if l.Pass == nil {
		l.Pass = time.Sleep
	}
	if l.Within <= 0 {
		l.Within = time.Minute
	}
	if l.Steps <= 0 {
		l.Steps = 100
	}
	if l.Seed == 0 {
		l.Seed = 1
	}
}

// A need is what a case cannot do without, as a set.
type need uint16

// The needs, each named after what of the Lab it is.
const (
	needSlow need = 1 << iota
	needBusy
	needReopen
	needKill
	needLink
	needHang
	needRestart
	needReset
)

// reasons say why a case is skipped, by the bit of the need.
var reasons = [...]string{"the lab has no slow transfer", "the lab has no busy VM",
	"the lab cannot reopen a host", "the lab cannot kill a VM's process",
	"the lab cannot cut the link", "the lab cannot hang a VM's process",
	"the lab cannot restart a host", "the lab cannot close connections"}

// lacks returns why a case with these needs cannot run; empty is that it can.
func (l *Lab) lacks(n need) string {
	has := [...]bool{l.Slow > 0, l.BusyVM != nil, l.Reopen != nil, l.KillVM != nil,
		l.CutLink != nil && l.MendLink != nil, l.Hang != nil, l.Restart != nil,
		l.ResetLink != nil}
	for i, present := range has {
		if n&(1<<i) != 0 && !present {
			return reasons[i]
		}
	}
	return ""
}

// A trial is one case: a sentence about every backend, and how to see that it is
// true.
type trial struct {
	Name  string
	Needs need
	Able  hypervisor.Abilities // that both hosts need
	// Unable is what neither host may have: the case says what is right where it
	// is lacking. It mirrors Able.
	Unable hypervisor.Abilities
	Run    func(*world)
}

// A group is cases about one subject.
type group struct {
	Name   string
	Trials []trial
}
