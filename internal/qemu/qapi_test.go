package qemu_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/internal/qemu"
)

func ptr[T any](v T) *T { return &v }

type cx = context.Context

// query makes a command of one that answers something.
func query[T any](ask func(qemu.QEMU, cx) (T, error)) func(qemu.QEMU, cx) error {
	return func(q qemu.QEMU, ctx cx) error {
		_, err := ask(q, ctx)
		return err
	}
}

// commands are all commands, with arguments that a QEMU can check: it has the nodes
// "disk" and "copy". Its guest stands soon: a QEMU that refuses a device waits until
// no CPU uses what it freed, and the QEMU of Debian 12 does not always wake an
// emulated CPU for it, so that it answers nothing any more.
// Source: QEMU 7.2 softmmu/qdev-monitor.c, qmp_device_add; util/rcu.c, drain_call_rcu.
var commands = []struct {
	name string
	give func(qemu.QEMU, cx) error
}{
	{"Status", query(qemu.QEMU.Status)},
	{"Cont", qemu.QEMU.Cont},
	{"Stop", qemu.QEMU.Stop},
	{"SystemPowerdown", qemu.QEMU.SystemPowerdown},
	{"SystemReset", qemu.QEMU.SystemReset},
	{"CPUs", query(qemu.QEMU.CPUs)},
	{"CalcDirtyRate", func(q qemu.QEMU, ctx cx) error {
		return q.CalcDirtyRate(ctx, 1)
	}},
	{"QueryDirtyRate", query(qemu.QEMU.QueryDirtyRate)},
	{"ObjectAdd", func(q qemu.QEMU, ctx cx) error {
		return q.ObjectAdd(ctx, map[string]any{"qom-type": "throttle-group", "id": "group"})
	}},
	{"ObjectDel", func(q qemu.QEMU, ctx cx) error {
		return q.ObjectDel(ctx, "group")
	}},
	{"BlockdevAdd", func(q qemu.QEMU, ctx cx) error {
		return q.BlockdevAdd(ctx, map[string]any{"driver": "null-co", "node-name": "more"})
	}},
	{"BlockdevDel", func(q qemu.QEMU, ctx cx) error {
		return q.BlockdevDel(ctx, "more")
	}},
	{"DeviceAdd", func(q qemu.QEMU, ctx cx) error {
		return q.DeviceAdd(ctx, map[string]any{"driver": "no-such-device", "id": "disk-1"})
	}},
	{"DeviceDel", func(q qemu.QEMU, ctx cx) error {
		return q.DeviceDel(ctx, "disk-1")
	}},
	{"SnapshotInternal", func(q qemu.QEMU, ctx cx) error {
		return q.SnapshotInternal(ctx, "disk", "before")
	}},
	{"NBDStart at a socket", func(q qemu.QEMU, ctx cx) error {
		return q.NBDStart(ctx, qemu.Socket{Type: "unix", Path: "/nowhere/at/all"}, "")
	}},
	{"NBDStart at an address, encrypted", func(q qemu.QEMU, ctx cx) error {
		return q.NBDStart(ctx, qemu.Socket{Type: "inet", Host: "127.0.0.1", Port: "0"}, "tls")
	}},
	{"NBDExport", func(q qemu.QEMU, ctx cx) error {
		return q.NBDExport(ctx, "disk", "disk")
	}},
	{"NBDStop", qemu.QEMU.NBDStop},
	{"BlockdevMirror", func(q qemu.QEMU, ctx cx) error {
		return q.BlockdevMirror(ctx, "mirror", "disk", "copy", 1<<20)
	}},
	{"BlockJobSetSpeed", func(q qemu.QEMU, ctx cx) error {
		return q.BlockJobSetSpeed(ctx, "mirror", 1<<20)
	}},
	{"QueryJobs", query(qemu.QEMU.QueryJobs)},
	{"BlockJobCancel", func(q qemu.QEMU, ctx cx) error {
		return q.BlockJobCancel(ctx, "mirror", true)
	}},
	{"JobDismiss", func(q qemu.QEMU, ctx cx) error {
		return q.JobDismiss(ctx, "mirror")
	}},
	{"QueryNamedNodes", query(qemu.QEMU.QueryNamedNodes)},
	{"Major", query(qemu.QEMU.Major)},
	{"BlockResize", func(q qemu.QEMU, ctx cx) error {
		return q.BlockResize(ctx, "disk", 2<<20)
	}},
	{"QueryMigrate", query(qemu.QEMU.QueryMigrate)},
	{"SetCapabilities, all off", func(q qemu.QEMU, ctx cx) error {
		off := map[qemu.Capability]bool{}
		for _, c := range capabilities {
			off[c] = false
		}
		return q.SetCapabilities(ctx, off)
	}},
	{"SetCapabilities, one on", func(q qemu.QEMU, ctx cx) error {
		return q.SetCapabilities(ctx, map[qemu.Capability]bool{qemu.CapEvents: true})
	}},
	{"SetCapabilities, none", func(q qemu.QEMU, ctx cx) error {
		return q.SetCapabilities(ctx, nil)
	}},
	{"SetParameters", func(q qemu.QEMU, ctx cx) error {
		return q.SetParameters(ctx, qemu.Parameters{MaxBandwidth: ptr[int64](0), MaxPostcopyBandwidth: ptr[int64](0),
			DowntimeLimit: ptr[int64](300), MultifdChannels: ptr(2),
			MultifdCompression: ptr("none"), TLSCreds: ptr(""), TLSHostname: ptr("")})
	}},
	{"SetParameters, none", func(q qemu.QEMU, ctx cx) error {
		return q.SetParameters(ctx, qemu.Parameters{})
	}},
	{"MigrateContinue", func(q qemu.QEMU, ctx cx) error {
		return q.MigrateContinue(ctx, qemu.PreSwitchover)
	}},
	{"MigrateStartPostcopy", qemu.QEMU.MigrateStartPostcopy},
	{"MigrateIncoming", func(q qemu.QEMU, ctx cx) error {
		return q.MigrateIncoming(ctx, "unix:/nowhere/at/all")
	}},
	{"Migrate, which goes on", func(q qemu.QEMU, ctx cx) error {
		return q.Migrate(ctx, "unix:/nowhere/at/all", true)
	}},
	{"Migrate", func(q qemu.QEMU, ctx cx) error {
		return q.Migrate(ctx, "unix:/nowhere/at/all", false)
	}},
	{"MigrateCancel", qemu.QEMU.MigrateCancel},
}

