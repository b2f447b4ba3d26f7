package fake

import (
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/maxmin"
)

// A stage is how far a transfer has come, more finely than a JobStatus.
type stage uint8

const (
	waiting    stage = iota // the target listens
	connecting              // set-up
	mirroring               // local disks, if there are any
	copying                 // passes over memory, the source may run
	finishing               // the source has stopped, the rest is on its way
	loading                 // everything has arrived, the target prepares to run
	confirming              // the target has said so, the source does not know yet
	fetching                // post-copy: the target runs and lacks memory
	closed
)

// An end is a domain that takes part in a transfer, on its host.
type end interface {
	Doing() hypervisor.DomainState
	Become(hypervisor.DomainState)
	Vanish()               // it was incoming and ends
	Own()                  // it outlives its process from now on
	Leave(unresolved bool) // it takes part no more
	JobChanged()           // a hint: the job is over
	PassFinished()         // a hint
	Workload() Workload
}

// A transfer is one migration on both of its hosts, which know it by the name of its job.
type transfer struct {
	VM   *hypervisor.VM // never changed
	From *transferHost  // nil until Connect
	To   *transferHost

	Hold     bool
	Refused  bool // the target was discarded: it may not come back
	stage    stage
	status   [2]hypervisor.JobStatus // as the source and as the target see it
	mode     hypervisor.Mode
	postCopy bool    // it is allowed
	rests    bool    // the guest was paused by its operator when the source stopped
	failure  *string // nil is none

	*underWay      // from Listen until the end; nil else
	sums      sums // of what was sent, when it has ended

	begun   time.Duration // when Connect was called
	stopped time.Duration // when the guest stopped; -1 while it runs
	dark    time.Duration // the source's downtime, when it is over; else -1
	wakes   time.Duration // when the target ran; else -1
}

// sums are a [account], in less room: they are kept of each transfer.
type sums struct {
	sent, left       hypervisor.Bytes
	dirty            hypervisor.Bandwidth
	passes, throttle int32
}

// underWay is what a transfer needs until it ends. Many more have ended. Either end may be gone.
type underWay struct {
	of        *transfer
	Job       hypervisor.JobID
	Address   hypervisor.Address // where the target listens
	source    end                // nil until Connect, and when its process is gone
	target    end                // nil when its process is gone
	options   hypervisor.TransferOptions
	paused    bool                 // the guest was paused by PauseGuest
	switching bool                 // post-copy begins at the next look
	rest      hypervisor.Bytes     // post-copy: what the target lacks when it runs
	flow      *maxmin.Flow         // while memory moves
	alone     hypervisor.Bandwidth // what the flow gets when it is alone
	mirror    *mirror              // of its local disks; nil is none, or not yet
	timer     timer
	silence   timer // when the connection over a link that was cut times out
	stream    stream
}

// indices of Transfer.status
const (
	atSource = iota
	atTarget
)

// addressOf returns where the target of a job listens.
func addressOf(to *transferHost, job hypervisor.JobID) hypervisor.Address {
	return hypervisor.Address("fake://" + string(to.Name) + "/" + string(job))
}

func (t *transfer) world() *world { return t.To.world }

// Connect begins set-up from a source towards the target that listens.
func (t *transfer) Connect(from *transferHost, source end, o hypervisor.TransferOptions) {
	w := t.world()
	t.source, t.From, t.stage, t.begun, t.postCopy = source, from, connecting, w.Now, o.PostCopy
	from.transfers, t.To.transfers = append(from.transfers, t), append(t.To.transfers, t)
	costs := w.costs.Memory
	costs.FirstTouch *= hypervisor.Bandwidth(max(1, o.Channels))
	t.options = o
	t.stream.Options = streamOptions{Costs: costs, Memory: t.VM.Memory, Downtime: o.Downtime,
		AutoConverge: o.AutoConverge, Compress: o.Compression, XBZRLE: o.XBZRLE}
	t.report(hypervisor.JobSetup, hypervisor.JobSetup)
	w.Agenda.Arm(&t.timer, laterOf(w.Now, w.costs.SetUp))
}

