package config

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// Verbs lists how every event is written, for help texts and errors.
func Verbs() []string {
	usages := make([]string, len(verbs))
	for i, v := range verbs {
		usages[i] = v.usage
	}
	return usages
}

// verb is one kind of event: how it is written, and how it is read.
type verb struct {
	usage string
	read  func(*words) sim.Event
}

var verbs = []verb{
	{"drain HOST [unmovable=Keep|ShutDown|Restart] [grace=TIME]", readDrain},
	{"undrain HOST", func(w *words) sim.Event { return sim.Undrain{Host: w.host()} }},
	{"cordon HOST", func(w *words) sim.Event { return sim.Close{Host: w.host()} }},
	{"uncordon HOST", func(w *words) sim.Event { return sim.Open{Host: w.host()} }},
	{"mark VM", func(w *words) sim.Event { return sim.Mark{VM: w.vm()} }},
	{"unmark VM", func(w *words) sim.Event { return sim.Unmark{VM: w.vm()} }},
	{"migrate VM [to=HOST] [force=yes|no] [compat=yes] [priority=WORD]", readMigrate},
	{"cancel VM", func(w *words) sim.Event { return sim.Cancel{VM: w.vm()} }},
	{"delete VM", func(w *words) sim.Event { return sim.Delete{VM: w.vm()} }},
	{"stop VM", func(w *words) sim.Event { return sim.Stop{VM: w.vm()} }},
	{"pause VM", func(w *words) sim.Event { return sim.Pause{VM: w.vm()} }},
	{"resume VM", func(w *words) sim.Event { return sim.Resume{VM: w.vm()} }},
	{"start VM", func(w *words) sim.Event {
		return sim.Change{VM: w.vm(), What: "start", How: (*store.VM).Start}
	}},
	{"reboot VM", func(w *words) sim.Event {
		return sim.Change{VM: w.vm(), What: "reboot", How: func(v *store.VM) { v.Reboots++ }}
	}},
	{"attach-disk VM DISK path=PATH", readAttachDisk},
	{"detach-disk VM DISK", func(w *words) sim.Event {
		vm, disk := w.vm(), w.next("a disk")
		return sim.Change{VM: vm, What: "detach disk " + disk, How: func(v *store.VM) {
			v.DiskChanges = append(slices.Clip(v.DiskChanges), store.DiskChange{Detach: disk})
		}}
	}},
	{"move-disk VM DISK path=PATH", readMoveDisk},
	{"resize VM [memory=SIZE] [cpus=N]", readResize},
	{"hold VM backup|utility|hotplug|cpu|memory", func(w *words) sim.Event {
		return readHold(w, true)
	}},
	{"unhold VM backup|utility|hotplug|cpu|memory", func(w *words) sim.Event {
		return readHold(w, false)
	}},
	{"detach VM", readDetach},
	{"claim VM by=MIGRATION|none", readClaim},
	{"release VM by=NAME", readRelease},
	{"load VM rate=BANDWIDTH hot=SIZE", readLoad},
	{"configure bandwidth=BANDWIDTH", readConfigure},
	{"crash-controller for=TIME [after=WRITES]", func(w *words) sim.Event {
		return sim.CrashController{For: w.lasts(), After: w.count("after")}
	}},
	{"crash-agent HOST for=TIME [after=WRITES]", func(w *words) sim.Event {
		return sim.CrashAgent{Host: w.host(), For: w.lasts(), After: w.count("after")}
	}},
	{"drop-notifications HOST|controller for=TIME", func(w *words) sim.Event {
		return sim.DropNotifications{Host: w.participant(), For: w.lasts()}
	}},
	{"repeat HOST|controller", func(w *words) sim.Event { return sim.Repeat{Host: w.participant()} }},
	{"stale-reads HOST|controller for=TIME", func(w *words) sim.Event {
		return sim.StaleReads{Host: w.participant(), For: w.lasts()}
	}},
	{"conflict VM", func(w *words) sim.Event { return sim.Conflict{VM: w.vm()} }},
	{"mute HOST|controller times=N", readMute},
	{"full-store for=TIME", func(w *words) sim.Event { return sim.FullStore{For: w.lasts()} }},
	{"crash-hypervisor HOST for=TIME", func(w *words) sim.Event {
		return sim.CrashHypervisor{Host: w.host(), For: w.lasts()}
	}},
	{"break HOST how=HOW [op=METHOD] [times=N] [delay=TIME]", readBreak},
	{"cut HOST HOST [for=TIME]", func(w *words) sim.Event {
		return sim.CutLink{A: w.host(), B: w.host(), For: w.duration("for")}
	}},
	{"reset HOST HOST", func(w *words) sim.Event {
		return sim.ResetLink{A: w.host(), B: w.host()}
	}},
	{"kill VM HOST", func(w *words) sim.Event { return sim.KillVM{VM: w.vm(), Host: w.host()} }},
	{"crash HOST [for=TIME]", func(w *words) sim.Event {
		return sim.CrashHost{Host: w.host(), For: w.duration("for")}
	}},
	{"fence HOST", func(w *words) sim.Event { return sim.Fence{Host: w.host()} }},
	{"return HOST", func(w *words) sim.Event { return sim.Return{Host: w.host()} }},
	{"second-agent HOST [directory=copied|new] [for=TIME]", readSecond},
	{"empty-directory HOST [for=TIME]", func(w *words) sim.Event {
		return sim.EmptyDirectory{Host: w.host(), For: w.duration("for")}
	}},
	{"adopt HOST", func(w *words) sim.Event { return sim.Adopt{Host: w.host()} }},
	{"confirm-down HOST", func(w *words) sim.Event { return sim.Dead{Host: w.host()} }},
	{"backup", func(*words) sim.Event { return sim.Backup{} }},
	{"set-back [forgotten=yes|no]", readSetBack},
	{"reconcile", func(*words) sim.Event { return sim.Reconcile{} }},
	{"skew HOST|controller by=TIME", func(w *words) sim.Event {
		return sim.Skew{Host: w.participant(), By: w.duration("by")}
	}},
}

