//go:build linux

package boltstore_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// The groups of the tests, and the user: no one of this machine.
const (
	viewers, operators, admins, strangers = 54_001, 54_002, 54_003, 54_004
	someUser                              = 54_321
)

// dialAs connects as another user does that is in a group besides its own: the thread that connects
// takes both, and ends.
func dialAs(group uint32) func(string) (net.Conn, error) {
	return func(path string) (c net.Conn, err error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // it is never unlocked: the thread ends with its credentials
			groups := []uint32{group}
			if _, _, no := unix.RawSyscall(unix.SYS_SETGROUPS, 1, uintptr(unsafe.Pointer(&groups[0])), 0); no != 0 {
				err = no
				return
			}
			for _, set := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
				if _, _, no := unix.RawSyscall(set, someUser, someUser, someUser); no != 0 {
					err = no
					return
				}
			}
			fd, errSocket := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if errSocket != nil {
				err = errSocket
				return
			}
			if err = unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
				_ = unix.Close(fd)
				return
			}
			f := os.NewFile(uintptr(fd), path)
			c, err = net.FileConn(f)
			_ = f.Close()
		}()
		<-done
		return c, err
	}
}

// An office serves a store to users with roles, and keeps what it is told.
type office struct {
	store *boltstore.Store
	path  string
	mu    sync.Mutex
	told  []boltstore.Asked
}

func newOffice(t *testing.T) *office {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be other users")
	}
	dir := newDir(t)
	o := &office{store: newStore(t, dir), path: filepath.Join(dir, "sock")}
	must(t, os.Chmod(dir, 0o755))
	access := boltstore.Access{Viewers: []uint32{viewers}, Operators: []uint32{operators},
		Admins: []uint32{admins}, Asked: func(q boltstore.Asked) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.told = append(o.told, q)
		}}
	l, err := boltstore.ListenTo(o.path, access)
	must(t, err)
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- boltstore.ServeTo(serving, o.store, l, access) }()
	t.Cleanup(func() {
		stop()
		must(t, <-ended)
	})
	return o
}

func (o *office) as(t *testing.T, group uint32) *boltstore.Client {
	t.Helper()
	c := dial(t, o.path)
	c.Reach(dialAs(group))
	return c
}

// last returns what was told since the last call.
func (o *office) last() []boltstore.Asked {
	o.mu.Lock()
	defer o.mu.Unlock()
	told := o.told
	o.told = nil
	return told
}

func refused(t *testing.T, o *office, what string, err error) {
	t.Helper()
	told := o.last()
	if !errors.Is(err, store.Forbidden) || !strings.Contains(err.Error(), "ask the administrator") {
		t.Errorf("%s: %v", what, err)
	}
	if len(told) != 1 || told[0].Refused == nil || told[0].Peer.UID != someUser ||
		!strings.Contains(told[0].What(), "refused") {
		t.Errorf("%s: it is told as %+v", what, told)
	}
}

func anyRecord(k store.Kind) store.Record {
	return map[store.Kind]store.Record{store.MigrationKind: &store.Migration{Spec: migration.Spec{ID: "m"}},
		store.VMKind: vmOn("v", "n1"), store.HostKind: &store.Host{Host: hypervisor.Host{Name: "h"}},
		store.RebuildKind: &store.Rebuild{VM: "v", Source: "n1"}, store.LeaseKind: &store.Lease{Owner: "host/n1"},
		store.LeaderKind: &store.Leader{Name: "cluster"}, store.PlanKind: &store.Plan{Name: "p"},
		store.MaintenanceKind: &store.Maintenance{Name: "m"}}[k]
}

