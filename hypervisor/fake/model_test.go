package fake_test

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// windowed looks as QEMU does, without its costs.
func windowed() fake.Model { return fake.Model{Window: 100 * ms, ShutdownTime: time.Second} }

// startPostCopy asks a capped transfer for post-copy in the middle of a window.
func startPostCopy(t *testing.T) (*world, hypervisor.JobID) {
	w := newWorld(t, windowed())
	w.boot("n1", "vm", fake.Workload{})
	job := w.begin(move{vm: aVM("vm"), from: "n1", to: "n2", options: hypervisor.TransferOptions{
		Bandwidth: 100e6, PostCopy: true}})
	w.pass(1010 * ms)
	for range 2 { // it may be repeated
		w.ok(w.Host("n1").Adjust(ctx, job, hypervisor.StartPostCopy{}))
	}
	return w, job
}

func TestPostCopyBeginsWhenTheSenderLooks(t *testing.T) {
	w, job := startPostCopy(t)
	tests := []struct {
		name string
		at   time.Duration
		want hypervisor.Mode
	}{
		{"not at once", 1010 * ms, hypervisor.PreCopy},
		{"not while the window lasts", 1099 * ms, hypervisor.PreCopy},
		{"when the next begins", 1101 * ms, hypervisor.PostCopy},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w.AdvanceTo(epoch.Add(test.at))
			if got := w.progress("n1", job).Mode; got != test.want {
				t.Errorf("%v at %v, want %v", got, test.at, test.want)
			}
		})
	}
	w.untilStatus("n1", job, hypervisor.JobSucceeded)
	if got := w.progress("n1", job).Sent; got != 4*gib {
		t.Errorf("sent %v of an idle guest of 4 GiB", got)
	}
}

func TestAGuestThatShutsDownBeforeTheLookIsNotMovedByPostCopy(t *testing.T) {
	w, job := startPostCopy(t)
	w.ok(w.Host("n1").Do(ctx, "vm", hypervisor.Stop{Grace: time.Hour}))
	w.pass(200 * ms)
	if got := w.progress("n1", job).Mode; got == hypervisor.PostCopy {
		t.Errorf("the target runs a guest that shuts down")
	}
}

func TestACancelBeforeTheLookPreventsPostCopy(t *testing.T) {
	w, job := startPostCopy(t)
	w.ok(w.Host("n1").Adjust(ctx, job, hypervisor.Cancel{}))
	w.pass(time.Second)
	if got := w.state("n1", "vm"); got != hypervisor.Running {
		t.Errorf("after the cancel the source is %v", got)
	}
}

func TestHowFastChannelsAre(t *testing.T) {
	tests := []struct {
		name     string
		model    fake.Model
		channels int
		want     hypervisor.Bandwidth
	}{
		{"one is as fast as it can be", fake.Model{PerChannel: 300e6}, 1, 300e6},
		{"three are three times as fast", fake.Model{PerChannel: 300e6}, 3, 900e6},
		{"all are as fast as the processors", fake.Model{PerChannel: 300e6, AllChannels: 500e6},
			3, 500e6},
		{"none is faster than the card", fake.Model{PerChannel: 1e9}, 3, 1.25e9},
		{"each touches memory for the first time", fake.Model{FirstTouch: 200e6}, 3, 600e6},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.model)
			w.boot("n1", "vm", fake.Workload{})
			job := w.begin(move{vm: aVM("vm"), from: "n1", to: "n2",
				options: hypervisor.TransferOptions{Channels: test.channels}})
			w.untilStatus("n1", job, hypervisor.JobSucceeded)
			want := hypervisor.Bytes(4 * gib).At(test.want)
			if got := w.Now().Sub(epoch); (got - want).Abs() > ms {
				t.Errorf("took %v, want %v", got, want)
			}
		})
	}
}

// A cap does not bind the last round: what it left of a window's time is not lost.
func TestACappedTransferEndsAsFastAsTheWire(t *testing.T) {
	w := newWorld(t, windowed())
	w.boot("n1", "vm", fake.Workload{})
	job := w.begin(move{vm: aVM("vm"), from: "n1", to: "n2", options: hypervisor.TransferOptions{
		Bandwidth: 1e9, Downtime: 300 * ms}})
	w.untilStatus("n1", job, hypervisor.JobSucceeded)
	// After 4 s less than 300 MB are left, which take 0.24 s on this card.
	left := hypervisor.Bytes(4*gib - 4e9)
	want := 4*time.Second + left.At(1.25e9)
	if got := w.Now().Sub(epoch); (got - want).Abs() > ms {
		t.Errorf("took %v, want %v", got, want)
	}
}
