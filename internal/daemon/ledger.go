package daemon

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/durable"
	"github.com/godwit-vm/godwit/store"
)

// forgetAfter is how long it is kept that a VM has left.
const forgetAfter = 365 * 24 * time.Hour

// A Ledger is an open directory. It is safe for concurrent use.
type Ledger struct {
	dir string
	mu  sync.Mutex
	all map[hypervisor.VMID]kept
}

// kept is a holding, and its text but for the record's version.
type kept struct {
	holding store.Holding
	text    []byte
}

// OpenLedger makes or opens a directory, which must belong to us and be closed to others. The error names
// every file that cannot be read: without it a VM that has left could be started again.
func OpenLedger(dir string, now time.Time) (*Ledger, error) {
	if err := durable.Private(dir); err != nil {
		return nil, err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	l := &Ledger{dir: dir, all: map[hypervisor.VMID]kept{}}
	var bad []error
	horizon := durable.Horizon(files, now, forgetAfter)
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		if swept, err := durable.Swept(path); swept {
			bad = append(bad, err)
			continue
		}
		bad = append(bad, l.read(path, f, horizon))
	}
	return l, errors.Join(bad...)
}

// read takes in one file, or removes it: it says that a VM has left, and was last written before a
// time.
func (l *Ledger) read(path string, f os.DirEntry, horizon time.Time) error {
	var h store.Holding
	if err := durable.Read(path, &h); err != nil {
		return fmt.Errorf("%w (it is what this host knows of one VM: when the VM runs on another host, "+
			"see godwit vm list, it may be moved away, else its VM has to be looked at first)", err)
	}
	if durable.Name(string(h.VM)) != f.Name() {
		return fmt.Errorf("%s: VM: it is %q, which belongs elsewhere", path, h.VM)
	}
	i, err := f.Info()
	if err == nil && h.Left != nil && i.ModTime().Before(horizon) {
		return os.Remove(path)
	}
	if err == nil {
		l.all[h.VM] = kept{h, textOf(h)}
	}
	return err
}

// Holding answers what is known of a VM; false is nothing.
func (l *Ledger) Holding(vm hypervisor.VMID) (store.Holding, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, known := l.all[vm]
	return k.holding, known
}

// Holdings answers what is known of all VMs, ordered by VM.
func (l *Ledger) Holdings() []store.Holding {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []store.Holding
	for k := range maps.Values(l.all) {
		all = append(all, k.holding)
	}
	slices.SortFunc(all, func(a, b store.Holding) int { return cmp.Compare(a.VM, b.VM) })
	return all
}

// Keep remembers what is known of a VM. Nothing is written when only the version of its record
// differs.
func (l *Ledger) Keep(h store.Holding) error {
	h.State, h.Job = hypervisor.Absent, "" // they change without us
	text := textOf(h)
	l.mu.Lock()
	defer l.mu.Unlock()
	if old, known := l.all[h.VM]; known && bytes.Equal(old.text, text) {
		return nil
	}
	if err := durable.Text(string(h.VM)); err != nil {
		return err
	}
	path := filepath.Join(l.dir, durable.Name(string(h.VM)))
	if err := durable.Write(path, h, true); err != nil {
		return err
	}
	l.all[h.VM] = kept{h, text}
	return nil
}

// textOf is what of a holding matters.
func textOf(h store.Holding) []byte {
	if h.Record != nil {
		h.Record = h.Record.WithVersion(0).(*store.VM)
	}
	text, err := json.Marshal(h)
	if err != nil {
		return nil // it is written, and that answers the error
	}
	return text
}
