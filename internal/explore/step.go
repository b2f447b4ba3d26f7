package explore

// cost is what a step costs in this world: to carry out a fencing that has begun, or to
// prove one of a host that has no power, is nothing more.
func (w *World) cost(s Step) Fault {
	if s.Op == Fence && (w.Procs[s.A].Off || w.record(s.A).Fencing != nil) {
		return 0
	}
	return s.Fault()
}

// possible appends the steps that may happen now, but for the writeResults of looks, which
// depend on how many writes and commands a look makes.
func (w *World) possible(list []Step, allowed Fault) []Step {
	if w.Faults == 0 {
		allowed = 0
	}
	next := w.nextTimers()
	for p := range w.lines {
		proc, a := &w.Procs[p], uint8(p)
		switch {
		case proc.Brain == nil && !proc.Off && !proc.Gone:
			list = append(list, Step{Op: Restart, A: a})
		case proc.Brain == nil:
		case proc.Hung:
			list = append(list, Step{Op: GoOn, A: a})
		case w.due(p), next.first == p:
			list = append(list, Step{Op: Look, A: a})
		case allowed == 0, w.idle():
		case !proc.Wake.IsZero():
			list = w.offer(list, allowed, Step{Op: Late, A: a}, Step{Op: Repeat, A: a})
		}
		if proc.Brain != nil && allowed != 0 {
			list = w.offer(list, allowed, Step{Op: Stale, A: a}, Step{Op: Forget, A: a},
				Step{Op: Crash, A: a}, Step{Op: Hang, A: a})
		}
	}
	if next.fabric {
		list = append(list, Step{Op: Time})
	}
	if w.Script < len(w.Scene.Script) {
		list = w.offer(list, allowed, Step{Op: Script}, Step{Op: Postpone})
	}
	return w.possibleHarm(list, allowed)
}

// offer appends those of some steps that can happen now, and are allowed if they cost
// anything.
func (w *World) offer(list []Step, allowed Fault, some ...Step) []Step {
	for _, s := range some {
		if f := w.cost(s); (f == 0 || f&allowed != 0) && w.enabled(s) {
			list = append(list, s)
		}
	}
	return list
}

// timers say whose time comes first.
type timers struct {
	first  int // the process; -1 is none
	fabric bool
}

// nextTimers finds the process whose time comes first, unless something happens in a
// hypervisor before: time cannot pass that by.
func (w *World) nextTimers() timers {
	t := timers{first: -1}
	for p := range w.lines {
		proc := &w.Procs[p]
		if proc.Brain != nil && !proc.Hung && !w.due(p) && !proc.Wake.IsZero() &&
			(t.first < 0 || proc.Wake.Before(w.Procs[t.first].Wake)) {
			t.first = p
		}
	}
	at, ok := w.Network.Next()
	t.fabric = ok
	if t.first >= 0 && (ok && at.Before(w.Procs[t.first].Wake) || !ok && w.idle()) {
		t.first = -1
	}
	return t
}

// idle reports whether nothing is left to be done: a participant that still wants to look only
// wants to be sure.
func (w *World) idle() bool {
	if w.Script < len(w.Scene.Script) {
		return false
	}
	for p := range w.lines {
		if w.Procs[p].Brain == nil && !w.Procs[p].Gone || w.Procs[p].Told || w.Procs[p].Hung ||
			w.claiming(p) {
			return false
		}
	}
	for _, m := range w.all() {
		if !m.State.Phase.Final() || !m.State.Released {
			return false
		}
	}
	return true
}

