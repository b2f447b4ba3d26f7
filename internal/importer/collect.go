package importer

import (
	"cmp"
	"math"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/yamldoc"
)

// A collector puts a trace together from samples, which come VM by VM or time by time.
type collector struct {
	yamldoc.Report
	options  TraceOptions
	declared unit // of times, as the format says
	vms      map[string]*series
	order    []*series
	points   int
	busiest  float64
	samples  int
	strange  unit // the unit that times turned out to have; 0: not known yet
	seamless bool // samples last until the next one: there are no gaps
}

// A series is what is known of one VM.
type series struct {
	vm    TraceVM
	times []int64 // in the trace's unit
	loads []float32
	last  int64 // time of the sample before
	step  int64 // between the first two
	seen  bool
}

// A unit is how many nanoseconds a time of a trace stands for.
type unit int64

const (
	microseconds = unit(time.Microsecond)
	milliseconds = unit(time.Millisecond)
	seconds      = unit(time.Second)
)

func (u unit) String() string {
	switch u {
	case seconds:
		return "seconds"
	case milliseconds:
		return "milliseconds"
	}
	return "microseconds"
}

// The limits of plausible VMs and times.
const (
	traceMostCPUs = 1 << 16

	latest      = 1 << 53 // a time, in whatever unit
	longestStep = 6 * 3600
)

func newCollector(file string, o TraceOptions, declared unit) *collector {
	o.VMs = min(cmp.Or(o.VMs, defaultVMs), MaxVMs)
	o.Memory = cmp.Or(o.Memory, defaultMemory)
	return &collector{Report: yamldoc.Report{File: file}, options: o, declared: declared,
		vms: map[string]*series{}}
}

// enough reports whether further VMs are left out.
func (c *collector) enough() bool { return len(c.order) >= c.options.VMs }

// add adds a VM; nil when it is left out. Memory of 0 is not said.
func (c *collector) add(line int, vm TraceVM) *series {
	switch {
	case c.enough():
		return nil
	case c.vms[vm.ID] != nil:
		c.Errorf(line, "vm", "%q is there twice", vm.ID)
		return nil
	case vm.CPUs < 1 || vm.CPUs > traceMostCPUs:
		c.Errorf(line, "CPUs", "needs 1 to %d CPUs, has %d", traceMostCPUs, vm.CPUs)
		return nil
	case vm.Memory < 0 || vm.Memory > mostMemory:
		c.Errorf(line, "memory", "needs an amount of memory up to 1 PiB, has %d bytes", vm.Memory)
		return nil
	case vm.Memory == 0:
		vm.Memory = c.options.Memory
	}
	s := &series{vm: vm}
	c.vms[vm.ID] = s
	c.order = append(c.order, s)
	return s
}

// sample adds the load of a VM from a time on, as a share of its CPUs.
func (c *collector) sample(line int, s *series, at int64, load float64) {
	switch {
	case math.IsNaN(load) || load < 0:
		c.Errorf(line, "load", "needs a load that is not negative, has %v", load)
		return
	case at < 0 || at > latest:
		c.Errorf(line, "time", "%d is no time", at)
		return
	case s.seen && at < s.last:
		c.Errorf(line, "time", "it goes back, from %d to %d: is the file sorted?", s.last, at)
		return
	case s.seen && at == s.last:
		c.Warnf(line, "time", "a second sample of this time is left out")
		return
	}
	if load > 1 {
		c.Warnf(line, "load", "more than 100 %% counts as 100 %%")
		load = 1
	}
	c.busiest = max(c.busiest, load)
	c.samples++
	c.spaced(line, s, at)
	s.last, s.seen = at, true
	c.keep(line, s, at, load)
}

// spaced looks at the time since the sample before.
func (c *collector) spaced(line int, s *series, at int64) {
	switch {
	case !s.seen:
	case s.step == 0:
		s.step = at - s.last
		c.detect(line, s.last, s.step)
	case at-s.last > 3*s.step && !c.seamless:
		c.Warnf(line, "time", "samples are missing before this one; the load is taken to stay")
	}
}

// detect says in which unit times are: seconds since 1970 have ten digits, milliseconds
// thirteen. Times that begin at 0 are told by the time between samples, which is neither
// under a second nor more than six hours.
func (c *collector) detect(line int, at, step int64) {
	if c.strange != 0 {
		return
	}
	c.strange = c.declared
	switch {
	case at > 1e14:
		c.strange = microseconds
	case at > 1e11:
		c.strange = milliseconds
	case at > 1e8:
		c.strange = seconds
	case c.declared == seconds && step > longestStep*1000:
		c.strange = microseconds
	case c.declared == seconds && step > longestStep:
		c.strange = milliseconds
	case c.declared == milliseconds && step < 1000:
		c.strange = seconds
	}
	if c.strange != c.declared {
		c.Warnf(line, "time", "times are said to be in %v, but %d and a step of %d are in %v: "+
			"read so", c.declared, at, step, c.strange)
	}
}

// beyond reports whether a time, in a trace that begins at 0, is after the part of it that is
// used. It is not when the unit is not known yet.
func (c *collector) beyond(at int64) bool {
	return c.strange != 0 && span(max(0, at), c.strange) > c.options.until()
}

// keep remembers a load that differs enough from the one before.
func (c *collector) keep(line int, s *series, at int64, load float64) {
	if n := len(s.loads); n > 0 && math.Abs(load-float64(s.loads[n-1])) < grain {
		return
	}
	if c.points >= maxPoints {
		c.Warnf(line, "", "from here on changes of load are left out: there are more than %d; "+
			"take fewer VMs, or a shorter time", maxPoints)
		return
	}
	c.points++
	s.times, s.loads = append(s.times, at), append(s.loads, float32(load))
}

// trace returns what was collected.
func (c *collector) trace(format string) (*Trace, error) {
	switch {
	case c.Err() != nil:
		return nil, c.Err()
	case len(c.order) == 0:
		c.Errorf(0, "", "there are no VMs")
		return nil, c.Err()
	case c.samples == 0:
		c.Errorf(0, "", "there are no samples of the %d VMs that are read", len(c.order))
		return nil, c.Err()
	case c.samples >= 20 && c.busiest > 0 && c.busiest <= 0.01:
		c.Warnf(0, "load", "no load is above 1 %%: are they shares rather than percentages?")
	}
	u := cmp.Or(c.strange, c.declared)
	start := int64(math.MaxInt64)
	for _, s := range c.order {
		if len(s.times) > 0 {
			start = min(start, s.times[0])
		}
	}
	t := &Trace{Format: format}
	for _, s := range c.order {
		points := make([]TracePoint, len(s.times))
		for i, at := range s.times {
			points[i] = TracePoint{span(at-start, u), float64(s.loads[i])}
		}
		s.times, s.loads = nil, nil
		if span(s.last-start+s.step, u) >= c.options.From { // the last sample holds for a step
			s.vm.Load = c.options.cut(points)
		}
		if len(s.vm.Load) > 0 {
			t.VMs = append(t.VMs, s.vm)
		} else {
			c.Warnf(0, "vm", "those without a sample in the time that is used are left out")
		}
	}
	if len(t.VMs) == 0 {
		c.Errorf(0, "", "no VM has a sample in the time that is used, from %v for %v",
			c.options.From, cmp.Or(c.options.For, defaultFor))
	}
	t.Warnings = c.Warnings()
	return t, c.Err()
}

// span returns n units without overflow.
func span(n int64, u unit) time.Duration {
	if n > math.MaxInt64/int64(u) {
		return hypervisor.Forever
	}
	return time.Duration(n * int64(u))
}
