package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/conformance"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// A sabotage is a host that is wrong about something.
type sabotage struct {
	hypervisor.Hypervisor
	domain func(hypervisor.Domain) hypervisor.Domain
	do     func(hypervisor.Command, error) error
	job    func(hypervisor.Progress) hypervisor.Progress
}

func (s *sabotage) Domain(ctx context.Context, id hypervisor.VMID) (hypervisor.Domain, error) {
	d, err := s.Hypervisor.Domain(ctx, id)
	if s.domain != nil {
		d = s.domain(d)
	}
	return d, err
}

func (s *sabotage) Do(ctx context.Context, id hypervisor.VMID, c hypervisor.Command) error {
	err := s.Hypervisor.Do(ctx, id, c)
	if s.do != nil {
		err = s.do(c, err)
	}
	return err
}

func (s *sabotage) Progress(ctx context.Context, job hypervisor.JobID) (hypervisor.Progress,
	error) {
	p, err := s.Hypervisor.Progress(ctx, job)
	if s.job != nil {
		p = s.job(p)
	}
	return p, err
}

// A verdict is what a walk failed with.
type verdict string

// A judge is a TB that panics with its verdict.
type judge struct{}

func (judge) Helper()             {}
func (judge) Logf(string, ...any) {}
func (judge) Fatalf(format string, args ...any) {
	panic(verdict(fmt.Sprintf(format, args...)))
}

// walk returns why a random walk over two hosts fails; "" is that it does not.
func walk(seed uint64, wrong sabotage) (why verdict) {
	defer func() {
		v := recover()
		if failed, ok := v.(verdict); ok {
			why = failed
		} else if v != nil {
			panic(v)
		}
	}()
	fabric, hosts := modelled()
	wrong.Hypervisor = hosts[1]
	random := rand.New(rand.NewPCG(seed, 1))
	conformance.Walk(judge{}, &conformance.Lab{
		Source: hosts[0], Target: &wrong, Steps: 200, Within: time.Hour,
		VM: func(id hypervisor.VMID) hypervisor.VM {
			return hypervisor.VM{ID: id, Memory: hypervisor.GiB, CPUs: 1}
		},
		Pass: func(d time.Duration) { fabric.AdvanceTo(fabric.Now().Add(d)) },
		KillVM: func(on hypervisor.HostName, id hypervisor.VMID) error {
			return fabric.KillDomain(on, id)
		},
	}, func(_ string, n int) int { return random.IntN(n) })
	return ""
}

func TestAWalkNoticesWhatIsWrong(t *testing.T) {
	testutil.Unraced(t)
	tests := []struct {
		name  string
		wrong sabotage
		fails bool
	}{
		{"nothing is wrong", sabotage{}, false},
		{"a source that is handed over says that it runs", sabotage{
			domain: func(d hypervisor.Domain) hypervisor.Domain {
				if d.State == hypervisor.HandedOver {
					d.State = hypervisor.Running
				}
				return d
			}}, true},
		{"what has crashed is not visible", sabotage{
			domain: func(d hypervisor.Domain) hypervisor.Domain {
				if d.State == hypervisor.Crashed {
					d.State = hypervisor.Absent
				}
				return d
			}}, true},
		{"errors are of no type", sabotage{do: func(_ hypervisor.Command, err error) error {
			if err != nil {
				return errors.New("no")
			}
			return nil
		}}, true},
		{"errors do not say what may be done", sabotage{
			do: func(_ hypervisor.Command, err error) error {
				if err != nil {
					return &hypervisor.Error{Op: "Do"}
				}
				return nil
			}}, true},
		{"a release needs no evidence", sabotage{
			do: func(c hypervisor.Command, err error) error {
				if _, ok := c.(hypervisor.Release); ok {
					return nil
				}
				return err
			}}, true},
		{"a job that has ended goes on", sabotage{
			job: func(p hypervisor.Progress) hypervisor.Progress {
				if p.Status.Final() && p.Sent%2 == 0 {
					p.Status, p.Sent = hypervisor.JobActive, 0
				}
				return p
			}}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var why verdict
			for seed := range uint64(10) {
				if why = walk(seed, test.wrong); why != "" {
					break
				}
			}
			t.Log(why)
			if (why != "") != test.fails {
				t.Errorf("the walk fails: %v, want %v", why != "", test.fails)
			}
		})
	}
}

// What two hosts say of a VM may be from different moments: where the guest can tell whether it
// ran twice, it is believed, and hosts that never agree are found all the same.
func TestTheGuestTellsWhetherItRanTwice(t *testing.T) {
	running := func(d hypervisor.Domain) hypervisor.Domain {
		if d.State == hypervisor.Absent || d.State == hypervisor.HandedOver {
			d.State = hypervisor.Running
		}
		return d
	}
	for _, row := range []struct {
		name  string
		late  int // so many answers of the target are of a VM that runs there
		twice error
		fails string
	}{
		{"no host says anything wrong", 0, nil, ""},
		{"a host says too long that it runs", 20, nil, ""},
		{"a host says for ever that it runs", 1 << 40, nil, "both hosts say that"},
		{"the guest runs twice, and the hosts say that it does not", 0,
			errors.New("n1 beats again"), "n1 beats again"},
	} {
		t.Run(row.name, func(t *testing.T) {
			fabric, hosts := modelled()
			pass := func(d time.Duration) { fabric.AdvanceTo(fabric.Now().Add(d)) }
			left := row.late
			wrong := &sabotage{Hypervisor: hosts[1], domain: func(d hypervisor.Domain,
			) hypervisor.Domain {
				if left--; left >= 0 {
					return running(d)
				}
				return d
			}}
			w := conformance.New(judge{}, (*conformance.Lab)(&conformance.Lab{Source: hosts[0],
				Target: wrong, Pass: pass, Within: time.Minute,
				VM: func(id hypervisor.VMID) hypervisor.VM {
					return hypervisor.VM{ID: id, Memory: hypervisor.GiB, CPUs: 1}
				},
				Twice: func(hypervisor.VMID) error { return row.twice }}))
			why := func() (why verdict) {
				defer func() { why, _ = recover().(verdict) }()
				w.Running()
				w.Rest()
				return ""
			}()
			if (why == "") != (row.fails == "") || !strings.Contains(string(why), row.fails) {
				t.Errorf("it fails with %q, want %q", why, row.fails)
			}
		})
	}
}

// modelled has two modelled hosts, n1 and n2.
func modelled() (fabric *fake.Network, hosts [2]hypervisor.Hypervisor) {
	fabric = fake.NewNetwork(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), fake.QEMU())
	for i, name := range []hypervisor.HostName{"n1", "n2"} {
		host, err := fabric.AddHost(hypervisor.Host{Name: name, Memory: 8 * hypervisor.GiB,
			CPUs: 8, Link: 10 * hypervisor.Gbit})
		if err != nil {
			panic(err)
		}
		hosts[i] = host
	}
	return fabric, hosts
}
