package libvirt

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// An Outcome is where a VM is after [Resolve].
type Outcome struct {
	// Host has the VM; the other of the two hosts does not and will not run it.
	Host hypervisor.HostName
	// Domain is the VM there. It may rest, or have lost its memory.
	Domain hypervisor.Domain
	// Evidence is what the source was told by. The zero value: it was told nothing,
	// it had kept the VM.
	Evidence hypervisor.Evidence
}

// Resolve finds out where a VM is after a job whose outcome is not known, and does
// what is safe, for those who have no controller and no agents to do it:
//
//	target                    source              what is done
//	runs, or rests complete   stopped, or gone    Release at the source
//	Received, held            HandedOver          Activate, then Release
//	nothing complete          HandingOver         Discard, then Resume
//	nothing complete          lost its memory     Discard, then Abandon
//	nothing complete          kept the VM         Discard, if the target still waits
//
// Anything else, and a Discard that is refused, is an error that says which evidence
// is missing, and which command takes it. It works on every backend's hosts, may be
// repeated, also after an error, and never makes a second copy run.
//
// The error is an *[hypervisor.Error]: Transient when a host does not answer, NotFound
// when neither knows the job, Invalid without a VM or a job, Conflict when evidence is
// missing or the job is under way, otherwise what a host answered.
func Resolve(ctx context.Context, source, target hypervisor.Hypervisor, vm hypervisor.VMID,
	job hypervisor.JobID) (Outcome, error) {
	c := &inquiry{vm: vm, job: job, source: ask(ctx, source, "the source", vm, job),
		target: ask(ctx, target, "the target", vm, job)}
	out, err := c.ruling()(ctx, c)
	if err != nil {
		return Outcome{}, &hypervisor.Error{Op: "Resolve", VM: vm, Kind: backend.KindOf(err),
			Err: backend.Bare(err)}
	}
	return out, nil
}

// A hostAnswer is one host, and what it says.
type hostAnswer struct {
	hv     hypervisor.Hypervisor
	name   hypervisor.HostName
	domain hypervisor.Domain
	job    hypervisor.Progress
	err    error // why it does not answer
}

// ask asks one host about a VM and its job. The job comes first: a backend notes what a job makes of its VM before it
// notes that the job has ended, so that the VM is never older than the end of the job. One that does not say its name
// is called as its error does, or by its part.
func ask(ctx context.Context, hv hypervisor.Hypervisor, part hypervisor.HostName,
	vm hypervisor.VMID, job hypervisor.JobID) hostAnswer {
	w := hostAnswer{hv: hv, name: part}
	var h hypervisor.Host
	if h, w.err = hv.Host(ctx); w.err == nil {
		w.name = h.Name
		w.job, w.err = hv.Progress(ctx, job)
	}
	if w.err == nil {
		w.domain, w.err = hv.Domain(ctx, vm)
	}
	if e, ok := errors.AsType[*hypervisor.Error](w.err); ok {
		w.name = cmp.Or(e.Host, w.name)
	}
	return w
}

// rests reports whether the VM is there without a process.
func (w *hostAnswer) rests() bool {
	return w.domain.State.Rests()
}

// lives reports whether the VM executes there, or is paused by its operator.
func (w *hostAnswer) lives() bool {
	return w.domain.State.Executes() || w.domain.State == hypervisor.Paused
}

// An inquiry is what both hosts say of one job.
type inquiry struct {
	vm             hypervisor.VMID
	job            hypervisor.JobID
	source, target hostAnswer
}

// A ruling does what follows from an inquiry.
type ruling func(context.Context, *inquiry) (Outcome, error)

// rulings: the first that holds decides.
var rulings = []struct {
	holds func(*inquiry) bool
	rule  ruling
}{
	{nameless, lackName},
	{targetSilent, lackTarget},
	{sourceSilent, lackSource},
	{unheard, lackJob},
	{bothLive, lackOne},
	{underWay, wait},
	{postCopyBroke, lackMemory},
	{bothRest, lackOne},
	{sourceKept, stay},
	{diedHeld, recall},
	{arrived, release},
	{held, activate},
	{movedOn, lackTrace},
	{sourceStopped, takeBack},
	{sourceLost, giveUp},
	{orphaned, lackStop},
}

// ruling returns what is to be done.
func (c *inquiry) ruling() ruling {
	for _, r := range rulings {
		if r.holds(c) {
			return r.rule
		}
	}
	return lackWord
}

