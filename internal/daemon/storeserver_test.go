package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/cli"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/internal/etcdstore"
	"github.com/godwit-vm/godwit/internal/etcdtest"
	"github.com/godwit-vm/godwit/internal/pki"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// A reception serves a store over TLS, and has an audit log.
type reception struct {
	t       *testing.T
	own     *pki.Authority
	address string
	log     string
	records store.Historian // as it is, behind
}

// issue makes the files of a host, a person or a controller.
func (r *reception) issue(q pki.Request) pki.Dir {
	r.t.Helper()
	q.Lasts = time.Hour
	dir, err := r.own.Issue(q, time.Now())
	fine(r.t, err)
	return pki.Dir(dir)
}

func fine(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// as returns the store as the holder of a certificate reaches it.
func (r *reception) as(files pki.Dir) store.Historian {
	r.t.Helper()
	c, err := boltstore.DialTLS([]string{r.address}, files)
	fine(r.t, err)
	r.t.Cleanup(func() { fine(r.t, c.Close()) })
	return c
}

// receive serves a store until the test ends.
func receive(t *testing.T, records store.Historian) *reception {
	t.Helper()
	dir := t.TempDir()
	own, err := pki.Init(filepath.Join(dir, "pki"), "test", time.Hour, time.Now())
	fine(t, err)
	r := &reception{t: t, own: own, log: filepath.Join(dir, "log"), records: records}
	file, err := audit.OpenRotating(r.log, audit.Rotation{})
	fine(t, err)
	trail := &audit.History{File: file, By: "controller/a", Now: time.Now}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	fine(t, err)
	r.address = l.Addr().String()
	secured, err := boltstore.ListenTLS(l, r.issue(pki.Request{Name: "a", IPs: []net.IP{net.IPv4(127, 0, 0, 1)},
		Controller: true}), nil)
	fine(t, err)
	access := boltstore.Access{Certified: &boltstore.Names{Viewers: []string{"alice"}, Operators: []string{"bob"},
		Admins: []string{"root"}}, Asked: func(q boltstore.Asked) { trail.Asked(q.Peer.String(), q.What(), q.Record) }}
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		if err := boltstore.ServeTo(ctx, records, secured, access); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		group.Wait()
		fine(t, file.Close())
	})
	return r
}

// asked returns how many lines of the audit log say that something was refused.
func (r *reception) asked(who string) (n int) {
	r.t.Helper()
	text, err := os.ReadFile(r.log)
	fine(r.t, err)
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, `"kind":"asked"`) && strings.Contains(line, who) && strings.Contains(line, "refused: ") {
			n++
		}
	}
	return n
}

// world stores two hosts, with a VM on each, one that is renamed and one that moves from n1 to n2, and
// the rebuild of a VM of n2.
func world(t *testing.T, s store.Store) {
	t.Helper()
	at := time.Unix(1e9, 0).UTC()
	for _, r := range []store.Record{
		&store.Host{Host: hypervisor.Host{Name: "n1"}, Identity: &store.Identity{ID: "one"}, Session: "s", Admitted: "s"},
		&store.Host{Host: hypervisor.Host{Name: "n2"}, Identity: &store.Identity{ID: "two"}},
		&store.VM{VM: hypervisor.VM{ID: "v1", Memory: 1}, Host: "n1", Moves: 1, Life: &store.Life{ID: "l"}},
		&store.VM{VM: hypervisor.VM{ID: "v2", Memory: 1}, Host: "n2", Rename: &store.Rename{To: "v3", ID: "new"}, Stopped: true, Ended: true},
		&store.VM{VM: hypervisor.VM{ID: "old"}, Host: "n1", Rename: &store.Rename{To: "new", ID: "new"}, Stopped: true, Ended: true},
		&store.VM{VM: hypervisor.VM{ID: "moves"}, Host: "n2", ActiveMigration: "in"},
		&store.Migration{Spec: migration.Spec{ID: "out", VM: "v1"}, State: migration.State{Source: "n1", Target: "n2"}},
		&store.Migration{Spec: migration.Spec{ID: "in", VM: "moves"}, State: migration.State{Source: "n2", Target: "n1"}},
		&store.Migration{Spec: migration.Spec{ID: "other", VM: "v2"}, State: migration.State{Source: "n2", Target: "n3"}},
		&store.Rebuild{VM: "v1", Source: "n2", Target: "n1", Decided: at},
		&store.Rebuild{VM: "v2", Source: "n1", Target: "n2", Decided: at},
		&store.Rebuild{VM: "v4", Source: "n1", Target: "n2", Decided: at, Cleaned: true},
		&store.Lease{Owner: "host/n2", Session: "t"},
		&store.Lease{Owner: "controller/a", Session: "c"},
		&store.Leader{Name: "cluster", Holder: "controller/a", Term: 3},
		&store.Plan{Name: "p"}, &store.Maintenance{Name: "m"},
	} {
		_, err := s.Put(t.Context(), r)
		fine(t, err)
	}
}