var capabilities = []qemu.Capability{qemu.CapEvents, qemu.CapReturnPath, qemu.CapLateBlockActivate,
	qemu.CapPauseBefore, qemu.CapAutoConverge, qemu.CapXBZRLE, qemu.CapMultifd, qemu.CapCompress,
	qemu.CapPostcopy}

// A recorder notes what it is told, and answers the reply that it has.
type recorder struct {
	said  []string
	reply string
	err   error
}

func (r *recorder) Execute(_ context.Context, command string, arguments, reply any) error {
	line := command
	if arguments != nil {
		text, err := json.Marshal(arguments)
		if err != nil {
			return err
		}
		line += " " + string(text)
	}
	r.said = append(r.said, line)
	if r.err != nil || reply == nil || r.reply == "" {
		return r.err
	}
	return json.Unmarshal([]byte(r.reply), reply)
}

// TestCommands shows what each command says to QEMU. -rewrite writes it anew.
func TestCommands(t *testing.T) {
	datadriven.RunTest(t, "testdata/commands.golden",
		func(t *testing.T, d *datadriven.TestData) string {
			var b strings.Builder
			for _, c := range commands {
				r := &recorder{}
				if err := c.give(qemu.QEMU{Conn: r}, t.Context()); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
				fmt.Fprintf(&b, "%s: %s\n", c.name, strings.Join(r.said, "; "))
			}
			return b.String()
		})
}