// report changes what the ends think of the job. They say so when it is over for them: that a
// job goes on is no news.
// Source: QEMU's events setup, active and device, which hypervisor/qmp does not pass on.
func (t *transfer) report(source, target hypervisor.JobStatus) {
	before := t.status
	t.status = [2]hypervisor.JobStatus{source, target}
	for side, e := range [...]end{t.source, t.target} {
		if now := t.status[side]; now != before[side] && e != nil &&
			(now.Final() || now == hypervisor.JobBroken) {
			e.JobChanged()
		}
	}
}

// advance is what happens when the present stage, or pass, is over.
func (t *transfer) advance() {
	switch t.stage {
	case connecting:
		t.open()
	case mirroring:
		t.copyMemory()
	case copying:
		t.endPass()
	case finishing:
		t.load()
	case loading:
		t.arrive()
	case confirming:
		t.succeed()
	case fetching:
		t.confirm()
	}
}

// accelerate changes the share of the wire from now on.
func (t *transfer) accelerate(rate hypervisor.Bandwidth) {
	if t.stage == mirroring {
		t.mirror.turn(t.world().Now, rate)
	} else {
		t.stream.Accelerate(t.world().Now, rate, t.burst(rate))
	}
	t.await()
}

// await arms the timer for the end of what is being sent.
func (t *transfer) await() {
	switch t.stage {
	case mirroring:
		t.world().Agenda.Arm(&t.timer, t.mirror.ends())
	case copying, finishing, fetching:
		t.world().Agenda.Arm(&t.timer, t.stream.Ends())
	}
}

// endPass stops the source when the rest fits, and else begins another pass. A
// guest that shuts down is not moved any more.
func (t *transfer) endPass() {
	moving := t.source.Doing() != hypervisor.Stopping
	if t.switching && moving {
		t.finishWithout()
		return
	}
	rest := t.stream.EndPass(t.world().Now)
	t.source.PassFinished()
	if t.stream.Fits(rest) && moving {
		t.finish(func(device hypervisor.Bytes) { t.stream.Finish(t.world().Now, device) })
		return
	}
	t.stream.Again(t.world().Now)
	t.await()
}

// finishWithout lets the target run before it has all of the memory: only the
// device state goes first.
// Source: QEMU 7.2 migration/migration.c (postcopy_start).
func (t *transfer) finishWithout() {
	t.mode, t.switching = hypervisor.PostCopy, false
	t.finish(func(device hypervisor.Bytes) { t.rest = t.stream.Defer(t.world().Now, device) })
}

// finish stops the source and sends the rest, without the cap: the downtime has
// begun.
// Source: QEMU 7.2 migration/migration.c (migration_completion).
func (t *transfer) finish(send func(device hypervisor.Bytes)) {
	w := t.world()
	t.stage = finishing
	t.rests = t.options.StartPaused || t.source.Doing() == hypervisor.Paused && !t.paused
	if t.stopped < 0 {
		t.stopped = w.Now
	}
	t.source.Become(hypervisor.HandingOver)
	t.report(hypervisor.JobSwitching, hypervisor.JobSwitching)
	send(w.costs.DeviceState)
	t.tune()
	if !t.connected() {
		t.sever(cut, linkCut)
	}
}

// load begins when everything has arrived at the target.
func (t *transfer) load() {
	w := t.world()
	t.stage = loading
	w.network.SetLimit(t.flow, 0)
	w.Agenda.Arm(&t.timer, laterOf(w.Now, w.costs.SwitchOver))
}

