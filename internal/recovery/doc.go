// Package recovery finds the VMs after the store was restored from a backup: from what it says, and
// from what the agents of the hosts say that they have ([store.HostInventory]).
//
//	every host has told (or is off, by an operator's word) ──► a verdict for each VM
//	a VM that executes on one host            is there, whatever the records say
//	one that executes nowhere                 is where its latest life was, by lives and by moves
//	one that executes twice, or stands in the
//	middle of a migration, or has vanished    is a conflict: an operator decides, never a guess
//
// [Plan] is pure. [Result.Write] writes verdicts to the store, and then raises its epoch.
package recovery
