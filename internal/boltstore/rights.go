package boltstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/godwit-vm/godwit/store"
)

// A Role is what a process at the other end of a socket may do. Each may do what those before it may.
type Role uint8

// The roles.
const (
	NoRole   Role = iota
	Viewer        // reads
	Operator      // changes what the store's records name as written by operators, but for what an Admin does
	Admin         // everything: agents, controllers, and who may confirm that a host is down
)

// String returns the word for the role.
func (r Role) String() string {
	if words := [...]string{"none", "viewer", "operator", "admin"}; int(r) < len(words) {
		return words[r]
	}
	return strconv.Itoa(int(r))
}

// needed is the role that each operation needs. What an Operator may write is in operated.
var needed = map[string]Role{opGet: Viewer, opChanges: Viewer, opWait: Viewer, opHistory: Viewer,
	opPut: Operator, opDelete: Operator, opBackup: Operator, opAmend: Admin}

// operated are the fields that an Operator may change, by kind; of a kind that is not here, none.
// What could let a VM run twice is not among them: a word that a host is down, or that a host's name
// belongs to another machine. Source: the documentation of the fields in package store.
var operated = map[store.Kind][]string{
	store.VMKind: {"VM", "Labels", "Strategy", "Migratable", "NotMigratableReason", "Placement", "Overhead",
		"Balloon", "CPURequest", "Disk", "EvacuateFrom", "Reboots", "Blockers", "Stopped", "Pause", "Kill", "DiskChanges", "SnapshotRequests", "Rename",
		"Asked", "Release", "Evicted"},
	store.HostKind:      {"Labels", "Taints", "Cordoned", "CordonedFor", "Drain", "DrainBy", "DrainPace", "Facts"},
	store.MigrationKind: {"Cancel"},
	store.PlanKind:      {"Wish"},
	// What a hook has come to says the command that ran it, with the rights of its operator.
	store.MaintenanceKind: {"Wish", "Resumes", "Answers"},
}

// made are the fields that an Operator may set in a record that is created, besides those.
var made = map[store.Kind][]string{
	store.VMKind:        {"Life", "Namespace", "Host", "Moves"},
	store.MigrationKind: {"Spec"},
	store.PlanKind:      {"Name", "Created", "By", "Hosts", "Strict", "Moves"},
	store.MaintenanceKind: {"Name", "Created", "By", "Batches", "Home", "Return", "Strict", "Others", "Windows", "Terms",
		"DrainWithin", "HookWithin", "BackWithin", "SameStart", "Software", "Checked"},
}

// Access says who may do what at a socket. The zero value lets each process that can reach it do
// everything.
type Access struct {
	// Viewers, Operators and Admins are the groups whose members have these roles. Root, and the user
	// that serves, are admins. Default: the socket can be reached by these two only.
	Viewers, Operators, Admins []uint32
	// Asked is told of each request that changes what operators decide, and of each that is refused.
	// Default: nothing is.
	Asked func(Asked)
}

// Open reports whether the socket is to be reached by other users.
func (a *Access) Open() bool { return len(a.Viewers)+len(a.Operators)+len(a.Admins) > 0 }

// role returns which role a peer has.
func (a *Access) role(p Peer) Role {
	in := func(groups []uint32) bool {
		return slices.ContainsFunc(groups, func(g uint32) bool { return slices.Contains(p.Groups, g) })
	}
	switch {
	case !a.Open():
		return Admin
	case !p.Known:
		return NoRole
	case p.UID == 0 || int(p.UID) == os.Geteuid() || in(a.Admins):
		return Admin
	case in(a.Operators):
		return Operator
	case in(a.Viewers):
		return Viewer
	}
	return NoRole
}

// A Peer is the process at the other end of a socket, by the kernel's word when it connected.
type Peer struct {
	Known  bool
	PID    int32
	UID    uint32
	Groups []uint32
}

// String names the peer for people.
func (p Peer) String() string {
	if !p.Known {
		return "an unknown user"
	}
	name := "unknown"
	if u, err := user.LookupId(strconv.Itoa(int(p.UID))); err == nil {
		name = u.Username
	}
	host, _ := os.Hostname() // a socket is of this machine
	return fmt.Sprintf("%s (uid %d) on %s", name, p.UID, host)
}

// Asked is a request of a peer.
type Asked struct {
	Peer    Peer
	Role    Role
	Op      string
	Record  store.Record // as it was asked for; of what is deleted, as it was; nil for Amend
	Fields  []string     // that the request changes, if it is not refused for its operation
	Refused error        // nil: it was done
}

