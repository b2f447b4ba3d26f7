package domxml

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/beevik/etree"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// Facts are what the XML of a domain says.
type Facts struct {
	// VM is the domain in godwit's vocabulary, with every default spelled out. What
	// has no place there is left out: removable media, disks on a network, cards
	// that are passed through, CPUs of which only some are pinned. The sizes of
	// disks are 0: the XML does not know them.
	VM       hypervisor.VM
	Room     Room
	Name     string // the domain's name
	UUID     string
	Type     string // "kvm", "qemu"
	Emulator string // the program that runs the guest; "" if the XML leaves it open
	// Images are the files and block devices of the VM's disks by name, also of
	// those that are local.
	Images map[string]string
	// Resolved says that the features of the CPU are those that QEMU gave the running
	// domain, not those that were asked for.
	Resolved bool
	// What happens to the domain when the guest powers off, reboots or crashes, in
	// libvirt's words: "destroy", "restart", "preserve".
	OnPoweroff, OnReboot, OnCrash string
	// Mark is godwit's own metadata; nil if there are none, or none that can be
	// read. MarkError says why they cannot.
	Mark      *Mark
	MarkError error
}

// Read says what the XML of a domain means, of any client's. The settings tell
// which disks are local, and what the VM is called.
//
// It fails with [hypervisor.Invalid] for XML that is no domain's, or whose memory
// or CPUs are no numbers.
func Read(xml string, s Settings) (Facts, error) {
	d, err := parse(xml, Domain)
	if err != nil {
		return Facts{}, err
	}
	f := Facts{Name: domainName(d.Root),
		UUID: textIn(child(d.Root, "uuid")), Type: Attr(d.Root, "type"),
		Emulator:   textIn(child(d.Root, "devices", "emulator")),
		OnPoweroff: textIn(child(d.Root, "on_poweroff")),
		Resolved:   Attr(child(d.Root, "cpu"), "check") == "full",
		OnReboot:   textIn(child(d.Root, "on_reboot")),
		OnCrash:    textIn(child(d.Root, "on_crash"))}
	if f.Name == "" {
		return Facts{}, fmt.Errorf("XML is not that of a libvirt domain: it has no name: %w",
			hypervisor.Invalid)
	}
	if mark := findMark(d.Root); mark != nil {
		if m, err := markOf(mark); err != nil {
			f.MarkError = err
		} else {
			f.Mark = &m
		}
	}
	if err := f.read(d.Root, s); err != nil {
		return Facts{}, fmt.Errorf("XML of libvirt domain %s: %w", backend.Quote(f.Name), err)
	}
	return f, nil
}

// domainName returns the name of a domain, to which blanks belong; "" if it has none.
func domainName(domain *etree.Element) string {
	return child(domain, "name").NotNil().Text()
}

func (f *Facts) read(domain *etree.Element, s Settings) error {
	memory, err := amount(child(domain, "memory"))
	if err != nil {
		return fmt.Errorf("memory %w", err)
	}
	cpus, err := cpusOf(domain)
	if err != nil {
		return err
	}
	h := &hypervisor.Hardware{Machine: Attr(child(domain, "os", "type"), "machine"),
		CPUModel: readCPU(child(domain, "cpu")), Firmware: firmware(domain),
		DebugPort: debugPort(domain), NICs: cards(domain)}
	if h.Hugepages, err = hugepages(domain); err != nil {
		return err
	}
	if h.Pins, err = readPins(domain, cpus); err != nil {
		return err
	}
	f.Room = readRoom(domain, cpus)
	f.VM = hypervisor.VM{ID: IDOf(s.Namespace, f.Name), Memory: memory, CPUs: cpus, Hardware: h}
	f.disks(domain, s)
	return nil
}

func (f *Facts) disks(domain *etree.Element, s Settings) {
	f.Images = map[string]string{}
	for _, d := range namedDisks(domain) {
		path, known := imageOf(d.element)
		if !known {
			continue
		}
		f.Images[d.name] = path
		disk := hypervisor.Disk{Name: d.name, Path: path,
			Format:   Attr(child(d.element, "driver"), "type"),
			ReadOnly: child(d.element, "readonly") != nil}
		if path == s.Image(f.Name, d.name) {
			disk.Path = ""
		}
		f.VM.Hardware.Disks = append(f.VM.Hardware.Disks, disk)
	}
}

// imageOf returns the file or block device of a disk; known is false if it has
// none, or is on a network.
func imageOf(disk *etree.Element) (path string, known bool) {
	switch source := child(disk, "source"); Attr(disk, "type") {
	case "file":
		path = Attr(source, "file")
	case "block":
		path = Attr(source, "dev")
	}
	return path, path != ""
}

// A namedDisk is a disk with godwit's name for it.
type namedDisk struct {
	name    string
	element *etree.Element
}

// namedDisks returns the hard disks of a domain. The name of a disk is its alias if
// a user has set it, else its serial number, else libvirt's name for it, the first
// of them that can be a disk's name and is not that of another disk.
func namedDisks(domain *etree.Element) []namedDisk {
	var all []namedDisk
	taken := map[string]bool{}
	for _, e := range children(child(domain, "devices"), "disk") {
		if kind := Attr(e, "device"); kind != "" && kind != "disk" && kind != "lun" {
			continue
		}
		alias, _ := strings.CutPrefix(Attr(child(e, "alias"), "name"), aliasPrefix)
		if alias == Attr(child(e, "alias"), "name") {
			alias = ""
		}
		for _, name := range []string{alias, textIn(child(e, "serial")),
			Attr(child(e, "target"), "dev")} {
			if backend.DiskName(name) && !taken[name] {
				taken[name] = true
				all = append(all, namedDisk{name, e})
				break
			}
		}
	}
	return all
}

