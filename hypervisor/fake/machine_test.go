package fake_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// A machine does anything to a world, and tells no lies: its evidence is what it
// saw.
type machine struct {
	*world
	t      *rapid.T
	hosts  []name
	vms    []vmid
	jobs   []hypervisor.Outgoing
	off    map[name]bool
	harmed map[vmid]bool // by a crash, a kill or a link that broke in post-copy
	rests  map[vmid]bool // was shut down, and has no memory to lose
	asked  map[vmid]bool // to shut down, which may go unseen between two checks
	seen   []hypervisor.Evidence
	sent   map[hypervisor.JobID]hypervisor.Bytes
	ran    map[turn]bool             // the VM of the job executed on the host
	post   map[hypervisor.JobID]bool // it was asked to go on with post-copy
	cut    map[[2]name]bool          // links, in the order of their hosts
}

type turn struct {
	job  hypervisor.JobID
	host name
}

func newMachine(t *rapid.T) *machine {
	m := &machine{world: newWorld(t, sure()), t: t, hosts: []name{"n1", "n2", "n3"},
		off: map[name]bool{}, harmed: map[vmid]bool{}, rests: map[vmid]bool{},
		asked: map[vmid]bool{},
		sent:  map[hypervisor.JobID]hypervisor.Bytes{},
		ran:   map[turn]bool{}, post: map[hypervisor.JobID]bool{}, cut: map[[2]name]bool{}}
	for i := range rapid.IntRange(1, 3).Draw(t, "VMs") {
		id := vmid(fmt.Sprint("vm", i))
		m.vms = append(m.vms, id)
		w := rapid.SampledFrom([]fake.Workload{mild, wild, {}}).Draw(t, "workload")
		m.ok(m.Host(m.anyHost()).Boot(aVM(id), w))
	}
	return m
}

func (m *machine) anyHost() name { return rapid.SampledFrom(m.hosts).Draw(m.t, "host") }
func (m *machine) anyVM() vmid   { return rapid.SampledFrom(m.vms).Draw(m.t, "vm") }
func (m *machine) anyJob() hypervisor.Outgoing {
	if len(m.jobs) == 0 {
		m.t.Skip("no job")
	}
	return rapid.SampledFrom(m.jobs).Draw(m.t, "job")
}

// A spot is a VM on a host, with the job that it takes part in.
type spot struct {
	vm    vmid
	host  name
	state hypervisor.DomainState
	job   hypervisor.JobID
}

// anySpot is mostly where the VM has a domain, and in one of the states if any
// are named: a machine that tries everything anywhere gets nowhere.
func (m *machine) anySpot(states ...hypervisor.DomainState) spot {
	var spots []spot
	for _, id := range m.vms {
		for _, c := range m.Copies(id) {
			d, _ := m.Host(c.Host).Domain(ctx, id)
			if len(states) == 0 || slices.Contains(states, c.State) {
				spots = append(spots, spot{id, c.Host, c.State, d.Job})
			}
		}
	}
	if len(spots) == 0 || rapid.IntRange(0, 9).Draw(m.t, "anywhere") == 0 {
		id, h := m.anyVM(), m.anyHost()
		return spot{id, h, m.at(id, h), hypervisor.JobID(fmt.Sprint("job", len(m.jobs)/2))}
	}
	return rapid.SampledFrom(spots).Draw(m.t, "spot")
}

func (m *machine) command(on name, id vmid, c cmd) { _ = m.Host(on).Do(ctx, id, c) }

// at returns the domain of a VM on a host, without meeting a fault.
func (m *machine) at(id vmid, on name) hypervisor.DomainState {
	for _, c := range m.Copies(id) {
		if c.Host == on {
			return c.State
		}
	}
	return hypervisor.Absent
}

func (m *machine) migrate() {
	s, to := m.anySpot(hypervisor.Running, hypervisor.Paused), m.anyHost()
	id, from := s.vm, s.host
	job := hypervisor.JobID(fmt.Sprint("job", len(m.jobs)))
	hold := rapid.Bool().Draw(m.t, "hold")
	a, err := m.Host(to).Receive(ctx, hypervisor.Incoming{Job: job, VM: aVM(id), Hold: hold})
	if err != nil {
		a = hypervisor.Address(fmt.Sprintf("fake://%s/%s", to, job))
	}
	out := hypervisor.Outgoing{Job: job, VM: id, Target: to, Address: a,
		Options: hypervisor.TransferOptions{PostCopy: true,
			AutoConverge: rapid.Bool().Draw(m.t, "auto-converge")}}
	m.jobs = append(m.jobs, out)
	_ = m.Host(from).Migrate(ctx, out)
}

func (m *machine) again() {
	out := m.anyJob()
	_ = m.Host(m.anyHost()).Migrate(ctx, out)
}

