//go:build linux && libvirt_dlopen

package libvirt

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// An observation is what libvirt shows of a domain at one moment.
type observation struct {
	domainLook
	UUID  string
	XML   string // of what runs, or of the definition
	Stats conn.JobStats
	Mark  domxml.Mark
	// Tombstone is the UUID of the tombstone of the domain's name; "" is none.
	Tombstone string
}

// runsBy are libvirt's pairs of state and reason in our words. What is not listed
// has the word of its state.
var runsBy = map[[2]int]run{
	{int(libvirt.DOMAIN_RUNNING), int(libvirt.DOMAIN_RUNNING_MIGRATED)}: runsMigrated,
	{int(libvirt.DOMAIN_RUNNING),
		int(libvirt.DOMAIN_RUNNING_MIGRATION_CANCELED)}: runsCancelled,
	{int(libvirt.DOMAIN_RUNNING), int(libvirt.DOMAIN_RUNNING_POSTCOPY)}: runsPostCopy,
	{int(libvirt.DOMAIN_RUNNING),
		int(libvirt.DOMAIN_RUNNING_POSTCOPY_FAILED)}: runsPostCopyFailed,
	{int(libvirt.DOMAIN_PAUSED), int(libvirt.DOMAIN_PAUSED_USER)}:        runPausedUser,
	{int(libvirt.DOMAIN_PAUSED), int(libvirt.DOMAIN_PAUSED_MIGRATION)}:   runPausedMigration,
	{int(libvirt.DOMAIN_PAUSED), int(libvirt.DOMAIN_PAUSED_POSTCOPY)}:    runPausedPostCopy,
	{int(libvirt.DOMAIN_PAUSED), int(libvirt.DOMAIN_PAUSED_STARTING_UP)}: runPausedStarting,
	{int(libvirt.DOMAIN_PAUSED), int(libvirt.DOMAIN_PAUSED_UNKNOWN)}:     runPausedUnknown,
	{int(libvirt.DOMAIN_PAUSED),
		int(libvirt.DOMAIN_PAUSED_POSTCOPY_FAILED)}: runPausedPostCopyFailed,
	{int(libvirt.DOMAIN_PAUSED),
		int(libvirt.DOMAIN_PAUSED_SHUTTING_DOWN)}: runShuttingDown,
	{int(libvirt.DOMAIN_SHUTOFF), int(libvirt.DOMAIN_SHUTOFF_UNKNOWN)}:  runShutoffUnknown,
	{int(libvirt.DOMAIN_SHUTOFF), int(libvirt.DOMAIN_SHUTOFF_CRASHED)}:  runShutoffCrashed,
	{int(libvirt.DOMAIN_SHUTOFF), int(libvirt.DOMAIN_SHUTOFF_DAEMON)}:   runShutoffCrashed,
	{int(libvirt.DOMAIN_SHUTOFF), int(libvirt.DOMAIN_SHUTOFF_FAILED)}:   runShutoffFailed,
	{int(libvirt.DOMAIN_SHUTOFF), int(libvirt.DOMAIN_SHUTOFF_MIGRATED)}: runShutoffMigrated,
}

var runsByState = map[libvirt.DomainState]run{
	libvirt.DOMAIN_NOSTATE:     runPausedUnknown,
	libvirt.DOMAIN_RUNNING:     runsNormally,
	libvirt.DOMAIN_BLOCKED:     runsNormally,
	libvirt.DOMAIN_PAUSED:      runPausedTrouble,
	libvirt.DOMAIN_SHUTDOWN:    runShuttingDown,
	libvirt.DOMAIN_SHUTOFF:     runShutoffClean,
	libvirt.DOMAIN_CRASHED:     runPausedTrouble,
	libvirt.DOMAIN_PMSUSPENDED: runPausedTrouble,
}

// runOf puts a state and its reason into our words.
func runOf(state libvirt.DomainState, reason int) run {
	if r, ok := runsBy[[2]int{int(state), reason}]; ok {
		return r
	}
	return runsByState[state]
}

