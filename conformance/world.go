package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// TB is what the suite needs of a *testing.T, or of a *rapid.T.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// A side is one of the two hosts.
type side uint8

// The two hosts, named after what they are in most cases.
const (
	source side = iota
	target
)

// Other returns the other host.
func (s side) Other() side { return 1 - s }

// A world is a Lab and what a case does in it. Its methods fail the case when
// what they ask for does not happen.
type world struct {
	*Lab
	T     *told
	Rule  string // what package hypervisor says about the case, for failures
	Skip  func(reason string)
	Ctx   context.Context
	HV    [2]hypervisor.Hypervisor // by side
	Hosts [2]hypervisor.Host       // by side
	VMs   []hypervisor.VMID        // that take part
	Jobs  []hypervisor.JobID       // that were begun
	At    map[hypervisor.JobID]hypervisor.Address

	record record
	unseen [2]hypervisor.Hypervisor // HV, whose calls are not recorded
}

// newWorld begins a case in a Lab.
func newWorld(t TB, lab *Lab) *world {
	t.Helper()
	w := openWorld(t, lab)
	w.Meet()
	return w
}

// openWorld is New before the first call of the hosts.
func openWorld(t TB, lab *Lab) *world {
	lab.complete()
	w := &world{Lab: lab, Ctx: context.Background(), At: map[hypervisor.JobID]hypervisor.Address{}}
	w.T = &told{t, w}
	w.Hosts[source].Name, w.Hosts[target].Name = "the source", "the target"
	w.Connect(source, lab.Source)
	w.Connect(target, lab.Target)
	return w
}

// Meet asks the hosts for their names.
func (w *world) Meet() {
	w.T.Helper()
	for _, s := range [...]side{source, target} {
		h, err := w.HV[s].Host(w.Ctx)
		w.Must(err)
		w.Hosts[s] = h
		w.Connect(s, w.HV[s].(*host).Hypervisor)
	}
}

// Must fails the case on an error.
func (w *world) Must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatalf("%v; %s", err, w)
	}
}

// Refused wants err to be an Error of one of the kinds.
func (w *world) Refused(err error, kinds ...hypervisor.Kind) {
	w.T.Helper()
	e, ok := errors.AsType[*hypervisor.Error](err)
	if !ok || !slices.Contains(kinds, e.Kind) {
		w.T.Fatalf("the answer is %s, want a *hypervisor.Error of kind %v; %s", said(err),
			alternatives(kinds), w)
	}
	if e.Op == "" {
		w.T.Fatalf("error %v does not say which operation failed", err)
	}
}

// said is an error as a failure prints it.
func said(err error) string {
	if err == nil {
		return "no error"
	}
	return fmt.Sprintf("%T %q", err, err)
}

// alternatives lists kinds by their names in package hypervisor.
func alternatives(kinds []hypervisor.Kind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Error()
	}
	return strings.Join(names, " or ")
}

// Cuts cuts the link. A source that sends into nothing may have no answer for a while.
func (w *world) Cuts() {
	w.T.Helper()
	w.Must(w.CutLink())
}

// answered asks for something; again, while the host says that it may succeed later: its link was cut, a process
// has just ended, or the machine is so busy that the hypervisor does not answer in time.
func (w *world) answered(ask func() error) error {
	return w.repeated(ask, hypervisor.Transient)
}

// done is answered for what changes something, of which a busy host may also say that it does not know whether it was
// done: every method may be repeated.
func (w *world) done(do func() error) error {
	return w.repeated(do, hypervisor.Transient, hypervisor.Unknown)
}

// repeated repeats something while its error is of one of these kinds.
func (w *world) repeated(do func() error, kinds ...hypervisor.Kind) error {
	again := func(err error) bool {
		return slices.ContainsFunc(kinds, func(k hypervisor.Kind) bool { return errors.Is(err, k) })
	}
	err := do()
	for waited := time.Duration(0); waited < w.Within && again(err); waited += tick {
		w.Pass(tick)
		err = do()
	}
	return err
}

// Do gives commands that must succeed.
func (w *world) Do(s side, id hypervisor.VMID, commands ...hypervisor.Command) {
	w.T.Helper()
	for _, c := range commands {
		if err := w.done(func() error { return w.HV[s].Do(w.Ctx, id, c) }); err != nil {
			w.T.Fatalf("%T: %v; %s", c, err, w)
		}
	}
}