func (m *machine) adjust() {
	all := []hypervisor.Adjustment{hypervisor.Cancel{}, hypervisor.StartPostCopy{},
		hypervisor.PauseGuest{}, hypervisor.SetBandwidth{Limit: 1e8},
		hypervisor.SetDowntime{Limit: 4 * time.Second}}
	a := rapid.SampledFrom(all).Draw(m.t, "adjustment")
	s := m.anySpot(hypervisor.Running, hypervisor.Paused, hypervisor.HandingOver)
	if a == (hypervisor.StartPostCopy{}) {
		m.post[s.job] = true
	}
	_ = m.Host(s.host).Adjust(ctx, s.job, a)
}

func (m *machine) live() {
	all := []cmd{hypervisor.Pause{}, hypervisor.Unpause{}, hypervisor.Reboot{}}
	if rapid.IntRange(0, 4).Draw(m.t, "end it") == 0 {
		all = []cmd{hypervisor.Kill{}, hypervisor.Stop{Grace: time.Second}}
	}
	s, c := m.anySpot(), rapid.SampledFrom(all).Draw(m.t, "command")
	if _, stop := c.(hypervisor.Stop); stop {
		m.asked[s.vm] = true
	}
	m.command(s.host, s.vm, c)
}

// start starts a VM where it is the only copy.
func (m *machine) start() {
	id := m.anyVM()
	if c := m.Copies(id); len(c) == 1 {
		_ = m.Inject(fake.Fault{Host: c[0].Host, Op: "Start", How: fake.FailAfter})
		m.command(c[0].Host, id, hypervisor.Start{VM: aVM(id)})
	}
}

// look gathers evidence.
func (m *machine) look() {
	for _, id := range m.vms {
		for _, h := range m.hosts {
			d, err := m.Host(h).Domain(ctx, id)
			if err != nil || d.Job == "" {
				continue
			}
			e := hypervisor.Evidence{VM: id, Host: h, Job: d.Job}
			switch {
			case d.State == hypervisor.HandingOver || d.State == hypervisor.HandedOver:
				e.Proof = hypervisor.SourceStopped
			case d.State.Executes():
				e.Proof = hypervisor.RunsAtTarget
			}
			m.seen = append(m.seen, e)
		}
	}
}

func (m *machine) discard() {
	s := m.anySpot(hypervisor.Receiving, hypervisor.Received)
	if m.Host(s.host).Do(ctx, s.vm, hypervisor.Discard{Job: s.job}) == nil {
		m.seen = append(m.seen, hypervisor.Evidence{Proof: hypervisor.TargetDiscarded, VM: s.vm,
			Host: s.host, Job: s.job})
	}
}

// believe acts on evidence. Some of it is old, or about something else.
func (m *machine) believe() {
	m.look()
	s := m.anySpot(hypervisor.Received, hypervisor.HandingOver, hypervisor.HandedOver)
	var evidence []hypervisor.Evidence
	for _, e := range m.seen {
		if e.VM == s.vm {
			evidence = append(evidence, e)
		}
	}
	for _, h := range m.hosts {
		if m.off[h] {
			evidence = append(evidence, hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: h})
		}
	}
	for _, e := range evidence { // all of it: a lie would be found out
		m.command(s.host, s.vm, hypervisor.Activate{Job: s.job, Stopped: e})
		if e.Proof == hypervisor.HostFenced && m.ran[turn{s.job, e.Host}] {
			continue // the copy is dead, but it did run: it may have moved on
		}
		m.command(s.host, s.vm, hypervisor.Resume{Job: s.job, NeverRan: e})
	}
	if rapid.Bool().Draw(m.t, "release") {
		for _, e := range evidence {
			m.command(s.host, s.vm, hypervisor.Release{Job: s.job, Moved: e})
		}
	}
}

func (m *machine) inject() {
	how := rapid.SampledFrom([]fake.FaultEffect{fake.FailBefore, fake.FailAfter, fake.Hang,
		fake.LateAnswer, fake.LateEffect}).Draw(m.t, "how")
	op := rapid.SampledFrom([]string{"Receive", "Migrate", "Adjust", "Activate", "Resume",
		"Discard", "Release", "Kill", "Unpause"}).Draw(m.t, "op")
	m.ok(m.Inject(fake.Fault{Host: m.anyHost(), Op: op, How: how, Delay: time.Second}))
}