// possibleHarm appends what can happen to hosts, links and VMs.
func (w *World) possibleHarm(list []Step, allowed Fault) []Step {
	for i := range w.Scene.Hosts {
		a := uint8(i + 1)
		if w.second(i + 1) {
			continue
		}
		list = w.offer(list, allowed, Step{Op: Lost, A: a}, Step{Op: Off, A: a},
			Step{Op: Ask, A: a}, Step{Op: Fence, A: a}, Step{Op: On, A: a},
			Step{Op: Word, A: a}, Step{Op: Empty, A: a}, Step{Op: Return, A: a},
			Step{Op: Adopt, A: a}, Step{Op: Lapse, A: a}, Step{Op: Admit, A: a})
	}
	list = w.offer(list, allowed, Step{Op: SetBack})
	for i := range w.Scene.VMs {
		for p := 1; p < len(w.lines); p++ {
			list = w.offer(list, allowed, Step{Op: Give, A: uint8(p), B: uint8(i)})
		}
		if allowed&Kills == 0 {
			continue
		}
		for _, c := range w.Copies(w.Scene.VMs[i].Name) {
			h := w.Scene.hostIndex(string(c.Host)) + 1
			list = append(list, Step{Op: Kill, A: uint8(h), B: uint8(i)})
		}
	}
	var busy uint // links that migrations need
	for _, m := range w.all() {
		a, b := w.Scene.hostIndex(string(m.State.Source)), w.Scene.hostIndex(string(m.State.Target))
		if !m.State.Phase.Final() && a >= 0 && b >= 0 {
			busy |= 1 << pair(a+1, b+1)
		}
	}
	for a := 1; a < len(w.lines) && busy|w.Cut != 0; a++ {
		for b := a + 1; b < len(w.lines); b++ {
			switch bit := pair(a, b); {
			case w.Cut>>bit&1 == 1:
				list = append(list, Step{Op: Heal, A: uint8(a), B: uint8(b)})
			case busy>>bit&1 == 1:
				list = w.offer(list, allowed, Step{Op: Cut, A: uint8(a), B: uint8(b)},
					Step{Op: Reset, A: uint8(a), B: uint8(b)})
			}
		}
	}
	return list
}

// pair numbers two hosts.
func pair(a, b int) int { return min(a, b)*(1+maxHosts) + max(a, b) }

// enabled reports whether a step can happen now at all.
func (w *World) enabled(s Step) bool {
	p := &w.Procs[s.A]
	alive := p.Brain != nil && !p.Hung
	switch s.Op {
	case GoOn:
		return p.Hung
	case Hang:
		return alive
	case Postpone:
		return !w.Waits && w.Script < len(w.Scene.Script)
	case Look, Stale:
		return alive && (s.Op == Look && !p.Wake.IsZero() || p.Told || w.due(int(s.A)))
	case Late:
		return alive && !p.Wake.IsZero() && !w.due(int(s.A))
	case Repeat:
		return alive && !p.Told
	case Forget:
		return alive && p.Told
	case Crash:
		return p.Brain != nil
	case Restart:
		return p.Brain == nil && !p.Off && !p.Gone
	case Time:
		_, ok := w.Network.Next()
		return ok
	case Script:
		return w.Script < len(w.Scene.Script)
	case Lost:
		return !alive && !w.record(s.A).NotReady // a hung agent sends no heartbeat
	case Off:
		return !p.Off
	case Ask:
		return w.record(s.A).Fencing == nil && !w.record(s.A).Fenced
	case Fence:
		return !w.record(s.A).Fenced
	case On:
		return p.Off
	case Admit:
		return w.mayAdmit(int(s.A))
	case Give:
		return w.mayGive(int(s.A), int(s.B))
	case Word, Empty, Return, Adopt, Lapse, SetBack:
		return w.mayErr(s)
	}
	return true
}

// anyTime reports whether a step is never out of order: operators who have waited act at
// any time.
func (w *World) anyTime(s Step) bool { return s.Op == Script && w.Waits }

// onlyUsual appends the steps that are possible when there may be no more faults, nor steps
// out of order: the usual one, if there is any, and what may happen at any time.
func (w *World) onlyUsual(list []Step, usual Step, some bool) []Step {
	script := Step{Op: Script}
	free := w.Waits && w.Script < len(w.Scene.Script) && !(some && usual == script)
	if free && usual.Op > GoOn { // in the order of Possible
		list, free = append(list, script), false
	}
	if some {
		list = append(list, usual)
	}
	if free {
		list = append(list, script)
	}
	return list
}

// spend counts a step that is not the usual one.
func (w *World) spend(s Step) {
	if s.Odd && w.Odd > 0 {
		w.Odd--
	}
}
