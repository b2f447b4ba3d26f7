package plan

import (
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
)

// DocumentFormat is the version of a [Document] that this godwit writes.
const DocumentFormat = 1

// A Document is a plan as a file: what was planned, to be carried out later.
type Document struct {
	Format int    `json:"format" yaml:"format"`
	Name   string `json:"name" yaml:"name"`
	// Keep is how many failures the plan survives at any time, and Strict that for this, or for another
	// reason, no VM goes to another host than planned.
	Keep   int  `json:"keep,omitempty" yaml:"keep,omitempty"`
	Strict bool `json:"strict,omitempty" yaml:"strict,omitempty"`
	// Limits are those that the times of the plan hold for; nil is not known. They are the controller's to
	// set: the commands that carry the plan out compare.
	Limits *DocumentLimits `json:"limits,omitempty" yaml:"limits,omitempty"`
	// Batches are carried out one after another. A drain has one.
	Batches []DocumentBatch `json:"batches" yaml:"batches"`
	// Home are the moves after all batches.
	Home [][]DocumentMove `json:"home,omitempty" yaml:"home,omitempty"`
	// NotMoved are VMs that leave in another way than by live migration: it is for an operator to see to
	// them.
	NotMoved []hypervisor.VMID `json:"notMoved,omitempty" yaml:"notMoved,omitempty"`
}

// DocumentLimits are how many migrations run at once, and how fast.
type DocumentLimits struct {
	PerCluster int `json:"perCluster" yaml:"perCluster"`
	PerSource  int `json:"perSource" yaml:"perSource"`
	PerTarget  int `json:"perTarget" yaml:"perTarget"` // 0 is no limit
	// Bandwidth is the cap on each migration, in bytes a second; 0 is none.
	Bandwidth hypervisor.Bandwidth `json:"bandwidth" yaml:"bandwidth"`
}

// A DocumentBatch is hosts that are emptied together, and the moves that do it, in waves.
type DocumentBatch struct {
	Hosts []hypervisor.HostName `json:"hosts" yaml:"hosts"`
	Waves [][]DocumentMove      `json:"waves,omitempty" yaml:"waves,omitempty"`
	// NeedsSeconds is how long it takes with a probability of 95 %, the service included; 0 is not known.
	NeedsSeconds float64 `json:"needsSeconds,omitempty" yaml:"needsSeconds,omitempty"`
}

// A DocumentMove is a move in a document.
type DocumentMove struct {
	VM     hypervisor.VMID     `json:"vm" yaml:"vm"`
	Source hypervisor.HostName `json:"source" yaml:"source"`
	Target hypervisor.HostName `json:"target" yaml:"target"`
}

// Documented returns waves as a document has them, without the moves of some VMs.
func Documented(waves []Wave, but map[hypervisor.VMID]bool) [][]DocumentMove {
	all := [][]DocumentMove{}
	for _, wave := range waves {
		var moves []DocumentMove
		for _, m := range wave {
			if !but[m.VM] {
				moves = append(moves, DocumentMove(m))
			}
		}
		if len(moves) > 0 {
			all = append(all, moves)
		}
	}
	return all
}

// Validate calls wrong with every problem, and the field that it is in, as "batches[0].hosts".
func (d *Document) Validate(wrong func(field, format string, args ...any)) {
	if d.Format != DocumentFormat {
		wrong("format", "this godwit reads plans of format %d", DocumentFormat)
	}
	if d.Name == "" {
		wrong("name", "it is missing")
	}
	if l := d.Limits; l != nil && min(l.PerCluster, l.PerSource, l.PerTarget, int(l.Bandwidth)) < 0 {
		wrong("limits", "needs numbers of 0 or more")
	}
	if len(d.Batches) == 0 {
		wrong("batches", "there are none")
	}
	for i := range d.Batches {
		at := fmt.Sprintf("batches[%d]", i)
		seen := map[hypervisor.HostName]bool{}
		for j, host := range d.Batches[i].Hosts {
			if seen[host] || host == "" {
				wrong(fmt.Sprintf("%s.hosts[%d]", at, j), "needs a host that is not named before")
			}
			seen[host] = true
		}
		if n := d.Batches[i].NeedsSeconds; n < 0 || n > 1e8 {
			wrong(at+".needsSeconds", "needs a number of seconds from 0 to 1e8")
		}
		validWaves(at+".waves", d.Batches[i].Waves, wrong)
	}
	validWaves("home", d.Home, wrong)
}

func validWaves(at string, waves [][]DocumentMove, wrong func(field, format string, args ...any)) {
	for i, wave := range waves {
		seen := map[hypervisor.VMID]bool{}
		for j, m := range wave {
			at := fmt.Sprintf("%s[%d][%d]", at, i, j)
			switch {
			case m.VM == "":
				wrong(at+".vm", "it is missing")
			case m.Source == "" || m.Target == "" || m.Source == m.Target:
				wrong(at+".target", "needs two different hosts, source and target")
			case seen[m.VM]:
				wrong(at+".vm", "%s moves twice in one wave", m.VM)
			}
			seen[m.VM] = true
		}
	}
}