// strike breaks something, and notes which VM may lose its memory by that.
func (m *machine) strike() {
	a, b := m.anyHost(), m.anyHost()
	for _, out := range m.jobs {
		for _, h := range m.hosts {
			p, err := m.Host(h).Progress(ctx, out.Job)
			if err != nil || p.Mode == hypervisor.PostCopy {
				m.harmed[out.VM] = true
			}
		}
	}
	switch rapid.IntRange(0, 7).Draw(m.t, "strike") {
	case 0:
		m.cut[[2]name{min(a, b), max(a, b)}] = true
		_ = m.CutLink(a, b)
	case 1:
		_ = m.ResetLink(a, b)
	case 2:
		s := m.anySpot()
		m.harmed[s.vm] = true
		m.ok(m.KillDomain(s.host, s.vm))
	case 3:
		for _, id := range m.vms {
			if m.at(id, a) != hypervisor.Absent {
				m.harmed[id] = true
			}
		}
		m.off[a] = true
		m.ok(m.CrashHost(a))
	default:
		delete(m.cut, [2]name{min(a, b), max(a, b)})
		_ = m.HealLink(a, b)
		for _, h := range m.hosts {
			m.off[h] = false
			m.ok(m.RestartHost(h))
		}
	}
}

func (m *machine) wait() {
	if rapid.Bool().Draw(m.t, "next") {
		for range rapid.IntRange(1, 6).Draw(m.t, "events") {
			if next, some := m.Next(); some {
				m.AdvanceTo(next)
			}
		}
		return
	}
	m.pass(rapid.SampledFrom([]time.Duration{1, ms, 7 * ms, 100 * ms, time.Second,
		10 * time.Second}).Draw(m.t, "wait"))
}

func (m *machine) actions() map[string]func(*rapid.T) {
	on := func(act func()) func(*rapid.T) { return func(t *rapid.T) { m.t = t; act() } }
	return map[string]func(*rapid.T){
		"migrate": on(m.migrate), "migrate again": on(m.again), "adjust": on(m.adjust),
		"command": on(m.live), "start": on(m.start), "look": on(m.look),
		"discard": on(m.discard), "believe": on(m.believe), "believe more": on(m.believe),
		"inject": on(m.inject), "strike": on(m.strike), "wait": on(m.wait),
		"wait more": on(m.wait), "wait still more": on(m.wait),
		"": func(t *rapid.T) { m.check(t) },
	}
}

// stalls reports whether a post-copy of a VM may be held up by a link that is cut, and break by itself.
func (m *machine) stalls(id vmid) bool {
	return len(m.cut) > 0 && slices.ContainsFunc(m.jobs, func(out hypervisor.Outgoing) bool {
		return out.VM == id && m.post[out.Job] && slices.ContainsFunc(m.hosts, func(h name) bool {
			p, err := m.Host(h).Progress(ctx, out.Job)
			return err != nil || p.Job == out.Job && !p.Status.Final()
		})
	})
}

// check is what must hold whatever was done.
func (m *machine) check(t *rapid.T) {
	used := map[name]hypervisor.Bytes{}
	for _, id := range m.vms {
		executes, kept := 0, false
		for _, c := range m.Copies(id) {
			if c.State.Executes() {
				executes++
				m.harmed[id], m.rests[id] = false, false
				d, _ := m.Host(c.Host).Domain(ctx, id)
				m.ran[turn{d.Job, c.Host}] = true
			}
			m.rests[id] = m.rests[id] || c.State == hypervisor.Shutoff
			kept = kept || c.State.HoldsState() || c.State == hypervisor.Shutoff
			if c.State != hypervisor.Shutoff && c.State != hypervisor.Crashed {
				used[c.Host] += 4 * gib
			}
		}
		m.harmed[id] = m.harmed[id] || m.stalls(id)
		if executes > 1 {
			t.Fatalf("%s executes %d times: %v", id, executes, m.Copies(id))
		}
		if !kept && !m.harmed[id] && !m.rests[id] && !m.asked[id] {
			t.Fatalf("%s was lost without harm: %v", id, m.Copies(id))
		}
	}
	for h, bytes := range used {
		if bytes > 64*gib {
			t.Fatalf("%s holds %v", h, bytes)
		}
	}
	m.checkProgress(t)
}

func (m *machine) checkProgress(t *rapid.T) {
	for _, out := range m.jobs {
		for _, h := range m.hosts {
			p, err := m.Host(h).Progress(ctx, out.Job)
			if err != nil || p.Status == hypervisor.JobNone || p.Started.IsZero() {
				continue
			}
			if p.Sent < m.sent[out.Job] {
				t.Fatalf("%s had sent %v and now %v", out.Job, m.sent[out.Job], p.Sent)
			}
			m.sent[out.Job] = p.Sent
			if p.Remaining < 0 || p.Remaining > p.Total || p.Downtime < 0 ||
				p.Downtime > m.Now().Sub(p.Started) {
				t.Fatalf("progress makes no sense: %+v", p)
			}
		}
	}
}

// Properties 1 to 4: at most one copy executes; no VM is lost unharmed; hosts are
// not overfull; progress goes forward.
func TestNothingBreaksTheFake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		t.Repeat(m.actions())
	})
}