func readDrain(w *words) sim.Event {
	e := sim.Drain{Host: w.host(), Terms: evacuation.Terms{Grace: w.duration("grace")}}
	if text := w.value("unmovable"); text != "" {
		var err error
		if e.Terms.OnUnmovable, err = evacuation.ParseUnmovable(text); err != nil {
			w.fail("unmovable: %v", err)
		}
	}
	return e
}

func readSecond(w *words) sim.Event {
	e := sim.SecondAgent{Host: w.host(), For: w.duration("for")}
	switch of := w.value("directory"); of {
	case "", "new":
	case "copied":
		e.Copied = true
	default:
		w.fail("directory=%s: use copied or new", of)
	}
	return e
}

func readSetBack(w *words) sim.Event {
	e := sim.SetBack{}
	switch is := w.value("forgotten"); is {
	case "", "no":
	case "yes":
		e.Forgotten = true
	default:
		w.fail("forgotten=%s: use yes or no", is)
	}
	return e
}

// marks reports whether the processes remember what they have seen of the store.
func (s *Scenario) marks() bool {
	return slices.ContainsFunc(s.Events, func(e Scheduled) bool { return aboutMarks(e.What) })
}

func aboutMarks(e sim.Event) bool {
	switch e := e.(type) {
	case sim.When:
		return aboutMarks(e.Do)
	case sim.Backup, sim.SetBack, sim.Reconcile:
		return true
	}
	return false
}

// claims reports whether the agents claim their hosts' names: what people do wrong with agents
// shows only then.
func (s *Scenario) claims() bool {
	return slices.ContainsFunc(s.Events, func(e Scheduled) bool { return aboutClaims(e.What) })
}

func aboutClaims(e sim.Event) bool {
	switch e := e.(type) {
	case sim.When:
		return aboutClaims(e.Do)
	case sim.SecondAgent, sim.EmptyDirectory, sim.Adopt, sim.Backup, sim.SetBack,
		sim.Reconcile:
		return true
	}
	return false
}

func readConfigure(w *words) sim.Event {
	limit, err := inventory.ParseBandwidth(w.value("bandwidth"))
	if err != nil {
		w.fail("bandwidth: %v", err)
	}
	return sim.Configure{Bandwidth: limit}
}

