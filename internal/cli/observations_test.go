package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/predict"
	"github.com/godwit-vm/godwit/migration"
)

// logged returns a migration as a log has it: 8 GiB over 10 Gbit/s.
func logged(n int, traffic migration.Traffic) audit.Measured {
	began := time.Date(2026, 5, 2, 3, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Minute)
	return audit.Measured{VM: "default/v", Source: "n1", Target: "n2", Memory: 8 * hypervisor.GiB,
		Sent: 8 * hypervisor.GiB, Link: 10 * hypervisor.Gbit,
		Options: migration.Options{Traffic: traffic}, Began: began, Ended: began.Add(time.Duration(20+n%3) * time.Second),
		Downtime: 40 * time.Millisecond}
}

// A log of hosts that encrypt is read: what was encrypted is not fitted to, and how far the model is off it
// is learned.
func TestALogOfHostsThatEncryptIsFitted(t *testing.T) {
	var moves []audit.Measured
	for i := range 4 {
		moves = append(moves, logged(2*i, migration.TrafficEncrypted), logged(2*i+1, migration.TrafficAsConfigured))
	}
	var o observer
	if err := o.log("godwit.log", moves); err != nil {
		t.Fatal(err)
	}
	r, err := predict.Fit(o.all, fake.QEMU())
	if err != nil {
		t.Fatal(err)
	}
	const many = "tls over more than 2 connections"
	if r.Fitted != 4 || r.Errors.Measured(many) != 4 || r.Before.All.Count != 4 {
		t.Errorf("fitted to %d, %d encrypted, %+v", r.Fitted, r.Errors.Measured(many), r.Before)
	}
}

