package migration_test

import (
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/migration"
)

// vectorIn is a recorded situation, as vectors/README.md documents it.
type vectorIn struct {
	Fn        string
	Migration vectorMigration
	VMI       *vectorVMI
	SourcePod *bool
	Target    *vectorInstance
	Attach    *vectorInstance `json:"attachment"`
	Others    []vectorOther
	SyncError string
	Config    struct {
		UtilityVolumesTimeout             *int
		ParallelMigrationsPerCluster      *int
		ParallelOutboundMigrationsPerNode *int
	}
}

type vectorMigration struct {
	Phase                 string
	Deleted               bool
	Finalizer             *bool
	Conditions            []string
	Priority              string
	Age                   int
	HandedOff             bool
	UtilityVolumesTimeout *string
	CreatedBy             string
	IgnoreBackoff         bool
	UnschedulableTimeout  *string
	PendingTimeout        *string
	PhaseTimestamps       []string
}

type vectorVMI struct {
	Phase                          *string
	Deleted                        bool
	Conditions                     []string
	HotplugVolumes, UtilityVolumes bool
	Backup                         string
	MigrationState                 *vectorState
	ExtraPods                      []string
}

type vectorState struct {
	UID                                                         string
	Completed, Failed, AbortRequested, Started, Ended           bool
	TargetNode, TargetPod, TargetNodeAddress, TargetDomainReady bool
	FailureReason                                               bool
	SourceNode                                                  string
}

type vectorInstance struct {
	Phase                                         string
	Ready, Deleted, Unschedulable, ReadyTimestamp bool
	Compute                                       string
	Age                                           int
}

type vectorOther struct {
	Name, Phase, Mode, Priority, Node, SourceNode, CreatedBy, State string
	SameVMI, Deleted, VMIMissing, Target                            bool
	Age                                                             int
	FailedAgo                                                       *int
}

var now = time.Date(2026, 8, 22, 12, 0, 0, 0, time.UTC)

func ago(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }

// read puts a vector into godwit's terms, or says why it is out of scope.
func (in vectorIn) read() (*recorded, string) {
	m := in.Migration
	if m.Phase == "WaitingForSync" || m.Phase == "Synchronizing" {
		return nil, "cross-cluster phase"
	}
	w := &recorded{in: in}
	w.config = migration.Config{Compatible: true}.Complete()
	w.limits = migration.DefaultLimits()
	setSeconds(&w.config.Timeouts.UtilityVolumes, in.Config.UtilityVolumesTimeout)
	setInt(&w.limits.PerCluster, in.Config.ParallelMigrationsPerCluster)
	setInt(&w.limits.PerSource, in.Config.ParallelOutboundMigrationsPerNode)
	w.spec = migration.Spec{ID: "m0", Created: ago(m.Age),
		Priority: migration.ParsePriority(m.Priority), By: creator(m.CreatedBy),
		Timeouts: migration.Overrides{Unschedulable: override(m.UnschedulableTimeout),
			Target:         override(m.PendingTimeout),
			UtilityVolumes: override(m.UtilityVolumesTimeout)}}
	w.state.Phase, _ = parsePhase(m.Phase)
	w.state.Conditions = in.conditionsBefore()
	w.readAttempts()
	w.seen = migration.Observation{Now: now, Canceled: m.Deleted, HandedOff: m.HandedOff,
		Target: in.Target.read(), Attachment: in.Attach.read(),
		Running: in.SourcePod == nil || *in.SourcePod}
	w.seen.TargetError = map[string]migration.TargetError{"quota": migration.QuotaExceeded,
		"other": migration.OtherTargetError}[in.SyncError]
	w.readVMI()
	if !m.IgnoreBackoff {
		w.seen.Backoff = w.config.Backoff("m0", w.attempts)
	}
	w.seen.Gate = in.slots("n1").Admit(w.limits, "n1")
	return w, ""
}

// readVMI fills in what is known about the VM, its claim and its reports.
func (w *recorded) readVMI() {
	v := w.in.VMI
	if v == nil {
		return
	}
	phase := "Running"
	if v.Phase != nil {
		phase = *v.Phase
	}
	w.seen.VM = migration.VMStatus{Exists: true, Deleting: v.Deleted,
		Final: phase == "Succeeded" || phase == "Failed", Running: phase == "Running",
		Hotplug: v.HotplugVolumes, UtilityVolumes: v.UtilityVolumes,
		Backup: v.Backup == "inProgress"}
	for _, c := range v.Conditions {
		kind, status := conditionOf(c)
		switch kind {
		case "HotVCPUChange":
			w.seen.VM.CPUChange = true
		case "HotMemoryChange":
			w.seen.VM.MemoryChange = status == "True"
		case "MigrationRequired":
			w.seen.VM.MoveRequired = status == "True"
		case "DecentralizedLiveMigrationFailure":
			w.seen.VM.PeerFailure = true
		}
	}
	if w.seen.Running {
		w.seen.Instances++
	}
	for _, p := range v.ExtraPods {
		if p != "Succeeded" && p != "Failed" {
			w.seen.Instances++
		}
	}
	for _, o := range w.in.Others {
		if o.SameVMI && o.Target {
			w.seen.Instances++
		}
	}
	w.readState(v.MigrationState)
}

