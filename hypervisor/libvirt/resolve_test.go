package libvirt_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
)

const (
	web hypervisor.VMID  = "default/web"
	j1  hypervisor.JobID = "j1"
)

// A tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Fatalf(string, ...any)
	Context() context.Context
}

// A model is modelled hosts n1, n2 and n3. The VM is on n1, and moves to n2.
type model struct {
	*fake.Network
	t tester
}

// newModel has a wire on which every part of a switch-over takes 10 ms or more.
func newModel(t tester) *model {
	t.Helper()
	step := 10 * time.Millisecond
	m := &model{fake.NewNetwork(time.Unix(1e9, 0), fake.Model{SetUp: step, SwitchOver: step,
		Acknowledge: step, DeviceState: 64 * hypervisor.MiB, BootTime: time.Second,
		ShutdownTime: time.Second}), t}
	for _, n := range []hypervisor.HostName{"n1", "n2", "n3"} {
		_, err := m.AddHost(hypervisor.Host{Name: n, Memory: 64 * hypervisor.GiB, CPUs: 64,
			Link: 10 * hypervisor.Gbit})
		m.must(err)
	}
	m.must(m.Host("n1").Boot(hypervisor.VM{ID: web, Memory: hypervisor.GiB, CPUs: 1},
		fake.Workload{ColdRate: 50e6, Cold: hypervisor.GiB}))
	return m
}

func (m *model) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatalf("%v", err)
	}
}

// move begins to move the VM.
func (m *model) move(from, to hypervisor.HostName, job hypervisor.JobID, hold bool) error {
	ctx := m.t.Context()
	d, err := m.Host(from).Domain(ctx, web)
	if err != nil {
		return err
	}
	a, err := m.Host(to).Receive(ctx, hypervisor.Incoming{Job: job, VM: d.VM, Hold: hold})
	if err != nil {
		return err
	}
	return m.Host(from).Migrate(ctx, hypervisor.Outgoing{Job: job, VM: web, Target: to,
		Address: a, Options: hypervisor.TransferOptions{PostCopy: true}})
}

// until moves time until a host says so of the VM.
func (m *model) until(on hypervisor.HostName, s hypervisor.DomainState) {
	m.t.Helper()
	for m.state(on) != s {
		next, some := m.Next()
		if !some {
			m.t.Fatalf("%s is never %v on %s: %v", web, s, on, m.Copies(web))
		}
		m.AdvanceTo(next)
	}
}

func (m *model) state(on hypervisor.HostName) hypervisor.DomainState {
	for _, c := range m.Copies(web) {
		if c.Host == on {
			return c.State
		}
	}
	return hypervisor.Absent
}

// begin begins to move the VM and lets it come as far as is said.
func (m *model) begin(hold bool, on hypervisor.HostName, s hypervisor.DomainState) {
	m.t.Helper()
	m.must(m.move("n1", "n2", j1, hold))
	m.until(on, s)
}

func (m *model) resolve() (libvirt.Outcome, error) {
	return libvirt.Resolve(m.t.Context(), m.Host("n1"), m.Host("n2"), web, j1)
}

func (m *model) show() string { return strings.Trim(fmt.Sprint(m.Copies(web)), "[]") }

