package boltstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/user"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// A Role is what a peer may do. Each but Agent may do what those before it may.
type Role uint8

// The roles.
const (
	NoRole   Role = iota
	Viewer        // reads
	Operator      // changes what the store's records name as written by operators, but for what an Admin does
	Admin         // everything: agents, controllers, and the right to confirm that a host is down
	Agent         // of a host, by its certificate: it changes what is its host's, see AgentMay
)

// String returns the word for the role.
func (r Role) String() string {
	if words := [...]string{"none", "viewer", "operator", "admin", "agent"}; int(r) < len(words) {
		return words[r]
	}
	return strconv.Itoa(int(r))
}

// needed is the role that each operation needs. What an Operator may write is in operated.
var needed = map[string]Role{opGet: Viewer, opChanges: Viewer, opWait: Viewer, opHistory: Viewer,
	opPut: Operator, opDelete: Operator, opBackup: Operator, opAmend: Admin}

// may reports whether a role has an operation at all.
func (r Role) may(op string) bool {
	if r == Agent {
		return op != opBackup
	}
	return r != NoRole && r >= needed[op]
}

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

// Access configures the rights of clients at a socket. The zero value lets each process that can reach it do
// everything.
type Access struct {
	// Viewers, Operators and Admins are the groups whose members have these roles. Root, and the user
	// that serves, are admins. Default: the socket can be reached by these two only.
	Viewers, Operators, Admins []uint32
	// Certified returns the rights of a client by its certificate; then the groups say nothing. Default: peers
	// are known by the kernel's word.
	Certified *Names
	// Asked is told of each request that changes what operators decide, and of each that is refused.
	// Default: nothing is.
	Asked func(Asked)
}

// Names are the names of people, in their certificates, by role. A host is known by the kind of its
// certificate: see pki.Holder.
type Names struct{ Viewers, Operators, Admins []string }

// role returns which role a peer has that has shown a certificate.
func (n *Names) role(p Peer) Role {
	switch {
	case p.Name == "":
		return NoRole
	case p.Agent:
		return Agent
	case slices.Contains(n.Admins, p.Name):
		return Admin
	case slices.Contains(n.Operators, p.Name):
		return Operator
	case slices.Contains(n.Viewers, p.Name):
		return Viewer
	}
	return NoRole
}

// Open reports whether the socket is to be reached by other users.
func (a *Access) Open() bool { return len(a.Viewers)+len(a.Operators)+len(a.Admins) > 0 }

