package predict

import (
	"math"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// An Observation is a migration that was carried out anywhere: how its guest wrote is not known.
type Observation struct {
	Line           int
	Host, Target   string           // "" is not known
	Memory, Filled hypervisor.Bytes // Filled of 0: as much of it as was sent
	Sent           hypervisor.Bytes // of memory
	Link           hypervisor.Bandwidth
	Options        hypervisor.TransferOptions
	Began          time.Time // zero: nothing else moved meanwhile
	Total          time.Duration
	Downtime       time.Duration
	NoDowntime     bool // Downtime is not known
	// Told is what both hosts of a migration tell alike; "" is nothing. Incoming says that the target
	// told it.
	Told     string
	Incoming bool
}

// CountOnce leaves out what the target of a migration told that its source has told, too.
func CountOnce(all []Observation) []Observation {
	sources := map[string]int{}
	for i := range all {
		if o := &all[i]; o.Told != "" && !o.Incoming {
			sources[o.Told]++
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(o Observation) bool {
		twice := o.Incoming && sources[o.Told] > 0
		if twice {
			sources[o.Told]--
		}
		return twice
	})
}

// Infer makes measurements of observations. A guest is taken to have written so fast that what was
// sent more than once adds up; migrations that shared a link are taken to have had an equal share
// of it. Encryption is taken for TLS with certificates: the hosts of the model have none, but they
// have its speed.
func Infer(all []Observation) []Migration {
	list := make([]Migration, len(all))
	for i := range all {
		o := &all[i]
		m := &list[i]
		*m = Migration{Line: o.Line, Label: "observed", Host: o.Host, Memory: o.Memory, Filled: o.Filled,
			Options: o.Options, SwitchAfter: -time.Millisecond, Completed: true, Total: o.Total,
			Downtime: min(o.Downtime, o.Total), NoDowntime: o.NoDowntime}
		if m.Filled == 0 || m.Filled > m.Memory {
			m.Filled = min(o.Memory, o.Sent)
		}
		if o.Options.Encryption == hypervisor.EncryptRequired {
			m.Options.Encryption, m.Words = hypervisor.AsConfigured, []string{string(fake.TLSX509)}
		}
		if again := o.Sent - m.Filled; again > m.Filled/200 && o.Total > 0 { // headers are not writes
			m.Hot = m.Memory
			m.Rate = hypervisor.Bandwidth(float64(again) / o.Total.Seconds())
		}
		if o.Link > 0 {
			m.Wire = o.Link
			m.Link = max(1, hypervisor.Bandwidth(float64(o.Link)/together(all, i)))
		}
	}
	return list
}

// same reports whether two hosts are known to be one.
func same(a, b string) bool { return a != "" && a == b }

// together returns how many migrations shared a link of one on average while it ran: the busier of
// its two links.
func together(all []Observation, at int) float64 {
	o := &all[at]
	if o.Began.IsZero() || o.Total <= 0 {
		return 1
	}
	out, in := 0.0, 0.0
	for i := range all {
		other := &all[i]
		begins, ends := other.Began, other.Began.Add(other.Total)
		if other.Began.IsZero() || !begins.Before(o.Began.Add(o.Total)) || !ends.After(o.Began) {
			continue
		}
		if begins.Before(o.Began) {
			begins = o.Began
		}
		if end := o.Began.Add(o.Total); ends.After(end) {
			ends = end
		}
		share := float64(ends.Sub(begins)) / float64(o.Total)
		if i == at || same(other.Host, o.Host) {
			out += share
		}
		if i == at || same(other.Target, o.Target) {
			in += share
		}
	}
	return math.Max(1, math.Max(out, in))
}
