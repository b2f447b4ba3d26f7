package store

import (
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Rename asks for a VM that is stopped to have another name. The agent of its host stores a record of
// that name, whose life has ID, and deletes this one: from the first on the VM has the new name, and this
// record starts nothing.
type Rename struct {
	To hypervisor.VMID
	ID string // of the life that the VM has under its new name; no other has it
	By string `json:",omitempty"` // the operator
}

// Done reports whether a record is that of the VM under its new name.
func (r *Rename) Done(as *VM) bool { return as != nil && as.Life != nil && as.Life.ID == r.ID }

// CannotRename says why the VM cannot have another name now; "" is that it can.
func (v *VM) CannotRename() string {
	switch local := v.VM.LocalDisks(); {
	case !v.Stopped || !v.Ended:
		return "it is not stopped: godwit vm stop it first, and wait until it has stopped"
	case v.Host == "":
		return "it has no host yet"
	case len(local) > 0:
		return fmt.Sprintf("its local disk %s is kept under the name of the VM on %s", local[0].Name, v.Host)
	case v.ActiveMigration != "":
		return fmt.Sprintf("migration %s moves it", v.ActiveMigration)
	case len(v.DiskChanges) > 0 || v.Asking():
		return "one of its disks is to be changed first"
	}
	return ""
}

// Renamed returns the record of the VM under its new name, which was never stored.
func (v *VM) Renamed(life Life) *VM {
	next := *v
	next.VM.ID, next.Version = v.Rename.To, 0
	life.ID = v.Rename.ID
	next.Life, next.Moves = &life, 1
	next.Rename, next.Operation, next.Trouble, next.Unclaimed = nil, Nothing, "", ""
	return &next
}
