package whatif

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/predict"
	"github.com/godwit-vm/godwit/plan"
)

// Classes of moves that were never measured.
const (
	restarting = "restart"
	// neverEncrypted is encryption together with what it was not measured with.
	neverEncrypted = "encryption with post-copy or auto-converge"
	tooFast        = "faster than 2.2 GB/s"
	ownModel       = "model of your own"
)

// fastestMeasured is the speed above which none of godwit's own measurements is: errors of a model
// file come from other hosts.
const fastestMeasured hypervisor.Bandwidth = 2_200_000_000

// predict gives every move that comes about the distributions of its times, and the drain that of
// its own.
func (d *Forecast) predict(p *Play, run *Run) error {
	x := p.index()
	for _, wave := range d.Waves {
		for i := range wave {
			result := run.Results[wave[i].VM]
			if !result.Done {
				continue
			}
			r, err := p.predict(x, wave[i].Move, result)
			if err != nil {
				return err
			}
			wave[i].Predicted = &r
		}
	}
	var err error
	if run.Empty >= 0 {
		d.EmptyRange, err = p.ranged(run, run.Empty)
	}
	return err
}

// ranged returns the distribution of what takes as long as all moves of a run together allow: its
// moves are taken to be off by the same factor, since they run on the same hosts. That is the
// widest that it can be. It is not below what the links need for every byte once.
func (p *Play) ranged(run *Run, whole time.Duration) (*predict.Range, error) {
	var took, low, mid, high float64
	x := p.index()
	for _, wave := range p.Waves {
		for _, m := range wave {
			result := run.Results[m.VM]
			if !result.Done {
				continue
			}
			r, err := p.predict(x, m, result)
			if err != nil {
				return nil, err
			}
			took += result.Took.Seconds()
			low, mid, high = low+r.Seconds.P10, mid+r.Seconds.P50, high+r.Seconds.P90
		}
	}
	least := min(whole, p.bound()).Seconds()
	at := func(sum float64) float64 {
		if took <= 0 {
			return whole.Seconds()
		}
		return max(least, whole.Seconds()*sum/took)
	}
	return &predict.Range{P10: at(low), P50: at(mid), P90: at(high)}, nil
}

// bound is how long the links need for every byte once.
func (p *Play) bound() time.Duration {
	if slowest := p.links(0); len(slowest) > 0 {
		return time.Duration(slowest[0].Seconds * float64(time.Second))
	}
	return 0
}

// Predict returns the distributions of the times of a move that was played.
func (p *Play) Predict(m plan.Move, result MoveResult) (predict.Prediction, error) {
	return p.predict(p.index(), m, result)
}

func (p *Play) predict(x *index, m plan.Move, result MoveResult) (predict.Prediction, error) {
	errors := p.Scenario.Errors
	if errors == nil {
		var err error
		if errors, err = predict.BuiltInErrors(); err != nil {
			return predict.Prediction{}, err
		}
	}
	wire, bytes := x.wire(m)
	if limit := result.Options.Bandwidth; limit > 0 && (wire == 0 || limit < wire) {
		wire = limit
	}
	least := time.Duration(0)
	if wire > 0 && !p.Stops.restarts(m.VM) {
		least = min(bytes.At(wire), result.Took)
	}
	return errors.Of(p.class(m, result, wire, bytes),
		predict.Times{Total: result.Took, Downtime: result.Downtime}, least), nil
}

// class says which mechanism governs a move, and so with which measurements it compares.
func (p *Play) class(m plan.Move, result MoveResult, wire hypervisor.Bandwidth,
	bytes hypervisor.Bytes) string {
	if p.Stops.restarts(m.VM) {
		return restarting
	}
	if p.Scenario.Errors == nil && !builtIn(p.Scenario.Model) {
		return ownModel
	}
	o := result.Options
	encrypted := p.Scenario.Encryption != fake.Plain || o.Encryption == hypervisor.EncryptRequired
	if encrypted && (result.Brownout.Percent > 0 || result.Mode == hypervisor.PostCopy) {
		return neverEncrypted
	}
	o.Bandwidth = wire // as [predict.Migration.Class] takes it
	o.PostCopy = result.Mode == hypervisor.PostCopy
	o.AutoConverge = result.Brownout.Percent > 0
	if p.Scenario.Errors == nil && result.Took > 0 && bytes.At(fastestMeasured) > result.Took {
		return tooFast
	}
	return predict.Class(o, encrypted, false)
}

// builtIn reports whether migrations cost in a model what the measured ones do in godwit's own.
func builtIn(m fake.Model) bool {
	q := fake.QEMU()
	m.BootTime, m.ShutdownTime = q.BootTime, q.ShutdownTime
	return m == q
}

// An index finds what moves cross and carry.
type index struct {
	links map[hypervisor.HostName]hypervisor.Bandwidth
	least map[hypervisor.VMID]hypervisor.Bytes
}

func (p *Play) index() *index {
	f := p.Scenario.Fleet
	x := &index{make(map[hypervisor.HostName]hypervisor.Bandwidth, len(f.Hosts)),
		make(map[hypervisor.VMID]hypervisor.Bytes, len(f.VMs))}
	for i := range f.Hosts {
		x.links[f.Hosts[i].Name] = f.Hosts[i].Link
	}
	for i := range f.VMs {
		x.least[f.VMs[i].ID] = f.VMs[i].Workload.Least(f.VMs[i].VM)
	}
	return x
}

// wire returns the speed of the slower link of a move, 0 without limit, and what must cross it.
func (x *index) wire(m plan.Move) (hypervisor.Bandwidth, hypervisor.Bytes) {
	from, to := x.links[m.Source], x.links[m.Target]
	if from <= 0 || to > 0 && to < from {
		from = to
	}
	return from, x.least[m.VM]
}