// TestErrorsComeThrough: what QEMU refuses is refused, with nothing in between.
func TestErrorsComeThrough(t *testing.T) {
	for _, c := range commands {
		err := c.give(qemu.QEMU{Conn: &recorder{err: io.EOF}}, t.Context())
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}

// TestReplies: what QEMU 7.2 answers is understood.
func TestReplies(t *testing.T) {
	ctx := t.Context()
	for _, row := range []struct {
		name, reply string
		ask         func(qemu.QEMU) (any, error)
		want        any
	}{
		{"a run state", `{"status": "inmigrate", "singlestep": false, "running": false}`,
			func(q qemu.QEMU) (any, error) { return q.Status(ctx) }, qemu.InMigrate},
		{"no migration is a status, too", `{}`,
			func(q qemu.QEMU) (any, error) { return q.QueryMigrate(ctx) },
			qemu.Migration{Status: qemu.None}},
		{"a migration under way", `{"expected-downtime": 300, "status": "active",
			"total-time": 7, "downtime": 3, "cpu-throttle-percentage": 20, "error-desc": "x",
			"blocked-reasons": ["y"],
			"socket-address": [{"type": "inet", "host": "::", "port": "4444"}],
			"ram": {"total": 100, "remaining": 60, "transferred": 40, "mbps": 0.5,
			"page-size": 4096, "dirty-sync-count": 2, "dirty-pages-rate": 9, "duplicate": 1}}`,
			func(q qemu.QEMU) (any, error) { return q.QueryMigrate(ctx) },
			qemu.Migration{Status: qemu.Active, ErrorDesc: "x", Blocked: []string{"y"},
				TotalTime: 7, Downtime: 3, Throttle: 20,
				Sockets: []qemu.Socket{{Type: "inet", Host: "::", Port: "4444"}},
				RAM: qemu.RAM{Transferred: 40, Remaining: 60, Total: 100, Mbps: 0.5,
					DirtySyncCount: 2, DirtyPagesRate: 9, PageSize: 4096}}},
		{"jobs", `[{"id": "m", "type": "mirror", "status": "concluded", "current-progress": 1,
			"total-progress": 2, "error": "no space"}]`,
			func(q qemu.QEMU) (any, error) { return q.QueryJobs(ctx) },
			[]qemu.Job{{ID: "m", Type: "mirror", Status: qemu.JobConcluded, Current: 1, Total: 2,
				Error: "no space"}}},
		{"CPUs", `[{"cpu-index": 1, "thread-id": 77, "target": "x86_64"}]`,
			func(q qemu.QEMU) (any, error) { return q.CPUs(ctx) },
			[]qemu.CPU{{Index: 1, Thread: 77}}},
		{"a dirty rate", `{"status": "measured", "dirty-rate": 5, "start-time": 1, "calc-time": 1}`,
			func(q qemu.QEMU) (any, error) { return q.QueryDirtyRate(ctx) },
			qemu.DirtyRate{Status: "measured", Rate: 5}},
		{"nodes", `[{"node-name": "disk", "drv": "raw"}]`,
			func(q qemu.QEMU) (any, error) { return q.QueryNamedNodes(ctx) },
			[]qemu.NamedNode{{Name: "disk"}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := row.ask(qemu.QEMU{Conn: &recorder{reply: row.reply}})
			if diff := cmp.Diff(row.want, got); err != nil || diff != "" {
				t.Errorf("(-want +got): %v\n%s", err, diff)
			}
		})
	}
}

// TestSetCapabilitiesNamesAll: a capability that is not in the list of the command
// would be left out without a word.
func TestSetCapabilitiesNamesAll(t *testing.T) {
	for _, c := range capabilities {
		r := &recorder{}
		if err := (qemu.QEMU{Conn: r}).SetCapabilities(t.Context(),
			map[qemu.Capability]bool{c: true}); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`migrate-set-capabilities `+
			`{"capabilities":[{"capability":%q,"state":true}]}`, c)
		if !slices.Equal(r.said, []string{want}) {
			t.Errorf("got %q, want %q", r.said, want)
		}
	}
}
