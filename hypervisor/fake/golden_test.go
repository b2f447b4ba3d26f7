package fake_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// simgrid is a VM of 4 GiB on links of 1.25e9 B/s with a linear dirty rate up to a
// working set of 90 % and 30 ms of downtime, in a world without other costs.
func simgrid(t tester, rate hypervisor.Bandwidth) (*world, hypervisor.JobID) {
	w := newWorld(t, fake.Model{})
	w.boot("n1", "vm", fake.Workload{ColdRate: rate, Cold: 4 * gib / 10 * 9})
	return w, w.begin(move{vm: aVM("vm"), from: "n1", to: "n2",
		options: hypervisor.TransferOptions{Downtime: 30 * ms}})
}

// The values are SimGrid 3.32's (CM02, no latency); transfers count the rest,
// which is an iteration of ours, too.
func TestTotalsAreThoseOfSimGrid(t *testing.T) {
	tests := []struct {
		rate            hypervisor.Bandwidth // MB/s
		total, downtime time.Duration
		transfers       int
	}{
		{0, 3435974 * time.Microsecond, 0, 2},
		{50, 3578910 * time.Microsecond, 5498 * time.Microsecond, 3},
		{300, 4517418 * time.Microsecond, 11400 * time.Microsecond, 5},
		{600, 6589022 * time.Microsecond, 20172 * time.Microsecond, 8},
		{1000, 17078457 * time.Microsecond, 25353 * time.Microsecond, 23},
		{1200, 80038377 * time.Microsecond, 29459 * time.Microsecond, 116},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("a guest dirties %d MB/s", test.rate), func(t *testing.T) {
			w, job := simgrid(t, test.rate*1e6)
			w.untilStatus("n1", job, hypervisor.JobSucceeded)
			p := w.progress("n1", job)
			total := w.Now().Sub(epoch)
			if (total - test.total).Abs() > test.total/1000 {
				t.Errorf("total %v, SimGrid %v", total, test.total)
			}
			off := (p.Downtime - test.downtime).Abs()
			if off > test.downtime/1000+time.Microsecond {
				t.Errorf("downtime %v, SimGrid %v", p.Downtime, test.downtime)
			}
			if p.Iteration != test.transfers {
				t.Errorf("%d transfers, SimGrid %d", p.Iteration, test.transfers)
			}
		})
	}
}

func TestATransferThatCannotConvergeGoesOnCheaplyAndCanBeCancelled(t *testing.T) {
	w, job := simgrid(t, 1300e6)
	events := 0
	for until := epoch.Add(24 * time.Hour); ; events++ {
		next, some := w.Next()
		if !some || next.After(until) {
			break
		}
		w.AdvanceTo(next)
	}
	p := w.progress("n1", job)
	if p.Status != hypervisor.JobActive || events > 40_000 {
		t.Fatalf("after a day the job is %v at a cost of %d events", p.Status, events)
	}
	w.ok(w.Host("n1").Adjust(ctx, job, hypervisor.Cancel{}))
	if got := w.state("n1", "vm"); got != hypervisor.Running {
		t.Errorf("after the cancel the source is %v", got)
	}
	if _, some := w.Next(); some {
		t.Errorf("after the cancel something is still to happen")
	}
}

func TestFlowsShareALink(t *testing.T) {
	tests := []struct {
		name  string
		moves []move
		want  time.Duration
	}{
		{"one flow takes 3.436 s", []move{{from: "n1", to: "n2"}}, 3436 * ms},
		{"two flows into one card take twice as long",
			[]move{{from: "n1", to: "n3"}, {from: "n2", to: "n3"}}, 6872 * ms},
		{"two flows out of one card take twice as long",
			[]move{{from: "n1", to: "n2"}, {from: "n1", to: "n3"}}, 6872 * ms},
		{"two flows in opposite directions do not meet",
			[]move{{from: "n1", to: "n2"}, {from: "n2", to: "n1"}}, 3436 * ms},
		{"a flow through and a flow past do not meet",
			[]move{{from: "n1", to: "n2"}, {from: "n2", to: "n3"}}, 3436 * ms},
		{"a cap binds before the card does", []move{{from: "n1", to: "n2",
			options: hypervisor.TransferOptions{Bandwidth: 625e6}}}, 6872 * ms},
		{"half the memory is zeros that cost nothing here",
			[]move{{from: "n1", to: "n2", vm: hypervisor.VM{ID: "zero"}}}, 1718 * ms},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, fake.Model{})
			var jobs []hypervisor.JobID
			for i, m := range test.moves {
				load := fake.Workload{}
				if m.vm.ID == "zero" {
					load.Zero = 500
				}
				m.vm = aVM(vmid(fmt.Sprint("vm", i)))
				w.boot(m.from, m.vm.ID, load)
				jobs = append(jobs, w.begin(m))
			}
			for i, job := range jobs {
				w.untilStatus(test.moves[i].from, job, hypervisor.JobSucceeded)
			}
			if got := w.Now().Sub(epoch); (got - test.want).Abs() > ms {
				t.Errorf("took %v, want %v", got, test.want)
			}
		})
	}
}

func TestAChangeOfSpeedInMidPassIsExact(t *testing.T) {
	w := newWorld(t, fake.Model{})
	w.boot("n1", "vm", fake.Workload{})
	job := w.begin(move{vm: aVM("vm"), from: "n1", to: "n2",
		options: hypervisor.TransferOptions{Bandwidth: 1e9}})
	w.pass(time.Second)
	w.ok(w.Host("n1").Adjust(ctx, job, hypervisor.SetBandwidth{Limit: 500e6}))
	w.pass(2 * time.Second)
	if got := w.progress("n1", job).Sent; got != 2e9 {
		t.Errorf("sent %d, want 2e9", got)
	}
	w.ok(w.Host("n1").Adjust(ctx, job, hypervisor.SetBandwidth{}))
	w.untilStatus("n1", job, hypervisor.JobSucceeded)
	want := 3*time.Second + hypervisor.Bytes(4*gib-2e9).At(1.25e9)
	if got := w.Now().Sub(epoch); got != want {
		t.Errorf("took %v, want %v", got, want)
	}
}
