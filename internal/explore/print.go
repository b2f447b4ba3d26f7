package explore

import (
	"context"
	"unsafe"

	"github.com/godwit-vm/godwit/store"
)

// sum is what a part of the world comes to. A part that nothing has touched has the sum that
// it had; the records in it are looked at again when the store was touched.
type sum struct {
	own   Print  // of all but the records
	held  []held // never changed: snapshots share it
	whole Print
	news  uint64 // of what is stored and a process has not read
}

// held is a record that a part refers to.
type held struct {
	path  uint64
	to    unsafe.Pointer
	print *Print
}

// Marks of a record that a part has: it is the one that is stored, or it is not.
const (
	stored = 0
	stale  = 0xa5a5a5a5
)

// print returns the number of the present state.
func (k *keeper) print() uint64 {
	k.notice()
	k.refresh()
	w := k.w
	n := uint64(0)
	if w.Waits {
		n = 1
	}
	if late := w.Now.Sub(w.Since); late < enough {
		n += Mix(61, uint64(late)+1) // that it was just now is not that it was long ago
	}
	for p, orphans := range w.Orphans {
		n += Mix(uint64(p)+71, uint64(orphans)<<8|uint64(w.Empty>>p&1))
	}
	if w.Back {
		n += 2
	}
	n += Mix(97, gate(w))
	for p, pages := range w.Ledgers {
		for vm, h := range pages {
			n += Mix(String(string(vm))+uint64(p), page(h))
		}
	}
	left := uint64(w.Faults)<<8 ^ uint64(w.Odd)
	n += Mix(uint64(w.Script)<<32^left, uint64(w.Cut))
	for v := range w.Scene.VMs {
		older := uint64(0)
		for _, host := range w.Older[v] {
			older |= 1 << w.Scene.hostIndex(string(host))
		}
		n += Mix(uint64(v)+51, older)
	}
	now := w.Now.UnixNano()
	for part := range Parts {
		if w.Part(part) == nil {
			n += uint64(part) << 40
			continue
		}
		n += Mix(uint64(part)+11, k.sums[part].whole.At(now))
	}
	for p := range w.Len() {
		n += Mix(uint64(p)+31, k.process(p))
	}
	return n
}

// gate is the number of what is known of the store's past.
func gate(w *World) (n uint64) {
	for p := range w.Len() {
		if w.newer(p) {
			n |= 1 << p
		}
	}
	if w.Unmarked {
		n |= 1 << 16
	}
	if w.History.Doubt != nil {
		n |= 1 << 17
	}
	return n
}

// page is the number of what a ledger says of a VM.
func page(h store.Holding) (n uint64) {
	if h.Record != nil {
		n = Mix(uint64(h.Record.Moves), String(string(h.Record.Host)))
		if h.Record.Life != nil {
			n += uint64(h.Record.Life.After) << 32
		}
	}
	if h.Left != nil {
		n = Mix(n+1, String(string(h.Left.To)))
	}
	return n
}

// refresh sums up again what has changed.
func (k *keeper) refresh() {
	if k.fresh == 0 {
		return
	}
	restocked := k.fresh>>theStore&1 == 1
	if restocked {
		k.look(theStore)
	}
	for part := range Parts {
		touched := k.fresh>>part&1 == 1
		if k.w.Part(part) == nil || !touched && !restocked {
			continue
		}
		if touched && part != theStore {
			k.look(part)
		}
		s := &k.sums[part]
		s.whole = s.own
		for i := range s.held {
			h := &s.held[i]
			mark := uint64(stale)
			if find(k.sums[theStore].held, h.to) >= 0 {
				mark = stored
			}
			s.whole.Add(h.path, mark, h.print)
		}
		if part < k.w.Len() {
			s.news = k.news(part)
		}
	}
	k.fresh = 0
}

// look sums up a part, but for the records that it refers to.
func (k *keeper) look(part int) {
	s := &k.sums[part]
	before := s.held
	s.own, k.held = k.maker.Of(k.w.Part(part), k.held[:0])
	if len(k.held) > len(k.room) {
		k.room = make([]held, max(1024, len(k.held)))
	}
	s.held = k.room[:len(k.held):len(k.held)]
	k.room = k.room[len(k.held):]
	for i, h := range k.held {
		s.held[i] = held{h.Path, h.To, k.record(h, before)}
	}
}

// record returns the print of a record. One that was stored is not changed: the print is the
// one that was made when the part had it before, or the store, whose own list may be under way.
func (k *keeper) record(h Held, before []held) *Print {
	for _, list := range [...][]held{before, k.sums[theStore].held} {
		if i := find(list, h.To); i >= 0 && list[i].print != nil {
			return list[i].print
		}
	}
	p, _ := k.maker.Of(asRecord(h), nil)
	return &p
}

// find returns where a record is in a list; -1 is nowhere.
func find(list []held, r unsafe.Pointer) int {
	for i := range list {
		if list[i].to == r {
			return i
		}
	}
	return -1
}

func asRecord(h Held) store.Record {
	switch h.Type.Name() {
	case "Migration":
		return (*store.Migration)(h.To)
	case "VM":
		return (*store.VM)(h.To)
	case "Host":
		return (*store.Host)(h.To)
	case "Lease":
		return (*store.Lease)(h.To)
	}
	return (*store.Rebuild)(h.To)
}

// process returns the number of a process, and of what it has not read yet.
func (k *keeper) process(p int) uint64 {
	proc := &k.w.Procs[p]
	n := Mix(uint64(proc.Hints), 1)
	if proc.Told {
		n++
	}
	if proc.Off {
		n += 2
	}
	if proc.Hung {
		n += 8
	}
	if proc.Gone {
		n += 16
	}
	if proc.Brain == nil {
		return n
	}
	switch wait := proc.Wake.Sub(k.w.Now); {
	case proc.Wake.IsZero():
	case wait <= 0:
		n += 4
	default:
		n = Mix(n, uint64(wait))
	}
	return n + k.sums[p].news
}

// news returns the number of what a process has not read yet, but for what it has as it is
// stored: it wrote that itself.
func (k *keeper) news(p int) (n uint64) {
	seen := k.w.Procs[p].Seen
	if seen == 0 {
		return 0
	}
	c, _ := k.w.Store.Changes(context.Background(), store.Feed{Host: k.w.hostOf(p)}, seen)
	for _, r := range c.Records {
		if key := r.Key(); find(k.sums[p].held, address(r)) < 0 {
			n = Mix(n, String(key.Name)+uint64(key.Kind))
		}
	}
	for _, key := range c.Gone {
		n = Mix(n, String(key.Name)-uint64(key.Kind))
	}
	return n
}

// address returns where a record is; nil for one of no kind that parts refer to.
func address(r store.Record) unsafe.Pointer {
	switch r := r.(type) {
	case *store.Migration:
		return unsafe.Pointer(r)
	case *store.VM:
		return unsafe.Pointer(r)
	case *store.Host:
		return unsafe.Pointer(r)
	case *store.Rebuild:
		return unsafe.Pointer(r)
	case *store.Lease:
		return unsafe.Pointer(r)
	}
	return nil
}
