package qemu

import (
	"context"
	"slices"
)

// A MigrationStatus is how far QEMU's migration has come.
// Source: QEMU 7.2 qapi/migration.json (MigrationStatus).
type MigrationStatus string

// The statuses of a migration. The zero value is: there was none.
const (
	None            MigrationStatus = "none"
	Setup           MigrationStatus = "setup"
	Cancelling      MigrationStatus = "cancelling"
	Cancelled       MigrationStatus = "cancelled"
	Active          MigrationStatus = "active"
	PostcopyActive  MigrationStatus = "postcopy-active"
	PostcopyPaused  MigrationStatus = "postcopy-paused"
	PostcopyRecover MigrationStatus = "postcopy-recover"
	// PostcopyConnects: it is about to be recovered. Source: QEMU 9.1 qapi/migration.json.
	PostcopyConnects MigrationStatus = "postcopy-recover-setup"
	Completed        MigrationStatus = "completed"
	Failed           MigrationStatus = "failed"
	PreSwitchover    MigrationStatus = "pre-switchover"
	Device           MigrationStatus = "device"
	WaitUnplug       MigrationStatus = "wait-unplug"
)

// A Migration is what query-migrate answers. Times are in milliseconds.
type Migration struct {
	Status    MigrationStatus
	ErrorDesc string   `json:"error-desc"`
	Blocked   []string `json:"blocked-reasons"`
	TotalTime int64    `json:"total-time"`
	Downtime  int64
	Throttle  int `json:"cpu-throttle-percentage"`
	RAM       RAM
	// Sockets are where an incoming migration listens.
	Sockets []Socket `json:"socket-address"`
}

// RAM is how memory moves. Sizes are in bytes.
type RAM struct {
	Transferred    int64
	Remaining      int64
	Total          int64
	Mbps           float64 // decimal megabits per second
	DirtySyncCount int     `json:"dirty-sync-count"`
	DirtyPagesRate int64   `json:"dirty-pages-rate"` // pages per second
	PageSize       int64   `json:"page-size"`
}

// A Socket is an address of QEMU's.
type Socket struct {
	Type string // "inet", "unix"
	Host string
	Port string
	Path string
}

// QueryMigrate returns the present or the last migration.
func (q QEMU) QueryMigrate(ctx context.Context) (Migration, error) {
	var reply Migration
	err := q.Execute(ctx, "query-migrate", nil, &reply)
	if reply.Status == "" {
		reply.Status = None
	}
	return reply, err
}

// A Capability is one of QEMU's ways to migrate.
type Capability string

// The capabilities that we use.
const (
	CapEvents            Capability = "events"
	CapReturnPath        Capability = "return-path"
	CapLateBlockActivate Capability = "late-block-activate"
	CapPauseBefore       Capability = "pause-before-switchover"
	CapAutoConverge      Capability = "auto-converge"
	CapXBZRLE            Capability = "xbzrle"
	CapMultifd           Capability = "multifd"
	CapCompress          Capability = "compress"
	CapPostcopy          Capability = "postcopy-ram"
)

// SetCapabilities switches capabilities on and off, in the order given.
func (q QEMU) SetCapabilities(ctx context.Context, on map[Capability]bool) error {
	list := make([]args, 0, len(on))
	for _, c := range []Capability{CapEvents, CapReturnPath, CapLateBlockActivate, CapPauseBefore,
		CapAutoConverge, CapXBZRLE, CapMultifd, CapCompress, CapPostcopy} {
		if state, named := on[c]; named {
			list = append(list, args{"capability": c, "state": state})
		}
	}
	return q.do(ctx, "migrate-set-capabilities", args{"capabilities": list})
}

// Parameters are what migrate-set-parameters takes. A nil field stays as it is.
type Parameters struct {
	MaxBandwidth *int64 `json:"max-bandwidth,omitempty"` // bytes per second; 0 is none
	// MaxPostcopyBandwidth is the same in post-copy, but for what the guest waits for.
	MaxPostcopyBandwidth *int64  `json:"max-postcopy-bandwidth,omitempty"`
	DowntimeLimit        *int64  `json:"downtime-limit,omitempty"` // milliseconds
	MultifdChannels      *int    `json:"multifd-channels,omitempty"`
	MultifdCompression   *string `json:"multifd-compression,omitempty"`
	TLSCreds             *string `json:"tls-creds,omitempty"`
	TLSHostname          *string `json:"tls-hostname,omitempty"`
}

// SetParameters changes parameters, also of a running migration.
func (q QEMU) SetParameters(ctx context.Context, p Parameters) error {
	return q.do(ctx, "migrate-set-parameters", p)
}

// Migrating reports whether QEMU still holds on to the connection of a migration, its
// present one or one that it has not cleaned up after.
// Source: QEMU 7.2 migration/migration.c (migrate_fd_cleanup, yank_unregister_instance).
func (q QEMU) Migrating(ctx context.Context) (bool, error) {
	var held []struct{ Type string }
	err := q.Execute(ctx, "query-yank", nil, &held)
	return slices.ContainsFunc(held, func(h struct{ Type string }) bool {
		return h.Type == "migration"
	}), err
}

// Migrate begins to send to uri. With resume it goes on with a paused post-copy.
func (q QEMU) Migrate(ctx context.Context, uri string, resume bool) error {
	a := args{"uri": uri}
	if resume {
		a["resume"] = true
	}
	return q.do(ctx, "migrate", a)
}

// MigrateIncoming listens at uri. QEMU must have been started to wait for that.
func (q QEMU) MigrateIncoming(ctx context.Context, uri string) error {
	return q.do(ctx, "migrate-incoming", args{"uri": uri})
}

// MigrateCancel ends an outgoing migration.
func (q QEMU) MigrateCancel(ctx context.Context) error { return q.do(ctx, "migrate_cancel", nil) }

// MigrateContinue goes on with a migration that waits before its switch-over. QEMU refuses
// it unless the migration is in that status.
func (q QEMU) MigrateContinue(ctx context.Context, in MigrationStatus) error {
	return q.do(ctx, "migrate-continue", args{"state": in})
}

// MigrateStartPostcopy goes over to post-copy.
func (q QEMU) MigrateStartPostcopy(ctx context.Context) error {
	return q.do(ctx, "migrate-start-postcopy", nil)
}