func readMigrate(w *words) sim.Event {
	e := sim.Migrate{VM: w.vm()}
	if to := w.value("to"); to != "" {
		e.Target = w.known(to)
	}
	if f := w.value("force"); f != "" {
		if err := e.Force.UnmarshalText([]byte(f)); err != nil {
			w.fail("force: %v", err)
		}
	}
	switch compat := w.value("compat"); compat {
	case "", "no":
	default:
		if e.Compat = compat == "yes"; !e.Compat {
			w.fail("compat=%s: use yes or no", compat)
		}
	}
	if p := w.value("priority"); p != "" {
		if e.Priority = migration.ParsePriority(p); e.Priority == migration.Lowest {
			w.fail("priority %q: use system-critical, user-triggered or system-maintenance", p)
		}
	}
	return e
}

func readResize(w *words) sim.Event {
	vm, cpus := w.vm(), w.count("cpus")
	var memory hypervisor.Bytes
	what := "resize"
	if text := w.value("memory"); text != "" {
		var err error
		if memory, err = inventory.ParseBytes(text); err != nil {
			w.fail("memory: %v", err)
		}
		what += " to " + memory.String()
	}
	if cpus != nil {
		what += fmt.Sprintf(" with %d CPUs", *cpus)
	}
	if memory <= 0 && cpus == nil || cpus != nil && *cpus == 0 {
		w.fail("a VM has memory and CPUs: write memory=, cpus= or both, above zero")
	}
	return sim.Change{VM: vm, What: what, How: func(v *store.VM) {
		if memory > 0 {
			v.VM.Memory = memory
		}
		if cpus != nil {
			v.VM.CPUs = *cpus
		}
	}}
}

func readAttachDisk(w *words) sim.Event {
	vm, disk := w.vm(), hypervisor.Disk{Name: w.next("a disk"), Path: w.value("path"), Format: "raw"}
	if !fake.PossibleDisks([]hypervisor.Disk{disk}) || disk.Local() {
		w.fail("a disk has a name of lower-case letters, digits and -, and a path: write attach-disk VM " +
			"data path=/nfs/data")
	}
	return sim.Change{VM: vm, What: "attach disk " + disk.Name, How: func(v *store.VM) {
		if !slices.ContainsFunc(v.WantedDisks(), func(has hypervisor.Disk) bool { return has.Name == disk.Name }) {
			v.DiskChanges = append(slices.Clip(v.DiskChanges), store.DiskChange{Attach: &disk})
		}
	}}
}

func readMoveDisk(w *words) sim.Event {
	vm, move := w.vm(), store.DiskMove{Disk: w.next("a disk"), To: w.value("path")}
	if !path.IsAbs(move.To) {
		w.fail("a disk moves to an absolute path: write move-disk VM data path=/nfs/data")
	}
	return sim.Change{VM: vm, What: "move disk " + move.Disk, How: func(v *store.VM) {
		v.DiskChanges = append(slices.Clip(v.DiskChanges), store.DiskChange{Move: &move})
	}}
}

func readHold(w *words, on bool) sim.Event {
	vm, what := w.vm(), w.next("what holds the VM")
	fields := map[string]func(*store.Blockers) *bool{
		"backup":  func(h *store.Blockers) *bool { return &h.Backup },
		"utility": func(h *store.Blockers) *bool { return &h.UtilityVolumes },
		"hotplug": func(h *store.Blockers) *bool { return &h.Hotplug },
		"cpu":     func(h *store.Blockers) *bool { return &h.CPUChange },
		"memory":  func(h *store.Blockers) *bool { return &h.MemoryChange },
	}
	field := fields[what]
	if field == nil {
		w.fail("%q holds no VM: use backup, utility, hotplug, cpu or memory", what)
		return nil
	}
	text := "held by " + what
	if !on {
		text = "no longer " + text
	}
	return sim.Change{VM: vm, What: text, How: func(v *store.VM) { *field(&v.Blockers) = on }}
}

func readDetach(w *words) sim.Event {
	return sim.Tamper{VM: w.vm(), What: "what attaches its volumes at the target ends",
		How: func(m *store.Migration) { m.Target.Detached = true }}
}