// Refuses gives commands that must be refused, and change nothing.
func (w *world) Refuses(k hypervisor.Kind, s side, id hypervisor.VMID,
	commands ...hypervisor.Command) {
	w.T.Helper()
	before := w.Domain(s, id)
	for _, c := range commands {
		w.T.Logf("%T, expecting %v", c, k)
		err := w.HV[s].Do(w.Ctx, id, c)
		w.Refused(err, k)
		if e, _ := errors.AsType[*hypervisor.Error](err); e.VM != "" && e.VM != id {
			w.T.Fatalf("error %v is about %q; the command was for %q", err, e.VM, id)
		}
		if after := w.Domain(s, id); after.State != before.State || after.Job != before.Job ||
			!after.VM.Equal(before.VM) {
			w.T.Fatalf("%T was refused, and made %+v of %+v", c, after, before)
		}
	}
}

// Name notes a VM that takes part, and describes it.
func (w *world) Name(id hypervisor.VMID) hypervisor.VM {
	if !slices.Contains(w.VMs, id) {
		w.VMs = append(w.VMs, id)
	}
	return w.VM(id)
}

// Boot starts a VM and waits until it runs.
func (w *world) Boot(s side, vm hypervisor.VM) {
	w.T.Helper()
	w.Name(vm.ID)
	w.Do(s, vm.ID, hypervisor.Start{VM: vm})
	w.UntilState(s, vm.ID, hypervisor.Running)
}

// Running boots the VM of most cases at the source.
func (w *world) Running() {
	w.T.Helper()
	w.Boot(source, w.Name(theVM))
}

// theVM is the VM of most cases.
const theVM hypervisor.VMID = "suite/vm"

// Off defines TheVM at the Source, shut off.
func (w *world) Off() {
	w.T.Helper()
	w.Running()
	w.Do(source, theVM, hypervisor.Kill{})
	w.UntilState(source, theVM, hypervisor.Shutoff)
}

// A move is a migration that a case begins. The zero value moves TheVM from the
// source to the target as fast as it can.
type move struct {
	VM      hypervisor.VM
	From    side
	Hold    bool
	Options hypervisor.TransferOptions
}

// Receives opens a target for a new job.
func (w *world) Receives(m move) (hypervisor.JobID, hypervisor.Address) {
	w.T.Helper()
	if m.VM.ID == "" {
		m.VM = w.Name(theVM)
	}
	job := hypervisor.JobID(fmt.Sprintf("job-%d", len(w.Jobs)+1))
	w.Jobs = append(w.Jobs, job)
	address, err := w.HV[m.From.Other()].Receive(w.Ctx, hypervisor.Incoming{Job: job, VM: m.VM,
		Hold: m.Hold})
	w.Must(err)
	w.At[job] = address
	return job, address
}

// Outgoing asks to send TheVM to an address.
func (w *world) Outgoing(job hypervisor.JobID, to hypervisor.Address) hypervisor.Outgoing {
	return hypervisor.Outgoing{Job: job, VM: theVM, Target: w.Hosts[target].Name, Address: to}
}

// Begin opens a target and begins to send.
func (w *world) Begin(m move) hypervisor.JobID {
	w.T.Helper()
	job, address := w.Receives(m)
	out := w.Outgoing(job, address)
	out.Target, out.Options = w.Hosts[m.From.Other()].Name, m.Options
	if m.VM.ID != "" {
		out.VM = m.VM.ID
	}
	w.Must(w.HV[m.From].Migrate(w.Ctx, out))
	return job
}

// Slowly boots TheVM and begins a migration that is still copying memory when it
// returns.
func (w *world) Slowly(m move) hypervisor.JobID {
	w.T.Helper()
	w.Running()
	m.Options.Bandwidth = w.Slow
	job := w.Begin(m)
	w.UntilStatus(source, job, hypervisor.JobActive)
	w.Until("memory moves", func() bool { return w.Progress(source, job).Sent > 0 })
	return job
}

// Arrives waits until TheVM runs, or rests, at the target and the source knows.
func (w *world) Arrives(job hypervisor.JobID, state hypervisor.DomainState) {
	w.T.Helper()
	w.UntilStatus(source, job, hypervisor.JobSucceeded)
	w.States(hypervisor.HandedOver, state)
}

// HandedOver moves TheVM so that it waits, held, at the target.
func (w *world) HandedOver() hypervisor.JobID {
	w.T.Helper()
	w.Running()
	job := w.Begin(move{Hold: true})
	w.Arrives(job, hypervisor.Received)
	return job
}

// Stays wants TheVM to run at the Source, unharmed, and not at the Target, and
// the job to have ended so.
func (w *world) Stays(job hypervisor.JobID, ends hypervisor.JobStatus) {
	w.T.Helper()
	w.UntilStatus(source, job, ends)
	w.UntilState(source, theVM, hypervisor.Running)
	w.tells(job)
	w.UntilState(target, theVM, hypervisor.Absent)
	w.Sound(source)
}

