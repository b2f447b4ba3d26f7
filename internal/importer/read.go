package importer

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/domxml"
	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

const (
	// Ratio is how many virtual CPUs share a CPU.
	Ratio = 4
	// maxFile is how long a file may be.
	maxFile = 4 << 20
	// mostMemory and mostCPUs keep sums from overflowing.
	mostMemory = 1 << 50
	mostCPUs   = 1 << 20
)

// IsDomains reports whether a folder may be such a fleet: whether it, or a folder in it, has a file
// whose name ends in .xml.
func IsDomains(path string) bool {
	for _, pattern := range []string{"*.xml", "*/*.xml"} {
		if found, err := filepath.Glob(filepath.Join(escape(path), pattern)); err == nil &&
			len(found) > 0 {
			return true
		}
	}
	return false
}

// escape takes the meaning from what Glob would act on.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// ReadDomains reads a fleet from a folder. What libvirt does not know comes from d. An error is
// [inventory.Problems], unless a file cannot be read or d is invalid.
func ReadDomains(path string, d inventory.Defaults) (*inventory.Fleet, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	r := &reader{Builder: inventory.NewBuilder(path), defaults: d, hosts: map[string]*host{},
		domains: map[string]*domain{}}
	r.EvictBy(evacuation.LiveMigrate) // as an evacuation of a host does
	for _, pattern := range []string{"*.xml", "*/*.xml"} {
		files, err := filepath.Glob(filepath.Join(escape(path), pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if err := r.file(file); err != nil {
				return nil, err
			}
			if r.Full() {
				return r.Fleet()
			}
		}
	}
	r.File = path
	r.finish()
	return r.Fleet()
}

// A reader collects what files say: a domain may be on several hosts.
type reader struct {
	*inventory.Builder
	defaults inventory.Defaults
	hosts    map[string]*host
	domains  map[string]*domain // by UUID: names are unique per host only
	line     int                // of the outermost element of the present file
}

type host struct {
	name   string
	folder string
	sized  bool
	memory hypervisor.Bytes
	cpus   int
	cpu    *placement.CPU
	cells  []placement.Cell // none: not known
	paged  hypervisor.Bytes // of memory: what is in huge pages
	models []string         // that it can show; nil: not known
	// defined and running count its domains.
	defined, running int
}

type domain struct {
	file    string
	host    string
	running bool
	vm      hypervisor.VM
	line    int
	uuid    string
	whyNot  string

	platform placement.Platform
	layout   *placement.TopologyRequest
}

func (r *reader) file(path string) error {
	r.File = path
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := yamldoc.ReadAll(path, f, maxFile)
	if problems, are := errors.AsType[yamldoc.Problems](err); are {
		r.Errorf(0, "", "%s", problems[0].Message)
		return nil
	} else if err != nil {
		return err
	}
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return err
	}
	name := filepath.Base(folder)
	h := r.hosts[name]
	if h == nil {
		h = &host{name: name, folder: filepath.Dir(path)}
		r.hosts[name] = h
	}
	root, line := rootOf(data)
	switch r.line = line; root.Name.Local {
	case "domain":
		r.domain(h, string(data), root)
	case "capabilities":
		r.capabilities(h, data)
	case "domainCapabilities":
		r.models(h, data)
	case "":
		r.Errorf(lineOf(data), "", "it is no XML: is it cut off?")
	default:
		r.Warnf(r.line, root.Name.Local, "left out: it is neither a domain nor capabilities")
	}
	return nil
}

// wrong reports a problem of the present file.
func (r *reader) wrong(field, format string, args ...any) { r.Errorf(r.line, field, format, args...) }

// rootOf returns the outermost element and its line; one without a name when there is none.
func rootOf(data []byte) (xml.StartElement, int) {
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		t, err := d.Token()
		if err != nil {
			return xml.StartElement{}, 0
		}
		if start, is := t.(xml.StartElement); is {
			line, _ := d.InputPos()
			return start, line
		}
	}
}