// look shows a domain by its name. A domain that is being received has no figures to
// ask for, and libvirt would log that request.
func look(c *conn.Connect, name string, figures bool) (observation, error) {
	dom, err := c.LookupDomainByName(name)
	if absent(err) {
		return observation{}, nil
	}
	if err != nil {
		return observation{}, err
	}
	defer func() { _ = dom.Free() }()
	s, err := observationOf(dom, figures)
	if absent(err) { // it went in between
		return observation{}, nil
	}
	return s, err
}

func absent(err error) bool { return errors.Is(err, libvirt.ERR_NO_DOMAIN) }

// observationOf shows a domain.
func observationOf(dom *libvirt.Domain, figures bool) (observation, error) {
	var s observation
	uuid, err := dom.GetUUIDString()
	if err != nil {
		return s, err
	}
	s.UUID = uuid
	if s.XML, err = dom.GetXMLDesc(0); err != nil {
		return s, err
	}
	if isTombstone(s.XML) {
		return observation{Tombstone: s.UUID}, nil
	}
	if figures {
		if err := s.sends(dom); err != nil {
			return s, err
		}
	}
	// The state is asked for last: it is not older than the end of a migration.
	state, reason, err := dom.GetState()
	if err != nil {
		return s, err
	}
	s.Run = runOf(state, reason)
	if s.Defined, err = dom.IsPersistent(); err != nil {
		return s, err
	}
	if text, err := dom.GetMetadata(libvirt.DOMAIN_METADATA_ELEMENT, domxml.MarkURI,
		libvirt.DOMAIN_AFFECT_CURRENT); err == nil {
		s.Mark, _ = domxml.ParseMark(text) // a mark that cannot be read is none
		s.Job, s.Cold = s.Mark.Job, s.Mark.Cold
	}
	return s, nil
}

// sends adds what libvirt says of a migration under way. Of one that comes in it says
// nothing, by an error, and neither of a domain that is shut off.
func (s *observation) sends(dom *libvirt.Domain) error {
	info, err := dom.GetJobStats(0)
	if errors.Is(err, libvirt.ERR_OPERATION_UNSUPPORTED) ||
		errors.Is(err, libvirt.ERR_OPERATION_INVALID) {
		return nil
	}
	if err != nil || info.Type == libvirt.DOMAIN_JOB_NONE {
		return err
	}
	s.Stats = conn.JobStatsOf(*info)
	s.Sends = s.Stats.Operation == conn.MigrationOut
	s.Aborted = s.Sends && (info.Type == libvirt.DOMAIN_JOB_CANCELLED ||
		info.Type == libvirt.DOMAIN_JOB_FAILED)
	s.Moving = s.Sends && s.Stats.MemoryTotal > 0
	return nil
}

// See looks at the domain now. A QEMU that hangs, as one does that sends its last state
// over a lost link, gives no figures: what it was doing it then is doing still.
func (d *domain) See(ctx context.Context) (observation, error) {
	call := d.answer() // before the look, which then is not older than the answer
	figures, err := d.figures(ctx, call)
	if err != nil {
		return observation{}, err
	}
	s, err := conn.Ask(ctx, d.Node.Conn, func(c *conn.Connect) (observation, error) {
		return look(c, d.Name, false)
	})
	if err != nil {
		return s, err
	}
	if s.Run.Alive() {
		s.Stats, s.Sends, s.Aborted, s.Moving = figures.Stats, figures.Sends, figures.Aborted,
			figures.Moving
	}
	s.Early = time.Since(d.Node.began()) < d.Node.Grace
	d.mu.Lock()
	defer d.mu.Unlock()
	s.Rebooted, s.Stood, s.Call = d.rebooted, d.stood, call
	s.Stuck = !d.stoodAt.IsZero() && time.Since(d.stoodAt) > stuck
	s.Blind = d.blind
	s.Moving = s.Moving || s.Sends && d.sent > 0
	if s.Sends && s.Stats.MemoryTotal > 0 {
		d.flow.Hear(s.Stats.MemoryProcessed)
	}
	s.Flows = d.flow.flows
	return s, nil
}

