package reconcile

import "github.com/godwit-vm/godwit/store"

// Next is the record that a verdict writes; nil is none.
func Next(v *Verdict) *store.VM { return v.next }