// lineOf returns the line in which XML is no longer XML, or 0 when it is.
func lineOf(data []byte) int {
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		_, err := d.Token()
		if err == io.EOF {
			return 0
		}
		if err != nil {
			line, _ := d.InputPos()
			return line
		}
	}
}

func (r *reader) domain(h *host, text string, root xml.StartElement) {
	facts, err := domxml.Read(text, domxml.Settings{})
	if err != nil {
		r.Errorf(max(lineOf([]byte(text)), r.line), "domain", "%v", err)
		return
	}
	v, at := facts.VM, "domain "+facts.Name
	if v.Memory <= 0 || v.Memory > mostMemory || v.CPUs <= 0 || v.CPUs > mostCPUs {
		r.wrong(at, "needs memory and CPUs that a machine may have, has %v and %d", v.Memory, v.CPUs)
		return
	}
	var a asked
	all, err := domxml.Of(text, domxml.Settings{})
	if err == nil {
		err = xml.Unmarshal([]byte(text), &a)
	}
	if err != nil {
		r.wrong(at, "%v", err)
		return
	}
	d := &domain{file: r.File, line: r.line, host: h.name, uuid: facts.UUID,
		platform: a.platform(), running: slices.ContainsFunc(root.Attr, func(a xml.Attr) bool {
			return a.Name.Local == "id"
		}), vm: hypervisor.VM{ID: v.ID, Memory: v.Memory, CPUs: v.CPUs}}
	if err := domxml.Refuse(all); err != nil {
		d.whyNot = err.Error()
	}
	if !slices.Contains(migrates, a.Type) {
		d.whyNot = "libvirt moves no domain of the type " + strconv.Quote(a.Type) + " live"
	}
	if slices.ContainsFunc(all, func(b domxml.Blocker) bool {
		return b.Weight == domxml.Conditional
	}) {
		r.Warnf(r.line, at, "it needs something of its target that is not looked at")
	}
	var unread string
	if d.layout, unread = a.layout(&v); unread != "" {
		r.Warnf(r.line, at, "%s: that is not looked at", unread)
	}
	r.meet(h, d, at)
}

// meet enters a domain. One that is defined on several hosts is where it runs.
func (r *reader) meet(h *host, d *domain, at string) {
	h.defined++
	if d.running {
		h.running++
	}
	key := cmp.Or(strings.ToLower(d.uuid), string(d.vm.ID))
	switch first := r.domains[key]; {
	case first == nil || d.running && !first.running:
		r.domains[key] = d
	case d.running && first.running:
		r.wrong(at, "it runs on host %s, too, says %s", first.host, first.file)
	}
}

// capabilities are the part of virsh capabilities that is read.
type capabilities struct {
	CPU   processor `xml:"host>cpu"`
	Cells []cell    `xml:"host>topology>cells>cell"`
}

func (r *reader) capabilities(h *host, data []byte) {
	var c capabilities
	if err := xml.Unmarshal(data, &c); err != nil {
		r.Errorf(lineOf(data), "capabilities", "%v", err)
		return
	}
	if h.sized {
		r.wrong("capabilities", "there are others of host %s", h.name)
		return
	}
	listed := true
	for i, cell := range c.Cells {
		if unit := cell.Memory.Unit; unit != "KiB" && unit != "" {
			r.wrong("capabilities memory", "needs KiB, has the unit %q", unit)
			return
		}
		memory := hypervisor.KiB * hypervisor.Bytes(r.number("memory", cell.Memory.Value,
			mostMemory>>10))
		cpus := int(r.number("cpus num", cell.CPUs.Num, mostCPUs))
		h.memory, h.cpus = h.memory+memory, h.cpus+cpus
		at, whole := r.layout(i, &cell, memory, cpus)
		h.cells, listed = append(h.cells, at), listed && whole
		h.paged += memory - at.Memory
	}
	if h.cpu = c.CPU.facts(); !listed || len(h.cells) > placement.MaxCells {
		h.cells = nil
	}
	if h.sized = h.memory > 0 && h.cpus > 0; !h.sized {
		r.wrong("capabilities", "host/topology/cells has no memory, or no CPUs")
	}
}

