package bench

import (
	"math"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/sim"
)

// A Trace is a guest and its dirty rate over time. The last change lasts.
type Trace struct {
	Name    string
	Memory  hypervisor.Bytes
	Link    hypervisor.Bandwidth
	Changes []Change // by time; the first at 0
}

// A Change is a workload that begins some time after the transfer.
type Change struct {
	At   time.Duration
	Load fake.Workload
}

// A Distribution makes traces that are alike.
type Distribution struct {
	Name string
	Says string // what such guests do
	make func(*maker) []Change
}

// Distributions returns what there is to choose from, in the order of the tables.
func Distributions() []Distribution {
	return []Distribution{
		{"steady", "writes a working set at an even rate", steady},
		{"bursts", "is quiet but for bursts of some seconds", bursts},
		{"diurnal", "rises and falls slowly", diurnal},
		{"phases", "does something else every minute or so", phases},
		{"growth", "its working set grows", growth},
		{"storm", "is quiet until the first pass is nearly over, then writes a lot", storm},
	}
}

// Traces returns count guests of a distribution; the seed decides which.
func (d Distribution) Traces(count int, seed uint64) []Trace {
	list := make([]Trace, count)
	for i := range list {
		m := &maker{sim.Seeded(seed<<16 + uint64(i)), hypervisor.GiB << (i % 5),
			10 * hypervisor.Gbit}
		list[i] = Trace{Name: d.Name, Memory: m.memory, Link: m.link, Changes: d.make(m)}
	}
	return list
}

// horizon is how long a trace goes on; what comes then lasts.
const horizon = 2 * time.Hour

// A maker draws the guests of 1 to 16 GiB.
type maker struct {
	chance sim.Chooser
	memory hypervisor.Bytes
	link   hypervisor.Bandwidth
}

// between draws a number from low to high, in parts per thousand.
func (m *maker) between(low, high float64) float64 {
	return low + (high-low)*float64(m.chance.Choose("part", 1001))/1000
}

// span draws a time, in whole milliseconds.
func (m *maker) span(low, high time.Duration) time.Duration {
	return time.Duration(m.between(float64(low), float64(high))).Round(time.Millisecond)
}

// load is a guest that writes a part of its memory at a part of the link's speed.
func (m *maker) load(rate, hot float64) fake.Workload {
	return fake.Workload{Rate: hypervisor.Bandwidth(rate * float64(m.link)),
		Hot: hypervisor.Bytes(hot * float64(m.memory))}
}

func steady(m *maker) []Change {
	return []Change{{0, m.load(m.between(0.02, 1.5), m.between(0.01, 0.4))}}
}

func bursts(m *maker) []Change {
	hot := m.between(0.05, 0.4)
	quiet, loud := m.load(m.between(0, 0.1), hot), m.load(m.between(0.5, 2), hot)
	list := []Change{{0, quiet}}
	for at := m.span(0, 20*time.Second); at < horizon; {
		list = append(list, Change{at, loud})
		at += m.span(2*time.Second, 15*time.Second)
		list = append(list, Change{at, quiet})
		at += m.span(5*time.Second, 40*time.Second)
	}
	return list
}

func diurnal(m *maker) []Change {
	hot, most := m.between(0.05, 0.4), m.between(0.3, 1.5)
	period, turn := m.span(4*time.Minute, 20*time.Minute), m.between(0, 2*math.Pi)
	var list []Change
	for at := time.Duration(0); at < horizon; at += 15 * time.Second {
		wave := math.Sin(2*math.Pi*float64(at)/float64(period) + turn)
		list = append(list, Change{at, m.load(most*math.Round(500+500*wave)/1000, hot)})
	}
	return list
}

func phases(m *maker) []Change {
	var list []Change
	for at := time.Duration(0); at < horizon; at += m.span(20*time.Second, 2*time.Minute) {
		list = append(list, Change{at, m.load(m.between(0, 1.5), m.between(0.01, 0.4))})
	}
	return list
}

func growth(m *maker) []Change {
	rate, until, most := m.between(0.2, 1.2), m.span(20*time.Second, 5*time.Minute),
		m.between(0.1, 0.6)
	var list []Change
	for at := time.Duration(0); at < until; at += 2 * time.Second {
		part := math.Round(1000*float64(at)/float64(until)) / 1000
		list = append(list, Change{at, m.load(rate, 0.01+most*part)})
	}
	return list
}

func storm(m *maker) []Change {
	quiet, hot := m.load(m.between(0.01, 0.1), 0.1), m.between(0.1, 0.5)
	pass := m.memory.At(m.link)
	begins := time.Duration(m.between(0.85, 1.02) * float64(pass)).Round(time.Millisecond)
	return []Change{{0, quiet}, {begins, m.load(m.between(0.8, 2), hot)},
		{begins + m.span(5*time.Second, 40*time.Second), quiet}}
}
