//go:build linux

package qemu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Features are what one QEMU can do on this host.
type Features struct {
	Path    string // the program
	Version Version
	Arch    string // of its guests: "x86_64"
	// Accelerator is "kvm" if guests start with it here, otherwise "tcg".
	Accelerator string
	// CPU is the best CPU model that guests start with here: with KVM "host", or
	// as much of it as this host's KVM bears; with TCG "qemu64".
	CPU string
	// NoKVM is why Accelerator is not "kvm", for people.
	NoKVM        string
	Machines     map[string]Machine // by name; an alias is no name
	Capabilities map[string]bool    // of migrations: whether they can be set here
	Parameters   map[string]bool    // of migrations: whether there are such
	Commands     map[string]bool    // of QMP
	// MultifdMethods are the ways to compress parallel channels, ordered.
	MultifdMethods []string
}

// A Machine is a type of machine.
type Machine struct {
	Alias      string // a shorter name, which another version gives to another type
	Default    bool
	MaxCPUs    int
	Deprecated bool
}

// Machine returns the name of a machine type that may be an alias, and whether
// there is such a type. A VM has to be started with the name: a target that is
// newer understands the alias as another machine.
func (f Features) Machine(name string) (full string, known bool) {
	if _, known = f.Machines[name]; known {
		return name, true
	}
	for full, m := range f.Machines {
		if m.Alias == name && name != "" {
			return full, true
		}
	}
	return "", false
}

// Software says what runs VMs here, for people: "QEMU 7.2.22, kvm".
func (f Features) Software() string { return "QEMU " + f.Version.String() + ", " + f.Accelerator }

// needs lists what QEMU must have for each ability. A name stands for a
// capability or a command; what QEMU does not know about itself is not here.
func (f Features) needs() map[hypervisor.Abilities]bool {
	return map[hypervisor.Abilities]bool{
		hypervisor.CanAutoConverge: f.Capabilities["auto-converge"],
		hypervisor.CanPostCopy: f.Capabilities["postcopy-ram"] &&
			f.Commands["migrate-start-postcopy"],
		hypervisor.CanRecover:     f.Capabilities["postcopy-ram"] && f.Commands["migrate-recover"],
		hypervisor.CanUseChannels: f.Capabilities["multifd"],
		hypervisor.CanLoseChannels: f.Capabilities["multifd"] &&
			f.Version.Compare(EndsChannels) >= 0 && f.Accelerator != TCG, // see docs/known-hypervisor-faults.md
		hypervisor.CanCompress: f.Capabilities["multifd"] && len(f.MultifdMethods) > 0,
		hypervisor.CanXBZRLE:   f.Capabilities["xbzrle"],
		hypervisor.CanHoldSwitchOver: f.Capabilities["pause-before-switchover"] &&
			f.Commands["migrate-continue"],
		hypervisor.CanEncrypt: f.Parameters["tls-creds"],
		hypervisor.CanCopyStorage: f.Commands["blockdev-mirror"] &&
			f.Commands["nbd-server-start"] && f.Commands["block-export-add"],
		hypervisor.CanMeasureDirtyRate: f.Commands["calc-dirty-rate"],
		hypervisor.CanSnapshot:         f.Commands["blockdev-snapshot-internal-sync"],
		hypervisor.CanResizeLive: f.Commands["query-memory-devices"] &&
			f.Commands["query-hotpluggable-cpus"] && f.Commands["device_add"] && f.Commands["object-add"],
		hypervisor.CanMoveDisk: f.Commands["blockdev-mirror"] && f.Commands["blockdev-add"] &&
			f.Commands["block-job-complete"],
		hypervisor.CanAttachDisk: f.Commands["blockdev-add"] && f.Commands["device_add"] &&
			f.Commands["device_del"],
	}
}

// Abilities returns what QEMU does for a backend. What a backend does to files,
// CanMoveCold and CanResize, and with processes, CanTakeBack, is its own to add.
func (f Features) Abilities() hypervisor.Abilities {
	var all hypervisor.Abilities
	for ability, has := range f.needs() {
		if has {
			all |= ability
		}
	}
	return all
}

// Probe asks the QEMU at path what it can do here. The context bounds how long
// that may take. The error is fs.ErrNotExist if there is no such program.
func Probe(ctx context.Context, path string) (Features, error) {
	runtime.LockOSThread() // QEMU lives no longer than the thread that has started it
	defer runtime.UnlockOSThread()
	f := Features{Path: path, Accelerator: "tcg", CPU: "qemu64"}
	// Post-copy is a matter of the host as well, which only a target looks at.
	args := []string{"-machine", "none,accel=kvm:tcg", "-incoming", "defer"}
	s, err := open(ctx, path, args)
	if err != nil {
		return Features{}, err
	}
	kvm, err := f.ask(s)
	if err = s.close(err); err != nil {
		return Features{}, err
	}
	if !kvm {
		f.NoKVM = "QEMU could not open it: " + s.said()
		return f, nil
	}
	if err := f.findCPU(ctx); err != nil {
		return Features{}, err
	}
	return f, nil
}

