package predict

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// Machine returns the model of the machine on which [BuiltIn] was measured: two
// processors for source, target and guest, so that more channels are no faster than one. A
// compressed page is one of the measured guest.
func Machine() fake.Model {
	m := fake.QEMU()
	m.AllChannels = m.PerChannel
	m.Compression = 23
	return m
}

// measurementFactor is how much longer than it took a migration is predicted: after that, the
// prediction is that it does not complete.
const measurementFactor = 10

// A Modeled is what the model says about a measured migration.
type Modeled struct {
	Completed bool
	// Total and Downtime are those so far when it does not complete.
	Total, Downtime time.Duration
}

// Predict carries a migration out with a model. The guest writes its working set
// cyclically, so that distinct pages grow linearly until it wraps, and makes up for a stop
// of up to 16 ms. Its first MiB is zero, and scanned before anything is sent: it is left
// away. It fails for a migration that the fake refuses.
func (m *Migration) Predict(model fake.Model) (Modeled, error) {
	at := func(err error) (Modeled, error) {
		return Modeled{}, fmt.Errorf("line %d cannot be carried out: %w", m.Line, err)
	}
	f, job, err := m.begin(m.on(model))
	if err != nil {
		return at(err)
	}
	began := f.Now()
	last := began.Add(measurementFactor*m.Total + time.Minute)
	if m.Options.PostCopy && m.SwitchAfter >= 0 {
		f.AdvanceTo(began.Add(m.SwitchAfter))
		err := f.Host(source).Adjust(context.Background(), job, hypervisor.StartPostCopy{})
		if err != nil {
			return at(err)
		}
	}
	for {
		next, some := f.Next()
		if !some || next.After(last) {
			break
		}
		f.AdvanceTo(next)
	}
	p, err := f.Host(source).Progress(context.Background(), job)
	if err != nil {
		return at(err)
	}
	return Modeled{Completed: p.Status == hypervisor.JobSucceeded,
		Total: f.Now().Sub(began), Downtime: p.Downtime}, nil
}

const (
	source = hypervisor.HostName("source")
	target = hypervisor.HostName("target")
)

// begin sets up two hosts and a guest, and begins to send it.
func (m *Migration) begin(model fake.Model) (*fake.Network, hypervisor.JobID, error) {
	const job = "job"
	f := fake.NewNetwork(time.Time{}, model)
	link := m.Link
	if link == 0 {
		link = 1000 * hypervisor.Gbit
	}
	for _, name := range []hypervisor.HostName{source, target} {
		h := hypervisor.Host{Name: name, Memory: 1 << 60, CPUs: 4, Link: link}
		if _, err := f.AddHost(h); err != nil {
			return nil, "", err
		}
	}
	memory := m.Memory - hypervisor.MiB
	vm := hypervisor.VM{ID: "vm", Memory: memory, CPUs: 1}
	load := fake.Workload{ColdRate: m.Rate, Cold: m.Hot,
		Zero:    int(1000 - 1000*min(m.Filled, memory)/memory),
		CatchUp: 16 * time.Millisecond}
	if err := f.Host(source).Boot(vm, load); err != nil {
		return nil, "", err
	}
	ctx := context.Background()
	at, err := f.Host(target).Receive(ctx, hypervisor.Incoming{Job: job, VM: vm})
	if err != nil {
		return nil, "", err
	}
	err = f.Host(source).Migrate(ctx, hypervisor.Outgoing{Job: job, VM: vm.ID, Target: target,
		Address: at, Options: m.Options})
	return f, job, err
}

// on returns the model for what no parameter says: an emulated guest leaves less of the
// processors to those who find room for pages, encryption and compression of channels have
// speeds of their own. Source: internal/predict; QEMU 7.2 counts what multifd
// compresses as if it were not.
func (m *Migration) on(model fake.Model) fake.Model {
	if m.Emulated {
		model.FirstTouch = model.FirstTouch * 31 / 40
	}
	if m.Options.Channels > 1 && model.AllChannels == model.PerChannel {
		model.AllChannels /= 2 // threads of further connections share the same processors
	}
	for _, e := range []fake.Encryption{fake.TLSPSK, fake.TLSX509} {
		if m.has(string(e)) && m.Options.Channels > fewEncrypted {
			return model.Encrypted(e)
		}
		if m.has(string(e)) {
			model.PerChannel, model.AllChannels = e.Speed()
			return model
		}
	}
	for _, way := range ways {
		if m.has(way.option) && (way.also == "" || m.has(way.also)) {
			model.AllChannels = way.all
			return model
		}
	}
	return model
}

// ways are what has speeds of its own, besides encryption: that of all connections. The first that a
// measurement was made with counts.
var ways = []struct {
	option, also string
	all          hypervisor.Bandwidth
}{
	{"mfcomp:zlib", "", 270_000_000},
	{"mfcomp:zstd", "random", 420_000_000}, // pages that cannot be compressed
	{"mfcomp:zstd", "", 840_000_000},
}

// encoded reports whether a speed of its own, which no parameter of a model says, governs
// the measurement: encryption, or compression of channels.
func (m *Migration) encoded() bool { return m.on(fake.Model{}) != fake.Model{} }