func nameless(c *inquiry) bool     { return c.vm == "" || c.job == "" }
func targetSilent(c *inquiry) bool { return c.target.err != nil }
func sourceSilent(c *inquiry) bool { return c.source.err != nil }

// own reports whether what a host has of the VM is there by the job.
func (c *inquiry) own(w *hostAnswer) bool { return w.domain.Job == c.job }

// unheard: neither host knows the job.
func unheard(c *inquiry) bool {
	return !c.own(&c.source) && c.source.job.Status == hypervisor.JobNone &&
		!c.own(&c.target) && c.target.job.Status == hypervisor.JobNone
}

// bothLive: no ruling has led there, and none leads out.
func bothLive(c *inquiry) bool {
	return c.source.lives() && c.target.lives() && !underWay(c)
}

// bothRest: the source has kept the VM, and it came to the target, too: some
// evidence was wrong.
func bothRest(c *inquiry) bool {
	return sourceKept(c) && c.source.rests() && c.own(&c.target) && c.target.rests()
}

// diedHeld: what came may have died before it was let run, while its source stands with
// its memory.
func diedHeld(c *inquiry) bool {
	return c.own(&c.source) && c.source.domain.State == hypervisor.HandingOver &&
		c.own(&c.target) && c.target.rests()
}

// underWay: the source's hypervisor is at it.
func underWay(c *inquiry) bool {
	s := c.source.job.Status
	return s == hypervisor.JobSetup || s == hypervisor.JobActive || s == hypervisor.JobSwitching
}

// postCopyBroke: the target ran, and fetches memory from its source, or would.
func postCopyBroke(c *inquiry) bool {
	p := c.target.job
	return c.own(&c.target) && c.target.lives() && p.Status != hypervisor.JobSucceeded &&
		(p.Mode == hypervisor.PostCopy || c.source.job.Mode == hypervisor.PostCopy)
}

// sourceKept: it runs there, and nothing is open about it. A source that has ended
// since kept it if its job did not succeed, and was not given up.
func sourceKept(c *inquiry) bool {
	d, s := c.source.domain, c.source.job.Status
	switch {
	case d.Unresolved, s == hypervisor.JobSucceeded && c.own(&c.source):
		return false
	case c.source.lives():
		return !underWay(c) && s != hypervisor.JobBroken
	}
	failed := s == hypervisor.JobFailed || s == hypervisor.JobCancelled
	return failed && c.source.rests() && c.own(&c.source) && !c.target.lives()
}

// arrived: the target has had the complete VM, whatever has become of it there. It may
// have been elsewhere since, and come back by another job.
func arrived(c *inquiry) bool {
	back := c.target.lives() && c.target.job.Status == hypervisor.JobSucceeded
	here := c.own(&c.target) && (c.target.lives() || c.target.rests())
	return (back || here) && !c.source.lives()
}

// held: the target has everything and waits for word, and the source has given up.
// A source that is HandingOver may have run again for a moment: its target is stale.
func held(c *inquiry) bool {
	return c.own(&c.target) && c.target.domain.State == hypervisor.Received &&
		c.own(&c.source) && c.source.domain.State == hypervisor.HandedOver
}

// movedOn: the VM came to the target and is no longer there.
func movedOn(c *inquiry) bool {
	return c.target.job.Status == hypervisor.JobSucceeded && !c.own(&c.target)
}

// unborn reports whether the target has nothing that could be the only copy.
func (c *inquiry) unborn() bool {
	none := c.target.domain.State == hypervisor.Absent ||
		c.own(&c.target) && c.target.domain.State == hypervisor.Receiving
	return none && c.target.job.Status != hypervisor.JobSucceeded
}

// sourceStopped: it stopped for the switch-over and has its memory. What a target
// holds that did not start may be discarded as well: its host refuses if it must not.
func sourceStopped(c *inquiry) bool {
	return c.own(&c.source) && c.source.domain.State == hypervisor.HandingOver &&
		(c.unborn() || c.own(&c.target) && c.target.domain.State == hypervisor.Received)
}

// sourceLost: it has lost its memory, and the target has not got it; or it was never
// asked to send.
func sourceLost(c *inquiry) bool {
	never := c.source.job.Status == hypervisor.JobNone && !c.source.domain.Unresolved
	return (c.own(&c.source) || never) && c.source.rests() && c.unborn()
}

// orphaned: the target has the only memory there is, and it is not known that the VM's
// disks are not newer.
func orphaned(c *inquiry) bool {
	return c.source.rests() && c.own(&c.target) && c.target.domain.State == hypervisor.Received
}

