package inventory

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/internal/yamldoc"
)

// workloadColumns are the columns that a file of workloads may have besides the VM's name, as the
// fields of a VM in godwit's own files.
var workloadColumns = []string{"class", "dirty", "workingSet", "coldDirty"}

// LayWorkloads lays measured workloads over the VMs of a fleet, wherever that comes from. The file
// is CSV, and its first line names the columns: vm, and some of class, dirty, workingSet and
// coldDirty.
//
//	vm,dirty,workingSet
//	prod/db,180MiB/s,6GiB
//	"web-[1-20]",15MiB/s,
//
// A VM is named as "namespace/name", or by its name alone where one VM only has it; a name may have
// ranges, as in a fleet. A class replaces the VM's workload, the other columns replace what they
// name, and an empty field leaves it. Lines that begin with # are comments.
//
// A line that cannot be read, a VM that is named twice, and a working set larger than the VM's
// memory are problems, each with file, line and field, and the fleet is then unchanged. A name that
// no VM has, and VMs that no line names, are warnings of the fleet.
func (f *Fleet) LayWorkloads(file string, r io.Reader) error {
	l := overlay{fleet: f, file: file, byName: map[string][]int{}, line: map[int]int{},
		laid: map[int]fake.Workload{}}
	for i := range f.VMs {
		id := string(f.VMs[i].ID)
		l.byName[id] = append(l.byName[id], i)
		if _, name, has := strings.Cut(id, "/"); has {
			l.byName[name] = append(l.byName[name], i)
		}
	}
	l.read(r)
	if len(l.problems) > 0 {
		return l.problems
	}
	for i, w := range l.laid {
		f.VMs[i].Workload = w
	}
	f.Warnings = append(f.Warnings, l.warnings...)
	l.silent()
	return nil
}

// An overlay is a file of workloads that is being read.
type overlay struct {
	fleet    *Fleet
	file     string
	byName   map[string][]int // VMs, by both of their names
	line     map[int]int      // of each VM that was named
	laid     map[int]fake.Workload
	problems Problems
	warnings []Problem
}

// wrong adds a problem.
func (l *overlay) wrong(line int, field, format string, args ...any) {
	if len(l.problems) < yamldoc.MaxProblems {
		l.problems = append(l.problems, Problem{File: l.file, Line: line, Field: field,
			Message: fmt.Sprintf(format, args...)})
	}
}

// read reads the file.
func (l *overlay) read(r io.Reader) {
	c := csv.NewReader(r)
	c.Comment, c.TrimLeadingSpace, c.FieldsPerRecord = '#', true, -1
	header, err := c.Read()
	if errors.Is(err, io.EOF) {
		l.wrong(1, "", "the file is empty: its first line names the columns: vm,dirty")
		return
	}
	columns := l.columns(header, err)
	if len(l.problems) > 0 {
		return
	}
	for {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			l.unreadable(err)
			return
		}
		line, _ := c.FieldPos(0)
		if len(row) != len(columns) {
			l.wrong(line, "", "the line has %s, and the first line names %d",
				humanize.Count(len(row), "field"), len(columns))
			continue
		}
		fields := map[string]string{}
		for i, name := range columns {
			fields[name] = strings.TrimSpace(row[i])
		}
		l.row(line, fields)
	}
}

// unreadable adds the problem of a line that is no CSV.
func (l *overlay) unreadable(err error) {
	if p, is := errors.AsType[*csv.ParseError](err); is {
		l.wrong(p.Line, "", "%v, at column %d", p.Err, p.Column)
		return
	}
	l.wrong(0, "", "%v", err)
}

