package heap

// How large a process has to be before huge pages are asked for what it is going to use, which
// costs nothing; before they save it more time than it takes to move there what it uses already;
// and by how much it has to grow before they are looked at again.
const (
	hopeful = 64 << 20
	large   = 2 << 30
	grown   = 16 << 20
)

// Pages asks the kernel to keep a large process in huge pages: a heap whose objects are used in
// no order spends a fifth of its time on finding out where its small ones are. It is a wish, and
// nothing but time depends on it. The zero value is ready.
type Pages struct {
	last  uint64              // how large the process was when they were last looked at
	asked map[uintptr]uintptr // from where to where it was asked for
	used  []span              // where some may be in small pages since before it was asked
}

// A span is some memory.
type span struct{ from, to uintptr }

// Enlarge asks for what the process has got since it was last called. Whoever grows calls it now
// and then: it costs next to nothing while the process does not.
func (p *Pages) Enlarge() {
	if now, _ := figure("/memory/classes/total:bytes"); now >= max(hopeful, p.last+grown) {
		p.last = now
		p.ask(now >= large)
	}
}