// A log in which all is encrypted leaves the model as it is, and its ranges are learned.
func TestALogInWhichAllIsEncryptedIsJudged(t *testing.T) {
	o := observer{connections: 1}
	if err := o.log("godwit.log", []audit.Measured{logged(0, migration.TrafficEncrypted),
		logged(1, migration.TrafficEncrypted)}); err != nil {
		t.Fatal(err)
	}
	r, err := predict.Fit(o.all, fake.QEMU())
	if err != nil {
		t.Fatal(err)
	}
	if r.Fitted != 0 || r.Model != fake.QEMU() || r.Refused != "" || r.Errors.Measured("tls") != 2 || r.Before.All.Count != 2 {
		t.Errorf("%+v", r)
	}
	var b strings.Builder
	if err := table(&b, r, 2); err != nil || !strings.Contains(b.String(), "not fitted: no parameter says") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// The connections of a migration are those that its source took. A file that does not say it has as many as is
// usual, unless --connections says it.
func TestConnectionsAreThoseOfTheSource(t *testing.T) {
	old, postcopy := logged(1, migration.TrafficAsConfigured), logged(2, migration.TrafficAsConfigured)
	old.Abilities = fake.Abilities &^ hypervisor.CanLoseChannels
	postcopy.Options.AllowPostCopy = true
	moves := []audit.Measured{logged(0, migration.TrafficAsConfigured), old, postcopy}
	channels := func(o observer, path string) (all []int) {
		t.Helper()
		var err error
		if path == "" {
			err = o.log("godwit.log", moves)
		} else {
			err = o.open(path)
			o.countOnce()
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range o.all {
			all = append(all, o.all[i].Options.Channels)
		}
		return all
	}
	virsh, kubevirt, nova := written(t, virshJob), written(t, kubevirtAnswer), written(t, novaAnswers)
	for _, tt := range []struct {
		what string
		got  []int
		want []int
	}{{"a log", channels(observer{}, ""), []int{8, 0, 0}},
		{"a log, of agents with four", channels(observer{connections: 4}, ""), []int{4, 0, 0}},
		{"KubeVirt", channels(observer{}, kubevirt), []int{8}},
		{"KubeVirt with one", channels(observer{connections: 1}, kubevirt), []int{0}},
		{"virsh", channels(observer{}, virsh), []int{0}},
		{"virsh with two", channels(observer{connections: 2}, virsh), []int{2}},
		{"Nova", channels(observer{}, nova), []int{0}},
		{"Nova with three", channels(observer{connections: 3}, nova), []int{3}}} {
		if !slices.Equal(tt.got, tt.want) {
			t.Errorf("%s: %v connections, want %v", tt.what, tt.got, tt.want)
		}
	}
}

// A log whose agents did not know their links takes --link, and without it says that they are not known; and
// where a log knows them, --link does not count.
func TestAnUnknownLinkIsNotFast(t *testing.T) {
	unknown := logged(0, migration.TrafficAsConfigured)
	unknown.Link = 0
	for _, tt := range []struct {
		link  hypervisor.Bandwidth
		want  []hypervisor.Bandwidth
		notes []string
	}{
		{25 * hypervisor.Gbit, []hypervisor.Bandwidth{25 * hypervisor.Gbit, 10 * hypervisor.Gbit}, nil},
		{0, []hypervisor.Bandwidth{0, 10 * hypervisor.Gbit}, []string{"godwit.log: the speed of the links of 1 migration " +
			"is not known: they are taken for faster than the processors; say it with --link"}},
	} {
		o := observer{link: tt.link}
		if err := o.log("godwit.log", []audit.Measured{unknown, logged(1, migration.TrafficAsConfigured)}); err != nil {
			t.Fatal(err)
		}
		if got := []hypervisor.Bandwidth{o.all[0].Link, o.all[1].Link}; !slices.Equal(got, tt.want) ||
			!slices.Equal(o.notes, tt.notes) {
			t.Errorf("%v, %q, want %v, %q", got, o.notes, tt.want, tt.notes)
		}
	}
	o := observer{}
	err := o.open(written(t, virshJob))
	if o.countOnce(); err != nil || len(o.notes) != 1 || !strings.Contains(o.notes[0], "--link") {
		t.Errorf("%v, %q", err, o.notes)
	}
}

// What was left out is told.
func TestWhatIsLeftOutIsCounted(t *testing.T) {
	o := observer{link: hypervisor.Gbit}
	if err := o.open(written(t, virshJob+"Job type: None\n")); err != nil || len(o.jobs) != 1 || len(o.notes) != 1 ||
		!strings.Contains(o.notes[0], "1 of 2 migrations cannot be used: needs migrations by pre-copy") {
		t.Errorf("%v, %q", err, o.notes)
	}
	slowed := logged(1, migration.TrafficAsConfigured)
	slowed.Brownout.Percent = 20
	o = observer{}
	if err := o.log("godwit.log", []audit.Measured{logged(0, migration.TrafficAsConfigured), slowed}); err != nil ||
		len(o.all) != 1 || len(o.notes) != 1 || !strings.Contains(o.notes[0], "1 of 2 migrations are left out") {
		t.Errorf("%v, %q", err, o.notes)
	}
}

// What both hosts tell in their files counts once.
func TestFilesOfBothHostsCountAMigrationOnce(t *testing.T) {
	source := virshJob + "Constant pages: 7\nNormal pages: 1048576\n"
	f := flags{link: "10Gbit/s"}
	all, notes, err := f.measurements([]string{written(t, source),
		written(t, strings.Replace(source, "Outgoing", "Incoming", 1))})
	if err != nil || len(all) != 1 || len(notes) != 1 ||
		notes[0] != "virsh domjobinfo: source and target tell of 1 migration: each counts once" {
		t.Errorf("%v, %+v, %q", err, all, notes)
	}
}

// One migration in the words of each format.
const (
	virshJob = "Job type: Completed\nOperation: Outgoing migration\nTime elapsed: 2000 ms\n" +
		"Memory processed: 4.000 GiB\nMemory total: 4.000 GiB\nTotal downtime: 30 ms\n"
	kubevirtAnswer = `{"status":"success","data":{"resultType":"matrix","result":[
{"metric":{"__name__":"kubevirt_vmi_migration_data_processed_bytes","namespace":"a","name":"b"},"values":[[1800000050,"4e9"]]},
{"metric":{"__name__":"kubevirt_vmi_migration_data_total_bytes","namespace":"a","name":"b"},"values":[[1800000050,"4e9"]]},
{"metric":{"__name__":"kubevirt_vmi_migration_start_time_seconds","namespace":"a","name":"b"},"values":[[1800000064,"1800000000"]]},
{"metric":{"__name__":"kubevirt_vmi_migration_end_time_seconds","namespace":"a","name":"b"},"values":[[1800000064,"1800000060"]]}]}}
`
	novaAnswers = `{"migrations":[{"id":1,"server_uuid":"x","created_at":"2026-03-01T12:00:00","updated_at":"2026-03-01T12:00:10",
"memory_total_bytes":4000000000,"memory_processed_bytes":1000000000,"memory_remaining_bytes":3000000000}]}
{"migrations":[{"id":1,"server_uuid":"x","created_at":"2026-03-01T12:00:00","updated_at":"2026-03-01T12:00:40",
"memory_total_bytes":4000000000,"memory_processed_bytes":4000000000,"memory_remaining_bytes":0}]}
`
)

// written returns a file with a text.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "measured")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