// resolutions is every outcome that modelled hosts can lead to.
var resolutions = []struct {
	name  string
	stage func(*model)
	where hypervisor.HostName // has the VM; "" is an error
	proof hypervisor.Proof
	kind  hypervisor.Kind // of the error
	says  []string
	after string // the copies
}{
	{"the link is lost while the rest is on its way: the source goes on", func(m *model) {
		m.begin(false, "n1", hypervisor.HandingOver)
		m.must(m.ResetLink("n1", "n2"))
	}, "n1", hypervisor.TargetDiscarded, 0, nil, "{n1 Running}"},

	{"the acknowledgement is lost: the source is released", func(m *model) {
		m.begin(false, "n2", hypervisor.Running)
		m.must(m.CutLink("n1", "n2"))
	}, "n2", hypervisor.RunsAtTarget, 0, nil, "{n2 Running}"},

	{"everything went well, and nothing was cleaned up", func(m *model) {
		m.begin(false, "n1", hypervisor.HandedOver)
	}, "n2", hypervisor.RunsAtTarget, 0, nil, "{n2 Running}"},

	{"a target that is held starts when its source has given up", func(m *model) {
		m.begin(true, "n1", hypervisor.HandedOver)
	}, "n2", hypervisor.RunsAtTarget, 0, nil, "{n2 Running}"},

	{"a target that is held does not when its source may have run again", func(m *model) {
		m.begin(true, "n2", hypervisor.Received)
		m.must(m.CutLink("n1", "n2"))
	}, "n1", hypervisor.TargetDiscarded, 0, nil, "{n1 Running}"},

	{"the source has lost its memory, and the target does not have it", func(m *model) {
		m.begin(false, "n1", hypervisor.HandingOver)
		m.must(m.CutLink("n1", "n2"))
		m.must(m.KillDomain("n1", web))
	}, "n1", hypervisor.TargetDiscarded, 0, nil, "{n1 Crashed}"},

	{"the VM ran at the target and was lost there", func(m *model) {
		m.begin(false, "n2", hypervisor.Running)
		m.must(m.CutLink("n1", "n2"))
		m.must(m.KillDomain("n2", web))
	}, "n2", hypervisor.RunsAtTarget, 0, nil, "{n2 Crashed}"},

	{"the target's host has forgotten the job, but not the VM", func(m *model) {
		m.begin(false, "n2", hypervisor.Running)
		m.must(m.CutLink("n1", "n2"))
		m.must(m.CrashHost("n2"))
		m.must(m.RestartHost("n2"))
	}, "n2", hypervisor.RunsAtTarget, 0, nil, "{n2 Shutoff}"},

	{"the source kept the VM, and its target still waits", func(m *model) {
		m.begin(false, "n1", hypervisor.Running)
		m.must(m.CutLink("n1", "n2"))
		m.must(m.Host("n1").Adjust(m.t.Context(), j1, hypervisor.Cancel{}))
	}, "n1", hypervisor.NoProof, 0, nil, "{n1 Running}"},

	{"the source kept the VM, which has ended since", func(m *model) {
		m.begin(false, "n1", hypervisor.Running)
		m.must(m.CutLink("n1", "n2"))
		m.must(m.Host("n1").Adjust(m.t.Context(), j1, hypervisor.Cancel{}))
		m.must(m.Host("n1").Do(m.t.Context(), web, hypervisor.Kill{}))
	}, "n1", hypervisor.NoProof, 0, nil, "{n1 Shutoff}"},

	{"the source's host was restarted before anything had arrived", func(m *model) {
		m.begin(false, "n1", hypervisor.Running)
		m.must(m.CrashHost("n1"))
		m.must(m.RestartHost("n1"))
	}, "n1", hypervisor.TargetDiscarded, 0, nil, "{n1 Shutoff}"},

	{"post-copy broke: it ran at the target", func(m *model) {
		m.must(m.move("n1", "n2", j1, false))
		m.AdvanceTo(m.Now().Add(20 * time.Millisecond))
		m.must(m.Host("n1").Adjust(m.t.Context(), j1, hypervisor.StartPostCopy{}))
		m.until("n2", hypervisor.Running)
		m.must(m.ResetLink("n1", "n2"))
	}, "n2", hypervisor.RunsAtTarget, 0, nil, "{n2 Crashed}"},

	{"the job is under way", func(m *model) {
		m.begin(false, "n1", hypervisor.HandingOver)
	}, "", 0, hypervisor.Conflict, []string{"is Switching on n1", "wait"},
		"{n1 HandingOver} {n2 Receiving}"},

	{"the target does not answer", func(m *model) {
		m.begin(false, "n1", hypervisor.HandingOver)
		m.must(m.CutLink("n1", "n2"))
		m.must(m.CrashHost("n2"))
	}, "", 0, hypervisor.Transient, []string{"n2 does not answer", "fence n2",
		"Abandon at n1 with HostFenced", "virsh list", "Resume at n1 with OperatorWord"},
		"{n1 HandingOver}"},

	{"the target does not answer, but the source kept the VM", func(m *model) {
		m.begin(false, "n1", hypervisor.Running)
		m.must(m.CrashHost("n2"))
		m.must(m.RestartHost("n2"))
		m.must(m.CrashHost("n2"))
	}, "", 0, hypervisor.Transient, []string{"n1 has kept the VM, and n2 does not answer"},
		"{n1 Running}"},

	{"the source does not answer, and the target holds the VM", func(m *model) {
		m.begin(true, "n1", hypervisor.HandedOver)
		m.must(m.CrashHost("n1"))
	}, "", 0, hypervisor.Transient, []string{"n1 does not answer",
		"Activate at n2 with HostFenced"}, "{n1 Crashed} {n2 Received}"},

	{"the source does not answer, and the VM runs", func(m *model) {
		m.begin(false, "n1", hypervisor.HandedOver)
		m.must(m.CrashHost("n1"))
	}, "", 0, hypervisor.Transient, []string{"n1 does not answer", "on n2 the VM is Running"},
		"{n1 Crashed} {n2 Running}"},

	{"the VM has moved on", func(m *model) {
		m.begin(false, "n2", hypervisor.Running)
		m.must(m.CutLink("n1", "n2"))
		m.must(m.move("n2", "n3", "j2", false))
		m.until("n2", hypervisor.HandedOver)
		m.must(m.Host("n2").Do(m.t.Context(), web, hypervisor.Release{Job: "j2",
			Moved: hypervisor.Evidence{Proof: hypervisor.RunsAtTarget, VM: web, Host: "n3"}}))
	}, "", 0, hypervisor.Conflict, []string{"came to n2 and is no longer there",
		"Release at n1 with RunsAtTarget"}, "{n1 HandingOver} {n3 Running}"},

	{"the VM has moved on, and come back", func(m *model) {
		m.begin(false, "n2", hypervisor.Running)
		m.must(m.CutLink("n1", "n2"))
		m.must(m.move("n2", "n3", "j2", false))
		m.until("n2", hypervisor.HandedOver)
		m.must(m.Host("n2").Do(m.t.Context(), web, hypervisor.Release{Job: "j2",
			Moved: hypervisor.Evidence{Proof: hypervisor.RunsAtTarget, VM: web, Host: "n3"}}))
		m.must(m.move("n3", "n2", "j3", false))
		m.until("n3", hypervisor.HandedOver)
	}, "n2", hypervisor.RunsAtTarget, 0, nil, "{n2 Running} {n3 HandedOver}"},

	{"what was handed over is gone at the target", func(m *model) {
		m.begin(true, "n1", hypervisor.HandedOver)
		m.must(m.CrashHost("n2"))
		m.must(m.RestartHost("n2"))
	}, "", 0, hypervisor.Conflict, []string{"HandedOver on n1 and Absent on n2",
		"Abandon with OperatorWord"}, "{n1 HandedOver}"},

	{"the VM was started at the source, too", func(m *model) {
		m.begin(false, "n2", hypervisor.Running)
		m.must(m.CutLink("n1", "n2"))
		m.must(m.KillDomain("n1", web))
		m.must(m.Host("n1").Do(m.t.Context(), web, hypervisor.Start{
			VM: hypervisor.VM{ID: web, Memory: hypervisor.GiB, CPUs: 1}}))
	}, "", 0, hypervisor.Conflict, []string{"Starting on n1 and Running on n2", "Kill"},
		"{n1 Starting} {n2 Running}"},

	{"there is no such job", func(*model) {}, "", 0, hypervisor.NotFound,
		[]string{"neither n1 nor n2 knows a job j1", "Running and Absent"}, "{n1 Running}"},

	{"the source was never asked to send", func(m *model) {
		vm := hypervisor.VM{ID: web, Memory: hypervisor.GiB, CPUs: 1}
		_, err := m.Host("n2").Receive(m.t.Context(), hypervisor.Incoming{Job: j1, VM: vm})
		m.must(err)
	}, "n1", hypervisor.NoProof, 0, nil, "{n1 Running}"},

	{"the source has lost its memory, and the target waits for word", func(m *model) {
		m.begin(true, "n2", hypervisor.Received)
		m.must(m.KillDomain("n1", web))
	}, "", 0, hypervisor.Conflict, []string{"Crashed on n1, and n2 holds its memory",
		"Activate at n2 with ProcessReaped about n1"}, "{n1 Crashed} {n2 Received}"},

	{"there was no source to send it", func(m *model) {
		m.must(m.move("n1", "n2", j1, false))
		m.must(m.CutLink("n1", "n2"))
		m.must(m.Host("n1").Do(m.t.Context(), web, hypervisor.Kill{}))
		m.must(m.Host("n1").Do(m.t.Context(), web, hypervisor.Forget{}))
	}, "", 0, hypervisor.Conflict, []string{"Absent on n1 and Receiving on n2",
		"does not tell who has it"}, "{n2 Receiving}"},
}

