package mutant

// Planted are the mistakes that are to be found: each violates an invariant somewhere.
var Planted = []Mutant{
	// Write before act.
	{"begins to send without having announced it", "agent/source.go",
		"m, err := a.report(ctx, m, func(r *store.Migration) { r.Source.Began = true },\n" +
			"\t\ta.ownRecord())\n",
		"next := *m\n\tnext.Source.Began = true\n\tm = &next\n\tvar err error\n"},
	{"starts a VM anew although a migration has claimed it", "agent/vm.go",
		"if v.ActiveMigration != \"\" || a.cutOff()", "if a.cutOff()"},
	{"keeps running a VM that has moved away", "agent/agent.go",
		"if r.Host != a.host {", "if r.Host == \"\" {"},
	// Evidence.
	{"resumes the source without the target's word", "store/evidence.go",
		"if m.Target.Discarded {", "if m.Source.Unresolved {"},
	{"says that the target was discarded, and leaves it", "agent/target.go",
		"now time.Time) error {\n" +
			"\terr := a.hv.Do(ctx, m.Spec.VM, hypervisor.Discard{Job: m.Spec.ID})",
		"now time.Time) error {\n\tvar err error"},
	{"takes a fenced host for one that never ran the VM", "hypervisor/evidence.go",
		"case TargetDiscarded, OperatorWord:\n\t\treturn e.VM == vm &&",
		"case HostFenced:\n\t\treturn e.Host == host\n\tcase TargetDiscarded, OperatorWord:\n" +
			"\t\treturn e.VM == vm &&"},
	{"takes a host that is only silent for a fenced one", "controller/controller.go",
		"if proof.Proof == hypervisor.NoProof ||",
		"if proof = (hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: s.name()}); " +
			"!s.rec.NotReady ||"},
	{"takes one dead host for two", "store/report.go",
		"return m.Target.Discarded || m.Dead(m.State.Target)", "return true"},
	{"takes a broken connection for a transfer that has failed", "agent/source.go",
		"case hypervisor.JobBroken:\n\t\tif err := a.resolve(ctx, m, p, now); err != nil {\n\t\t\treturn err\n\t\t}\n\t\treturn a.recover(ctx, a.moves.Get(m.Spec.ID), p, now)",
		"case hypervisor.JobBroken:\n\t\treturn a.kept(ctx, m, p, now)"},
	{"takes a VM that is not here for one that was kept", "agent/source.go",
		"return a.resolve(ctx, m, hypervisor.Progress{Error: " +
			"\"no transfer is known, the VM is \" +\n\t\td.State.String()}, now)",
		"return a.kept(ctx, m, hypervisor.Progress{Error: \"no transfer is known\"}, now)"},
	{"takes an unknown outcome for a failure", "store/report.go",
		"m.Source.Failed || m.bothDead(),",
		"m.Source.Failed || m.Source.Unresolved || m.bothDead(),"},
	{"fails a migration at once because its target is down", "migration/rules.go",
		"{\"target-down\", targetDown, abort, noteTargetDown},",
		"{\"target-down\", targetDown, fail, noteTargetDown},"},
	{"takes a cancel that was asked for as done", "agent/source.go",
		"func(r *store.Migration) { r.Source.Aborting = true })",
		"func(r *store.Migration) { r.Source.Aborting, r.Source.Failed = true, true })"},
	// Arrival.
	{"says that a VM has arrived while it is still being received", "agent/target.go",
		"case own && (d.State.Executes() || d.State == hypervisor.Paused):\n\t\treturn a.arriving",
		"case own && (d.State.Executes() || d.State == hypervisor.Receiving):\n" +
			"\t\treturn a.arriving"},
	{"says that a VM has arrived that was lost before it ran", "agent/target.go",
		"case m.Source.HandedOver: // nothing", "case m.Source.Started: // nothing"},
	{"releases the source as soon as it has handed over", "agent/source.go",
		"case p == migration.Succeeded:\n\t\treturn a.release(ctx, m, now)",
		"case p == migration.Succeeded || m.Source.HandedOver:\n\t\treturn a.release(ctx, m, now)"},
	{"never releases the source", "agent/source.go",
		"if d.State == hypervisor.Absent || d.Job == m.Spec.ID {", "if false {"},
	{"leaves the target of a failed migration", "agent/target.go",
		"case own && !d.State.Rests() || d.State == hypervisor.Absent:\n",
		"case own && !d.State.Rests() && false:\n"},
	{"hands a VM over that does not name its migration", "controller/controller.go",
		"next.ActiveMigration = f.rec.Spec.ID\n\treturn c.put(ctx, next, now)",
		"next.ActiveMigration = f.rec.Spec.ID\n\tclaimed := *next\n\tg.rec = &claimed\n\treturn true, nil"},
	// The controller's reservations.
	{"does not write down where a VM has moved", "controller/controller.go",
		"next.MoveTo(f.rec.State.Target)\n\t\t\tnext.EvacuateFrom", "next.EvacuateFrom"},
	{"takes the target for the VM's home although its move has failed",
		"controller/controller.go",
		"if f.rec.State.Phase == migration.Succeeded {\n\t\t\tnext.MoveTo",
		"if f.rec.State.Target != \"\" {\n\t\t\tnext.MoveTo"},
	{"counts no slots", "controller/cache.go", "\t\tv.slots.Take(slot)\n", "\t\t_ = slot\n"},
	{"lets one more move from a host than the limit allows", "migration/slot.go",
		"case s.From(source) >= l.PerSource:", "case s.From(source) > l.PerSource:"},
	{"writes down a success that was not reported", "migration/rules.go",
		"return o.Report.Began && o.Report.Completed &&", "return o.Report.Began &&"},
	{"fails a cancelled migration at once", "migration/rules.go",
		"{\"canceled\", canceled, abort, noteCanceled},",
		"{\"canceled\", canceled, fail, noteCanceled},"},
	{"fails an overdue migration at once", "migration/rules.go",
		"{\"overdue\", overdue, abort, noteOverdue},",
		"{\"overdue\", overdue, fail, noteOverdue},"},
	// The store.
	{"forgets to compare versions", "store/memory.go",
		"if versionOf(old) != r.RecordVersion() {", "if false {"},
	{"forgets a change now and then", "store/memory.go", "since+1, func", "since+2, func"},
}

