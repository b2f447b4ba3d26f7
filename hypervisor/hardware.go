package hypervisor

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Hardware is what a VM is made of besides memory and CPUs. A zero field takes
// the default it names.
type Hardware struct {
	// Machine is the machine type, as QEMU names it: "q35", "pc-i440fx-7.2". A VM
	// moves only between hosts that know the same type. Default: "q35".
	Machine string
	// CPUModel is what the guest sees as CPU. Default: the host's own, where it is
	// virtualized, otherwise the backend's.
	CPUModel string
	// Hugepages is the size of the pages that back memory. Default: ordinary ones.
	Hugepages Bytes
	// MaxMemory and MaxCPUs are what the VM can grow to while it runs: it is started with room for
	// that much. Default, and where they are not more than it has: it grows at its next start only.
	MaxMemory Bytes `json:",omitempty"`
	MaxCPUs   int   `json:",omitempty"`
	// DIMMs are the sizes of the memory modules that were plugged in since the VM was started, in
	// order. They are a part of its Memory. A start makes them ordinary memory: there are none then.
	DIMMs []Bytes `json:",omitempty"`
	// Pins are the host CPUs on which the virtual CPUs may run, one set for each.
	// Default: all of them.
	Pins [][]int
	// Firmware is the file of the firmware image. Default: the machine type's own.
	Firmware string
	Disks    []Disk
	NICs     []NIC
	// DebugPort is the I/O port of a debug console: bytes that the guest writes
	// there reach the listener. Default: none.
	DebugPort uint16
}

// A Disk is a disk of a VM.
type Disk struct {
	Name string // unique in the VM: lower-case letters, digits, "-"
	// Path is where the image of a shared disk is, on every host. It is empty for
	// a local disk, which its host keeps in a place of its own, and which a
	// migration copies.
	Path string
	// Format is "raw" or "qcow2". Default: "raw". A shared disk without a format whose file begins
	// like an image of another one is refused when the VM starts and when the disk is attached.
	Format   string
	Size     Bytes // what the guest sees; a local disk is made in this size
	ReadOnly bool
}

// Local reports whether the disk lives on one host only.
func (d Disk) Local() bool { return d.Path == "" }

// Disks returns the disks of a VM. They are shared with it: change none.
func (v VM) Disks() []Disk {
	if v.Hardware == nil {
		return nil
	}
	return v.Hardware.Disks
}

// LocalDisks returns the disks of v that live on one host only.
func (v VM) LocalDisks() []Disk {
	if v.Hardware == nil {
		return nil
	}
	var local []Disk
	for _, d := range v.Hardware.Disks {
		if d.Local() {
			local = append(local, d)
		}
	}
	return local
}

// LocalSize returns what the local disks of v hold together: what a migration of it copies
// besides memory.
func (v VM) LocalSize() Bytes {
	if v.Hardware == nil {
		return 0
	}
	var sum Bytes
	for i := range v.Hardware.Disks {
		if d := &v.Hardware.Disks[i]; d.Local() {
			sum += min(max(d.Size, 0), math.MaxInt64-sum)
		}
	}
	return sum
}

// WithDisks returns v with other disks.
func (v VM) WithDisks(disks []Disk) VM {
	h := Hardware{}
	if v.Hardware != nil {
		h = *v.Hardware
	}
	h.Disks = disks
	v.Hardware = &h
	return v
}

// A NIC is a network card of a VM.
type NIC struct {
	MAC string // "52:54:00:12:34:56"
	// Tap is the host's network device that the card is plugged into. Default:
	// none, the card has no cable.
	Tap string
}

// equal reports whether h and o describe the same hardware.
func (h *Hardware) equal(o *Hardware) bool {
	switch {
	case h == o:
		return true
	case h == nil:
		h = &Hardware{}
	case o == nil:
		o = &Hardware{}
	}
	return h.Machine == o.Machine && h.CPUModel == o.CPUModel && h.Hugepages == o.Hugepages &&
		h.Firmware == o.Firmware && h.DebugPort == o.DebugPort &&
		h.MaxMemory == o.MaxMemory && h.MaxCPUs == o.MaxCPUs && slices.Equal(h.DIMMs, o.DIMMs) &&
		slices.Equal(h.Disks, o.Disks) && slices.Equal(h.NICs, o.NICs) &&
		slices.EqualFunc(h.Pins, o.Pins, slices.Equal)
}

// Abilities are what a host can do, as a set. What it lacks it answers with [Unsupported]: options
// of a transfer by Migrate, adjustments by Adjust, commands by Do. It changes nothing then. A host
// is held to each ability that it has.
type Abilities uint32