func cards(domain *etree.Element) []hypervisor.NIC {
	var all []hypervisor.NIC
	for _, e := range children(child(domain, "devices"), "interface") {
		mac := Attr(child(e, "mac"), "address")
		if mac == "" || Attr(e, "type") == "hostdev" {
			continue
		}
		n := hypervisor.NIC{MAC: mac}
		// The name of a device that libvirt makes is its own choice on every host.
		if target := child(e, "target"); Attr(e, "type") == "ethernet" &&
			Attr(target, "managed") == "no" {
			n.Tap = Attr(target, "dev")
		}
		all = append(all, n)
	}
	return all
}

// readCPU returns the CPU as [hypervisor.Hardware] names it. Features that a host
// may lack are left out.
func readCPU(e *etree.Element) string {
	p := Processor{Mode: Attr(e, "mode"), Model: textIn(child(e, "model"))}
	if p.Mode == "" && p.Model != "" {
		p.Mode = custom // libvirt's default
	}
	if p.Mode == "" || p.Mode == custom && p.Model == "" {
		return ""
	}
	if p.Mode != custom {
		p.Model = ""
	}
	for _, f := range children(e, "feature") {
		switch Attr(f, "policy") {
		case "require", "force", "":
			p.Features = append(p.Features, Feature{Name: Attr(f, "name"), Has: true})
		case "disable", "forbid":
			p.Features = append(p.Features, Feature{Name: Attr(f, "name"), Has: false})
		}
	}
	return p.String()
}

func firmware(domain *etree.Element) string {
	if loader := child(domain, "os", "loader"); Attr(loader, "type") != "pflash" {
		return textIn(loader)
	}
	return ""
}

// debugPort returns the I/O port of the first debug console.
func debugPort(domain *etree.Element) uint16 {
	for _, e := range children(child(domain, "devices"), "serial") {
		if Attr(child(e, "target"), "type") != "isa-debug" {
			continue
		}
		text := Attr(child(e, "address"), "iobase")
		if text == "" {
			return 0xe9 // QEMU's default
		}
		port, err := strconv.ParseUint(text, 0, 16)
		if err == nil {
			return uint16(port)
		}
	}
	return 0
}

// hugepages returns the size of the pages of the guest's first NUMA node.
func hugepages(domain *etree.Element) (hypervisor.Bytes, error) {
	huge := child(domain, "memoryBacking", "hugepages")
	if huge == nil {
		return 0, nil
	}
	page := child(huge, "page")
	if page == nil {
		return 2 * hypervisor.MiB, nil // the default of x86 hosts
	}
	size, err := scaled(Attr(page, "size"), Attr(page, "unit"))
	if err != nil {
		return 0, fmt.Errorf("size of huge pages %w", err)
	}
	return size, nil
}

// cpusOf returns how many CPUs the guest has when it starts.
func cpusOf(domain *etree.Element) (int, error) {
	e := child(domain, "vcpu")
	text := textIn(e)
	if current := Attr(e, "current"); current != "" {
		text = current
	}
	if e == nil {
		return 1, nil // libvirt's default
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("number of CPUs is %s, has to be 1 to %d: %w", backend.Quote(text),
			math.MaxUint16, hypervisor.Invalid)
	}
	return int(n), nil
}

// readPins returns the pins of all CPUs; none if one is not pinned.
func readPins(domain *etree.Element, cpus int) ([][]int, error) {
	pins := map[int][]int{}
	for _, e := range children(child(domain, "cputune"), "vcpupin") {
		n, err := strconv.ParseUint(Attr(e, "vcpu"), 10, 16)
		if err != nil || int(n) >= cpus || pins[int(n)] != nil {
			continue
		}
		set, err := parseSet(Attr(e, "cpuset"))
		if err != nil {
			return nil, fmt.Errorf("pins of CPU %d: %w", n, err)
		}
		pins[int(n)] = set
	}
	if len(pins) < cpus {
		return nil, nil
	}
	all := make([][]int, cpus)
	for n, set := range pins {
		all[n] = set
	}
	return all, nil
}

// amount returns the amount of memory in an element.
func amount(e *etree.Element) (hypervisor.Bytes, error) {
	return scaled(textIn(e), Attr(e, "unit"))
}

// scaled returns a number of some unit in bytes; no unit is KiB.
// Source: libvirt virutil.c (virScaleInteger).
func scaled(number, unit string) (hypervisor.Bytes, error) {
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("is %s, has to be a number: %w", backend.Quote(number),
			hypervisor.Invalid)
	}
	scale, known := scaleOf(strings.ToLower(unit))
	if !known || n > math.MaxInt64/scale {
		return 0, fmt.Errorf("is %s %s, has to be at most 8 EiB in a unit like KiB: %w",
			backend.Quote(number), backend.Quote(unit), hypervisor.Invalid)
	}
	return hypervisor.Bytes(n * scale), nil
}

// scaleOf returns how many bytes a unit has, whose name is in lower case.
func scaleOf(unit string) (scale uint64, known bool) {
	switch unit {
	case "":
		return 1 << 10, true
	case "b", "byte", "bytes":
		return 1, true
	}
	power := strings.IndexByte("kmgtpe", unit[0]) + 1
	switch {
	case power == 0:
		return 0, false
	case len(unit) == 1, unit[1:] == "ib":
		return 1 << (10 * power), true
	case unit[1:] == "b":
		return uint64(math.Pow10(3 * power)), true
	}
	return 0, false
}