func (w *recorded) readState(s *vectorState) {
	if s == nil {
		return
	}
	w.seen.Ownership = migration.ClaimedByEnded
	if s.UID == "self" {
		w.seen.Ownership = migration.ClaimedBySelf
	}
	for _, o := range w.in.Others {
		if p, _ := parsePhase(o.Phase); o.Name == s.UID && !p.Final() {
			w.seen.Ownership = migration.ClaimedByOther
		}
	}
	w.seen.Report = migration.Report{TargetNamed: s.TargetNode, Address: s.TargetNodeAddress,
		Started: s.Started, Completed: s.Completed, Failed: s.Failed,
		Aborting: s.AbortRequested, Arrived: s.TargetDomainReady}
}

// readAttempts lists the VM's migrations and those that wait.
func (w *recorded) readAttempts() {
	self := migration.Attempt{ID: "m0", By: w.spec.By, Created: w.spec.Created,
		Phase: w.state.Phase, Deleted: w.in.Migration.Deleted}
	if s := w.in.VMI; s != nil && s.MigrationState != nil && s.MigrationState.UID == "self" {
		self.ReportedFailed = s.MigrationState.Failed
		self.ReportedCompleted = s.MigrationState.Completed
	}
	w.attempts = append(w.attempts, self)
	for _, o := range w.in.Others {
		p, _ := parsePhase(o.Phase)
		if o.Phase == "Pending" {
			w.pending = append(w.pending, migration.Spec{ID: migration.ID(o.Name),
				Created: ago(o.Age), Priority: migration.ParsePriority(o.Priority)})
		}
		if !o.SameVMI {
			continue
		}
		a := migration.Attempt{ID: migration.ID(o.Name), By: creator(o.CreatedBy),
			Created: ago(o.Age), Phase: p, Deleted: o.Deleted,
			ReportedFailed: o.State == "failed", ReportedCompleted: o.State == "completed"}
		if o.FailedAgo != nil {
			a.FailedAt = ago(*o.FailedAgo)
		}
		w.attempts = append(w.attempts, a)
	}
}

func (i *vectorInstance) read() migration.Instance {
	if i == nil {
		return migration.Instance{}
	}
	return migration.Instance{Exists: true, Pending: i.Phase == "Pending",
		Unschedulable: i.Unschedulable, Ready: i.Ready, Deleting: i.Deleted,
		Down: i.Phase == "Succeeded" || i.Phase == "Failed", Told: i.ReadyTimestamp,
		Created: ago(i.Age)}
}

func conditionOf(text string) (kind, status string) {
	text, _, _ = strings.Cut(text, "/")
	kind, status, found := strings.Cut(text, "=")
	if !found {
		status = "True"
	}
	return kind, status
}

// conditionsBefore reads the recorded list; a condition with another status or
// reason than the one godwit would write is stale.
func (in *vectorIn) conditionsBefore() migration.Conditions {
	var cs migration.Conditions
	for _, text := range in.Migration.Conditions {
		kind, status := conditionOf(text)
		for _, c := range migration.AllConditions() {
			switch {
			case c.String() != kind:
			case status != "True" || c == migration.PeerBlocked && text != in.written(c) ||
				strings.HasSuffix(text, "/Old"):
				cs = cs.WithStale(c)
			default:
				cs = cs.With(c)
			}
		}
	}
	return cs
}

// conditionsAfter is the recorded list with what changed: removed ones leave,
// rewritten ones stay in place, new ones are appended.
func (in *vectorIn) conditionsAfter(cs migration.Conditions) []string {
	before := in.conditionsBefore()
	list := []string{}
	for _, text := range in.Migration.Conditions {
		kind, _ := conditionOf(text)
		for _, c := range migration.AllConditions() {
			switch {
			case c.String() != kind || !cs.Has(c):
			case before.Holds(c) == cs.Holds(c):
				list = append(list, text)
			default:
				list = append(list, in.written(c))
			}
		}
	}
	for _, c := range migration.AllConditions() {
		if cs.Has(c) && !before.Has(c) {
			list = append(list, in.written(c))
		}
	}
	return list
}

// written is how a condition that was just recorded reads.
func (in *vectorIn) written(c migration.Condition) string {
	if c == migration.PeerBlocked && in.VMI != nil {
		for _, text := range in.VMI.Conditions {
			kind, reason, _ := strings.Cut(text, "/")
			if kind == "DecentralizedLiveMigrationFailure" && reason != "" {
				return c.String() + "/" + reason
			}
		}
	}
	return c.String()
}

func creator(word string) migration.Creator {
	words := []string{"", "evacuation", "workloadUpdate"}
	return migration.Creator(max(0, slices.Index(words, word)))
}

func override(text *string) *time.Duration {
	if text == nil {
		return nil
	}
	return migration.ParseSeconds(*text)
}

func setSeconds(d *time.Duration, s *int) {
	if s != nil {
		*d = time.Duration(*s) * time.Second
	}
}

func setInt(n *int, v *int) {
	if v != nil {
		*n = *v
	}
}