// The abilities that not every host has.
const (
	CanAutoConverge     Abilities = 1 << iota // TransferOptions.AutoConverge
	CanPostCopy                               // TransferOptions.PostCopy
	CanRecover                                // Recover
	CanUseChannels                            // TransferOptions.Channels
	CanCompress                               // TransferOptions.Compression
	CanXBZRLE                                 // TransferOptions.XBZRLE
	CanHoldSwitchOver                         // TransferOptions.HoldSwitchOver
	CanEncrypt                                // TransferOptions.Encryption: EncryptRequired
	CanCopyStorage                            // local disks move with their VM
	CanMoveCold                               // Migrate of a VM that is Shutoff
	CanMeasureDirtyRate                       // MeasureDirtyRate
	CanResize                                 // Resize
	CanSnapshot                               // Snapshot, DeleteSnapshot and RevertSnapshot
	CanAttachDisk                             // AttachDisk and DetachDisk

	// CanTakeBack: a source that was handed over keeps its memory until Release, so
	// that a Discard of the target that holds it and a Resume undo the migration.
	//
	// A hypervisor with a hand-over of its own, such as libvirt's peer-to-peer
	// migration, lacks it: when the target has everything, the source's memory is
	// gone, and a definition is left, which is HandedOver until Release. The state's
	// HoldsState is not true of it. The target is then the only copy:
	//
	//   - Discard of a target that is Received answers Conflict.
	//   - Resume of a source that is HandedOver answers Unsupported, and Abandon
	//     believes no target that denies to have had it.
	//   - A held target whose process dies is Crashed, and stays visible there.
	//   - When the link is lost around the switch-over the source may run on by
	//     itself, if the hypervisor knows that the target did not and will not run.
	//
	// While such a hypervisor moves a VM, Discard at its target, and Pause and Unpause
	// at its source, may answer Conflict: see there.
	CanTakeBack

	// CanLoseChannels: a transfer over several connections ends when one of them breaks.
	//
	// QEMU before 9.0 may wait for ever for the other ones. Its VM can then not be moved
	// any more, and one that was about to switch over stands still. Agents use several
	// connections only where this and CanUseChannels are had; compression needs several
	// too, and a policy that asks for it asks for the risk. A host with TCG has it not: its QEMU may
	// abort then.
	//
	// Source: QEMU 7.2 migration/multifd.c (multifd_send_thread leaves at "exiting"
	// without posting what multifd_send_sync_main waits for); QEMU commit 15f3f21d598a.
	CanLoseChannels

	CanResizeLive // Resize of a VM that runs
	CanMoveDisk   // MoveDisk, SwitchDisk and EndDiskMove
)

var abilities = [...]string{"auto-converge", "post-copy", "recover", "channels", "compress",
	"xbzrle", "hold-switch-over", "encrypt", "copy-storage", "move-cold", "measure-dirty-rate",
	"resize", "snapshot", "attach-disk", "take-back", "lose-channels", "resize-live", "move-disk"}

// Has reports whether a has all of want.
func (a Abilities) Has(want Abilities) bool { return a&want == want }

// String lists the abilities in a: "post-copy, recover", or "none".
func (a Abilities) String() string {
	if names := a.Names(); len(names) > 0 {
		return strings.Join(names, ", ")
	}
	return "none"
}

// MarshalJSON writes the names of the abilities.
func (a Abilities) MarshalJSON() ([]byte, error) {
	if known := Abilities(1<<len(abilities) - 1); a&^known != 0 {
		return json.Marshal(uint32(a)) // of a newer version: nothing of it is lost
	}
	names := a.Names()
	if names == nil {
		names = []string{}
	}
	return json.Marshal(names)
}

// UnmarshalJSON reads names, or the number that versions before stored.
func (a *Abilities) UnmarshalJSON(text []byte) error {
	var number uint32
	if json.Unmarshal(text, &number) == nil {
		*a = Abilities(number)
		return nil
	}
	var names []string
	if err := json.Unmarshal(text, &names); err != nil {
		return fmt.Errorf("abilities of a host: %w", err)
	}
	*a = 0
	for _, name := range names {
		i := slices.Index(abilities[:], name)
		if i < 0 {
			return fmt.Errorf("%q is no ability of a host: want one of %s", name,
				strings.Join(abilities[:], ", "))
		}
		*a |= 1 << i
	}
	return nil
}

// Names lists the abilities in a.
func (a Abilities) Names() []string {
	var names []string
	for i, name := range abilities {
		if a.Has(1 << i) {
			names = append(names, name)
		}
	}
	return names
}
