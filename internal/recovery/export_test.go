package recovery

import "github.com/godwit-vm/godwit/store"

// Next is the record that a finding writes; nil is none.
func Next(v *Finding) *store.VM { return v.next }