// Adjust changes a job at its source, which must succeed once the transfer is set up.
func (w *world) Adjust(job hypervisor.JobID, adjustments ...hypervisor.Adjustment) {
	w.T.Helper()
	for _, a := range adjustments {
		if err := w.done(func() error { return w.HV[source].Adjust(w.Ctx, job, a) }); err != nil {
			w.T.Fatalf("%T: %v; %s", a, err, w)
		}
	}
}

// Uncap lifts the cap of a job that was capped to be looked at. It may have ended by then.
func (w *world) Uncap(job hypervisor.JobID) {
	w.T.Helper()
	w.Must(w.done(func() error {
		err := w.HV[source].Adjust(w.Ctx, job, hypervisor.SetBandwidth{})
		if errors.Is(err, hypervisor.Conflict) && w.Progress(source, job).Status.Final() {
			return nil
		}
		return err
	}))
}

// Domain answers what a host says of a VM.
func (w *world) Domain(s side, id hypervisor.VMID) hypervisor.Domain {
	w.T.Helper()
	var d hypervisor.Domain
	w.Must(w.answered(func() (err error) {
		d, err = w.HV[s].Domain(w.Ctx, id)
		return err
	}))
	return d
}

// Progress answers what a host says of a job.
func (w *world) Progress(s side, job hypervisor.JobID) hypervisor.Progress {
	w.T.Helper()
	var p hypervisor.Progress
	w.Must(w.answered(func() (err error) {
		p, err = w.HV[s].Progress(w.Ctx, job)
		return err
	}))
	return p
}

// tick is how long the suite waits between two looks.
const tick = 5 * time.Millisecond

// Until looks again and again until something is so.
func (w *world) Until(what string, done func() bool) {
	w.T.Helper()
	w.until(func() string { return what }, done)
}

// until is Until, where what has not come is said when it has not.
func (w *world) until(what func() string, done func() bool) {
	w.T.Helper()
	for waited := time.Duration(0); !done(); waited += tick {
		if waited > w.Within {
			w.T.Fatalf("waited %v in vain until %s; %s", w.Within, what(), w)
		}
		w.Once()
		w.Pass(tick)
	}
}

// UntilState waits until a VM is in one of the states on a host.
func (w *world) UntilState(s side, id hypervisor.VMID, want ...hypervisor.DomainState) {
	w.T.Helper()
	w.Until(fmt.Sprintf("%s is %v on %s", id, want, w.Hosts[s].Name), func() bool {
		return slices.Contains(want, w.Domain(s, id).State)
	})
}

// States waits until TheVM is so at the source and at the target.
func (w *world) States(atSource, atTarget hypervisor.DomainState) {
	w.T.Helper()
	w.UntilState(source, theVM, atSource)
	w.UntilState(target, theVM, atTarget)
}

// UntilStatus waits for a status. It fails at once when the job ends otherwise.
func (w *world) UntilStatus(s side, job hypervisor.JobID, want hypervisor.JobStatus) {
	w.T.Helper()
	w.Until(fmt.Sprintf("%s is %v on %s", job, want, w.Hosts[s].Name), func() bool {
		p := w.Progress(s, job)
		if p.Status != want && (p.Status.Final() || p.Status == hypervisor.JobBroken) {
			w.T.Fatalf("%s is %v (%s) on %s, want %v; %s", job, p.Status, p.Error,
				w.Hosts[s].Name, want, w)
		}
		return p.Status == want
	})
}

// Rest lets some time pass in which nothing may happen.
func (w *world) Rest() {
	w.T.Helper()
	for range 20 {
		w.Once()
		w.Pass(tick)
	}
}

// Sound looks into TheVM where it runs, if the lab can.
func (w *world) Sound(s side) {
	w.T.Helper()
	if w.Verify != nil {
		w.Must(w.Verify(w.Hosts[s].Name, theVM))
	}
	if w.Alive != nil {
		want := []hypervisor.HostName{w.Hosts[s].Name}
		var on []hypervisor.HostName
		w.until(func() string {
			return fmt.Sprintf("the guest is alive on %v: it is on %v", want, on)
		}, func() bool {
			var err error
			on, err = w.Alive(theVM)
			w.Must(err)
			return slices.Equal(on, want)
		})
	}
}

// Once fails the case when a VM executes twice. Where the guest can tell, it alone is believed:
// hosts are asked one after the other, and a hypervisor may report late that a guest has stopped.
// That both say for long that it executes is a failure all the same.
func (w *world) Once() {
	w.T.Helper()
	for _, id := range w.VMs {
		if w.Twice == nil {
			if w.bothSay(id) {
				w.T.Fatalf("%s executes on both hosts; %s", id, w)
			}
			continue
		}
		for waited := time.Duration(0); ; waited += tick {
			if err := w.Twice(id); err != nil {
				w.T.Fatalf("%s executed on both hosts: %v; %s", id, err, w)
			}
			if !w.bothSay(id) {
				break
			}
			if waited > w.Within {
				w.T.Fatalf("both hosts say that %s executes, for %v; %s", id, w.Within, w)
			}
			w.Pass(tick)
		}
	}
}