// TestAUserCannotFillTheAuditLog: each line of it is written to the disk.
func TestAUserCannotFillTheAuditLog(t *testing.T) {
	o := newOffice(t)
	viewer := o.as(t, viewers)
	const asked = 150
	began := time.Now()
	for range asked {
		if err := viewer.Delete(ctx, vmOn("v", "n1")); !errors.Is(err, store.Forbidden) {
			t.Fatalf("a viewer deletes: %v", err)
		}
	}
	if told, most := len(o.last()), 100+int(time.Since(began).Seconds())+1; told < 100 || told > most {
		t.Errorf("%d refusals of %d are told, want 100 to %d", told, asked, most)
	}
}

// TestAUserCannotTakeAllConnections: neither one without a role nor one with any role but an admin's.
func TestAUserCannotTakeAllConnections(t *testing.T) {
	o := newOffice(t)
	root := dial(t, o.path)
	for group, most := range map[uint32]int{strangers: 4, viewers: 32, operators: 32} {
		var held []net.Conn
		for range most {
			c, err := dialAs(group)(o.path)
			must(t, err)
			held = append(held, c)
		}
		c, err := dialAs(group)(o.path)
		must(t, err)
		must(t, c.SetReadDeadline(time.Now().Add(testutil.Limit(5*time.Second))))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("one more than %d of group %d: %v", most, group, err)
		}
		_ = c.Close()
		if _, err := root.Get(soon(t), vmOn("v", "").Key()); err != nil {
			t.Errorf("an admin meanwhile: %v", err)
		}
		for _, c := range held {
			_ = c.Close()
		}
		testutil.Eventually(t, "they are answered again", func() error {
			_, err := o.as(t, group).Get(ctx, vmOn("v", "").Key())
			if (group == strangers) == errors.Is(err, store.Forbidden) && !errors.Is(err, store.Unavailable) {
				return nil
			}
			return err
		})
	}
}

