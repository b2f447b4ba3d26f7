package sim

import (
	"math"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// lowerBound adds up what crosses the links of hosts and racks, and the network that all migrations
// share. The zero value is empty and ready.
type lowerBound struct {
	network hypervisor.Bandwidth // 0: it is no bottleneck
	crossed map[link]hypervisor.Bytes
	longest time.Duration
}

// link is one direction of a host's card, or of a rack's up-link. The zero value is the shared network.
type link struct {
	rack bool
	name string
	out  bool
}

// Move lets bytes move between two hosts. One that is not known is no bottleneck.
func (l *lowerBound) Move(source, target *store.Host, b hypervisor.Bytes) {
	if source == nil || target == nil {
		return
	}
	l.cross(link{name: string(source.Host.Name), out: true}, b, source.Host.Link)
	l.cross(link{name: string(target.Host.Name)}, b, target.Host.Link)
	from, uplink := rackOf(source)
	to, downlink := rackOf(target)
	if from != to {
		l.cross(link{rack: true, name: from, out: true}, b, uplink)
		l.cross(link{rack: true, name: to}, b, downlink)
	}
	l.cross(link{}, b, l.network)
}

// rackOf returns the rack of a host, and the speed of its up-link; "" is none.
func rackOf(h *store.Host) (string, hypervisor.Bandwidth) {
	if h.Facts == nil || h.Facts.Rack == "" {
		return "", 0
	}
	return h.Facts.Rack, h.Facts.Uplink
}

// cross lets bytes cross a link with a speed. One without a speed is no bottleneck.
func (l *lowerBound) cross(over link, b hypervisor.Bytes, speed hypervisor.Bandwidth) {
	if speed <= 0 {
		return
	}
	if l.crossed == nil {
		l.crossed = map[link]hypervisor.Bytes{}
	}
	l.crossed[over] += b
	l.longest = max(l.longest, l.crossed[over].At(speed))
}

// Least returns how long all of it takes at least.
func (l *lowerBound) Least() time.Duration { return l.longest }

// Quantile returns the smallest of the sorted values that at least a share q of them do
// not exceed; of none it is 0.
func Quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[max(0, min(at, len(sorted)-1))]
}
