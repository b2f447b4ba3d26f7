package importer

import (
	"fmt"
	"io"
	"math"
	"os"

	"github.com/parquet-go/parquet-go"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/yamldoc"
)

// maxGroup is how large a row group may be: it bounds the memory that is needed.
const maxGroup = 4 << 30

// readOpenDC reads VMs from tasks, and their loads from fragments, which follow one another
// from a task's submission on. Times are in milliseconds, speeds in MHz of all CPUs together,
// memory in MB; some of the published files have it in KB.
func readOpenDC(path, tasks string, fragments []string, o TraceOptions) (*Trace, error) {
	c := newCollector(path, o, milliseconds)
	c.seamless = true
	if len(fragments) == 0 {
		c.Errorf(0, "", "there is no fragments.parquet beside tasks.parquet")
		return nil, c.Err()
	}
	machines := map[string]*machine{}
	err := c.parquet(tasks, []string{"id", "submission_time", "cpu_count", "cpu_capacity",
		"mem_capacity"}, func(row int, v []parquet.Value) bool {
		m := &machine{next: asInt(v[1]), speed: asFloat(v[3])}
		if !(m.speed > 0) {
			c.Errorf(row, "cpu_capacity", "needs MHz, has %v", v[3])
			return true
		}
		megabytes := asFloat(v[4])
		if !(megabytes >= 0 && megabytes <= mostMemory>>20) {
			c.Errorf(row, "mem_capacity", "needs MB, has %v", v[4])
			return true
		}
		m.series = c.add(row, TraceVM{ID: v[0].String(), CPUs: int(asInt(v[2])),
			Memory: hypervisor.Bytes(megabytes) * hypervisor.MiB})
		if m.series != nil {
			machines[v[0].String()] = m
		}
		return !c.enough()
	})
	if err != nil {
		return nil, err
	}
	c.memoryInKB()
	err = c.parquet(fragments[0], []string{"id", "duration", "cpu_usage"},
		func(row int, v []parquet.Value) bool {
			m := machines[v[0].String()]
			if m == nil {
				return true
			}
			duration := asInt(v[1])
			if duration <= 0 || duration > latest {
				c.Errorf(row, "duration", "needs a time above 0, has %d", duration)
				return true
			}
			c.sample(row, m.series, m.next, asFloat(v[2])/m.speed)
			m.next += duration
			return true
		})
	if err != nil {
		return nil, err
	}
	c.File = path
	return c.trace("OpenDC")
}

// plausibleMemory is more than VMs have for each CPU.
const plausibleMemory = 64 * hypervisor.GiB

// memoryInKB corrects memory that was written in KB, which is told by most VMs having more
// than any has.
func (c *collector) memoryInKB() {
	large := 0
	for _, s := range c.order {
		if s.vm.Memory/hypervisor.Bytes(s.vm.CPUs) > plausibleMemory {
			large++
		}
	}
	if 2*large <= len(c.order) {
		return
	}
	c.Warnf(0, "mem_capacity", "most VMs would have more than %v for each CPU in MB: read as KB",
		plausibleMemory)
	for _, s := range c.order {
		s.vm.Memory = max(hypervisor.MiB, s.vm.Memory/1024)
	}
}

// A machine is a task that is read.
type machine struct {
	*series
	next  int64   // when its next fragment begins
	speed float64 // of all its CPUs, MHz
}

// parquet calls do for the named columns of each row, counted from 1, until it returns false
// or there is a problem too many. The library is not made for damaged files: where it panics,
// the file is a problem.
func (c *collector) parquet(
	path string, columns []string, do func(row int, v []parquet.Value) bool,
) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	at, err := f.Stat()
	if err != nil {
		return err
	}
	c.File = path
	row := 0
	defer func() {
		if cause := recover(); cause != nil {
			err = damaged(path, row+1, cause)
		}
	}()
	table, err := parquet.OpenFile(f, at.Size())
	if err != nil {
		return yamldoc.Problems{{File: path,
			Message: "it is no complete Parquet file; is it cut off? " + err.Error()}}
	}
	indexes, err := c.indexes(table, columns)
	if err != nil {
		return err
	}
	values := make([]parquet.Value, len(columns))
	for _, group := range table.RowGroups() {
		rows := group.Rows()
		err := each(rows, func(r parquet.Row) bool {
			row++
			if i := pick(r, indexes, values); i >= 0 {
				c.Errorf(row, columns[i], "it is empty")
				return !c.Full()
			}
			return do(row, values) && !c.Full()
		})
		rows.Close()
		if err == errStop {
			return nil
		}
		if err != nil {
			return damaged(path, row+1, err)
		}
	}
	return nil
}

// pick stores the values of columns, and returns the first that is empty, or -1.
func pick(r parquet.Row, indexes []int, values []parquet.Value) int {
	for i, column := range indexes {
		values[i] = parquet.NullValue()
		for _, v := range r {
			if v.Column() == column {
				values[i] = v
			}
		}
		if values[i].IsNull() {
			return i
		}
	}
	return -1
}

func damaged(path string, row int, cause any) error {
	r := yamldoc.Report{File: path}
	r.Errorf(row, "", "from this row on the file is damaged: %v", cause)
	return r.Err()
}

// indexes finds columns by name.
func (c *collector) indexes(table *parquet.File, columns []string) ([]int, error) {
	for _, g := range table.Metadata().RowGroups {
		if g.TotalByteSize > maxGroup {
			c.Errorf(0, "", "a row group has %d GiB; write it with smaller ones",
				g.TotalByteSize>>30)
		}
	}
	indexes := make([]int, len(columns))
	for i, name := range columns {
		leaf, found := table.Schema().Lookup(name)
		if !found || leaf.MaxRepetitionLevel > 0 {
			c.Errorf(0, name, "the column is missing")
			continue
		}
		kind := leaf.Node.Type().Kind()
		numeric := kind == parquet.Int32 || kind == parquet.Int64 || kind == parquet.Float ||
			kind == parquet.Double
		if !numeric && (name != "id" || kind != parquet.ByteArray) {
			c.Errorf(0, name, "the column is of the kind %v", kind)
		}
		indexes[i] = leaf.ColumnIndex
	}
	return indexes, c.Err()
}

// errStop ends the reading of rows early.
var errStop = fmt.Errorf("stop")

// each calls do for each row until it returns false.
func each(rows parquet.Rows, do func(parquet.Row) bool) error {
	buffer := make([]parquet.Row, 256)
	for {
		n, err := rows.ReadRows(buffer)
		for _, r := range buffer[:n] {
			if !do(r) {
				return errStop
			}
		}
		if err == io.EOF || err == nil && n == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// asInt and asFloat read any kind of number.
func asInt(v parquet.Value) int64 {
	f := asFloat(v)
	if !(math.Abs(f) <= 2*latest) {
		return -1
	}
	return int64(f)
}

func asFloat(v parquet.Value) float64 {
	switch v.Kind() {
	case parquet.Int32:
		return float64(v.Int32())
	case parquet.Int64:
		return float64(v.Int64())
	case parquet.Float:
		return float64(v.Float())
	case parquet.Double:
		return v.Double()
	}
	return math.NaN()
}