func (r *reader) number(field, text string, most int64) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 || n > most {
		r.wrong("capabilities "+field, "needs a whole number from 0 to %d, has %q", most, text)
		return 0
	}
	return n
}

// finish adds everything to the fleet.
func (r *reader) finish() {
	if len(r.hosts) > 0 {
		r.Warnf(0, "", "libvirt has no limit on virtual CPUs, and does not say how much memory hosts, and QEMU besides its guests, "+
			"need themselves: %d for each CPU are taken, and %v are reserved on each host", Ratio, reservedMemory)
	}
	r.know()
	for _, name := range slices.Sorted(maps.Keys(r.hosts)) {
		r.host(r.hosts[name])
	}
	names := map[hypervisor.VMID]int{}
	for _, d := range r.domains {
		names[d.vm.ID]++
	}
	for _, key := range slices.Sorted(maps.Keys(r.domains)) {
		d := r.domains[key]
		r.File = d.file
		if names[d.vm.ID] > 1 && d.uuid != "" { // names are unique per host only
			d.vm.ID += hypervisor.VMID("_" + strings.ToLower(d.uuid))
		}
		v := r.vm(d)
		r.AddVM(d.line, v)
		r.DescribedIn(v.ID, d.file)
	}
}

// host adds a host.
func (r *reader) host(h *host) {
	r.File = h.folder
	if !h.sized {
		r.Errorf(0, "host "+h.name, "its size is not known: put the output of virsh "+
			"capabilities beside its domains, as capabilities.xml")
		return
	}
	if h.defined > 0 && h.running == 0 {
		r.Warnf(0, "host "+h.name, "none of its %d domains runs, as their XML says: it counts as "+
			"empty. Files of /etc/libvirt/qemu are definitions; virsh dumpxml writes what runs",
			h.defined)
	}
	h.cpu.Models = h.models
	reserved := min(h.memory, reservedMemory+r.pool(h))
	facts := &placement.Facts{Memory: placement.DeviceInventory{Total: int64(h.memory), Reserved: int64(reserved)},
		CPUs: placement.DeviceInventory{Total: int64(h.cpus), Ratio: Ratio}, CPU: h.cpu, Cells: h.cells}
	r.AddHost(0, inventory.Host{Facts: facts, Host: hypervisor.Host{
		Name: hypervisor.HostName(h.name), Memory: hypervisor.Bytes(facts.Memory.Capacity()), CPUs: Ratio * h.cpus,
		Link: r.defaults.LinkOf(nil)}})
}

// pool returns the memory of a host that is in huge pages, if no domain may have it: where domains ask for huge
// pages it is theirs, and counted as memory of all.
func (r *reader) pool(h *host) hypervisor.Bytes {
	if h.paged == 0 || !r.paged() {
		return h.paged
	}
	r.Warnf(0, "host "+h.name, "%v of its memory is in huge pages, which some domains ask for: it may seem to have room for "+
		"ordinary memory that it does not have", h.paged)
	return 0
}

// paged reports whether a domain asks for huge pages.
func (r *reader) paged() bool {
	for _, d := range r.domains {
		if d.layout != nil && d.layout.PageSize > 0 {
			return true
		}
	}
	return false
}

func (r *reader) vm(d *domain) inventory.VM {
	namespace, _, found := strings.Cut(string(d.vm.ID), "/")
	if !found {
		namespace = "default"
	}
	v := inventory.VM{VM: d.vm, Namespace: namespace, Migratable: d.whyNot == "",
		NotMigratableReason: d.whyNot, Workload: r.defaults.LoadOf(nil).Workload(d.vm.Memory)}
	v.Placement.Platform, v.Placement.Topology = d.platform, d.layout
	if d.running {
		v.Host = hypervisor.HostName(d.host)
	}
	return v
}