func TestResolve(t *testing.T) {
	for _, tt := range resolutions {
		t.Run(tt.name, func(t *testing.T) {
			m := newModel(t)
			tt.stage(m)
			out, err := m.resolve()
			if got := m.show(); got != tt.after {
				t.Errorf("the copies are %s, want %s", got, tt.after)
			}
			if tt.where == "" {
				wantRefusal(t, err, tt.kind, tt.says)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			d, _ := m.Host(tt.where).Domain(t.Context(), web)
			if diff := cmp.Diff(d, out.Domain); out.Host != tt.where || diff != "" {
				t.Errorf("on %s (-want +got):\n%s", out.Host, diff)
			}
			if out.Evidence.Proof != tt.proof {
				t.Errorf("by %v, want %v", out.Evidence.Proof, tt.proof)
			}
			if again, err := m.resolve(); err != nil || again.Host != out.Host {
				t.Errorf("resolved again: %+v, %v", again, err)
			}
		})
	}
}

func wantRefusal(t *testing.T, err error, kind hypervisor.Kind, says []string) {
	t.Helper()
	e, ok := errors.AsType[*hypervisor.Error](err)
	if !ok || e.Kind != kind || e.Op != "Resolve" || e.VM != web {
		t.Fatalf("got %#v, want Resolve's error with %v", err, kind)
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// TestResolveNeverMakesTwoCopiesRun plays with a migration, its link, hosts and calls,
// and resolves whenever it likes, also with the hosts exchanged.
func TestResolveNeverMakesTwoCopiesRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		n1, n2 := m.Host("n1"), m.Host("n2")
		host := rapid.SampledFrom([]hypervisor.HostName{"n1", "n2"})
		ops := []string{"", "Discard", "Resume", "Abandon", "Release", "Activate", "Domain"}
		hows := []fake.FaultEffect{fake.FailBefore, fake.FailAfter}
		began := false
		acts := map[string]func(*rapid.T){
			"migrate": func(t *rapid.T) {
				if began {
					t.Skip("a job begins once")
				}
				began = true
				_ = m.move("n1", "n2", j1, rapid.Bool().Draw(t, "hold"))
			},
			"adjust": func(t *rapid.T) {
				_ = n1.Adjust(t.Context(), j1, rapid.SampledFrom([]hypervisor.Adjustment{
					hypervisor.Cancel{}, hypervisor.StartPostCopy{}}).Draw(t, "how"))
			},
			"link": func(t *rapid.T) {
				_ = rapid.SampledFrom([]func(a, b hypervisor.HostName) error{m.CutLink,
					m.HealLink, m.ResetLink}).Draw(t, "how")("n1", "n2")
			},
			"kill": func(t *rapid.T) { _ = m.KillDomain(host.Draw(t, "host"), web) },
			"power": func(t *rapid.T) {
				n := host.Draw(t, "host")
				_ = m.CrashHost(n)
				_ = m.RestartHost(n)
			},
			"next": func(t *rapid.T) {
				for range rapid.IntRange(1, 8).Draw(t, "events") {
					if at, some := m.Next(); some {
						m.AdvanceTo(at)
					}
				}
			},
			"fault": func(t *rapid.T) {
				m.must(m.Inject(fake.Fault{Host: host.Draw(t, "host"),
					Op:    rapid.SampledFrom(ops).Draw(t, "op"),
					How:   rapid.SampledFrom(hows).Draw(t, "how"),
					Times: rapid.IntRange(1, 2).Draw(t, "times")}))
			},
			"resolve":  func(t *rapid.T) { m.resolved(t) },
			"exchange": func(*rapid.T) { _, _ = libvirt.Resolve(t.Context(), n2, n1, web, j1) },
			"":         func(t *rapid.T) { m.checkOneRuns(t) },
		}
		t.Repeat(acts)
		m.settle(t)
	})
}