// TestEveryOperationNeedsARole: of those that wire.go names, none is left out.
func TestEveryOperationNeedsARole(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "wire.go", nil, 0)
	must(t, err)
	n := 0
	ast.Inspect(f, func(node ast.Node) bool {
		v, is := node.(*ast.ValueSpec)
		if !is || !strings.HasPrefix(v.Names[0].Name, "op") || len(v.Values) != 1 {
			return true
		}
		op := strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`)
		if n++; boltstore.Needed()[op] == boltstore.NoRole {
			t.Errorf("%s needs no role", op)
		}
		return true
	})
	if n != len(boltstore.Needed()) {
		t.Errorf("%d operations, %d in the table", n, len(boltstore.Needed()))
	}
}

// TestAViewerReadsAndWritesNothing: it tries every write, of every kind of record.
func TestAViewerReadsAndWritesNothing(t *testing.T) {
	o := newOffice(t)
	viewer, stranger := o.as(t, viewers), o.as(t, strangers)
	for _, kind := range store.Kinds() {
		r := anyRecord(kind)
		stored, err := o.store.Put(ctx, r)
		must(t, err)
		if got, err := viewer.Get(ctx, r.Key()); err != nil || got == nil {
			t.Errorf("a viewer reads %v: %v, %v", kind, got, err)
		}
		for what, next := range map[string]store.Record{"change": stored, "create": r.WithVersion(0)} {
			_, err = viewer.Put(ctx, next)
			refused(t, o, what+" "+kind.String(), err)
		}
		refused(t, o, "delete "+kind.String(), viewer.Delete(ctx, stored))
		if now, err := o.store.Get(ctx, r.Key()); err != nil || now == nil || now.RecordVersion() != stored.RecordVersion() {
			t.Errorf("%v was changed: %v, %v", kind, now, err)
		}
		_, err = stranger.Get(ctx, r.Key())
		refused(t, o, "a stranger reads", err)
	}
	h, _, err := viewer.History(ctx)
	must(t, err)
	_, err = viewer.Amend(ctx, h)
	refused(t, o, "amend", err)
	if _, err := viewer.Changes(ctx, store.Everything, 0); err != nil {
		t.Error(err)
	}
	must(t, viewer.Wait(ctx, store.Everything, 0))
}

// onTheWay is a migration whose target listens.
func onTheWay() *store.Migration {
	return &store.Migration{Spec: migration.Spec{ID: "on#1", VM: "v"}, State: migration.State{Phase: migration.Running,
		Source: "n1", Target: "n2"}, Target: store.TargetReport{Address: "tcp:10.0.0.2?token=secret"}}
}

// addresses returns at which address a migration's target listens, as a client reads it in both ways.
func addresses(t *testing.T, c *boltstore.Client, m *store.Migration, f store.Feed) (read []hypervisor.Address) {
	t.Helper()
	r, err := c.Get(ctx, m.Key())
	must(t, err)
	changes, err := c.Changes(ctx, f, 0)
	must(t, err)
	for _, r := range append(changes.Records, r) {
		if m, is := r.(*store.Migration); is {
			read = append(read, m.Target.Address)
		}
	}
	return read
}

// TestAViewerDoesNotReadTheAddressOfATarget: its token is what a source is known by.
func TestAViewerDoesNotReadTheAddressOfATarget(t *testing.T) {
	o, m := newOffice(t), onTheWay()
	_, err := o.store.Put(ctx, m)
	must(t, err)
	for _, group := range []uint32{viewers, operators, admins} {
		want := m.Target.Address
		if group == viewers {
			want = "hidden"
		}
		if got := addresses(t, o.as(t, group), m, store.Everything); !slices.Equal(got,
			[]hypervisor.Address{want, want}) {
			t.Errorf("a member of group %d reads %q, want %q", group, got, want)
		}
	}
	if r, err := o.store.Get(ctx, m.Key()); err != nil || r.(*store.Migration).Target.Address != m.Target.Address {
		t.Errorf("the store has %+v, %v", r, err)
	}
}

// TestAnOperatorChangesWhatIsItsOwn: each field of each record is tried.
func TestAnOperatorChangesWhatIsItsOwn(t *testing.T) {
	o := newOffice(t)
	operator, admin := o.as(t, operators), o.as(t, admins)
	for _, kind := range store.Kinds() {
		stored, err := o.store.Put(ctx, anyRecord(kind))
		must(t, err)
		record := reflect.TypeOf(stored).Elem()
		for i := range record.NumField() {
			name := record.Field(i).Name
			next := reflect.New(record)
			next.Elem().Set(reflect.ValueOf(stored).Elem())
			if name == "Version" || !otherwise(next.Elem().Field(i), 0) {
				continue
			}
			r := next.Interface().(store.Record)
			if r.Key() != stored.Key() {
				continue // it is another record
			}
			now, err := operator.Put(ctx, r)
			what := kind.String() + " " + name
			if !slices.Contains(boltstore.Operated()[kind], name) {
				refused(t, o, what, err)
				continue
			}
			if told := o.last(); err != nil || len(told) != 1 || told[0].Refused != nil ||
				!slices.Equal(told[0].Fields, []string{name}) {
				t.Errorf("%s: %v, told %+v", what, err, told)
				continue
			}
			stored = now
		}
		if _, err := admin.Put(ctx, stored); err != nil {
			t.Errorf("an admin writes %v: %v", kind, err)
		}
		o.last()
		now, err := o.store.Get(ctx, stored.Key())
		must(t, err)
		refused(t, o, "delete "+kind.String(), operator.Delete(ctx, now))
	}
	for _, over := range []time.Time{{}, time.Unix(1, 0)} {
		plan, err := admin.Put(ctx, &store.Plan{Name: "old" + over.String(), Ended: over})
		must(t, err)
		o.last()
		err = operator.Delete(ctx, plan)
		if told := o.last(); errors.Is(err, store.Forbidden) != over.IsZero() || len(told) != 1 {
			t.Errorf("an operator deletes a plan that ended %v: %v, told %+v", over, err, told)
		}
	}
	if _, err := operator.Put(ctx, vmOn("new", "n1")); err != nil {
		t.Errorf("an operator adds a VM: %v", err)
	}
	asked := &store.Migration{Spec: migration.Spec{ID: "new#1", VM: "new"}}
	if _, err := operator.Put(ctx, asked); err != nil {
		t.Errorf("an operator asks for a migration: %v", err)
	}
	o.last()
	ended := &store.Migration{Spec: migration.Spec{ID: "new#2", VM: "new"}, State: migration.State{Target: "n2"}}
	_, err := operator.Put(ctx, ended)
	refused(t, o, "a migration that has a state", err)
	guessed := vmOn("v", "n2").WithVersion(1 << 40)
	if _, err := operator.Put(ctx, guessed); !errors.Is(err, store.Stale) {
		t.Errorf("a version that is guessed: %v", err)
	}
}

// TestAnOperatorDeletesAVMThatDoesNotRun: the record of one that may run is not to be made anew, on another host. It is
// judged in the version that is deleted.
func TestAnOperatorDeletesAVMThatDoesNotRun(t *testing.T) {
	o := newOffice(t)
	operator := o.as(t, operators)
	for name, c := range map[string]struct {
		change func(*store.VM)
		may    bool
	}{
		"it runs":                                  {func(*store.VM) {}, false},
		"it is to stop":                            {func(v *store.VM) { v.Stopped = true }, false},
		"it has ended, and is to start again":      {func(v *store.VM) { v.Ended = true }, false},
		"it has stopped":                           {func(v *store.VM) { v.Stopped, v.Ended = true, true }, true},
		"it is on no host":                         {func(v *store.VM) { v.Host = "" }, true},
		"it is on no host, and a migration has it": {func(v *store.VM) { v.Host, v.ActiveMigration = "", "v#1" }, false},
		"it has stopped, and a migration has it": {func(v *store.VM) {
			v.Stopped, v.Ended, v.ActiveMigration = true, true, "v#1"
		}, false},
	} {
		v := vmOn(name, "n1")
		c.change(v)
		stored, err := o.store.Put(ctx, v)
		must(t, err)
		if err := operator.Delete(ctx, stored.WithVersion(stored.RecordVersion()+1)); !errors.Is(err, store.Stale) {
			t.Errorf("%s: a version that is guessed: %v", name, err)
		}
		o.last()
		if !c.may {
			refused(t, o, name, operator.Delete(ctx, stored))
			continue
		}
		if err := operator.Delete(ctx, stored); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		o.last()
	}
}

// otherwise changes a value; it reports false for one that it cannot.
func otherwise(v reflect.Value, depth int) bool {
	if depth > 6 || !v.CanSet() {
		return false
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(v.Int() + 1)
	case reflect.Uint, reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(v.Uint() + 1)
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		otherwise(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		otherwise(v.Index(0), depth+1)
	case reflect.Map:
		m := reflect.MakeMap(v.Type())
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		otherwise(key, depth+1)
		otherwise(value, depth+1)
		m.SetMapIndex(key, value)
		v.Set(m)
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "ID" && name != "Name" && otherwise(v.Field(i), depth+1) {
				return true
			}
		}
		return false
	default:
		return false
	}
	return true
}

// TestTheSocketOfRolesHasToBeReached: a directory that is closed to others is refused.
func TestTheSocketOfRolesHasToBeReached(t *testing.T) {
	dir := newDir(t)
	path := filepath.Join(dir, "sock")
	if _, err := boltstore.ListenTo(path, boltstore.Access{Viewers: []uint32{1}}); err == nil ||
		!strings.Contains(err.Error(), "chmod a+x") {
		t.Errorf("in a closed directory: %v", err)
	}
	must(t, os.Chmod(dir, 0o755))
	l, err := boltstore.ListenTo(path, boltstore.Access{Viewers: []uint32{1}})
	must(t, err)
	defer l.Close()
	at, err := os.Stat(path)
	must(t, err)
	if at.Mode().Perm() != 0o666 {
		t.Errorf("its mode is %v", at.Mode())
	}
}