// edit returns a changed copy of what is stored.
func edit[R any, P interface {
	*R
	store.Record
}](kind store.Kind, name string, how func(P)) func(*testing.T, store.Store) store.Record {
	return func(t *testing.T, s store.Store) store.Record {
		t.Helper()
		r, err := s.Get(t.Context(), store.Key{Kind: kind, Name: name})
		fine(t, err)
		next := *r.(P)
		how(&next)
		return P(&next)
	}
}

type toWrite = func(*testing.T, store.Store) store.Record

func vmBy(name string, how func(*store.VM)) toWrite     { return edit(store.VMKind, name, how) }
func hostBy(name string, how func(*store.Host)) toWrite { return edit(store.HostKind, name, how) }
func moveBy(name string, how func(*store.Migration)) toWrite {
	return edit(store.MigrationKind, name, how)
}
func fresh(r store.Record) toWrite { return func(*testing.T, store.Store) store.Record { return r } }

// forbidden are writes that the agent of n1 may not do, by what it would do with them.
var forbidden = map[string]toWrite{
	"uncordon itself":        hostBy("n1", func(h *store.Host) { h.Cordoned = true }),
	"take a label":           hostBy("n1", func(h *store.Host) { h.Labels = map[string]string{"zone": "a"} }),
	"admit itself":           hostBy("n1", func(h *store.Host) { h.Admitted = "other" }),
	"end its fencing":        hostBy("n1", func(h *store.Host) { h.Fenced = true }),
	"be another identity":    hostBy("n1", func(h *store.Host) { h.Identity = &store.Identity{ID: "x"} }),
	"have no identity":       hostBy("n1", func(h *store.Host) { h.Identity = nil }),
	"adopt itself":           hostBy("n1", func(h *store.Host) { h.Adopt = &store.Adoption{ID: "x"} }),
	"confirm itself down":    hostBy("n1", func(h *store.Host) { h.ConfirmedDownBy = "me" }),
	"write another host":     hostBy("n2", func(h *store.Host) { h.Session = "x" }),
	"confirm n2 down":        hostBy("n2", func(h *store.Host) { h.ConfirmedDownBy = "me" }),
	"add a host":             fresh(&store.Host{Host: hypervisor.Host{Name: "n9"}}),
	"take a VM":              vmBy("v2", func(v *store.VM) { v.Host = "n1" }),
	"end another's VM":       vmBy("v2", func(v *store.VM) { v.Ended = false }),
	"write one that comes":   vmBy("moves", func(v *store.VM) { v.Boots++ }),
	"give a VM away":         vmBy("v1", func(v *store.VM) { v.Host = "n2" }),
	"resize its VM":          vmBy("v1", func(v *store.VM) { v.VM.Memory = 2 }),
	"stop its VM":            vmBy("v1", func(v *store.VM) { v.Stopped = true }),
	"claim its VM":           vmBy("v1", func(v *store.VM) { v.ActiveMigration = "x" }),
	"count moves":            vmBy("v1", func(v *store.VM) { v.Moves = 9 }),
	"live anew":              vmBy("v1", func(v *store.VM) { v.Life = &store.Life{ID: "x"} }),
	"free a claim unasked":   vmBy("v1", func(v *store.VM) { v.Unclaimed = "x" }),
	"attach a disk unasked":  vmBy("v1", func(v *store.VM) { v.DiskChanges = []store.DiskChange{{Detach: "x"}} }),
	"ask for a snapshot":     vmBy("v1", func(v *store.VM) { v.SnapshotRequests = []store.SnapshotRequest{{ID: "x"}} }),
	"boot twice":             vmBy("v1", func(v *store.VM) { v.Boots += 2 }),
	"add a VM":               fresh(&store.VM{VM: hypervisor.VM{ID: "v9"}, Host: "n1"}),
	"rename another's":       fresh(&store.VM{VM: hypervisor.VM{ID: "v3"}, Host: "n1", Life: &store.Life{ID: "new"}}),
	"speak for the target":   moveBy("out", func(m *store.Migration) { m.Target.Completed = true }),
	"speak for the source":   moveBy("in", func(m *store.Migration) { m.Source.HandedOver = true }),
	"end a migration":        moveBy("out", func(m *store.Migration) { m.State.Phase = migration.Succeeded }),
	"choose a target":        moveBy("out", func(m *store.Migration) { m.State.Target = "n1" }),
	"prove a death":          moveBy("out", func(m *store.Migration) { m.Evidence = []hypervisor.Evidence{{Host: "n2"}} }),
	"cancel a migration":     moveBy("out", func(m *store.Migration) { m.Cancel = true }),
	"write another's":        moveBy("other", func(m *store.Migration) { m.Target.Completed = true }),
	"ask for a migration":    fresh(&store.Migration{Spec: migration.Spec{ID: "mine", VM: "v2"}}),
	"clean up for n2":        edit(store.RebuildKind, "v1@n2", func(r *store.Rebuild) { r.Cleaned = true }),
	"forge a rebuild":        edit(store.RebuildKind, "v2@n1", func(r *store.Rebuild) { r.Cleaned, r.Target = true, "n1" }),
	"take back a clean-up":   edit(store.RebuildKind, "v4@n1", func(r *store.Rebuild) { r.Cleaned = false }),
	"rebuild":                fresh(&store.Rebuild{VM: "v9", Source: "n1", Cleaned: true}),
	"live for n2":            edit(store.LeaseKind, "host/n2", func(l *store.Lease) { l.Beats++ }),
	"live for a controller":  edit(store.LeaseKind, "controller/a", func(l *store.Lease) { l.Beats++ }),
	"lead":                   edit(store.LeaderKind, "cluster", func(l *store.Leader) { l.Holder = "host/n1" }),
	"end a plan":             edit(store.PlanKind, "p", func(p *store.Plan) { p.By = "me" }),
	"change the maintenance": edit(store.MaintenanceKind, "m", func(m *store.Maintenance) { m.By = "me" }),
}

