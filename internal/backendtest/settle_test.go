//go:build linux

package backendtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/godwit-vm/godwit/internal/durable"
	"github.com/godwit-vm/godwit/internal/etcdtest"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// The records of the whole cluster, at about one time.
type ledger struct {
	vms   map[vmid]*store.VM
	moves []*store.Migration
	hosts map[hostName]*store.Host
	other []store.Record
}

// read reads all records; it persists while the store does not answer.
func read(ctx context.Context, records store.Store) (*ledger, error) {
	var c store.Changes
	var err error
	for range 50 {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		c, err = records.Changes(ctx, store.Everything, 0)
		cancel()
		if err == nil || errors.Is(err, store.Unreadable) {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	l := &ledger{vms: map[vmid]*store.VM{}, hosts: map[hostName]*store.Host{}}
	for _, r := range c.Records {
		switch r := r.(type) {
		case *store.VM:
			l.vms[r.VM.ID] = r
		case *store.Migration:
			l.moves = append(l.moves, r)
		case *store.Host:
			l.hosts[r.Host.Name] = r
		default:
			l.other = append(l.other, r)
		}
	}
	return l, err
}

// unresolved reports whether a migration's outcome is unknown, and why: the evidence that
// is missing must have a name.
func unresolved(m *store.Migration) (why string, is bool) {
	s := &m.State
	if s.Phase.Final() || !s.Conditions.Holds(migration.OutcomeUnknown) {
		return "", false
	}
	return fmt.Sprintf("word of %s and %s", s.Source, s.Target), true
}

// restless lists what has not come to an end in the records: a host that is drained and
// has VMs, a migration that goes on.
func (l *ledger) restless(vms []vmid, drained hostName) []string {
	var why []string
	lost := map[vmid]bool{}
	for _, m := range l.moves {
		_, unknown := unresolved(m)
		lost[m.Spec.VM] = lost[m.Spec.VM] || unknown
		switch s := &m.State; {
		case unknown:
		case !s.Phase.Final():
			why = append(why, fmt.Sprintf("%s is %s", m.Spec.ID, s.Phase))
		case s.Phase == migration.Succeeded && !m.Source.Released:
			why = append(why, fmt.Sprintf("%s is left on %s", m.Spec.ID, s.Source))
		}
	}
	for _, id := range vms {
		v := l.vms[id]
		switch {
		case v == nil:
			why = append(why, fmt.Sprintf("%s has no record", id))
		case lost[id]:
		case v.Host == drained:
			why = append(why, fmt.Sprintf("%s is on %s", id, drained))
		case v.ActiveMigration != "":
			why = append(why, fmt.Sprintf("%s is claimed by %s", id, v.ActiveMigration))
		}
	}
	return why
}

// homeless lists what is not as the records say: a VM without its one QEMU where it is at
// home, a QEMU beyond that.
func (w *checker) homeless(l *ledger, vms []vmid) []string {
	var why []string
	running := w.of()
	for _, id := range vms {
		home, here := hostName(""), running[id]
		delete(running, id)
		if v := l.vms[id]; v != nil {
			home = v.Host
		}
		if len(here) != 1 || here[0].host != home {
			why = append(why, fmt.Sprintf("%s is at home on %s and has the QEMUs %v", id, home,
				here))
		}
	}
	for id, more := range running {
		why = append(why, fmt.Sprintf("%s, which is not known, has the QEMUs %v", id, more))
	}
	return why
}

// settle waits until the cluster is at rest, and stays so for a while. It gives up when
// nothing has changed for so long, on a busy machine everything takes its time, and when it
// only goes round in circles.
func (w *checker) settle(ctx context.Context, store store.Store, vms []vmid, drained hostName,
	patience time.Duration) (*ledger, error) {
	const still = 2 * time.Second
	last, changed, began := "", time.Now(), time.Now()
	for {
		l, err := read(ctx, store)
		if err != nil {
			return nil, err
		}
		why := strings.Join(append(l.restless(vms, drained), w.homeless(l, vms)...), "\n\t")
		now := time.Now()
		if why != last {
			last, changed = why, now
		}
		switch {
		case why != "" && now.Sub(changed) > patience:
			return l, fmt.Errorf("not at rest, and nothing changes for %v:\n\t%s", patience, why)
		case why != "" && now.Sub(began) > 3*patience:
			return l, fmt.Errorf("not at rest after %v:\n\t%s", now.Sub(began), why)
		case why == "" && now.Sub(changed) > still:
			return l, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// sound checks what the guests have witnessed: no guest ran twice or lost a heartbeat, and
// only a guest that lost its QEMU has booted again, as often as its record says at most.
func (w *checker) sound(l *ledger, vms []vmid, dead map[vmid]int) error {
	var bad []error
	for _, id := range vms {
		r := w.rhythm(id)
		if err := r.Check(); err != nil {
			bad = append(bad, fmt.Errorf("%s: %w", id, err))
		}
		v := l.vms[id]
		if v == nil {
			bad = append(bad, fmt.Errorf("%s has no record", id))
			continue
		}
		if r.Boots > 1+dead[id] {
			bad = append(bad, fmt.Errorf("%s has booted %d times, and %d of its QEMUs were "+
				"killed", id, r.Boots, dead[id]))
		}
		if r.Boots > v.Boots {
			bad = append(bad, fmt.Errorf("%s has booted %d times, and its record says %d", id,
				r.Boots, v.Boots))
		}
	}
	for _, id := range w.heard() {
		if !slices.Contains(vms, id) {
			bad = append(bad, fmt.Errorf("%s was started, which was not asked for", id))
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(append(bad, w.unheard...)...)
}

// whole checks the memory of every VM. The agents must have ended.
func (w *checker) whole(vms []vmid) error {
	var bad []error
	running := w.of()
	for _, id := range vms {
		if len(running[id]) != 1 { // which is said elsewhere; a target must not be let go
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), testutil.Limit(testutil.DefaultLimit))
		if err := w.inspect(ctx, running[id][0]); err != nil {
			bad = append(bad, fmt.Errorf("%s in %s: %w", id, running[id][0], err))
		}
		cancel()
	}
	return errors.Join(append(bad, w.await(vms, time.Minute))...)
}

// left lists the files that hosts keep of VMs which are not at home there, and disks,
// which these VMs do not have.
func (w *checker) left(l *ledger, hosts []hostName) error {
	var bad []error
	for _, h := range hosts {
		var home []string
		for id, v := range l.vms {
			if v.Host == h {
				home = append(home, string(id))
			}
		}
		found, err := filepath.Glob(filepath.Join(w.dir, string(h), "vms", "*"))
		bad = append(bad, err)
		if len(found) != len(home) {
			bad = append(bad, fmt.Errorf("%s keeps %v, and is the home of %v", h, found, home))
		}
		disks, err := filepath.Glob(filepath.Join(w.dir, string(h), "disks", "*"))
		if err != nil || len(disks) > 0 {
			bad = append(bad, fmt.Errorf("%s has left %v, %v", h, disks, err))
		}
		for _, end := range []string{durable.Unfinished, durable.Gone} {
			left, err := filepath.Glob(filepath.Join(w.dir, string(h), "*", "*"+end))
			if err != nil || len(left) > 0 {
				bad = append(bad, fmt.Errorf("%s has left %v, %v", h, left, err))
			}
		}
	}
	return errors.Join(bad...)
}

// strangers lists what runs in the namespaces besides the tests, etcd and the QEMUs, and
// kills it, so that it is told of once.
func (w *checker) strangers() error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	known := map[int]bool{1: true, os.Getpid(): true}
	for _, q := range w.living() {
		known[q.pid] = true
	}
	var bad []error
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || known[pid] {
			continue
		}
		if argv := arguments(pid); len(argv) > 0 && argv[0] != os.Args[0] &&
			!etcdtest.IsMember(argv) {
			bad = append(bad, fmt.Errorf("process %d is left: %.300s", pid,
				strings.Join(argv, " ")), syscall.Kill(pid, syscall.SIGKILL))
		}
	}
	return errors.Join(bad...)
}
