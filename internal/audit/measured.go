package audit

import (
	"io"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// A Measured is a migration that has succeeded, and what its hypervisor measured.
type Measured struct {
	VM             hypervisor.VMID
	Source, Target hypervisor.HostName
	Memory, Disks  hypervisor.Bytes
	Sent           hypervisor.Bytes
	Link           hypervisor.Bandwidth // the slower of both hosts'; 0 is not known
	Abilities      hypervisor.Abilities // of the source, which chooses its connections by them; 0 is not known
	Options        migration.Options
	Mode           hypervisor.Mode
	Brownout       store.Brownout
	Began, Ended   time.Time
	Downtime       time.Duration
}

// Measure reads a controller's log and returns the migrations that have succeeded in it, by their
// ends. The error is a *[Wrong], or a failure to read.
func Measure(log io.Reader) ([]Measured, error) {
	m := &measurer{known: map[store.Key]store.Record{}, began: map[store.Key]time.Time{},
		done: map[store.Key]bool{}}
	r := reader{begun: func(*term) error { return nil }, looked: m.look}
	if err := r.read(log); err != nil {
		return nil, err
	}
	return m.all, nil
}

// A measurer follows the records of a log.
type measurer struct {
	known map[store.Key]store.Record
	began map[store.Key]time.Time // when migrations began to run
	done  map[store.Key]bool
	all   []Measured
}

// look takes in what a look has read and written. What others wrote comes first.
func (m *measurer) look(_ *term, k *look) error {
	for _, r := range k.changes.Records {
		m.take(r)
	}
	for _, d := range k.writes {
		if d.failed == "" && d.record != nil {
			m.take(d.record)
		}
	}
	return nil
}

func (m *measurer) take(r store.Record) {
	key := r.Key()
	if old := m.known[key]; old != nil && old.RecordVersion() > r.RecordVersion() {
		return
	}
	m.known[key] = r
	move, is := r.(*store.Migration)
	if !is {
		return
	}
	if move.State.Phase == migration.Running {
		m.began[key] = move.State.Entered
	}
	began, ran := m.began[key] // the source tells what it measured after the target has
	if ran && move.State.Phase == migration.Succeeded && move.Source.Measured && !m.done[key] {
		m.done[key] = true
		m.finished(move, began)
	}
}

// finished takes in a migration that has succeeded and was measured.
func (m *measurer) finished(move *store.Migration, began time.Time) {
	vm, _ := m.known[store.Key{Kind: store.VMKind, Name: string(move.Spec.VM)}].(*store.VM)
	if vm == nil || move.Options == nil {
		return
	}
	m.all = append(m.all, Measured{VM: move.Spec.VM, Source: move.State.Source,
		Target: move.State.Target, Memory: vm.Now().Memory, Disks: vm.LocalSize(),
		Sent: move.Source.Sent, Link: m.link(move.State.Source, move.State.Target),
		Abilities: m.host(move.State.Source).Abilities,
		Options:   *move.Options, Mode: move.Source.Mode, Brownout: move.Source.Brownout,
		Began: began, Ended: move.State.Entered, Downtime: move.Source.Downtime})
}

// link returns the speed of the slower link of two hosts, 0 when neither is known.
func (m *measurer) link(hosts ...hypervisor.HostName) hypervisor.Bandwidth {
	slowest := hypervisor.Bandwidth(0)
	for _, name := range hosts {
		if link := m.host(name).Link; link > 0 && (slowest == 0 || link < slowest) {
			slowest = link
		}
	}
	return slowest
}

// host returns a host as it was last told of, without anything when it was not.
func (m *measurer) host(name hypervisor.HostName) hypervisor.Host {
	h, _ := m.known[store.Key{Kind: store.HostKind, Name: string(name)}].(*store.Host)
	if h == nil {
		return hypervisor.Host{}
	}
	return h.Host
}