// stay: the source has the VM. A target that still waits for it need not.
func stay(ctx context.Context, c *inquiry) (Outcome, error) {
	if c.own(&c.target) && c.target.domain.State == hypervisor.Receiving {
		if _, err := c.discard(ctx); err != nil {
			return Outcome{}, err
		}
	}
	return outcome(ctx, c, &c.source, hypervisor.Evidence{})
}

// release removes what is left at the source of a VM that is at the target.
func release(ctx context.Context, c *inquiry) (Outcome, error) {
	e := c.evidence(hypervisor.RunsAtTarget, &c.target)
	err := c.source.hv.Do(ctx, c.vm, hypervisor.Release{Job: c.job, Moved: e})
	if err != nil {
		return Outcome{}, lack(backend.KindOf(err), "%s has the VM, and %s cannot be released: %w: "+
			"see to that, and resolve again", c.target.name, c.source.name, err)
	}
	return outcome(ctx, c, &c.target, e)
}

// activate starts the only copy.
func activate(ctx context.Context, c *inquiry) (Outcome, error) {
	e := c.evidence(hypervisor.SourceStopped, &c.source)
	err := c.target.hv.Do(ctx, c.vm, hypervisor.Activate{Job: c.job, Stopped: e})
	if err != nil {
		return Outcome{}, lack(backend.KindOf(err), "%s holds the VM and does not start it: %w: "+
			"see to that, and resolve again", c.target.name, err)
	}
	return release(ctx, c)
}

// takeBack has the target discard what it has, and the source resume.
func takeBack(ctx context.Context, c *inquiry) (Outcome, error) {
	e, err := c.discard(ctx)
	if err != nil {
		return Outcome{}, err
	}
	err = c.source.hv.Do(ctx, c.vm, hypervisor.Resume{Job: c.job, NeverRan: e})
	if err != nil {
		return Outcome{}, lack(backend.KindOf(err), "%s has discarded the VM, and %s does not resume "+
			"it: %w: resolve again, or give its memory up: Abandon there with TargetDiscarded",
			c.target.name, c.source.name, err)
	}
	return outcome(ctx, c, &c.source, e)
}

// giveUp makes a source known as lost whose target never had the VM.
func giveUp(ctx context.Context, c *inquiry) (Outcome, error) {
	e, err := c.discard(ctx)
	if err != nil {
		return Outcome{}, err
	}
	if c.source.domain.Unresolved {
		err = c.source.hv.Do(ctx, c.vm, hypervisor.Abandon{Job: c.job, Dead: e})
	}
	if err != nil {
		return Outcome{}, lack(backend.KindOf(err), "%s has discarded the VM, and %s does not give "+
			"it up: %w: see to that, and resolve again", c.target.name, c.source.name, err)
	}
	return outcome(ctx, c, &c.source, e)
}

// recall takes the VM back if its target says that it never ran there. One that denies
// that has it.
func recall(ctx context.Context, c *inquiry) (Outcome, error) {
	_, err := c.discard(ctx)
	switch {
	case errors.Is(err, hypervisor.Conflict):
		return release(ctx, c)
	case err != nil:
		return Outcome{}, err
	}
	return takeBack(ctx, c)
}

// discard makes sure that the target does not run the VM for this job.
func (c *inquiry) discard(ctx context.Context) (hypervisor.Evidence, error) {
	err := c.target.hv.Do(ctx, c.vm, hypervisor.Discard{Job: c.job})
	if err != nil {
		return hypervisor.Evidence{}, lack(backend.KindOf(err), "%s does not discard the VM: %w: "+
			"wait and resolve again; or %s", c.target.name, err, c.byHand())
	}
	return c.evidence(hypervisor.TargetDiscarded, &c.target), nil
}

// evidence is what a host has told us.
func (c *inquiry) evidence(p hypervisor.Proof, w *hostAnswer) hypervisor.Evidence {
	return hypervisor.Evidence{Proof: p, VM: c.vm, Host: w.name, Job: c.job,
		By: "resolve/" + string(w.name)}
}

// outcome looks at the VM where it is.
func outcome(ctx context.Context, c *inquiry, w *hostAnswer, e hypervisor.Evidence,
) (Outcome, error) {
	d, err := w.hv.Domain(ctx, c.vm)
	if err != nil {
		return Outcome{}, lack(backend.KindOf(err), "%s has the VM, and does not say how it is: %w: "+
			"resolve again", w.name, err)
	}
	return Outcome{Host: w.name, Domain: d, Evidence: e}, nil
}

// The rest says what is missing.