// bothSay reports whether both hosts say that a VM executes. It looks at the source again
// after the target: the VM may move between two looks, but not there and back.
func (w *world) bothSay(id hypervisor.VMID) bool {
	executes := func(s side) bool {
		d, err := w.unseen[s].Domain(w.Ctx, id)
		return err == nil && d.State.Executes()
	}
	return executes(source) && executes(target) && executes(source)
}

// String describes the world, for failures. A host that panics when it is asked has no say.
func (w *world) String() (text string) {
	var b strings.Builder
	defer func() {
		if v := recover(); v != nil {
			fmt.Fprintf(&b, " (%v)", v)
		}
		text = b.String()
	}()
	for s, hv := range w.unseen {
		fmt.Fprintf(&b, "\n%s:", w.Hosts[s].Name)
		for _, id := range w.VMs {
			d, err := hv.Domain(w.Ctx, id)
			fmt.Fprintf(&b, " %s is %v of job %q", id, d.State, d.Job)
			if d.Unresolved {
				b.WriteString(", unresolved")
			}
			if err != nil {
				fmt.Fprintf(&b, " (%v)", err)
			}
		}
		for _, job := range w.Jobs {
			p, err := hv.Progress(w.Ctx, job)
			fmt.Fprintf(&b, "; %s is %v %s", job, p.Status, p.Error)
			if err != nil {
				fmt.Fprintf(&b, " (%v)", err)
			}
		}
	}
	return ""
}

// Says is what an honest witness on a side says about TheVM there.
func (w *world) Says(p hypervisor.Proof, s side, job hypervisor.JobID) hypervisor.Evidence {
	name := w.Hosts[s].Name
	return hypervisor.Evidence{Proof: p, VM: theVM, Host: name, Job: job,
		By: "agent/" + string(name)}
}

// Reopens replaces the connection to a host.
func (w *world) Reopens(sides ...side) {
	w.T.Helper()
	for _, s := range sides {
		hv, err := w.Reopen(w.Hosts[s].Name)
		w.Must(err)
		w.Connect(s, hv)
	}
}

// Kills ends TheVM's process on a host.
func (w *world) Kills(s side) {
	w.T.Helper()
	w.Must(w.KillVM(w.Hosts[s].Name, theVM))
}

// Discards throws away a target that nothing is sent to, or that is taken back, and
// returns the proof.
func (w *world) Discards(job hypervisor.JobID) hypervisor.Evidence {
	w.T.Helper()
	w.Do(target, theVM, hypervisor.Discard{Job: job})
	return w.Says(hypervisor.TargetDiscarded, target, job)
}

// Listed reports whether a host lists a VM.
func (w *world) Listed(s side, id hypervisor.VMID) bool {
	w.T.Helper()
	list, err := w.HV[s].Domains(w.Ctx)
	w.Must(err)
	return slices.ContainsFunc(list, func(d hypervisor.Domain) bool { return d.VM.ID == id })
}

// ReceiveAs opens a target for TheVM and a named job, and answers what comes.
func (w *world) ReceiveAs(job hypervisor.JobID, changes ...func(*hypervisor.Incoming)) (
	hypervisor.Address, error) {
	in := hypervisor.Incoming{Job: job, VM: w.Name(theVM)}
	for _, change := range changes {
		change(&in)
	}
	return w.HV[target].Receive(w.Ctx, in)
}

// commandsOfLife are what only a VM of the host's own is told.
func commandsOfLife(w *world) []hypervisor.Command {
	return []hypervisor.Command{hypervisor.Start{VM: w.VM(theVM)}, hypervisor.Stop{},
		hypervisor.Kill{}, hypervisor.Reboot{}, hypervisor.Pause{}, hypervisor.Unpause{},
		hypervisor.Forget{}}
}

// changes are adjustments that every backend knows.
func changes() []hypervisor.Adjustment {
	return []hypervisor.Adjustment{hypervisor.Cancel{}, hypervisor.PauseGuest{},
		hypervisor.StartPostCopy{}, hypervisor.SetDowntime{Limit: time.Second},
		hypervisor.SetBandwidth{Limit: hypervisor.Gbit}}
}

// NeverRuns wants TheVM not to have come to a host, now and for a while.
func (w *world) NeverRuns(s side) {
	w.T.Helper()
	for range 20 {
		d := w.Domain(s, theVM)
		if d.State != hypervisor.Absent && d.State != hypervisor.Receiving {
			w.T.Fatalf("on %s it is %v", w.Hosts[s].Name, d.State)
		}
		w.Pass(tick)
	}
}
