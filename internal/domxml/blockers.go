package domxml

import (
	"fmt"
	"slices"
	"strings"

	"github.com/beevik/etree"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Weight says what a blocker means.
type Weight uint8

// The weights.
const (
	// Forbidden: libvirt or QEMU refuse to migrate it.
	Forbidden Weight = iota
	// Conditional: it moves if the target has what the blocker needs.
	Conditional
	// Advice: it moves, and the guest may notice unless the hosts are alike.
	Advice
)

var weights = [...]string{"forbidden", "conditional", "advice"}

// String returns the weight's name.
func (w Weight) String() string {
	if int(w) < len(weights) {
		return weights[w]
	}
	return "invalid"
}

// A Blocker is one device or setting that stands against a migration.
type Blocker struct {
	Weight Weight
	Path   string // where it is in the XML: "/domain/devices/hostdev[2]"
	// Reason is what was looked at, what it has to be to move, and what it is.
	hypervisor.Reason
}

// String says it in one line.
func (b Blocker) String() string {
	return fmt.Sprintf("%s: %s needs %s, is %s (%s)", b.Weight, b.Check, b.Need, b.Have, b.Path)
}

// Of returns everything that keeps the domain with this XML from moving, the
// forbidden first and otherwise in the order of the XML's parts. The settings tell
// which disks godwit itself keeps on one host. It fails as [Read] does.
func Of(xml string, s Settings) ([]Blocker, error) {
	facts, err := Read(xml, s)
	if err != nil {
		return nil, err
	}
	d, err := parse(xml, Domain)
	if err != nil {
		return nil, err
	}
	local := map[string]bool{}
	for _, disk := range facts.VM.Hardware.Disks {
		local[facts.Images[disk.Name]] = disk.Local()
	}
	var all []Blocker
	for _, r := range rules {
		for _, e := range find(d.Root, strings.Split(r.path, "/")) {
			if b, holds := r.judge(subject{e, d.Root, local}); holds {
				b.Check, b.Path = r.check, pathOf(e)
				all = append(all, b)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Blocker) int { return int(a.Weight) - int(b.Weight) })
	return all, nil
}

// find returns all elements at the path below e.
func find(e *etree.Element, path []string) []*etree.Element {
	if len(path) == 0 {
		return []*etree.Element{e}
	}
	var all []*etree.Element
	for _, c := range children(e, path[0]) {
		all = append(all, find(c, path[1:])...)
	}
	return all
}

// pathOf returns the XPath of e. An element with siblings of its name has a number.
func pathOf(e *etree.Element) string {
	parent := e.Parent()
	if parent == nil || parent.Tag == "" {
		return "/" + e.Tag
	}
	alike := children(parent, e.Tag)
	number := ""
	if len(alike) > 1 {
		number = fmt.Sprintf("[%d]", slices.Index(alike, e)+1)
	}
	return pathOf(parent) + "/" + e.Tag + number
}

// A subject is an element that a rule looks at.
type subject struct {
	*etree.Element
	domain *etree.Element
	local  map[string]bool // images that only this host has
}

func (s subject) attr(key string) string { return Attr(s.Element, key) }

// in returns an attribute of the element at a path below.
func (s subject) in(key string, path ...string) string {
	return Attr(child(s.Element, path...), key)
}

// has reports whether the element has a child of that name.
func (s subject) has(tag string) bool { return child(s.Element, tag) != nil }

// image returns the file or block device of a disk.
func (s subject) image() string {
	return s.in("file", "source") + s.in("dev", "source")
}

// name returns what libvirt calls a disk.
func (s subject) name() string { return s.in("dev", "target") }

func forbid(need, have string) (Blocker, bool) {
	return Blocker{Weight: Forbidden, Reason: hypervisor.Reason{Need: need, Have: have}}, true
}

func demand(need, have string) (Blocker, bool) {
	return Blocker{Weight: Conditional, Reason: hypervisor.Reason{Need: need, Have: have}}, true
}

func advise(need, have string) (Blocker, bool) {
	return Blocker{Weight: Advice, Reason: hypervisor.Reason{Need: need, Have: have}}, true
}

func pass() (Blocker, bool) { return Blocker{}, false }

// quoted is for what the XML says.
func quoted(s string) string { return fmt.Sprintf("%.150q", s) }

// shared reports whether a disk is one that every host reaches by itself.
func shared(kind string) bool {
	return kind == "network" || kind == "volume" || kind == "vhostuser"
}

// localDisk: libvirt copies a disk that only one host has if it is told to, and
// otherwise needs the same file at the target.
// Source: libvirt qemu_migration.c (qemuMigrationSrcIsSafe).
func localDisk(s subject) (Blocker, bool) {
	kind, device := s.attr("type"), s.attr("device")
	removable := device == "cdrom" || device == "floppy"
	image := s.image()
	switch {
	case kind == "nvme" || image == "" || shared(kind):
		return pass()
	case s.local[image]:
		return demand("room at the target, to be copied there", "the local disk "+quoted(image))
	case removable:
		return demand("the same image at the target, or to be ejected",
			device+" "+s.name()+" with "+quoted(image))
	case kind == "file":
		return demand("shared storage at the same path, or to be copied",
			"disk "+s.name()+" in the file "+quoted(image))
	}
	return demand("the same device at the target, or to be copied",
		"disk "+s.name()+" on the device "+quoted(image))
}

// hostCPU: the guest sees the processor of the host.
// Source: libvirt formatdomain, CPU model and topology (host-passthrough).
func hostCPU(s subject) (Blocker, bool) {
	switch mode := s.attr("mode"); mode {
	case "host-passthrough", "maximum":
		if s.attr("migratable") == "off" {
			return demand("no feature that cannot move, as with migratable='on'", mode+
				" with migratable='off'")
		}
		return advise("hosts with the same processor, microcode and kernel", mode)
	}
	return pass()
}

// invariantTSC: QEMU does not move a guest that relies on it, unless its frequency
// is fixed.
// Source: libvirt qemu_migration.c (qemuMigrationSrcIsAllowed).
func invariantTSC(s subject) (Blocker, bool) {
	policy := s.attr("policy")
	if s.attr("name") != "invtsc" || policy == "disable" || policy == "forbid" {
		return pass()
	}
	for _, timer := range children(child(s.domain, "clock"), "timer") {
		f := Attr(timer, "frequency")
		if Attr(timer, "name") == "tsc" && strings.Trim(f, "0") != "" {
			return pass()
		}
	}
	return forbid("a fixed frequency of the timer tsc", "without one")
}

// Refuse returns an error that is [hypervisor.Unsupported] and says every forbidden
// blocker; nil if there is none.
func Refuse(all []Blocker) error {
	var why []string
	for _, b := range all {
		if b.Weight != Forbidden {
			continue
		}
		why = append(why, fmt.Sprintf("%s needs %s, is %s (%s)", b.Check, b.Need, b.Have, b.Path))
	}
	if why == nil {
		return nil
	}
	return fmt.Errorf("the domain cannot move live: %s: remove these from it, or move it "+
		"shut off: %w", strings.Join(why, "; "), hypervisor.Unsupported)
}