func lack(kind hypervisor.Kind, format string, a ...any) error {
	return backend.Errorf(kind, format, a...)
}

// byHand is what a person can do about a target that cannot be asked.
func (c *inquiry) byHand() string {
	return fmt.Sprintf("fence %s, then Abandon at %s with HostFenced; or look there with "+
		"`virsh list --all`, and make sure that it stays so: if the VM never ran there, Resume "+
		"at %[2]s with OperatorWord, if it did and is dead, Abandon with OperatorWord",
		c.target.name, c.source.name)
}

func lackName(_ context.Context, c *inquiry) (Outcome, error) {
	return Outcome{}, lack(hypervisor.Invalid, "job %q of VM %q: both need a name", c.job, c.vm)
}

func lackTarget(_ context.Context, c *inquiry) (Outcome, error) {
	if c.source.err == nil && sourceKept(c) {
		return Outcome{}, lack(hypervisor.Transient, "%s has kept the VM, and %s does not answer: "+
			"%w: bring it back and resolve again", c.source.name, c.target.name, c.target.err)
	}
	return Outcome{}, lack(hypervisor.Transient, "%s does not answer, and only it knows whether "+
		"it has the VM: %w: bring it back and resolve again; or %s", c.target.name, c.target.err,
		c.byHand())
}

func lackSource(_ context.Context, c *inquiry) (Outcome, error) {
	s, t := c.source.name, c.target.name
	if c.own(&c.target) && c.target.domain.State == hypervisor.Received {
		return Outcome{}, lack(hypervisor.Transient, "%s holds the VM, and %s does not answer: "+
			"%w: bring it back and resolve again; or fence it, then Activate at %s with HostFenced",
			t, s, c.source.err, t)
	}
	return Outcome{}, lack(hypervisor.Transient, "%s does not answer: %w: bring it back and "+
		"resolve again; on %s the VM is %v", s, c.source.err, t, c.target.domain.State)
}

func lackOne(_ context.Context, c *inquiry) (Outcome, error) {
	return Outcome{}, lack(hypervisor.Conflict, "the VM is %v on %s and %v on %s: decide which is "+
		"the VM, and Kill and Forget the other", c.source.domain.State, c.source.name,
		c.target.domain.State, c.target.name)
}

func wait(_ context.Context, c *inquiry) (Outcome, error) {
	return Outcome{}, lack(hypervisor.Conflict, "job %s is %v on %s: wait until it ends, or "+
		"Cancel it there", c.job, c.source.job.Status, c.source.name)
}

func lackMemory(_ context.Context, c *inquiry) (Outcome, error) {
	return Outcome{}, lack(hypervisor.Conflict, "the VM ran on %s and lacks memory that is on %s: "+
		"repeat Receive at %[1]s and give its address to Recover at %[2]s; or give the VM up: "+
		"Kill it at %[1]s, then Abandon at %[2]s with OperatorWord", c.target.name, c.source.name)
}

func lackStop(_ context.Context, c *inquiry) (Outcome, error) {
	return Outcome{}, lack(hypervisor.Conflict, "the VM is %v on %s, and %s holds its memory: if "+
		"it did not run again on %[2]s, Activate at %[3]s with ProcessReaped about %[2]s; if it "+
		"did, Discard at %[3]s, and Kill it there if that is refused", c.source.domain.State,
		c.source.name, c.target.name)
}

func lackTrace(_ context.Context, c *inquiry) (Outcome, error) {
	return Outcome{}, lack(hypervisor.Conflict, "the VM came to %s and is no longer there: find "+
		"where it went, then Release at %s with RunsAtTarget; if it ran and is dead, Abandon at "+
		"%[2]s with OperatorWord; if it was held and never ran, Resume at %[2]s with OperatorWord",
		c.target.name, c.source.name)
}

func lackJob(_ context.Context, c *inquiry) (Outcome, error) {
	return Outcome{}, lack(hypervisor.NotFound, "neither %s nor %s knows a job %s of the VM, "+
		"which is %v and %v there: look for the job's name", c.source.name, c.target.name, c.job,
		c.source.domain.State, c.target.domain.State)
}

func lackWord(_ context.Context, c *inquiry) (Outcome, error) {
	return Outcome{}, lack(hypervisor.Conflict, "the VM is %v on %s and %v on %s, and that does "+
		"not tell who has it: %s; if it runs elsewhere, Release at %[2]s with RunsAtTarget",
		c.source.domain.State, c.source.name, c.target.domain.State, c.target.name, c.byHand())
}