// findCPU starts a machine with KVM. That KVM opens is not enough: some KVMs offer
// a CPU that they cannot run, and QEMU aborts.
func (f *Features) findCPU(ctx context.Context) error {
	var why []error
	for _, cpu := range []string{"host", "host,arch-capabilities=off"} {
		err := boots(ctx, f.Path, cpu)
		if err == nil {
			f.Accelerator, f.CPU = "kvm", cpu
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		why = append(why, fmt.Errorf("with the CPU %s: %w", cpu, err))
	}
	f.NoKVM = errors.Join(why...).Error()
	return nil
}

// boots builds a whole machine that never runs.
func boots(ctx context.Context, path, cpu string) error {
	s, err := open(ctx, path, []string{"-machine", "q35,accel=kvm", "-cpu", cpu, "-m", "1M"})
	if err != nil {
		return err
	}
	return s.close(nil)
}

// ask asks everything. A question that this QEMU does not know has no answer.
func (f *Features) ask(s *session) (kvm bool, err error) {
	f.Version = s.version
	var enabled struct{ Enabled bool }
	var target struct{ Arch string }
	var commands, capabilities []struct{ Name, Capability string }
	var parameters map[string]any
	for _, question := range []struct {
		command string
		answer  any
	}{
		{"query-kvm", &enabled}, {"query-target", &target}, {"query-commands", &commands},
		{"query-migrate-capabilities", &capabilities}, {"query-migrate-parameters", &parameters},
	} {
		if err := s.call(question.command, nil, question.answer); err != nil && !refused(err) {
			return false, err
		}
	}
	f.Arch, f.Commands, f.Parameters = target.Arch, map[string]bool{}, map[string]bool{}
	for _, c := range commands {
		f.Commands[c.Name] = true
	}
	for name := range parameters {
		f.Parameters[name] = true
	}
	f.Capabilities = map[string]bool{}
	for _, c := range capabilities {
		f.Capabilities[c.Capability] = true
	}
	return enabled.Enabled, errors.Join(f.askPostCopy(s), f.askMachines(s), f.askMethods(s))
}

// askPostCopy finds out whether this host lets QEMU catch the accesses to pages
// that are missing (userfaultfd): if not, a target refuses to be asked for it.
func (f *Features) askPostCopy(s *session) error {
	if !f.Capabilities["postcopy-ram"] {
		return nil
	}
	err := s.call("migrate-set-capabilities", map[string]any{"capabilities": []any{
		map[string]any{"capability": "postcopy-ram", "state": true}}}, nil)
	f.Capabilities["postcopy-ram"] = err == nil
	if refused(err) {
		return nil
	}
	return err
}

func (f *Features) askMachines(s *session) error {
	var machines []struct {
		Name, Alias string
		Default     bool `json:"is-default"`
		MaxCPUs     int  `json:"cpu-max"`
		Deprecated  bool
	}
	err := s.call("query-machines", nil, &machines)
	f.Machines = map[string]Machine{}
	for _, m := range machines {
		f.Machines[m.Name] = Machine{m.Alias, m.Default, m.MaxCPUs, m.Deprecated}
	}
	if refused(err) {
		return nil
	}
	return err
}

// askMethods looks in the schema for the type of the parameter that chooses how
// channels are compressed, and for its values.
func (f *Features) askMethods(s *session) error {
	var schema []entity
	err := s.call("query-qmp-schema", nil, &schema)
	if err != nil && !refused(err) {
		return err
	}
	byName := map[string]entity{}
	for _, e := range schema {
		byName[e.Name] = e
	}
	arguments := byName[byName["migrate-set-parameters"].Arguments]
	for _, m := range arguments.Members {
		if m.Name != "multifd-compression" {
			continue
		}
		var enum string
		if json.Unmarshal(m.Type, &enum) != nil {
			continue // no name of a type: not for us
		}
		f.MultifdMethods = byName[enum].values()
	}
	return nil
}

// entity is one entry of QEMU's schema; other kinds have other fields.
type entity struct {
	Name      string
	Arguments string `json:"arg-type"`
	Values    []string
	Members   []struct {
		Name string
		Type json.RawMessage // a string in objects
	}
}

// values lists the values of an enumeration other than "none", ordered.
func (e entity) values() []string {
	var values []string
	for _, v := range e.Values {
		if v != "none" {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	return values
}