// role returns which role a peer has.
func (a *Access) role(p Peer) Role {
	in := func(groups []uint32) bool {
		return slices.ContainsFunc(groups, func(g uint32) bool { return slices.Contains(p.Groups, g) })
	}
	switch {
	case a.Certified != nil:
		return a.Certified.role(p)
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

// A Peer is the client at the other end of a connection: the process by the kernel's word when it
// connected, or the holder of the certificate that it has shown.
type Peer struct {
	Known  bool // by the kernel's word: these
	PID    int32
	UID    uint32
	Groups []uint32

	// Name is that in the certificate. Default: it has shown none.
	Name    string
	Agent   bool   // and Name is that of a host
	Address string // where it has connected from
	since   time.Time
}

// host returns of which host the peer is the agent.
func (p Peer) host() hypervisor.HostName { return hypervisor.HostName(p.Name) }

// who returns what the peer is known by: its name, or its user.
func (p Peer) who() string {
	switch {
	case p.Name != "":
		return p.Name
	case p.Known:
		return fmt.Sprintf("uid %d", p.UID)
	}
	return ""
}

// String names the peer for people.
func (p Peer) String() string {
	switch {
	case p.Name != "" && p.Agent:
		return fmt.Sprintf("agent of %s (certificate) at %s", p.Name, p.Address)
	case p.Name != "":
		return fmt.Sprintf("%s (certificate) at %s", p.Name, p.Address)
	case !p.Known:
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
	Untold  int          // how many of the peer's requests were refused before and not told of
}

// forbidden is the error of a peer that may not do something.
func (q *Asked) forbidden(needs Role, what string) error {
	flag := fmt.Sprintf("--%v-group", needs)
	if q.Peer.Name != "" {
		flag = fmt.Sprintf("--%vs", needs)
	}
	return q.refuse(fmt.Errorf("%v has the role %v, and %s needs %v: ask the administrator of the "+
		"controller, or see its %s", q.Peer, q.Role, what, needs, flag))
}

// notIts is the error of an agent that may not do something.
func (q *Asked) notIts(what string) error {
	return q.refuse(fmt.Errorf("%v changes what is its host's, and not %s", q.Peer, what))
}

func (q *Asked) refuse(why error) error {
	q.Refused = why
	e := &store.StoreError{Op: q.Op, Kind: store.Forbidden, Err: q.Refused}
	if q.Record != nil {
		e.Key = q.Record.Key()
	}
	return e
}

type peerKey struct{}

// withPeer puts the peer of a connection into its context.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	p := Peer{}
	switch c := c.(type) {
	case *certified:
		p = c.peer
	case *userConn:
		p = c.peer
	default:
		p = PeerOf(c)
	}
	return context.WithValue(ctx, peerKey{}, p)
}

// asker returns the client of a request, from its context.
func asker(ctx context.Context) Peer {
	p, _ := ctx.Value(peerKey{}).(Peer)
	return p
}

// admitted refuses an operation that the peer has no role for.
func (h *handler) admitted(ctx context.Context, op string) (Asked, error) {
	peer := asker(ctx)
	q := Asked{Peer: peer, Op: op, Role: h.access.role(peer)}
	if !q.Role.may(op) {
		err := q.forbidden(max(needed[op], Viewer), op)
		h.tell(q)
		return q, err
	}
	return q, nil
}

// tell tells of a request.
func (h *handler) tell(q Asked) {
	if h.access.Asked == nil {
		return
	}
	if q.Refused != nil {
		var told bool
		if q.Untold, told = h.refusals.take(q.Peer.who(), time.Now()); !told {
			return
		}
	}
	h.access.Asked(q)
}

// How many refusals of one peer are told of: at once, and then in a second. More would push what others
// have done out of a log that is rotated.
const (
	refusedAtOnce  = 100
	refusedASecond = 1
)

// refusals counts what is told of peers that are refused, by who they are. The zero value has told nothing.
type refusals struct {
	mu sync.Mutex
	of map[string]*allowance
}

// An allowance is what may still be told of a peer.
type allowance struct {
	left   float64
	at     time.Time
	untold int
}

// take reports whether the next refusal of a peer is told, and how many before it were not.
func (r *refusals) take(name string, now time.Time) (untold int, told bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.of[name]
	if a == nil {
		if r.of == nil {
			r.of = map[string]*allowance{}
		}
		a = &allowance{left: refusedAtOnce, at: now}
		r.of[name] = a
	}
	a.left = min(refusedAtOnce, a.left+max(0, now.Sub(a.at).Seconds())*refusedASecond)
	if a.at = now; a.left < 1 {
		a.untold++
		return 0, false
	}
	a.left--
	untold, a.untold = a.untold, 0
	return untold, true
}

// readable refuses a feed that the peer has no role for. Over a network a feed of a host is for its own
// agent: each that is followed costs the controller memory.
func (h *handler) readable(q *Asked, f store.Feed) error {
	own := q.Role == Agent && (f == store.Leases || f == store.Feed{Host: q.Peer.host()})
	switch {
	case h.access.Certified == nil, q.Role == Admin, own, q.Role != Agent && f.Host == "":
		return nil
	case q.Role == Agent:
		err := q.refuse(fmt.Errorf("%v reads what concerns its host: people have certificates of their own",
			q.Peer))
		h.tell(*q)
		return err
	}
	err := q.forbidden(Admin, "to follow a host")
	h.tell(*q)
	return err
}

// hiddenAddress is what a peer reads in place of an address that it may not know. It is not empty: the target
// listens.
const hiddenAddress hypervisor.Address = "hidden"

// shown returns a record as a peer may read it. The address at which the target of a migration listens has the
// token by which a source is known: who has it, and reaches the target, can send a VM of its own there, or end
// the migration. Only the agents of its two hosts need it, and a viewer writes nothing. What such a peer writes
// back is refused, as it was before: the record is not its own.
func (q *Asked) shown(r store.Record) store.Record {
	m, is := r.(*store.Migration)
	if !is || m.Target.Address == "" {
		return r
	}
	host := q.Peer.host()
	takesPart := host == m.State.Source || host == m.State.Target
	if q.Role != Viewer && (q.Role != Agent || takesPart) {
		return r
	}
	hidden := *m
	hidden.Target.Address = hiddenAddress
	return &hidden
}

// changing finds out what a write changes, and refuses what the peer has no role for. It is judged by
// the record of the version that the write is conditional on: with another one it is Stale.
func (h *handler) changing(ctx context.Context, q *Asked, next store.Record, while []store.Record) error {
	if q.Role == Admin && h.access.Asked == nil {
		return nil
	}
	if q.Role == Agent {
		return h.acting(ctx, q, next, while)
	}
	key := next.Key()
	old, err := h.store.Get(ctx, key)
	if err != nil {
		return err
	}
	at := next.RecordVersion()
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
	return q.mayChange(key, at, old, next)
}

// acting refuses what the agent of a host may not change.
func (h *handler) acting(ctx context.Context, q *Asked, next store.Record, while []store.Record) error {
	w, why, err := Judge(ctx, h.store, q.Peer.host(), q.Op == opDelete, next, while)
	if err != nil {
		return err
	}
	if q.Record, q.Fields = w.Next, w.fields; w.Next == nil {
		q.Record = w.Old
	}
	if why != "" {
		return q.notIts(why)
	}
	return nil
}

// mayChange refuses what an Operator may not change. The write is conditional on a version.
func (q *Asked) mayChange(key store.Key, at store.Version, old, next store.Record) error {
	may := operated[key.Kind]
	switch {
	case next == nil && old == nil: // it is gone
		return nil
	case old == nil:
		may = slices.Concat(may, made[key.Kind])
	case old.RecordVersion() != at:
		return &store.StoreError{Op: q.Op, Key: key, Kind: store.Stale}
	case next == nil:
		return q.mayDelete(old)
	}
	for _, f := range q.Fields {
		if !slices.Contains(may, f) {
			return q.forbidden(Admin, "to change "+f+" of a "+key.Kind.String())
		}
	}
	return nil
}

// mayDelete refuses what an Operator may not delete. The record of a VM that runs, or may run, is what keeps it from
// being started elsewhere: without it the VM could be added again, on another host.
func (q *Asked) mayDelete(old store.Record) error {
	switch r := old.(type) {
	case *store.VM:
		if r.ActiveMigration == "" && (r.Host == "" || r.Stopped && r.Ended) {
			return nil
		}
		return q.forbidden(Admin, "to delete a VM that runs, or may run")
	case *store.Plan:
		if !r.Ended.IsZero() { // the client that applies the next one forgets it
			return nil
		}
	}
	return q.forbidden(Admin, "to delete a "+old.Key().Kind.String())
}

// asks reports whether a request changes what operators decide: such requests are told of.
func (q *Asked) asks() bool {
	if q.Op == opAmend {
		return true
	}
	if q.Record == nil || q.Role == Agent { // it answers what operators ask for
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
	if q.Untold > 0 {
		text += fmt.Sprintf(" (and %d refusals before it, which are not in the log)", q.Untold)
	}
	return text
}