// permitted are writes that it may do.
var permitted = map[string]toWrite{
	"tell what it has":       hostBy("n1", func(h *store.Host) { h.Host.Memory = 7 }),
	"begin anew":             hostBy("n1", func(h *store.Host) { h.Session = "next" }),
	"start its VM":           vmBy("v1", func(v *store.VM) { v.Boots, v.Operation = v.Boots+1, store.Starting }),
	"say that it sends":      moveBy("out", func(m *store.Migration) { m.Source.Began = true }),
	"say that it has room":   moveBy("in", func(m *store.Migration) { m.Target.Ready = true }),
	"say that it cleaned up": edit(store.RebuildKind, "v2@n1", func(r *store.Rebuild) { r.Cleaned = true }),
	"live":                   fresh(&store.Lease{Owner: "host/n1", Session: "s"}),
}

// everything reads all that is stored.
func everything(t *testing.T, s store.Store) string {
	t.Helper()
	var all []store.Record
	for _, feed := range []store.Feed{store.Everything, store.Leases} {
		c, err := s.Changes(t.Context(), feed, 0)
		fine(t, err)
		all = append(all, c.Records...)
	}
	text, err := json.MarshalIndent(all, "", " ")
	fine(t, err)
	return string(text)
}

// tries lets the agent of n1 try everything.
func (r *reception) tries(t *testing.T) {
	agent := r.as(r.issue(pki.Request{Name: "n1"}))
	history, _, err := agent.History(t.Context())
	fine(t, err)
	refused := 0
	check := func(what string, do func() error) {
		t.Helper()
		before := everything(t, r.records)
		if err := do(); !errors.Is(err, store.Forbidden) || !strings.Contains(err.Error(), "agent of n1 (certificate)") {
			t.Errorf("%s: %v", what, err)
		}
		if diff := cmp.Diff(before, everything(t, r.records)); diff != "" {
			t.Errorf("%s has changed something:\n%s", what, diff)
		}
		if refused++; r.asked("agent of n1 (certificate) at 127.0.0.1:") != refused {
			t.Errorf("%s: %d lines of the audit log say what was refused, want %d", what, r.asked("agent of n1"), refused)
		}
	}
	for what, next := range forbidden {
		check(what, func() error {
			_, err := agent.Put(t.Context(), next(t, r.records))
			return err
		})
	}
	for _, k := range []store.Key{{Kind: store.VMKind, Name: "v1"}, {Kind: store.VMKind, Name: "old"}, {Kind: store.HostKind, Name: "n1"},
		{Kind: store.HostKind, Name: "n2"}, {Kind: store.MigrationKind, Name: "out"}, {Kind: store.LeaseKind, Name: "host/n2"}} {
		check("delete "+k.Name, func() error {
			old, err := r.records.Get(t.Context(), k)
			fine(t, err)
			return agent.Delete(t.Context(), old)
		})
	}
	check("raise the epoch", func() error {
		next := history
		next.Epoch++
		_, err := agent.Amend(t.Context(), next)
		return err
	})
	check("doubt in another's name", func() error {
		next := history
		next.Doubt = &store.Doubt{By: "agent/n2", Why: "no"}
		_, err := agent.Amend(t.Context(), next)
		return err
	})
	check("follow another host", func() error {
		_, err := agent.Changes(t.Context(), store.Feed{Host: "n2"}, 0)
		return err
	})
	check("copy the store", func() error {
		_, err := agent.(*boltstore.Client).Backup(t.Context(), &strings.Builder{})
		return err
	})
	for what, next := range permitted {
		if _, err := agent.Put(t.Context(), next(t, r.records)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused += r.renames(t, agent)
	if _, err := agent.Changes(t.Context(), store.Feed{Host: "n1"}, 0); err != nil {
		t.Error(err)
	}
	if n := r.asked("agent of n1"); n != refused {
		t.Errorf("%d lines say that something was refused, want %d", n, refused)
	}
	doubts := history
	doubts.Doubt = &store.Doubt{By: "agent/n1", Why: "it is old"}
	if _, err := agent.Amend(t.Context(), doubts); err != nil {
		t.Errorf("its doubt: %v", err)
	}
}

// renames lets the agent give a VM the name that was asked for, and nothing more with it. It returns how
// many writes were refused.
func (r *reception) renames(t *testing.T, agent store.Store) int {
	t.Helper()
	old, err := store.VMNamed(t.Context(), r.records, "old")
	fine(t, err)
	larger := old.Renamed(store.Life{})
	larger.VM.Memory = 9
	for what, next := range map[string]*store.VM{"and larger": larger, "as it is": old.Renamed(store.Life{})} {
		if _, err := agent.Put(t.Context(), next); !errors.Is(err, store.Forbidden) { // on no condition
			t.Errorf("renamed without a condition, %s: %v", what, err)
		}
	}
	if _, err := agent.Put(t.Context(), larger, old); !errors.Is(err, store.Forbidden) {
		t.Errorf("renamed and larger: %v", err)
	}
	_, err = agent.Put(t.Context(), old.Renamed(store.Life{}), old)
	fine(t, err)
	fine(t, agent.Delete(t.Context(), old))
	return 3
}

// TestWhatAnAgentMayNotDoOverTLS: each write that is not its own is refused, changes nothing and is
// told, with bolt's file behind.
func TestWhatAnAgentMayNotDoOverTLS(t *testing.T) {
	s := open(t)
	world(t, s)
	receive(t, s).tries(t)
}

// TestAnAgentOverTLSNeedsNoRightsInEtcd: with etcd behind, to which the agent's certificate says nothing.
func TestAnAgentOverTLSNeedsNoRightsInEtcd(t *testing.T) {
	ca := etcdtest.NewAuthority(t)
	cluster := etcdtest.StartWith(t, etcdtest.Options{Authority: ca})
	as := func(user string) (*etcdstore.Store, error) {
		cert, key := ca.Issue(t, user)
		s, err := etcdstore.Open(t.Context(), etcdstore.Config{Endpoints: cluster.Endpoints, CA: ca.File, Cert: cert,
			Key: key, DialTimeout: time.Minute})
		if err == nil {
			t.Cleanup(func() { fine(t, s.Close()) })
		}
		return s, err
	}
	cert, key := ca.Issue(t, "root")
	rights := cli.EtcdCommand()
	rights.SetArgs([]string{"rights", "--store", "etcd://" + strings.TrimPrefix(cluster.Endpoints[0], "https://") + "/godwit",
		"--controllers", "a", "--operators", "bob", "--viewers", "alice", "--apply", "--etcd-ca", ca.File, "--etcd-cert", cert,
		"--etcd-key", key})
	fine(t, rights.ExecuteContext(t.Context()))
	boss, err := as("a")
	fine(t, err)
	world(t, boss)
	if _, err := as("n1"); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("etcd lets n1 in, which is no user of it: %v", err)
	}
	receive(t, boss).tries(t)
}

// TestRolesOverTLS: people have the role that their name has, and those who have none, or a certificate
// of another authority, are refused.
func TestRolesOverTLS(t *testing.T) {
	s := open(t)
	world(t, s)
	r := receive(t, s)
	person := func(name string) store.Historian { return r.as(r.issue(pki.Request{Name: name, ClientOnly: true})) }
	cordoned := func() store.Record { return hostBy("n1", func(h *store.Host) { h.Cordoned = !h.Cordoned })(t, s) }
	fenced := func() store.Record { return hostBy("n1", func(h *store.Host) { h.Fenced = !h.Fenced })(t, s) }
	for _, row := range []struct {
		name                  string
		reads, cordons, fence bool
	}{{"alice", true, false, false}, {"bob", true, true, false}, {"root", true, true, true}, {"mallory", false, false, false},
		{"n2", false, false, false}} { // a person who is called as a host is
		c := person(row.name)
		_, errReads := c.Changes(t.Context(), store.Everything, 0)
		_, errCordons := c.Put(t.Context(), cordoned())
		_, errFence := c.Put(t.Context(), fenced())
		for what, got := range map[string]struct {
			err error
			may bool
		}{"reads": {errReads, row.reads}, "cordons": {errCordons, row.cordons}, "fences": {errFence, row.fence}} {
			if (got.err == nil) != got.may || got.err != nil && !errors.Is(got.err, store.Forbidden) {
				t.Errorf("%s %s: %v", row.name, what, got.err)
			}
		}
	}
	other, err := pki.Init(filepath.Join(t.TempDir(), "theirs"), "other", time.Hour, time.Now())
	fine(t, err)
	dir, err := other.Issue(pki.Request{Name: "root", ClientOnly: true, Lasts: time.Hour}, time.Now())
	fine(t, err)
	u := url(t, "tls://"+r.address)
	if _, err := daemon.OpenStore(t.Context(), u, daemon.TLS{Dir: dir}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("with the certificates of another authority: %v", err)
	}
	ours, err := os.ReadFile(filepath.Join(string(r.issue(pki.Request{Name: "n8"})), pki.AuthorityCert))
	fine(t, err)
	fine(t, os.WriteFile(filepath.Join(dir, pki.AuthorityCert), ours, 0o600)) // it trusts us, and we do not
	_, err = daemon.OpenStore(t.Context(), u, daemon.TLS{Dir: dir})
	if _, absent := errors.AsType[*daemon.AbsentError](err); err == nil || absent {
		t.Errorf("with a certificate that another authority has signed: %v", err)
	}
	if _, err := daemon.OpenStore(t.Context(), u, daemon.TLS{}); err == nil || !strings.Contains(err.Error(), "--tls-dir") {
		t.Errorf("without files: %v", err)
	}
}
