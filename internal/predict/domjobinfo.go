package predict

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/yamldoc"
)

// IsDomJobInfo reports whether a file begins as the output of virsh domjobinfo does.
func IsDomJobInfo(head string) bool {
	for line := range strings.Lines(head) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return strings.HasPrefix(line, "Job type:")
		}
	}
	return false
}

// ReadDomJobInfo reads outputs of virsh domjobinfo --completed, one after the other. It tells how
// many of them are no migrations by pre-copy that have completed, or were slowed by auto-converge.
// Local disks that were copied count as memory, as in a plan. Neither the cap nor the link is in them.
// Both hosts of a migration tell of it: see [CountOnce]. An error is [yamldoc.Problems], unless r fails.
// Source: libvirt 9.0 tools/virsh-domain.c (cmdDomjobinfo).
func ReadDomJobInfo(name string, r io.Reader) (all []Observation, skipped int, err error) {
	d := &jobs{Report: yamldoc.Report{File: name}}
	s := bufio.NewScanner(r)
	for line := 1; s.Scan() && !d.Full(); line++ {
		text := strings.TrimSpace(s.Text())
		field, value, is := strings.Cut(text, ":")
		switch value = strings.TrimSpace(value); {
		case text == "" || strings.HasPrefix(text, "#"):
		case !is:
			d.Errorf(line, "", "it is no line of virsh domjobinfo: needs a name, a colon and a value")
		case field == "Job type":
			d.finish()
			d.job = &virshJob{line: line, kind: value, fields: map[string]string{}}
		case d.job == nil:
			d.Errorf(line, field, "no line with Job type comes before it")
		default:
			d.job.fields[field] = value
		}
	}
	if err := s.Err(); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", name, err)
	}
	d.finish()
	return d.all, d.skipped, d.Err()
}

// jobs reads jobs, one after the other.
type jobs struct {
	yamldoc.Report
	job     *virshJob // that is being read
	all     []Observation
	skipped int
}

type virshJob struct {
	line   int
	kind   string
	fields map[string]string
}

// finish takes in the job that was read.
func (d *jobs) finish() {
	j := d.job
	d.job = nil
	if j == nil {
		return
	}
	if !strings.HasPrefix(j.kind, "Completed") || !strings.Contains(j.fields["Operation"], "migration") ||
		j.some("Postcopy requests") || j.some("Auto converge throttle") {
		d.skipped++
		return
	}
	o := Observation{Line: j.line, Host: d.File, Memory: d.bytes(j, "Memory total"),
		Sent:     d.bytes(j, "Memory processed"),
		Total:    d.milliseconds(j, "Time elapsed"),
		Downtime: d.milliseconds(j, "Total downtime"),
		Incoming: strings.HasPrefix(j.fields["Operation"], "Incoming"), Told: j.told()}
	if constant := j.fields["Constant pages"]; constant != "" {
		page := hypervisor.Bytes(hypervisor.PageSize)
		if j.fields["Page size"] != "" {
			page = hypervisor.Bytes(d.number(j, "Page size", "bytes"))
		}
		zeros := hypervisor.Bytes(d.number(j, "Constant pages", "")) * page
		o.Filled = max(hypervisor.PageSize, o.Memory-min(o.Memory, zeros))
	}
	d.disks(j, &o)
	if o.Memory <= hypervisor.MiB || o.Total <= 0 {
		d.Errorf(j.line, "", "a migration has Memory total of more than 1 MiB and Time elapsed of more than 0 ms")
		return
	}
	d.all = append(d.all, o)
}

// disks adds the local disks that were copied.
func (d *jobs) disks(j *virshJob, o *Observation) {
	if j.fields["File total"] == "" {
		return
	}
	total, processed := d.bytes(j, "File total"), d.bytes(j, "File processed")
	o.Memory, o.Sent = o.Memory+total, o.Sent+processed
	if o.Filled > 0 {
		o.Filled += min(total, processed)
	}
}

// some reports whether a number is there and not 0.
func (j *virshJob) some(field string) bool { return j.fields[field] != "" && j.fields[field] != "0" }

// told is what both hosts of a migration tell alike: the target has its statistics from the source. Sizes are
// rounded, so it needs the numbers of pages.
// Source: libvirt 9.0 src/qemu/qemu_migration_cookie.c (qemuMigrationCookieStatisticsXMLFormat).
func (j *virshJob) told() string {
	if !j.some("Normal pages") {
		return ""
	}
	var words []string
	for _, field := range []string{"Memory total", "Memory processed", "Constant pages", "Normal pages"} {
		words = append(words, j.fields[field])
	}
	return strings.Join(words, ", ")
}

// units are those in which virsh writes sizes.
var units = map[string]float64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
	"TiB": 1 << 40, "PiB": 1 << 50}

func (d *jobs) bytes(j *virshJob, field string) hypervisor.Bytes {
	number, unit, _ := strings.Cut(j.fields[field], " ")
	x, err := strconv.ParseFloat(number, 64)
	factor, known := units[strings.TrimSpace(unit)]
	if err != nil || !known || !(x >= 0 && x*factor < 1<<60) {
		d.Errorf(j.line, field, "needs a size, as 1.012 GiB, has %q", j.fields[field])
		return 0
	}
	return hypervisor.Bytes(math.Round(x * factor))
}

func (d *jobs) milliseconds(j *virshJob, field string) time.Duration {
	return time.Duration(d.number(j, field, "ms")) * time.Millisecond
}

func (d *jobs) number(j *virshJob, field, unit string) int64 {
	number, of, _ := strings.Cut(j.fields[field], " ")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > mostTime && unit == "ms" || strings.TrimSpace(of) != unit {
		d.Errorf(j.line, field, "needs a number of %s, has %q", unit, j.fields[field])
		return 0
	}
	return n
}
