package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// An Entry is one line of a trace: which participant did what to which VM, and when.
type Entry struct {
	At   time.Duration // virtual time since the beginning
	Who  hypervisor.HostName
	VM   hypervisor.VMID
	What string
}

// String formats the entry with a virtual timestamp, in milliseconds.
func (e Entry) String() string {
	parts := []string{Clock(e.At)}
	if e.Who != "" {
		parts = append(parts, "["+string(e.Who)+"]")
	}
	if e.VM != "" {
		parts = append(parts, Short(e.VM))
	}
	return strings.Join(append(parts, e.What), "  ")
}

// Clock formats a virtual time as hours, minutes, seconds and milliseconds,
// without hours before the first.
func Clock(t time.Duration) string {
	ms := t.Milliseconds()
	text := fmt.Sprintf("%02d:%02d.%03d", ms/60000%60, ms/1000%60, ms%1000)
	if h := ms / 3600000; h > 0 {
		return fmt.Sprintf("%d:%s", h, text)
	}
	return text
}

// Short leaves the default namespace out of a VM's name.
func Short(vm hypervisor.VMID) string { return strings.TrimPrefix(string(vm), "default/") }

// Note implements store.EventRecorder: what participants say is in the trace.
func (w *World) Note(_ time.Time, who hypervisor.HostName, vm hypervisor.VMID, what string) {
	w.say(who, vm, what)
}

// say enters a line into the trace.
func (w *World) say(who hypervisor.HostName, vm hypervisor.VMID, what string) {
	if w.config.Trace != nil {
		w.config.Trace(Entry{w.Now(), who, vm, what})
	}
}
