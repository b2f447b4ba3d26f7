package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// sender is a hypervisor that sends one VM, as it is told.
type sender struct {
	hypervisor.Hypervisor
	p hypervisor.Progress
}

func (s *sender) Migrate(context.Context, hypervisor.Outgoing) error { return nil }

func (s *sender) Adjust(context.Context, hypervisor.JobID, hypervisor.Adjustment) error {
	return nil
}

func (s *sender) Progress(context.Context, hypervisor.JobID) (hypervisor.Progress, error) {
	return s.p, nil
}

func (s *sender) Domain(_ context.Context, vm hypervisor.VMID) (hypervisor.Domain, error) {
	return hypervisor.Domain{VM: hypervisor.VM{ID: vm}, State: hypervisor.Receiving, Job: "in"}, nil
}

func scrape(t *testing.T, s *daemon.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func has(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains("\n"+text, "\n"+w+"\n") {
			var near []string
			name, _, _ := strings.Cut(w, "{")
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, name) {
					near = append(near, line)
				}
			}
			t.Errorf("%s is missing; there is %q", w, near)
		}
	}
}

// TestATransferIsMeasuredWhileItLasts: from what the agent asks anyway; afterwards its
// series are gone, and its downtime is counted.
func TestATransferIsMeasuredWhileItLasts(t *testing.T) {
	now := time.Unix(1000, 0)
	s := &sender{}
	hv := daemon.WatchMetrics(s, "n1", func() time.Time { return now })
	set := daemon.NewMetrics(hv)
	ask := func(p hypervisor.Progress) {
		t.Helper()
		s.p = p
		if _, err := hv.Progress(t.Context(), p.Job); err != nil {
			t.Fatal(err)
		}
	}
	// A target asks, too; that is no transfer.
	if _, err := hv.Domain(t.Context(), "default/other"); err != nil {
		t.Fatal(err)
	}
	ask(hypervisor.Progress{Job: "in", Status: hypervisor.JobActive, Sent: 1})
	err := hv.Migrate(t.Context(), hypervisor.Outgoing{Job: "j", VM: "prod/web",
		Options: hypervisor.TransferOptions{Downtime: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	ask(hypervisor.Progress{Job: "j", Status: hypervisor.JobActive, Total: 3000,
		Disks: 1000, Sent: 1000, Remaining: 3000, DirtyRate: 10, Bandwidth: 100})
	const who = `{name="web",namespace="prod",node="n1"}`
	has(t, scrape(t, set), "godwit_vmi_migration_data_bytes_total"+who+" 4000",
		"godwit_vmi_migration_data_processed_bytes"+who+" 1000",
		"godwit_vmi_migration_data_remaining_bytes"+who+" 3000",
		"godwit_vmi_migration_dirty_memory_rate_bytes"+who+" 10",
		"godwit_vmi_migration_memory_transfer_rate_bytes"+who+" 100",
		"godwit_vmi_migration_eta_seconds"+who+" 33.3") // 30 s, and what is dirtied meanwhile
	if n := strings.Count(scrape(t, set), "\ngodwit_vmi_migration_data_processed_bytes{"); n != 1 {
		t.Errorf("%d transfers are told, want one: the target's is its source's", n)
	}
	// One that does not converge has no end.
	ask(hypervisor.Progress{Job: "j", Status: hypervisor.JobActive, Remaining: 3000, DirtyRate: 200,
		Bandwidth: 100})
	has(t, scrape(t, set), "godwit_vmi_migration_eta_seconds"+who+" +Inf")
	now = now.Add(time.Hour) // its agent is dead
	if text := scrape(t, set); strings.Contains(text, `name="web"`) {
		t.Errorf("there was no look for an hour, and it is told:\n%s", text)
	}
	for range 2 {
		ask(hypervisor.Progress{Job: "j", Status: hypervisor.JobSucceeded, Downtime: 200e6})
	}
	text := scrape(t, set)
	has(t, text, `godwit_vmi_migration_downtime_seconds_count{node="n1"} 1`,
		`godwit_vmi_migration_downtime_seconds_bucket{node="n1",le="0.25"} 1`,
		`godwit_vmi_migration_downtime_seconds_bucket{node="n1",le="0.1"} 0`)
	if strings.Contains(text, `name="web"`) || strings.Contains(text, `name="other"`) {
		t.Errorf("what has ended, or is another's, is told:\n%s", text)
	}
}

func TestLooksAreCounted(t *testing.T) {
	set := daemon.NewMetrics()
	set.Looked("agent", time.Second, nil)
	set.Looked("agent", time.Second, &store.StoreError{Kind: store.Unavailable})
	full := &hypervisor.Error{Kind: hypervisor.NoRoom}
	set.Looked("agent", time.Second, fmt.Errorf("x: %w", full))
	set.Looked("agent", time.Second, errors.New("x"))
	has(t, scrape(t, set), `godwit_reconcile_duration_seconds_count{participant="agent"} 4`,
		`godwit_reconcile_errors_total{kind="store: unavailable",participant="agent"} 1`,
		`godwit_reconcile_errors_total{kind="hypervisor: no room",participant="agent"} 1`,
		`godwit_reconcile_errors_total{kind="other",participant="agent"} 1`)
}

// broken is a store that may be out of reach.
type broken struct {
	*store.Memory
	err error
}

func (b *broken) Changes(ctx context.Context, f store.Feed, r store.Revision) (store.Changes,
	error) {
	if b.err != nil {
		return store.Changes{}, b.err
	}
	return b.Memory.Changes(ctx, f, r)
}

// TestTheClusterIsMeasured: phases are counted, and of each VM only the last end is told, so
// that the series are bounded by the VMs, however often they move.
func TestTheClusterIsMeasured(t *testing.T) {
	records := &broken{Memory: store.NewMemory()}
	put := func(r store.Record) {
		t.Helper()
		if _, err := records.Put(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	put(&store.Host{Host: hypervisor.Host{Name: "n1", Link: 50}, Taints: []placement.Taint{{
		Key: evacuation.DefaultDrainKey, Effect: placement.NoSchedule}}})
	put(&store.Host{Host: hypervisor.Host{Name: "n2"}, NotReady: true})
	put(&store.VM{VM: hypervisor.VM{ID: "prod/web", Memory: 1000}, Host: "n1", Migratable: true})
	put(&store.VM{VM: hypervisor.VM{ID: "bad\xff/name"}, Host: "n1"})
	put(&store.VM{VM: hypervisor.VM{ID: "prod/off", Memory: 4000}, Host: "n1", Migratable: true, Stopped: true, Ended: true})
	put(&store.VM{VM: hypervisor.VM{ID: "prod/stays", Memory: 7000}, Host: "n1", Migratable: true,
		Strategy: evacuation.None})
	move := func(vm hypervisor.VMID, n int, p migration.Phase) {
		put(&store.Migration{Spec: migration.Spec{ID: migration.ID(fmt.Sprintf("%s#%d", vm, n)),
			VM: vm, Created: time.Unix(int64(n), 0)}, State: migration.State{Phase: p, Source: "n1",
			Target: "n2", Entered: time.Unix(int64(n)+10, 0)}})
	}
	for n := range 20 {
		move("prod/web", n+1, migration.Failed)
	}
	move("prod/web", 50, migration.Succeeded)
	move("bad\xff/name", 60, migration.Failed)
	move("prod/a", 1, migration.Pending)
	move("prod/b", 1, migration.Unset)
	move("prod/c", 1, migration.Scheduling)
	move("prod/d", 1, migration.Running)
	move("prod/e", 1, migration.TargetReady)
	for name, m := range map[string]store.Maintenance{"waits": {Stopped: "the hook failed"}, "goes-on": {},
		"resumed": {Stopped: "the hook failed", Resumes: 1}, "over": {Stopped: "gone", Ended: time.Unix(5, 0)}} {
		m.Name = name
		put(&m)
	}
	now := time.Unix(1000, 0)
	set := daemon.NewMetrics(daemon.NewClusterMetrics(records,
		&evacuation.Params{Strategy: evacuation.LiveMigrate},
		func() (uint64, bool) { return 7, true }, func() time.Time { return now }))
	text := scrape(t, set)
	has(t, text, "godwit_vmi_migrations_in_pending_phase 2",
		"godwit_vmi_migrations_in_scheduling_phase 1", "godwit_vmi_migrations_in_running_phase 2",
		`godwit_vmi_migration_succeeded{namespace="prod",vmi="web",vmim="prod/web#50"} 1`,
		`godwit_vmi_migration_start_time_seconds{migration_name="prod/web#50",name="web",`+
			`namespace="prod",node="n1"} 50`,
		`godwit_vmi_migration_end_time_seconds{migration_name="prod/web#50",name="web",`+
			`namespace="prod",node="n2",status="succeeded"} 60`,
		`godwit_host_info{node="n1",state="draining"} 1`,
		`godwit_host_info{node="n2",state="lost"} 1`,
		`godwit_number_of_vms{node="n1"} 4`, `godwit_host_drain_remaining_vms{node="n1"} 3`, `godwit_host_drain_eta_seconds{node="n1"} 20`,
		"godwit_controller_leading_status 1", "godwit_controller_term 7", "godwit_store_up 1",
		`godwit_host_stray_vms{node="n1"} 0`, `godwit_host_second_agent{node="n2"} 0`,
		`godwit_host_migration_failures{node="n2"} 0`, `godwit_host_drain_remaining_bytes{node="n1"} 1000`,
		`godwit_vm_down{name="web",namespace="prod",node="n1"} 1`,
		`godwit_maintenance_stopped{run="waits"} 1`, `godwit_maintenance_stopped{run="goes-on"} 0`,
		`godwit_maintenance_stopped{run="resumed"} 0`,
		`godwit_vmi_migration_failed{namespace="bad?",vmi="name",vmim="bad?/name#60"} 1`)
	if strings.Contains(text, `run="over"`) {
		t.Error("a run that has ended is told")
	}
	end := regexp.MustCompile(`(?m)^godwit_vmi_migration_end_time`)
	if n := len(end.FindAllString(text, -1)); n != 2 {
		t.Errorf("%d ends are told, want one of each VM", n)
	}
	records.err = errors.New("gone")
	text = scrape(t, set)
	has(t, text, "godwit_store_up 0")
	if strings.Contains(text, "pending_phase 2") {
		t.Error("what was read before is told while the store does not answer")
	}
}
