package predict

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/yamldoc"
)

const (
	// maxRows is how many measurements a file may have.
	maxRows = 100_000
	// mostAmount bounds amounts in MiB and speeds in MiB/s: 1 PiB.
	mostAmount = 1 << 30
	// mostTime bounds times in milliseconds: a month.
	mostTime = 31 * 24 * 3600 * 1000
	// measurementFastest is a speed that no migration reaches, in MiB/s. What seems faster was
	// written in another unit.
	measurementFastest = 1 << 20
)

// A Migration is one that was measured.
type Migration struct {
	Line    int    // in its file
	Label   string // the kind of experiment
	Host    string // its source; "" is not known
	Memory  hypervisor.Bytes
	Filled  hypervisor.Bytes     // of Memory: was ever written
	Hot     hypervisor.Bytes     // of Memory: is written cyclically
	Rate    hypervisor.Bandwidth // of these writes
	Link    hypervisor.Bandwidth // the wire's; 0 is faster than the processors
	Wire    hypervisor.Bandwidth // all of the wire of which Link is a share; 0 is Link
	Options hypervisor.TransferOptions
	// Unthrottled says that auto-converge was allowed and did not slow its guest.
	Unthrottled bool
	// SwitchAfter is when it was told to go on by post-copy; negative is never.
	SwitchAfter time.Duration
	Emulated    bool     // its guest is not run by KVM
	Words       []string // further options, such as tls-x509
	// Completed says that it did. What has not has no times to compare with.
	Completed       bool
	Total, Downtime time.Duration
	NoDowntime      bool // Downtime is not known
}

// has reports whether the measurement was made with a further option.
func (m *Migration) has(option string) bool { return slices.Contains(m.Words, option) }

// Read reads measurements. The name is the file's. An error is [yamldoc.Problems], unless
// r fails.
func Read(name string, r io.Reader) ([]Migration, error) {
	c := csv.NewReader(r)
	c.ReuseRecord = true
	t := &table{Report: yamldoc.Report{File: name}, columns: map[string]int{}}
	header, err := c.Read()
	if err != nil {
		return nil, t.failed(err)
	}
	for i, column := range header {
		t.columns[strings.TrimPrefix(strings.TrimSpace(column), "\ufeff")] = i
	}
	for _, needed := range []string{"ram_mib", "total_ms", "downtime_ms"} {
		if _, found := t.columns[needed]; !found {
			t.Errorf(1, needed, "the column is missing; the first line names the columns")
		}
	}
	if err := t.Err(); err != nil {
		return nil, err
	}
	var all []Migration
	for !t.Full() {
		row, err := c.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, t.failed(err)
		}
		t.row = row
		t.line, _ = c.FieldPos(0)
		if len(all) == maxRows {
			t.Errorf(t.line, "", "there are more than %d measurements", maxRows)
			break
		}
		all = append(all, t.migration())
	}
	if len(all) == 0 {
		t.Errorf(1, "", "there are no measurements below the header")
	}
	return all, t.Err()
}

// A table reads rows by the names of their columns.
type table struct {
	yamldoc.Report
	columns map[string]int
	row     []string
	line    int
}

// failed turns an error of the CSV reader into a problem, unless reading failed.
func (t *table) failed(err error) error {
	parse, is := errors.AsType[*csv.ParseError](err)
	switch {
	case is && errors.Is(err, csv.ErrFieldCount):
		t.Errorf(parse.Line, "", "it has another number of fields than the first line: is the "+
			"file cut off?")
	case is:
		t.Errorf(parse.Line, "", "%v", parse.Err)
	case err == io.EOF:
		t.Errorf(0, "", "it is empty")
	default:
		return fmt.Errorf("%s: %w", t.File, err)
	}
	return t.Err()
}

func (t *table) migration() Migration {
	m := Migration{Line: t.line, Label: t.text("label", ""), Host: t.text("host", ""), Memory: t.size("ram_mib", 0),
		Hot: t.size("ws_mib", 0), Rate: t.speed("rate_nominal_mib_s"), Link: t.speed("link_mib_s"),
		Emulated: t.text("accel", "kvm") == "tcg", Total: t.time("total_ms", 0),
		SwitchAfter: -time.Millisecond}
	if m.Completed = t.text("status", "completed") == "completed"; m.Completed {
		m.Downtime = t.time("downtime_ms", 0)
		m.NoDowntime = t.text("downtime_ms", "") == ""
	}
	m.Filled = t.size("fill_mib", int64(m.Memory/hypervisor.MiB))
	if words := t.text("options", ""); words != "" {
		m.Words = strings.Split(words, "+")
	}
	if t.text("switch_after_ms", "-1") != "-1" {
		m.SwitchAfter = t.time("switch_after_ms", 0)
	}
	m.Options = hypervisor.TransferOptions{Bandwidth: t.speed("cap_mib_s"),
		Downtime:     t.time("downtime_limit_ms", 300),
		AutoConverge: t.number("autoconverge", 0, 1) != 0,
		PostCopy:     t.number("postcopy", 0, 1) != 0,
		Channels:     int(t.number("multifd", 0, 255)),
		Compression:  m.has("compress"), XBZRLE: m.has("xbzrle")}
	m.Unthrottled = m.Options.AutoConverge && t.number("throttle_max", 100, 100) == 0
	t.plausible(&m)
	return m
}

// plausible refuses what cannot have been measured.
func (t *table) plausible(m *Migration) {
	switch {
	case m.Memory <= hypervisor.MiB:
		t.Errorf(t.line, "ram_mib", "a VM has more than 1 MiB, this one %v", m.Memory)
	case m.Filled > m.Memory || m.Hot > m.Memory:
		t.Errorf(t.line, "ram_mib", "fill_mib and ws_mib are parts of it, and more: has %v, %v "+
			"and %v", m.Memory, m.Filled, m.Hot)
	case !m.Completed:
	case m.Total <= 0:
		t.Errorf(t.line, "total_ms", "a migration that completed takes more than 0 ms")
	case m.Downtime > m.Total:
		t.Errorf(t.line, "downtime_ms", "needs at most total_ms, %d, has %d: are both in "+
			"milliseconds?", m.Total.Milliseconds(), m.Downtime.Milliseconds())
	case float64(m.Filled)/m.Total.Seconds() > measurementFastest*float64(hypervisor.MiB):
		t.Errorf(t.line, "total_ms", "%v in %d ms is faster than any memory: is the time in "+
			"milliseconds?", m.Filled, m.Total.Milliseconds())
	}
}

func (t *table) text(column, otherwise string) string {
	i, found := t.columns[column]
	if !found || i >= len(t.row) || t.row[i] == "" {
		return otherwise
	}
	return t.row[i]
}

// number reads a number that is not negative, rounded to a whole one.
func (t *table) number(column string, otherwise, most int64) int64 {
	text := t.text(column, "")
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n <= float64(most)) {
		t.Errorf(t.line, column, "needs a number from 0 to %d, has %q", most, text)
		return otherwise
	}
	return int64(math.Round(n))
}

func (t *table) size(column string, otherwise int64) hypervisor.Bytes {
	return hypervisor.Bytes(t.number(column, otherwise, mostAmount)) * hypervisor.MiB
}

func (t *table) speed(column string) hypervisor.Bandwidth {
	return hypervisor.Bandwidth(t.size(column, 0))
}

func (t *table) time(column string, otherwise int64) time.Duration {
	return time.Duration(t.number(column, otherwise, mostTime)) * time.Millisecond
}
