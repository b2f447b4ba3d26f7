package importer

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/godwit-vm/godwit/migration/placement"
)

// An ask is what the extra specs of a flavor ask of a host besides room.
type ask struct {
	devices []placement.DeviceAsk
	// own is how many of the CPUs are dedicated, each a CPU of the host.
	own int
	// whyNot is why its servers do not move live; "" is that nothing stands against it.
	whyNot string
	// ignored names the specs that are not looked at, though a host may lack what they ask for.
	ignored []string
}

// stays are specs whose servers Nova never moves live, by what they ask for.
// Source: Nova 2026.1 nova/compute/api.py (live_migrate: reject_sev_instances,
// reject_vtpm_instances, block_accelerators).
var stays = map[string]string{
	"hw:mem_encryption":    "its memory is encrypted",
	"hw:tpm_version":       "it has a virtual TPM",
	"accel:device_profile": "it has an accelerator",
}

// specs returns the extra specs of a flavor: an object in the API's answers, an object or a
// text such as "a='1', b='2'" in the output of openstack.
func (o *novaObject) specs() map[string]string {
	for _, name := range []string{"extra_specs", "Properties", "properties"} {
		switch v := o.fields[name].(type) {
		case map[string]any:
			all := map[string]string{}
			for key, value := range v {
				all[key] = fmt.Sprint(value)
			}
			return all
		case string:
			return splitSpecs(v)
		}
	}
	return nil
}

// splitSpecs reads what the output of openstack writes: a comma may be in a value.
func splitSpecs(text string) map[string]string {
	all := map[string]string{}
	for text != "" {
		key, rest, found := strings.Cut(text, "=")
		if !found {
			return all
		}
		value, after := rest, ""
		if strings.HasPrefix(rest, "'") {
			value, after, _ = strings.Cut(rest[1:], "'")
		} else {
			value, after, _ = strings.Cut(rest, ",")
		}
		all[strings.TrimSpace(key)] = value
		text = strings.TrimLeft(after, ", ")
	}
	return all
}

// ask says what extra specs ask of a host, for a flavor with so many CPUs.
// Source: Nova 2026.1 doc/source/configuration/extra-specs.
func (o *novaObject) ask(specs map[string]string, cpus int) ask {
	var a ask
	for _, key := range slices.Sorted(maps.Keys(specs)) {
		value := specs[key]
		scope, rest, _ := strings.Cut(key, ":")
		switch {
		case stays[key] != "" && !strings.EqualFold(value, "false"):
			a.stay(stays[key])
		case key == "pci_passthrough:alias":
			a.alias(o, value)
		case strings.HasPrefix(scope, "resources"):
			a.resource(o, key, rest, value)
		case key == "hw:cpu_policy" && value == "dedicated":
			a.own = cpus
		case key == "hw:cpu_policy" && value == "mixed", key == "hw:cpu_dedicated_mask":
			a.own = max(a.own, mask(specs["hw:cpu_dedicated_mask"], cpus))
		case a.demands(scope, key):
			a.ignored = append(a.ignored, key)
		}
	}
	if len(a.ignored) > 0 {
		o.warn("extra specs", "which hosts have what they ask for is not known; not looked at: %s",
			strings.Join(a.ignored, ", "))
	}
	if len(a.devices) > 0 {
		o.warn("extra specs", "which hosts have the devices that they ask for is not known: none "+
			"takes its servers")
	}
	if a.own > 0 && specs["hw:emulator_threads_policy"] == "isolate" {
		a.own++
	}
	return a
}

// demands reports whether a spec may refuse hosts.
func (*ask) demands(scope, key string) bool {
	for _, scoped := range []string{"trait", "capabilities", "aggregate_instance_extra_specs"} {
		if strings.HasPrefix(scope, scoped) {
			return true
		}
	}
	return strings.HasPrefix(key, "hw:numa_") || slices.Contains([]string{"hw:mem_page_size",
		"hw:cpu_thread_policy", "hw:pci_numa_affinity_policy", "hw:cpu_realtime",
		"hw:locked_memory", "hw:maxphysaddr_mode"}, key)
}

func (a *ask) stay(why string) {
	if a.whyNot == "" {
		a.whyNot = why
	}
}

// alias reads PCI devices: "gpu:1,nic:2". A flavor's are not moved live.
// Source: Nova 2026.1 nova/conductor/tasks/live_migrate.py (_check_can_migrate_pci).
func (a *ask) alias(o *novaObject, text string) {
	for _, one := range strings.Split(text, ",") {
		class, number, _ := strings.Cut(strings.TrimSpace(one), ":")
		n, err := strconv.Atoi(strings.TrimSpace(number))
		if class == "" || err != nil || n < 1 || n > maxCPUs {
			o.wrong("pci_passthrough:alias", "needs names and numbers, as gpu:1, has %q", text)
			return
		}
		a.device("PCI "+class, n, true)
		a.stay("it has a PCI device, " + class)
	}
}

// resource reads an amount of a class: resources:VGPU=1.
func (a *ask) resource(o *novaObject, key, class, value string) {
	n, err := strconv.Atoi(value)
	switch {
	case err != nil || n < 0 || n > maxCPUs:
		o.wrong(key, "needs a whole number, has %q", value)
	case n == 0:
	case class == "PCPU":
		a.own = n
	case class == "VCPU" || class == "MEMORY_MB" || class == "DISK_GB":
		a.ignored = append(a.ignored, key)
	case class == "VGPU":
		a.device(class, n, true)
		a.stay("it has a virtual GPU, which moves live only between hosts that are set up for it")
	default:
		a.device(class, n, false)
	}
}

func (a *ask) device(class string, n int, stays bool) {
	class = strings.ReplaceAll(class, " ", ":")
	a.devices = append(a.devices, placement.DeviceAsk{Class: class, Count: n, Stays: stays})
}

// mask counts the CPUs that a mask such as 0-3,^2 names; all but it names where it begins so.
func mask(text string, cpus int) int {
	named := map[int]bool{}
	excluding := strings.HasPrefix(strings.TrimSpace(text), "^")
	if excluding {
		for i := range cpus {
			named[i] = true
		}
	}
	for _, part := range strings.Split(text, ",") {
		part, not := strings.CutPrefix(strings.TrimSpace(part), "^")
		first, last, _ := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if last == "" {
			to, err2 = from, err
		}
		if err != nil || err2 != nil {
			continue
		}
		for i := max(0, from); i <= min(to, cpus-1); i++ {
			named[i] = !not
		}
	}
	n := 0
	for _, is := range named {
		if is {
			n++
		}
	}
	return n
}
