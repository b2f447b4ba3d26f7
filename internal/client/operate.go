// Package client is what operators do and see: it turns requests into records, and records into
// reports.
//
// A request of a [Client] changes one record, or none. The client acts on nothing itself:
// controllers and agents read what is stored. Every change is a compare-and-swap: if another
// writer was faster, the client reads the record again and checks the request again. It writes
// only the operator's fields, except that a VM may be added on the host where it is to run.
// A request that is impossible is refused with a *[RefusedError], an unknown name with an
// *[UnknownError], which lists similar names. All other errors are the store's.
//
// [MakeStatus] and [Explain] report the state of a cluster: its hosts, its VMs, the migrations with
// their predicted ends, and why a VM is where it is. They only read.
//
// A [Cluster] is a cache of the store: after the first [Cluster.Pull] it reads only changes. Its
// records are shared: do not modify them. Status pages and metrics are made from it.
//
// # Overview
//
// [MakeOverview] is what godwit top prints and what the controller's page shows: what runs where, what
// moves, when a draining host will be empty, and what needs an operator. It is pure. A [Follower] reads the
// records for it, and writes nothing.
//
// [PageHandler] serves the page. It only reads: there is nothing on the page that changes anything, and
// every method but GET is refused.
//
//	/            the page; it follows the cluster by itself, and is complete without scripts
//	/vm?name=VM  why a VM is where it is
//	/events      server-sent events: "hello" with the version of the page, "view" with its contents,
//	             and "beat" when nothing has changed
//
// Everything comes from the same origin, and the browser is told to load nothing else. What people
// have named is text, never markup: html/template escapes it.
//
// The page asks for no password. It listens on the loopback unless it is told another address:
// what reaches it from elsewhere is an SSH tunnel, or a proxy that authenticates.
package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// A Client takes the requests of operators.
type Client struct {
	Store store.Store
	// Now is the operator's clock: migrations carry when they were asked for.
	Now func() time.Time
	// DrainKey is the key of the taint that drains a host. Default: evacuation's.
	DrainKey string
	// By is the name of the operator, which requests about VMs carry. Default: they carry none.
	By string
}

// RefusedError is a request that makes no sense now.
type RefusedError struct {
	What string // the request: "delete vm default/web"
	Why  string // why not, and what to do
}

// Error says what was refused, and why.
func (e *RefusedError) Error() string { return e.What + ": refused: " + e.Why }

func refuse(what, format string, args ...any) error {
	return &RefusedError{What: what, Why: fmt.Sprintf(format, args...)}
}

// UnknownError is a name that does not exist.
type UnknownError struct {
	What string // "vm", "host", "plan", "disk"
	Name string
	Near []string // names that are similar, best first
}

// Error says which name is not known, and which are.
func (e *UnknownError) Error() string {
	text := fmt.Sprintf("there is no %s %q", e.What, e.Name)
	if len(e.Near) > 0 {
		quoted := make([]string, len(e.Near))
		for i, n := range e.Near {
			quoted[i] = fmt.Sprintf("%q", n)
		}
		return text + ": did you mean " + strings.Join(quoted, " or ") + "?"
	}
	return text + ": see godwit " + cmp.Or(listers[e.What], "status")
}

// listers are the commands that list the names of what may be unknown, where godwit status does not.
var listers = map[string]string{"vm": "vm list", "host": "host list", "plan": "apply status",
	"maintenance": "maintenance status", "disk": "vm show"}

// ID returns the name of a VM with its namespace, which by default is "default".
func ID(name string) hypervisor.VMID {
	if !strings.Contains(name, "/") {
		name = "default/" + name
	}
	return hypervisor.VMID(name)
}

// tries bounds the attempts when others write the record at the same time.
const tries = 16