// arrive makes the target complete, or, in post-copy, lets it run.
func (t *transfer) arrive() {
	t.dark = t.world().Now - t.stopped
	switch {
	case t.mode == hypervisor.PostCopy:
		t.wake(t.target)
		t.stage = fetching
		t.report(hypervisor.JobActive, hypervisor.JobActive)
		t.stream.Fetch(t.world().Now)
		t.tune()
		return
	case t.Hold:
		t.target.Become(hypervisor.Received)
	default:
		t.wake(t.target)
	}
	t.report(t.status[atSource], hypervisor.JobSucceeded)
	t.confirm()
}

// wake lets the target run, or rest if its operator had paused it.
func (t *transfer) wake(target end) {
	t.wakes = t.world().Now
	target.Own()
	if t.rests {
		target.Become(hypervisor.Paused)
		return
	}
	target.Become(hypervisor.Running)
}

// confirm sends the acknowledgement, if there is a source to hear it.
func (t *transfer) confirm() {
	w := t.world()
	if t.source == nil {
		t.close()
		return
	}
	t.stage = confirming
	t.report(t.status[atSource], hypervisor.JobSucceeded)
	w.network.SetLimit(t.flow, 0)
	w.Agenda.Arm(&t.timer, laterOf(w.Now, w.costs.Acknowledge))
}

func (t *transfer) succeed() {
	t.source.Become(hypervisor.HandedOver)
	t.report(hypervisor.JobSucceeded, t.status[atTarget])
	t.close()
}

// close frees what the transfer uses; what became of it stays.
func (t *transfer) close() {
	w := t.world()
	t.stream.Accelerate(w.Now, 0, 0)
	w.Agenda.Disarm(&t.timer)
	w.Agenda.Disarm(&t.silence)
	if t.flow != nil {
		w.network.Remove(t.flow)
	}
	if w.open[t.Address] == t {
		delete(w.open, t.Address)
	}
	for _, h := range [...]*transferHost{t.From, t.To} {
		if h != nil {
			h.transfers = slices.DeleteFunc(h.transfers,
				func(o *transfer) bool { return o == t })
		}
	}
	for _, e := range [...]end{t.source, t.target} {
		if e != nil {
			e.Leave(false)
		}
	}
	u := t.underWay
	a := t.account()
	t.sums = sums{a.Sent, a.Left, a.DirtyRate, int32(a.Passes), int32(a.Throttle)}
	t.stage, t.underWay = closed, nil
	*u = underWay{timer: timer{Fire: u.timer.Fire}, silence: timer{Fire: u.silence.Fire}}
	w.idle = append(w.idle, u)
}

// limit is what the transfer takes of the wire at most now.
func (t *transfer) limit() hypervisor.Bandwidth {
	switch {
	case t.source == nil || t.target == nil || !t.connected():
		return 0
	case t.stage == loading || t.stage == confirming:
		return 0
	}
	speed := t.world().costs.speed(&t.options)
	if most := t.options.Bandwidth; most > 0 && t.stage <= copying {
		speed = min(speed, most)
	}
	return speed
}

// burst returns how fast the transfer sends while it may: one whose cap is below
// what the wire and the sender could do is fast for a part of the time.
func (t *transfer) burst(rate hypervisor.Bandwidth) hypervisor.Bandwidth {
	if t.stage != copying || t.options.Bandwidth == 0 || rate < t.options.Bandwidth {
		return 0
	}
	return min(t.world().costs.speed(&t.options), t.alone)
}

// narrowest returns what the tightest of some links carries.
func narrowest(links []*maxmin.Link) hypervisor.Bandwidth {
	least := maxmin.Unlimited
	for _, l := range links {
		least = min(least, l.Capacity())
	}
	return least
}

// tune makes a changed limit felt, and that the guest stopped or runs.
func (t *transfer) tune() {
	if t.underWay == nil || t.flow == nil {
		return
	}
	t.world().network.SetLimit(t.flow, t.limit())
	if t.stage == copying && t.source != nil {
		t.stream.Run(t.world().Now, t.source.Doing().Executes())
	}
	t.accelerate(t.rate())
}
