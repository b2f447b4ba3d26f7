package placement

// What the tests in package placement_test see of the inside.

type Shortage = shortage

// Added is added.
func (s shortage) Added(host *Host) Host { return s.added(host) }

// Satisfied is satisfied.
func (w *Want) Satisfied(all []*Aggregate) bool { return w.satisfied(all) }

// Plus is plus.
func (d Devices) Plus(class string, n int) Devices { return d.plus(class, n) }

// Binds is binds.
func (r *GroupRule) Binds() bool { return r.binds() }

// Histogram counts the hosts that cannot take vm, by check.
func (x *Index) Histogram(vm *VM, o Options) []Count {
	return CountRefusals(x.filters, vm, x.tree.hosts, x.strict(o))
}

var (
	Admits         = admits
	Best           = bestOf
	FilterNames    = filterNames
	Fit            = fit
	FitsTopology   = fitsTopology
	Free           = free
	MatchAggregate = matchAggregate
	Normalise      = normalise
	ParseWant      = parseWant
	QuotaText      = quotaText
	Take           = take
)
