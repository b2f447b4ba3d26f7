package explore

import (
	"slices"
)

// worker plays one world. It goes from state to state over those that they have in
// common, which it remembers.
type worker struct {
	search      *search
	world       *World
	keeper      *keeper
	stack       []place // from the scene to the present state
	line        []int32 // scratch
	found       []node
	transitions int
	rested      int
	deepest     int
}

// place is a state on the way to the present one.
type place struct {
	node     int32     // -1 when it has no number
	step     step      // that led there
	snapshot *snapshot // nil while no way comes back here
	steps    []step    // scratch
}

func newWorker(s *search) *worker {
	w := &worker{search: s, world: newModel(s.config.Scene, s.config.Budget)}
	w.world.Odd = s.config.Odd - 1
	w.keeper = newKeeper(w.world)
	w.keeper.print()
	w.push(0, step{})
	w.keep()
	return w
}

// push puts the present state, whose number was made, on the stack.
func (w *worker) push(node int32, last step) {
	n := len(w.stack)
	if n == cap(w.stack) {
		w.stack = slices.Grow(w.stack, 1)
	}
	w.stack = w.stack[:n+1] // with the scratch of earlier steps
	p := &w.stack[n]
	p.node, p.step = node, last
	w.deepest = max(w.deepest, n)
}

// keep returns a snapshot of the present state, the last on the stack. It is made once.
func (w *worker) keep() *snapshot {
	p := &w.stack[len(w.stack)-1]
	if p.snapshot == nil {
		p.snapshot = w.keeper.keep()
	}
	return p.snapshot
}

func (w *worker) pop() {
	n := len(w.stack) - 1
	if p := &w.stack[n]; p.snapshot != nil {
		w.keeper.drop(p.snapshot)
		p.snapshot = nil
	}
	w.stack = w.stack[:n]
}

// expandAll takes all steps from some states and returns the new ones.
func (w *worker) expandAll(states []int32) []node {
	w.found = nil
	for _, id := range states {
		if w.search.full() {
			break
		}
		w.visit(id)
		w.expand(func(s step) { w.found = append(w.found, node{id, s}) })
	}
	return w.found
}

// dive explores all that follows from the present state, which one step has led to.
func (w *worker) dive(last step) {
	if len(w.stack) > w.search.config.Depth || w.search.full() {
		w.search.cut(len(w.stack))
		return
	}
	w.push(-1, last)
	w.expand(w.dive)
	w.pop()
}

// visit brings the world into a state.
func (w *worker) visit(id int32) {
	w.line = w.line[:0]
	for n := id; n >= 0; n = w.search.nodes[n].parent {
		w.line = append(w.line, n)
	}
	slices.Reverse(w.line)
	common := 1
	for common < min(len(w.line), len(w.stack)) && w.stack[common].node == w.line[common] {
		common++
	}
	for len(w.stack) > common || w.stack[len(w.stack)-1].snapshot == nil {
		w.pop()
	}
	common = len(w.stack)
	w.keeper.restore(w.stack[common-1].snapshot)
	for _, n := range w.line[common:] {
		w.keep() // others have it in common
		s := w.search.nodes[n].step
		w.world.apply(s)
		w.world.spend(s)
		w.keeper.print()
		w.push(n, s)
	}
}

// expand takes every step from the present state, and calls each for those that lead to
// a new one, in it. The world is left in any state.
func (w *worker) expand(each func(step)) {
	at := len(w.stack) - 1
	list, ends := w.steps(w.stack[at].steps[:0])
	w.stack[at].steps = list
	faults := w.world.Faults > 0
	if !ends && len(list) == 1 && !faults { // no way comes back here
		w.take(list[0], each)
		return
	}
	here, moved := w.keep(), ends
	if ends {
		w.rest(here)
	}
	try := func(s step) int {
		if moved {
			w.keeper.restore(here)
		}
		moved = true
		return w.take(s, each)
	}
	for _, s := range list {
		effects := try(s)
		if s.Op != Look || !faults {
			continue
		}
		for _, fated := range s.Fated(effects, w.search.config.Faults) {
			try(fated)
		}
	}
}

// steps appends the steps to take from the present state, and reports whether it may end
// there: nothing is usual.
func (w *worker) steps(list []step) (_ []step, ends bool) {
	usual, some := w.world.Usual()
	if w.world.Faults == 0 && w.world.Odd == 0 {
		return w.world.onlyUsual(list, usual, some), !some
	}
	list = w.world.possible(list, w.search.config.Faults)
	n := 0
	for _, s := range list {
		s.Odd = w.world.cost(s) == 0 && (!some || s != usual) && !w.world.anyTime(s)
		if !s.Odd || w.world.Odd != 0 {
			list[n] = s
			n++
		}
	}
	return list[:n], !some
}

// take takes a step, and calls each when it leads to a new state. It returns how many
// writes and commands there were.
func (w *worker) take(s step, each func(step)) int {
	if w.search.full() {
		return 0
	}
	w.transitions++
	if !w.world.apply(s) {
		return 0
	}
	effects := w.world.Look.Effects
	w.world.spend(s)
	if w.world.Broken != nil {
		w.violated(s)
		return 0
	}
	n := w.keeper.print()
	if !w.search.seen.add(n) {
		return effects
	}
	w.search.met.Add(1)
	if every := w.search.config.Rest; every > 0 && n/7%uint64(every) == 0 {
		w.push(-1, s)
		here := w.keep()
		w.rest(here)
		w.keeper.restore(here)
		w.pop()
	}
	each(s)
	return effects
}

// rest leads the present state, the last on the stack, to rest: once so that hosts without power get
// it back, and once so that they do not. Which of the two finds something does not depend on what else
// this worker has met.
func (w *worker) rest(here *snapshot) {
	w.rested++
	for _, back := range [...]bool{false, true} {
		if back {
			w.keeper.restore(here)
		}
		w.world.Rest(back)
		if w.world.Broken != nil {
			w.violated()
			return
		}
	}
}

// violated keeps the way to a violation, the shortest of those found at once.
func (w *worker) violated(last ...step) {
	var steps []step
	for _, p := range w.stack[1:] {
		steps = append(steps, p.step)
	}
	steps = append(steps, last...)
	w.search.mu.Lock()
	defer w.search.mu.Unlock()
	if v := w.search.violation; v == nil || len(steps) < len(v.steps) {
		w.search.violation = &way{steps}
	}
	w.search.stop.Store(true)
}
