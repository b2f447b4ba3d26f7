package importer

import (
	"bytes"
	"cmp"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// rows calls do for each line of a file, until it returns false or there is a problem too
// many. Empty lines are left out.
func (c *collector) rows(path string, do func(f *lines, text []byte) bool) error {
	f, err := open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	c.File = path
	for !c.Full() {
		text, more, err := f.next()
		if err != nil || !more {
			return err
		}
		if len(text) > 0 && !do(f, text) {
			return nil
		}
	}
	return nil
}

// decimal reads a number of a field.
func (c *collector) decimal(line int, field, text string) float64 {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		c.Errorf(line, field, "needs a number, has %q", text)
		return 0
	}
	return v
}

// whole reads a number of a field that may be written with decimals, and bounds it: what is
// larger is refused later.
func (c *collector) whole(line int, field, text string) int64 {
	v := c.decimal(line, field, text)
	if !(v >= -latest && v <= 2*latest) {
		c.Errorf(line, field, "%q is no number that it could be", text)
		return 0
	}
	return int64(v)
}

// The columns of Bitbrains that are read.
const (
	bitTime = iota
	bitCores
	_
	_
	bitLoad
	bitMemory
	bitFields
)

// readBitbrains reads one file for each VM.
func readBitbrains(path string, files []string, o TraceOptions) (*Trace, error) {
	c := newCollector(path, o, milliseconds) // so says the header
	for _, file := range files {
		if c.enough() {
			break
		}
		var s *series
		err := c.rows(file, func(f *lines, text []byte) bool {
			fields := strings.Split(string(text), ";")
			if f.line == 1 && bytes.Contains(text, []byte("CPU usage")) {
				return true
			}
			if len(fields) < bitFields {
				c.Errorf(f.line, "", "%s", f.short(bitFields, len(fields)))
				return true
			}
			if s == nil {
				s = c.add(f.line, TraceVM{ID: nameOf(f.name),
					CPUs: int(max(1, c.whole(f.line, "CPU cores", fields[bitCores]))),
					Memory: hypervisor.Bytes(c.whole(f.line, "Memory capacity",
						fields[bitMemory])) * hypervisor.KiB})
			}
			if s == nil {
				return false
			}
			c.sample(f.line, s, c.whole(f.line, "Timestamp", fields[bitTime]),
				c.decimal(f.line, "CPU usage", fields[bitLoad])/100)
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	c.File = path
	return c.trace("Bitbrains")
}

// nameOf returns a file's name without its folder and the endings that say what it is: a point
// may be part of a name.
func nameOf(path string) string {
	base := filepath.Base(path)
	return cmp.Or(strings.TrimSuffix(strings.TrimSuffix(base, ".gz"), ".csv"), base)
}

// planetLabStep is how many seconds are between the samples of PlanetLab.
const planetLabStep = 300

// readPlanetLab reads one file for each VM, with one percentage a line.
func readPlanetLab(path string, files []string, o TraceOptions) (*Trace, error) {
	c := newCollector(path, o, seconds)
	for _, file := range files {
		s := c.add(0, TraceVM{ID: filepath.Base(file), CPUs: 1})
		if s == nil {
			break
		}
		n := int64(0)
		err := c.rows(file, func(f *lines, text []byte) bool {
			c.sample(f.line, s, n*planetLabStep, c.decimal(f.line, "load", string(text))/100)
			n++
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	c.File = path
	return c.trace("PlanetLab")
}

// readPlanetLabTable reads a file with one VM a line.
func readPlanetLabTable(path string, o TraceOptions) (*Trace, error) {
	c := newCollector(path, o, seconds)
	var times []int64
	err := c.rows(path, func(f *lines, text []byte) bool {
		fields := strings.Split(string(text), ",")
		if times == nil {
			times = c.header(fields)
			return true
		}
		if len(fields) != len(times)+1 {
			c.Errorf(f.line, "", "%s", f.short(len(times)+1, len(fields)))
			return true
		}
		s := c.add(f.line, TraceVM{ID: fields[0], CPUs: 1})
		for i := 0; s != nil && i < len(times); i++ {
			if fields[i+1] != "" { // a gap
				c.sample(f.line, s, times[i], c.decimal(f.line, "load", fields[i+1])/100)
			}
		}
		return !c.enough()
	})
	if err != nil {
		return nil, err
	}
	return c.trace("PlanetLab")
}

// header reads the times of a table: t0, t300, …
func (c *collector) header(fields []string) []int64 {
	times := make([]int64, 0, len(fields))
	for _, field := range fields[1:] {
		times = append(times, c.whole(1, field, strings.TrimPrefix(field, "t")))
	}
	return times
}

// The columns of Azure's tables that are read.
const (
	azureID = iota
	_
	_
	azureCreated
	azureDeleted
	_
	_
	_
	_
	azureCores
	azureMemory
	azureTableFields

	azureReadingFields = 5
)

// readAzure reads the VMs that exist when the part of the trace that is used begins, and
// their readings, which are in the order of time: a file is read to the end of that part.
func readAzure(path, table string, readings []string, o TraceOptions) (*Trace, error) {
	c := newCollector(path, o, seconds)
	if err := c.rows(table, c.azureVM); err != nil {
		return nil, err
	}
	if len(readings) == 0 {
		c.Errorf(0, "", "there are no readings beside it: vm_cpu_readings-file-1-of-125.csv")
	}
	for _, file := range readings {
		if err := c.rows(file, c.azureReading); err != nil {
			return nil, err
		}
	}
	c.File = path
	return c.trace("Azure")
}

func (c *collector) azureVM(f *lines, text []byte) bool {
	fields := strings.Split(string(text), ",")
	if len(fields) < azureTableFields {
		c.Errorf(f.line, "", "%s", f.short(azureTableFields, len(fields)))
		return true
	}
	if !number(fields[azureCreated]) && f.line == 1 { // a header
		return true
	}
	from := int64(c.options.From.Seconds())
	created := c.whole(f.line, "created", fields[azureCreated])
	deleted := c.whole(f.line, "deleted", fields[azureDeleted])
	if created > deleted {
		c.Errorf(f.line, "deleted", "it is deleted at %d, before it was created at %d", deleted,
			created)
	}
	if created > from || deleted <= from {
		return true
	}
	// V2 has sizes in buckets, the largest of them open: ">24".
	cores := c.whole(f.line, "cores", strings.TrimPrefix(fields[azureCores], ">"))
	memory := c.decimal(f.line, "memory", strings.TrimPrefix(fields[azureMemory], ">"))
	if !(memory >= 0 && memory <= mostMemory>>30) {
		c.Errorf(f.line, "memory", "needs GB, has %q", fields[azureMemory])
		return true
	}
	c.add(f.line, TraceVM{ID: fields[azureID], CPUs: int(min(cores, traceMostCPUs+1)),
		Memory: hypervisor.Bytes(memory * float64(hypervisor.GiB))})
	return !c.enough()
}

// azureReading reads one reading. Most are of VMs that are not read, and cost little.
func (c *collector) azureReading(f *lines, text []byte) bool {
	if n := bytes.Count(text, []byte{','}) + 1; n < azureReadingFields {
		c.Errorf(f.line, "", "%s", f.short(azureReadingFields, n))
		return true
	}
	at, rest, _ := bytes.Cut(text, []byte{','})
	id, rest, _ := bytes.Cut(rest, []byte{','})
	s := c.vms[string(id)]
	if s == nil {
		return true
	}
	loads := strings.Split(string(rest), ",")
	time := c.whole(f.line, "timestamp", string(at))
	c.sample(f.line, s, time, c.decimal(f.line, "avg cpu", loads[2])/100)
	return !c.beyond(time)
}