// columns checks the first line.
func (l *overlay) columns(header []string, err error) []string {
	if err != nil {
		l.unreadable(err)
		return nil
	}
	for i, name := range header {
		name = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
		header[i] = name
		switch {
		case slices.Contains(header[:i], name):
			l.wrong(1, name, "the column is there twice")
		case name != "vm" && !slices.Contains(workloadColumns, name):
			l.wrong(1, name, "there is no such column; the first line names vm, and some of %s",
				strings.Join(workloadColumns, ", "))
		}
	}
	if !slices.Contains(header, "vm") {
		l.wrong(1, "vm", "the column is missing: it names the VMs")
	}
	return header
}

// row reads one line.
func (l *overlay) row(line int, fields map[string]string) {
	names, err := ExpandNames(fields["vm"], MaxNames)
	switch {
	case fields["vm"] == "":
		l.wrong(line, "vm", "the name is missing")
		return
	case err != nil:
		l.wrong(line, "vm", "%v", err)
		return
	}
	b := newSpecBuilder(l.file, nil)
	load := b.load(path{}, LoadSpec{Class: fields["class"], Dirty: fields["dirty"],
		WorkingSet: fields["workingSet"], ColdDirty: fields["coldDirty"]})
	if problems, are := errors.AsType[Problems](b.Err()); are {
		for _, p := range problems {
			l.wrong(line, strings.TrimPrefix(p.Field, "."), "%s", p.Message)
		}
		return
	}
	for _, name := range names {
		if i, found := l.find(line, name); found {
			l.lay(line, i, load, fields)
		}
	}
}

// find returns the VM of a name.
func (l *overlay) find(line int, name string) (at int, found bool) {
	switch all := l.byName[name]; {
	case len(all) == 0:
		if len(l.warnings) < yamldoc.MaxProblems {
			l.warnings = append(l.warnings, Problem{File: l.file, Line: line, Field: "vm",
				Message: fmt.Sprintf("the fleet has no VM %q: the line is left out", name)})
		}
		return 0, false
	case len(all) > 1:
		ids := make([]hypervisor.VMID, len(all))
		for i, vm := range all {
			ids[i] = l.fleet.VMs[vm].ID
		}
		l.wrong(line, "vm", "%q is the name of several: write one of %s", name, humanize.List(ids))
		return 0, false
	default:
		at = all[0]
	}
	if before, twice := l.line[at]; twice {
		l.wrong(line, "vm", "%s is in line %d, too", l.fleet.VMs[at].ID, before)
		return 0, false
	}
	l.line[at] = line
	return at, true
}

// lay gives a VM the workload of a line.
func (l *overlay) lay(line, at int, load Load, fields map[string]string) {
	v := &l.fleet.VMs[at]
	if load.WorkingSet > v.Memory {
		set, memory := hypervisor.Apart(load.WorkingSet, v.Memory)
		l.wrong(line, "workingSet", "%s is more than the memory of %s, %s", set, v.ID, memory)
		return
	}
	w := v.Workload
	if load.Class != "" {
		w, _ = Class(load.Class, v.Memory)
	}
	if fields["dirty"] != "" {
		w.Rate = load.Dirty
	}
	if fields["coldDirty"] != "" {
		w.ColdRate = load.ColdDirty
	}
	if load.WorkingSet > 0 {
		w.Hot = load.WorkingSet
		w.Cold = max(0, v.Memory-w.Hot-share(v.Memory, w.Zero))
	}
	if w.Rate > 0 && w.Hot == 0 {
		w.Hot, w.Cold = v.Memory, 0 // as of a VM with a rate alone
	}
	l.laid[at] = w
}

// silent warns of VMs that no line names.
func (l *overlay) silent() {
	var ids []hypervisor.VMID
	for i := range l.fleet.VMs {
		if _, named := l.line[i]; !named {
			ids = append(ids, l.fleet.VMs[i].ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	l.fleet.Warnings = append(l.fleet.Warnings, Problem{File: l.file, Message: fmt.Sprintf(
		"%d of %s have no line, and the workload that the fleet gives them: %s", len(ids),
		humanize.Count(len(l.fleet.VMs), "VM"), humanize.List(ids))})
}
