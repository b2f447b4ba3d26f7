package evacuate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	virtv1 "kubevirt.io/api/core/v1"
)

// nameOf returns the name of an attempt to migrate a VM. It is the same whenever it is computed.
func nameOf(o *virtv1.VirtualMachineInstance, attempt int) string {
	sum := sha256.Sum256([]byte(o.Namespace + "/" + o.Name + "/" + string(o.UID)))
	name := o.Name
	if len(name) > maxName {
		name = strings.TrimRight(name[:maxName], "-.")
	}
	return fmt.Sprintf("%s-godwit-%s-%d", name, hex.EncodeToString(sum[:4]), attempt)
}

// maxName leaves room for the rest: a name has 253 characters at most.
const maxName = 200

// number returns the number of an attempt of ours, or 0.
func number(m *virtv1.VirtualMachineInstanceMigration) int {
	if !ours(m) {
		return 0
	}
	n, err := strconv.Atoi(m.Name[strings.LastIndexByte(m.Name, '-')+1:])
	if err != nil {
		return 0
	}
	return n
}

// attempt returns the number of the next attempt.
func (v *vm) attempt() int {
	last := 0
	for _, m := range v.migrations {
		last = max(last, number(m))
	}
	return last + 1
}