// statsTimeout is how long a QEMU may take to tell how its migration goes.
const statsTimeout = 2 * time.Second

// figures says how the domain's migration goes. It does not ask where nothing is to be
// learnt, nor a QEMU that has not answered yet: what that said last is taken, and waited for
// where it has said nothing.
func (d *domain) figures(ctx context.Context, call libvirtCall) (observation, error) {
	if d.Job().Receives() {
		return observation{}, nil
	}
	short, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	d.mu.Lock()
	last, switching := d.last, d.stood && call == calling
	last.Sends = last.Sends || switching
	asked, told, done := d.asking, d.told, make(chan struct{})
	if asked == nil && !switching {
		d.asking = done
	}
	d.mu.Unlock()
	switch {
	case switching || asked != nil && told:
		return last, nil
	case asked != nil:
		select {
		case <-asked:
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.last, nil
		case <-short.Done():
			return d.unsaid(ctx, last)
		}
	}
	return d.ask(ctx, short, last, done)
}

// ask asks libvirt for the figures, for as long as short says; last is what it said before,
// and done is closed at the end.
func (d *domain) ask(ctx, short context.Context, last observation, done chan struct{}) (observation, error) {
	var begun atomic.Bool
	s, err := conn.Ask(short, d.Node.Conn, func(c *conn.Connect) (observation, error) {
		begun.Store(true)
		s, err := progressOf(c, d.Name)
		d.answered(done, s, err)
		return s, err
	})
	if !begun.Load() { // there is no connection
		d.answered(done, last, err)
		return s, err
	}
	if err != nil { // it is still being asked, or has just died
		return d.unsaid(ctx, last)
	}
	return s, nil
}

// unsaid returns what was said last. Of a source that another process of ours let send, and
// of which nothing has been said yet, that is not known: it is not one that does not send.
func (d *domain) unsaid(ctx context.Context, last observation) (observation, error) {
	d.mu.Lock()
	told := d.told
	d.mu.Unlock()
	if err := ctx.Err(); err != nil || told || !d.Job().Sends() || d.answer() != callNone {
		return last, err
	}
	return last, backend.Errorf(hypervisor.Transient, "its QEMU has not said yet how it sends")
}

// answered keeps what libvirt has said, and wakes the calls that wait for it. What was given
// up before it began may begin all the same, and answers too late.
func (d *domain) answered(done chan struct{}, s observation, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asking != done {
		return
	}
	if err == nil {
		d.last, d.told = s, true
	}
	close(done)
	d.asking = nil
}

// progressOf says how a domain's migration goes, if it has one.
func progressOf(c *conn.Connect, name string) (observation, error) {
	var s observation
	dom, err := c.LookupDomainByName(name)
	if absent(err) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	defer func() { _ = dom.Free() }()
	return s, s.sends(dom)
}

// stuck is longer than libvirt takes from the stop of a source to the answer of its
// target, and much shorter than its keep-alive.
const stuck = 300 * time.Millisecond

// seeAt looks at a domain of another host.
func seeAt(ctx context.Context, peer *conn.Conn, name string) (observation, error) {
	return conn.Ask(ctx, peer, func(c *conn.Connect) (observation, error) { return look(c, name, true) })
}

// vm says what the domain is made of: what was asked for, where libvirt agrees.
func (d *domain) vm(s observation) hypervisor.VM {
	d.mu.Lock()
	defer d.mu.Unlock()
	asked := s.Mark.VM
	if d.rec != nil {
		asked = d.rec.VM
	}
	if s.XML == "" {
		return asked
	}
	if d.xml != s.XML {
		facts, err := domxml.Read(s.XML, d.Node.Settings)
		if err != nil { // libvirt wrote it: then what was asked has to do
			return asked
		}
		d.xml, d.facts = s.XML, facts
	}
	if asked.ID == "" {
		return d.facts.VM
	}
	return domxml.Reconcile(asked, d.facts)
}
