//go:build linux && libvirt_dlopen

package conn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

func TestClassify(t *testing.T) {
	for _, row := range []struct {
		name string
		err  error
		act  hypervisor.Kind
		look hypervisor.Kind
	}{
		{"no such domain", libvirt.Error{Code: libvirt.ERR_NO_DOMAIN, Domain: libvirt.FROM_QEMU},
			hypervisor.NotFound, hypervisor.NotFound},
		{"not in this state", libvirt.Error{Code: libvirt.ERR_OPERATION_INVALID},
			hypervisor.Conflict, hypervisor.Conflict},
		{"there is one already", libvirt.Error{Code: libvirt.ERR_DOM_EXIST},
			hypervisor.Conflict, hypervisor.Conflict},
		{"an unsafe migration", libvirt.Error{Code: libvirt.ERR_MIGRATE_UNSAFE},
			hypervisor.Conflict, hypervisor.Conflict},
		{"a function that the driver lacks", libvirt.Error{Code: libvirt.ERR_NO_SUPPORT},
			hypervisor.Unsupported, hypervisor.Unsupported},
		{"XML that is none", libvirt.Error{Code: libvirt.ERR_XML_DETAIL},
			hypervisor.Invalid, hypervisor.Invalid},
		{"a wrong password", libvirt.Error{Code: libvirt.ERR_AUTH_FAILED},
			hypervisor.Invalid, hypervisor.Invalid},
		{"no memory", libvirt.Error{Code: libvirt.ERR_NO_MEMORY},
			hypervisor.NoRoom, hypervisor.NoRoom},
		{"the domain's lock was not to be had", libvirt.Error{Code: libvirt.ERR_OPERATION_TIMEOUT},
			hypervisor.Transient, hypervisor.Transient},
		{"a lost connection", libvirt.Error{Code: libvirt.ERR_RPC, Domain: libvirt.FROM_RPC},
			hypervisor.Unknown, hypervisor.Transient},
		{"a socket that closed", libvirt.Error{Code: libvirt.ERR_INTERNAL_ERROR,
			Domain: libvirt.FROM_RPC}, hypervisor.Unknown, hypervisor.Transient},
		{"it moved, but the call failed", libvirt.Error{Code: libvirt.ERR_MIGRATE_FINISH_OK},
			hypervisor.Unknown, hypervisor.Transient},
		{"the guest's agent may have done it",
			libvirt.Error{Code: libvirt.ERR_AGENT_COMMAND_TIMEOUT},
			hypervisor.Unknown, hypervisor.Transient},
		{"a function that libvirt.so lacks, or a program that libvirtd runs and that fails",
			libvirt.Error{Code: libvirt.ERR_INTERNAL_ERROR},
			hypervisor.Unknown, hypervisor.Transient},
		{"a code of the future", libvirt.Error{Code: 9999},
			hypervisor.Unknown, hypervisor.Transient},
		{"below other words", fmt.Errorf("a: %w", libvirt.Error{Code: libvirt.ERR_NO_DOMAIN}),
			hypervisor.NotFound, hypervisor.NotFound},
		{"its text says nothing", errors.New("Domain not found"),
			hypervisor.Unknown, hypervisor.Transient},
		{"what was classified keeps its kind",
			backend.Errorf(hypervisor.NoRoom, "%w", libvirt.Error{Code: libvirt.ERR_RPC}),
			hypervisor.NoRoom, hypervisor.NoRoom},
		{"a context that ended says nothing", context.Canceled,
			hypervisor.Unknown, hypervisor.Transient},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := Classify(row.err); got != row.act {
				t.Errorf("an act: %v, want %v", got, row.act)
			}
			ours := classify("", row.err)
			if !errors.Is(ours, row.act) || !errors.Is(ours, row.err) {
				t.Errorf("ours is %v", ours)
			}
			if seen := observing(ours); !errors.Is(seen, row.look) || !errors.Is(seen, row.err) {
				t.Errorf("a look: %v, want %v", seen, row.look)
			}
		})
	}
	if Classify(nil) != hypervisor.Unknown {
		t.Error("nil has a kind")
	}
}

func TestWordsAreLibvirtsWithoutNumbers(t *testing.T) {
	err := classify("define", libvirt.Error{Code: libvirt.ERR_DOM_EXIST, Message: "it exists"})
	if got := bare(err).Error(); got != "define: it exists" {
		t.Errorf("got %q", got)
	}
	if e, ok := errors.AsType[libvirt.Error](err); !ok || e.Code != libvirt.ERR_DOM_EXIST {
		t.Errorf("libvirt's own error is not found in %v", err)
	}
	if got := words(libvirt.Error{Code: 38}); got != "libvirt's error 38 without a message" {
		t.Errorf("got %q", got)
	}
	if got := within("connect", err).Error(); got != ": conflict: connect: define: it exists" {
		t.Errorf("got %q", got)
	}
}