func readClaim(w *words) sim.Event {
	vm, by := w.vm(), w.value("by")
	if by == "" {
		w.fail("by= is missing: name a migration, or none")
	}
	if by == "none" {
		by = ""
	}
	return sim.Change{VM: vm, What: "its claim is overwritten with " + strconv.Quote(by),
		How: func(v *store.VM) { v.ActiveMigration = migration.ID(by) }}
}

func readRelease(w *words) sim.Event {
	e := sim.Release{VM: w.vm(), By: w.value("by")}
	if e.By == "" {
		w.fail("by= is missing: name the requester")
	}
	return e
}

func readLoad(w *words) sim.Event {
	e := sim.Load{VM: w.vm()}
	rate, err := inventory.ParseBandwidth(w.value("rate"))
	if err != nil {
		w.fail("rate: %v", err)
	}
	hot, err := inventory.ParseBytes(w.value("hot"))
	if err != nil {
		w.fail("hot: %v", err)
	}
	if memory := w.names.vms[e.VM]; hot > memory {
		asked, has := hypervisor.Apart(hot, memory)
		w.fail("hot: %s is more than the memory, %s", asked, has)
	}
	e.Load = fake.Workload{Rate: rate, Hot: hot}
	return e
}

func readMute(w *words) sim.Event {
	e := sim.DropAnswers{Host: w.participant(), Times: 1}
	if n := w.count("times"); n != nil {
		e.Times = *n
	}
	return e
}

// methods are what may be broken: the hypervisor's methods, and its commands and
// adjustments by their own names.
var methods = []string{"Host", "Domains", "Domain", "Receive", "Migrate", "Progress", "Adjust",
	"Do", "Start", "Stop", "Kill", "Reboot", "Pause", "Unpause", "Activate", "Discard", "Resume",
	"Abandon", "Release", "Resize", "Forget", "AttachDisk", "DetachDisk",
	"MoveDisk", "SwitchDisk", "EndDiskMove", "Cancel", "StartPostCopy", "PauseGuest",
	"SetDowntime", "SetBandwidth"}

func readBreak(w *words) sim.Event {
	f := fake.Fault{Host: w.host(), Op: w.value("op"), Delay: w.duration("delay")}
	hows := []string{"FailBefore", "FailAfter", "Hang", "LateAnswer", "LateEffect"}
	at := slices.Index(hows, w.value("how"))
	if at < 0 {
		w.fail("how=: use %s", strings.Join(hows, ", "))
		return nil
	}
	f.How = []fake.FaultEffect{fake.FailBefore, fake.FailAfter, fake.Hang, fake.LateAnswer,
		fake.LateEffect}[at]
	if f.Op != "" && !slices.Contains(methods, f.Op) {
		w.fail("op=: use %s", strings.Join(methods, ", "))
	}
	if n := w.count("times"); n != nil {
		f.Times = *n
	}
	return sim.Break{Fault: f}
}

// names are the hosts and VMs that an event may name, the VMs with their memory.
type names struct {
	hosts map[hypervisor.HostName]bool
	vms   map[hypervisor.VMID]hypervisor.Bytes
}

// maxEvent is how long the text of an event may be: errors repeat it.
const maxEvent = 500

// Scheduled is an event and when it happens.
type Scheduled struct {
	At   time.Duration
	Text string
	What sim.Event
}

// parse reads one line: [TIME | when VM=PHASE] VERB ARGUMENT… [KEY=VALUE…].
func (n names) parse(text string) (Scheduled, error) {
	if len(text) > maxEvent {
		return Scheduled{}, fmt.Errorf("an event has at most %d characters", maxEvent)
	}
	w := &words{names: n, rest: strings.Fields(text), used: map[string]bool{}}
	at, trigger := w.time()
	name := w.next("a verb")
	name = cmp.Or(oldVerbs[name], name)
	for _, v := range verbs {
		if word, _, _ := strings.Cut(v.usage, " "); word != name {
			continue
		}
		what := v.read(w)
		if err := w.end(v.usage); err != nil {
			return Scheduled{}, err
		}
		if trigger != nil {
			trigger.Do = what
			what = *trigger
		}
		return Scheduled{At: at, Text: text, What: what}, nil
	}
	if w.err != nil {
		return Scheduled{}, w.err
	}
	return Scheduled{}, fmt.Errorf("unknown verb %q; the verbs are:\n  %s", name,
		strings.Join(Verbs(), "\n  "))
}