// change reads a record, applies how to a copy, and stores the copy. How may refuse, and may be
// called again; if it changes nothing, nothing is written.
func (d *Client) change(ctx context.Context, key store.Key,
	how func(store.Record) (store.Record, error)) (store.Record, error) {
	for try := 1; ; try++ {
		old, err := d.Store.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		if old == nil {
			return nil, d.Missing(ctx, key)
		}
		next, err := how(old)
		if err != nil {
			return nil, err
		}
		if same(old, next) {
			return old, nil
		}
		stored, err := d.Store.Put(ctx, next)
		switch {
		case err == nil:
			return stored, nil
		case errors.Is(err, store.Unanswered):
			return d.landed(ctx, next, err)
		case !errors.Is(err, store.Stale) || try == tries:
			return nil, err
		}
	}
}

// landed checks whether a record was stored when its write was not answered.
func (d *Client) landed(ctx context.Context, r store.Record, why error) (store.Record, error) {
	now, err := d.Store.Get(ctx, r.Key())
	if err != nil || now == nil || !same(now, r) {
		return nil, fmt.Errorf("%w: it may have been done: check, and try again if it was not", why)
	}
	return now, nil
}

// same reports whether two records say the same, whatever their versions.
func same(a, b store.Record) bool {
	x, errX := store.Encode(a)
	y, errY := store.Encode(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// list reads all records of one type.
func list[R store.Record](ctx context.Context, records store.Store) ([]R, error) {
	changes, err := records.Changes(ctx, store.Everything, 0)
	if err != nil {
		return nil, err
	}
	var found []R
	for _, r := range changes.Records {
		if r, is := r.(R); is {
			found = append(found, r)
		}
	}
	return found, nil
}

// Missing returns the error for a record that is not there.
func (d *Client) Missing(ctx context.Context, key store.Key) error {
	changes, err := d.Store.Changes(ctx, store.Everything, 0)
	if err != nil {
		return err
	}
	var names []string
	for _, r := range changes.Records {
		if r.Key().Kind == key.Kind {
			names = append(names, r.Key().Name)
		}
	}
	return unknown(key.Kind.String(), key.Name, names)
}

// unknown returns the error for a name that is none of those that are known.
func unknown(what, name string, known []string) error {
	return &UnknownError{What: what, Name: name, Near: Near(name, known)}
}

// most is how many similar names are suggested.
const most = 3

// Near returns the names that are most like name: at most a third of their letters differ,
// or only the namespace does.
func Near(name string, known []string) []string {
	type match struct {
		name string
		far  int
	}
	var close []match
	name = strings.ToLower(name)
	if len(name) > longestName {
		return nil
	}
	for _, k := range known {
		far := distance(name, strings.ToLower(k))
		if base(name) == base(strings.ToLower(k)) {
			far = min(far, 1)
		}
		if far <= max(1, len(base(name))/3) {
			close = append(close, match{k, far})
		}
	}
	slices.SortFunc(close, func(a, b match) int {
		if a.far != b.far {
			return a.far - b.far
		}
		return strings.Compare(a.name, b.name)
	})
	var names []string
	for _, m := range close[:min(len(close), most)] {
		names = append(names, m.name)
	}
	return names
}

func base(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// longestName bounds what is compared: names that are longer are like no other.
const longestName = 64

// distance is how many letters must be put in, taken out, changed or swapped with the next
// to make b of a.
func distance(a, b string) int {
	if len(a) > longestName || len(b) > longestName {
		return longestName
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			rows[i][j] = min(change, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

func vmKey(id hypervisor.VMID) store.Key {
	return store.Key{Kind: store.VMKind, Name: string(id)}
}

func hostKey(name hypervisor.HostName) store.Key {
	return store.Key{Kind: store.HostKind, Name: string(name)}
}

// unfinished lists the migrations of a VM that have not ended.
func (d *Client) unfinished(ctx context.Context, id hypervisor.VMID) ([]*store.Migration, error) {
	all, err := list[*store.Migration](ctx, d.Store)
	return slices.DeleteFunc(all, func(m *store.Migration) bool {
		return m.Spec.VM != id || m.State.Phase.Final()
	}), err
}

// newID returns a new migration name: hypervisors remember names that were used.
func newID(vm hypervisor.VMID, now time.Time) migration.ID {
	return migration.ID(fmt.Sprintf("%s#u%x", vm, now.UnixNano()))
}