// forbidden is the error of a peer that may not do something.
func (q *Asked) forbidden(needs Role, what string) error {
	q.Refused = fmt.Errorf("%v has the role %v, and %s needs %v: ask the administrator of the "+
		"controller, or see its --%v-group", q.Peer, q.Role, what, needs, needs)
	e := &store.StoreError{Op: q.Op, Kind: store.Forbidden, Err: q.Refused}
	if q.Record != nil {
		e.Key = q.Record.Key()
	}
	return e
}

// admitted refuses an operation that the peer has no role for.
func (h *handler) admitted(ctx context.Context, op string) (Asked, error) {
	peer, _ := ctx.Value(peerKey{}).(Peer)
	q := Asked{Peer: peer, Op: op, Role: h.access.role(peer)}
	if needs := needed[op]; q.Role < needs || q.Role == NoRole {
		err := q.forbidden(max(needs, Viewer), op)
		h.tell(q)
		return q, err
	}
	return q, nil
}

// tell tells of a request.
func (h *handler) tell(q Asked) {
	if h.access.Asked != nil {
		h.access.Asked(q)
	}
}

// changing finds out what a write changes, and refuses what the peer has no role for. It is judged by
// the record of the version that the write is conditional on: with another one it is Stale.
func (h *handler) changing(ctx context.Context, q *Asked, next store.Record) error {
	if q.Role == Admin && h.access.Asked == nil {
		return nil
	}
	key := next.Key()
	old, err := h.store.Get(ctx, key)
	if err != nil {
		return err
	}
	if q.Op == opDelete {
		next, q.Record = nil, old
	} else {
		q.Record = next
	}
	if q.Fields, err = changed(old, next); err != nil {
		return err
	}
	if q.Role == Admin {
		return nil
	}
	return q.mayChange(key, old, next)
}

// mayChange refuses what an Operator may not change.
func (q *Asked) mayChange(key store.Key, old, next store.Record) error {
	may := operated[key.Kind]
	switch {
	case next == nil && old == nil: // it is gone
		return nil
	case next == nil && ended(old) || next == nil && key.Kind == store.VMKind:
		return nil
	case next == nil:
		return q.forbidden(Admin, "to delete a "+key.Kind.String())
	case old == nil:
		may = slices.Concat(may, made[key.Kind])
	case old.At() != next.At():
		return &store.StoreError{Op: q.Op, Key: key, Kind: store.Stale}
	}
	for _, f := range q.Fields {
		if !slices.Contains(may, f) {
			return q.forbidden(Admin, "to change "+f+" of a "+key.Kind.String())
		}
	}
	return nil
}

// ended reports whether a record is a plan that has ended: the client that applies the next one forgets it.
func ended(r store.Record) bool {
	p, is := r.(*store.Plan)
	return is && !p.Ended.IsZero()
}

// asks reports whether a request changes what operators decide: such requests are told of.
func (q *Asked) asks() bool {
	if q.Op == opAmend {
		return true
	}
	if q.Record == nil {
		return false
	}
	kind := q.Record.Key().Kind
	if q.Op == opDelete {
		return kind == store.VMKind || kind == store.PlanKind
	}
	mine := operated[kind]
	switch kind {
	case store.HostKind:
		mine = slices.Concat(mine, []string{"ConfirmedDownBy", "Adopt"})
	case store.MigrationKind, store.PlanKind, store.MaintenanceKind:
		mine = slices.Concat(mine, made[kind])
	}
	return slices.ContainsFunc(q.Fields, func(f string) bool { return slices.Contains(mine, f) })
}

// changed names the fields in which two records differ; nil is a record that is empty.
func changed(old, next store.Record) (fields []string, err error) {
	if next == nil {
		return nil, nil
	}
	now := reflect.ValueOf(next).Elem()
	was := reflect.New(now.Type()).Elem()
	if old != nil {
		if was = reflect.ValueOf(old).Elem(); was.Type() != now.Type() {
			return nil, fmt.Errorf("%T is stored, and not %T", old, next)
		}
	}
	for i := range now.NumField() {
		name := now.Type().Field(i).Name
		if name == "Version" {
			continue
		}
		a, errA := json.Marshal(was.Field(i).Interface())
		b, errB := json.Marshal(now.Field(i).Interface())
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			fields = append(fields, name)
		}
	}
	return fields, nil
}

// What says the request in words.
func (q *Asked) What() string {
	text := strings.ToLower(q.Op)
	if q.Record != nil {
		text += " " + q.Record.Key().Kind.String() + " " + q.Record.Key().Name
	}
	if len(q.Fields) > 0 {
		text += ": " + strings.Join(q.Fields, ", ")
	}
	if q.Refused != nil {
		text = "refused: " + text + ": " + q.Refused.Error()
	}
	return text
}