// checkOneRuns: at most one copy executes, and there is a copy.
func (m *model) checkOneRuns(t *rapid.T) {
	copies := m.Copies(web)
	runs := slices.DeleteFunc(slices.Clone(copies),
		func(c fake.Copy) bool { return !c.State.Executes() })
	if len(runs) > 1 || len(copies) == 0 {
		t.Fatalf("copies: %v", copies)
	}
}

// resolved resolves and checks what is said about where the VM is.
func (m *model) resolved(t *rapid.T) error {
	out, err := m.resolve()
	if err != nil {
		if e, ok := errors.AsType[*hypervisor.Error](err); !ok || e.Op != "Resolve" {
			t.Fatalf("got %#v", err)
		}
		return err
	}
	open := out.Domain.Unresolved && out.Domain.State != hypervisor.Crashed // fake leaves it there
	if got := m.state(out.Host); got != out.Domain.State || got == hypervisor.Absent || open {
		t.Fatalf("it is said to be %+v, and is %v", out, m.Copies(web))
	}
	for _, c := range m.Copies(web) {
		if c.Host != out.Host && c.State.HoldsState() {
			t.Fatalf("it is said to be on %s, and is %v", out.Host, m.Copies(web))
		}
	}
	return nil
}

// settle: when nothing goes wrong any more, the VM is found, unless a copy was lost
// with the only word about it.
func (m *model) settle(t *rapid.T) {
	m.ClearFaults()
	m.must(m.HealLink("n1", "n2"))
	m.AdvanceTo(m.Now().Add(time.Minute))
	err := m.resolved(t)
	if err == nil || errors.Is(err, hypervisor.NotFound) {
		return // where it is, or nothing has ever happened
	}
	half := slices.Contains([][2]hypervisor.DomainState{ // of which one died while it was held
		{hypervisor.HandedOver, hypervisor.Absent}, {hypervisor.HandingOver, hypervisor.Absent},
		{hypervisor.Crashed, hypervisor.Absent}, {hypervisor.Shutoff, hypervisor.Absent},
		{hypervisor.Crashed, hypervisor.Received}, {hypervisor.Shutoff, hypervisor.Received},
	}, [2]hypervisor.DomainState{m.state("n1"), m.state("n2")})
	if !errors.Is(err, hypervisor.Conflict) || !half {
		t.Fatalf("%v: %v", m.Copies(web), err)
	}
}