func TestVersions(t *testing.T) {
	for _, row := range []struct {
		lib, qemu uint32
		ok        bool
	}{
		{6_000_000, 4_002_000, true}, {9_000_000, 7_002_022, true}, {5_999_999, 7_002_000, false},
		{5_010_000, 4_002_000, false}, {9_000_000, 4_001_050, false}, {0, 0, false},
	} {
		err := checkVersions(row.lib, row.qemu)
		if (err == nil) != row.ok {
			t.Errorf("%d, %d: %v", row.lib, row.qemu, err)
		}
		for _, v := range []uint32{row.lib, row.qemu, oldestLibvirt, oldestQEMU} {
			if err != nil && (!errors.Is(err, hypervisor.Unsupported) ||
				!strings.Contains(err.Error(), version(v))) {
				t.Errorf("%v does not say %s", err, version(v))
			}
		}
	}
	if got := version(7_002_022); got != "7.2.22" {
		t.Errorf("got %s", got)
	}
}

func TestJobStatsOf(t *testing.T) {
	got := JobStatsOf(libvirt.DomainJobInfo{Type: libvirt.DOMAIN_JOB_UNBOUNDED,
		Operation:   libvirt.DOMAIN_JOB_OPERATION_MIGRATION_OUT,
		TimeElapsed: 1500, Downtime: 300, DowntimeNet: 290, SetupTime: 5,
		MemTotal: 1 << 30, MemProcessed: 1 << 20, MemRemaining: 1 << 10, MemBps: 7,
		MemDirtyRate: 100, MemPageSize: 65536, MemIteration: 3, MemPostcopyReqs: 11,
		DiskTotal: 4, DiskProcessed: 3, DiskRemaining: 1, DiskBps: 2,
		AutoConvergeThrottle: 20, ErrorMessage: "no"})
	want := JobStats{Type: JobUnbounded, Operation: MigrationOut,
		Elapsed: 1500 * time.Millisecond, Downtime: 300 * time.Millisecond,
		DowntimeNet: 290 * time.Millisecond, Setup: 5 * time.Millisecond,
		MemoryTotal: hypervisor.GiB, MemoryProcessed: hypervisor.MiB,
		MemoryRemaining: hypervisor.KiB, MemoryBandwidth: 7,
		DirtyRate: 6553600, PageSize: 64 * hypervisor.KiB, Iteration: 3, PostCopyRequests: 11,
		DiskTotal: 4, DiskProcessed: 3, DiskRemaining: 1, DiskBandwidth: 2,
		Throttle: 20, Error: "no"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := JobStatsOf(libvirt.DomainJobInfo{MemDirtyRate: 2}).DirtyRate; got != 8192 {
		t.Errorf("without a page size: %d bytes/s, want two pages of 4 KiB", got)
	}
	if diff := cmp.Diff(JobStats{}, JobStatsOf(libvirt.DomainJobInfo{})); diff != "" {
		t.Errorf("nothing was told (-want +got):\n%s", diff)
	}
}

// TestAbsurdStatistics: what fits no type of ours neither panics nor turns negative.
func TestAbsurdStatistics(t *testing.T) {
	const most = math.MaxUint64
	got := JobStatsOf(libvirt.DomainJobInfo{Type: 77, Operation: -3, TimeElapsed: most,
		Downtime: most / 1000, MemTotal: most, MemBps: most, MemDirtyRate: most / 2,
		MemPageSize: most, MemIteration: most})
	want := JobStats{Elapsed: math.MaxInt64, Downtime: math.MaxInt64, MemoryTotal: math.MaxInt64,
		MemoryBandwidth: math.MaxInt64, DirtyRate: math.MaxInt64, PageSize: math.MaxInt64,
		Iteration: math.MaxInt64}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHowAJobEnded(t *testing.T) {
	for _, row := range []struct {
		info libvirt.DomainJobInfo
		want JobType
	}{
		{libvirt.DomainJobInfo{}, JobDone},
		{libvirt.DomainJobInfo{JobSuccessSet: true, JobSuccess: true}, JobDone},
		{libvirt.DomainJobInfo{JobSuccessSet: true}, JobFailed},
	} {
		if got := completed(row.info).Type; got != row.want {
			t.Errorf("%+v: %v, want %v", row.info, got, row.want)
		}
	}
}

// TestLifecycleDetails: the words that a migration is told from stand for libvirt's
// numbers.
func TestLifecycleDetails(t *testing.T) {
	type detail = int
	for _, row := range []struct {
		event  libvirt.DomainEventType
		detail detail
		what   What
		why    Detail
	}{
		{libvirt.DOMAIN_EVENT_STARTED, detail(libvirt.DOMAIN_EVENT_STARTED_BOOTED), Started,
			Booted},
		{libvirt.DOMAIN_EVENT_STARTED, detail(libvirt.DOMAIN_EVENT_STARTED_MIGRATED), Started,
			Migrated},
		{libvirt.DOMAIN_EVENT_SUSPENDED, detail(libvirt.DOMAIN_EVENT_SUSPENDED_PAUSED), Suspended,
			Paused},
		{libvirt.DOMAIN_EVENT_SUSPENDED, detail(libvirt.DOMAIN_EVENT_SUSPENDED_MIGRATED),
			Suspended, Migrated},
		{libvirt.DOMAIN_EVENT_SUSPENDED, detail(libvirt.DOMAIN_EVENT_SUSPENDED_IOERROR),
			Suspended, IOError},
		{libvirt.DOMAIN_EVENT_SUSPENDED, detail(libvirt.DOMAIN_EVENT_SUSPENDED_API_ERROR),
			Suspended, APIError},
		{libvirt.DOMAIN_EVENT_SUSPENDED, detail(libvirt.DOMAIN_EVENT_SUSPENDED_POSTCOPY),
			Suspended, PostCopy},
		{libvirt.DOMAIN_EVENT_SUSPENDED, detail(libvirt.DOMAIN_EVENT_SUSPENDED_POSTCOPY_FAILED),
			Suspended, PostCopyFailed},
		{libvirt.DOMAIN_EVENT_RESUMED, detail(libvirt.DOMAIN_EVENT_RESUMED_UNPAUSED), Resumed,
			Unpaused},
		{libvirt.DOMAIN_EVENT_RESUMED, detail(libvirt.DOMAIN_EVENT_RESUMED_MIGRATED), Resumed,
			Migrated},
		{libvirt.DOMAIN_EVENT_RESUMED, detail(libvirt.DOMAIN_EVENT_RESUMED_POSTCOPY), Resumed,
			PostCopy},
		{libvirt.DOMAIN_EVENT_RESUMED, detail(libvirt.DOMAIN_EVENT_RESUMED_POSTCOPY_FAILED),
			Resumed, PostCopyFailed},
		{libvirt.DOMAIN_EVENT_STOPPED, detail(libvirt.DOMAIN_EVENT_STOPPED_SHUTDOWN), Stopped,
			Shutdown},
		{libvirt.DOMAIN_EVENT_STOPPED, detail(libvirt.DOMAIN_EVENT_STOPPED_DESTROYED), Stopped,
			Destroyed},
		{libvirt.DOMAIN_EVENT_STOPPED, detail(libvirt.DOMAIN_EVENT_STOPPED_CRASHED), Stopped,
			ProcessCrashed},
		{libvirt.DOMAIN_EVENT_STOPPED, detail(libvirt.DOMAIN_EVENT_STOPPED_MIGRATED), Stopped,
			Migrated},
		{libvirt.DOMAIN_EVENT_STOPPED, detail(libvirt.DOMAIN_EVENT_STOPPED_FAILED), Stopped,
			Failed},
		{libvirt.DOMAIN_EVENT_STOPPED, detail(libvirt.DOMAIN_EVENT_STOPPED_RECREATED), Stopped,
			"recreated"},
		{libvirt.DOMAIN_EVENT_CRASHED, detail(libvirt.DOMAIN_EVENT_CRASHED_CRASHLOADED), Crashed,
			"crash loaded"},
		{libvirt.DOMAIN_EVENT_DEFINED, detail(libvirt.DOMAIN_EVENT_DEFINED_RENAMED), Defined,
			"renamed"},
		{libvirt.DOMAIN_EVENT_UNDEFINED, 99, Undefined, ""},
		{libvirt.DOMAIN_EVENT_SHUTDOWN, -1, ShutDown, ""},
		{libvirt.DOMAIN_EVENT_PMSUSPENDED, 1, Asleep, "disk"},
		{99, 0, Other, ""},
	} {
		want := Event{What: row.what, Detail: row.why}
		if diff := cmp.Diff(want, lifecycle(row.event, row.detail)); diff != "" {
			t.Errorf("%d, %d (-want +got):\n%s", row.event, row.detail, diff)
		}
	}
}