// Mistakes are to be found where people err: with two agents of one host, directories that were
// emptied, and words of operators that are wrong.
var Mistakes = []Mutant{
	{"acts before it holds its host's name", "agent/own.go",
		"(own == nil || own.Session != a.config.Session)", "own != nil && own.Session == \"\""},
	{"takes a copy of a host's directory for the directory", "store/identity.go",
		"case known == nil || *known == mine ||", "case known == nil || known.ID == mine.ID ||"},
	{"takes a VM that its directory does not know for one that has stopped", "agent/vm.go",
		"return a.unknown(ctx, v, err, now)",
		"if !errors.Is(err, hypervisor.Conflict) {\n\t\t\treturn err\n\t\t}"},
	{"ignores the lock of a process that another directory has started",
		"hypervisor/fake/directory.go", "d != nil && occupies(d.State)",
		"d != nil && occupies(d.State) && vm == \"\""},
	{"gives VMs away of a host that was found to live", "store/evidence.go",
		"!h.Fenced || h.Refuted() != \"\"", "!h.Fenced"},
	{"starts a VM again on a host that comes back, although it was given away", "agent/agent.go",
		"if r.Host != a.host {", "if r.Host == \"\" {"},
	{"does not tell of a VM that runs twice", "agent/adopt.go",
		"if a.own == nil || slices.Equal(a.own.Strays, strays) && a.told() {",
		"if a.own == nil || len(a.own.Strays) >= 0 {"},
	{"believes a record that is older than what its host knows", "agent/ledger.go",
		"if !known || !h.Overrules(v) {", "if !known || h.Overrules(v) || true {"},
	{"takes a VM that was added anew for the one that was deleted", "store/hostinventory.go",
		"case v.Life.Is(h.Record.Life):", "case true:"},
	{"takes a VM that was deleted for the one that was added anew", "store/hostinventory.go",
		"return !v.Life.Follows(h.Record.Life)", "return false"},
	{"takes a store that was set back for the one that it has seen", "store/history.go",
		"return j.After < r && r < j.Before })", "return j.After < r && r < j.Before && r == 0 })"},
	{"acts before a leader has admitted it", "agent/own.go",
		"return a.config.Admission && (own == nil || own.Admitted != a.config.Session)",
		"return a.config.Admission && own == nil"},
	{"admits an agent to a backup before all hosts were heard", "controller/hearing.go",
		"case c.Unmarked && len(h.Unheard) == 0 && !short:", "case c.Unmarked && !short:"},
	{"takes a migration that has failed for what explains a second copy", "agent/adopt.go",
		"if m.State.Phase != migration.Failed && !here {",
		"if m.State.Phase != migration.Failed || !here {"},
}

// Survivors are mistakes that are not found here: what they leave out is a second lock on a
// door that, in these worlds, another keeps shut.
var Survivors = []Mutant{
	// An agent's feed is consistent: a reader that sees a VM at home sees whether it is claimed. And a
	// host that is fenced here has no power: nothing is started there meanwhile.
	{"starts a VM anew without having announced it", "agent/vm.go",
		"v, err = a.tell(ctx, v, func(next *store.VM) {\n\t\tnext.Boots++",
		"announced := *v\n\tv, err = func(how func(*store.VM)) (*store.VM, error) {\n" +
			"\t\thow(&announced)\n\t\treturn &announced, nil\n\t}(func(next *store.VM) {\n" +
			"\t\tnext.Boots++"},
	{"forgets the conditions of a write", "store/memory.go",
		"if err := s.still(\"Put\", while); err != nil {",
		"if err := s.still(\"Put\", nil); err != nil {"},
	// It takes a failed move to a host, the loss of what ran there, a rebuild on that host
	// and a stop, with the host's agent away in between.
	{"removes what rests of a VM that is at home here", "agent/target.go",
		"case own && d.State.Rests() && a.home.Get(m.Spec.VM) == nil:",
		"case own && d.State.Rests():"},
}
