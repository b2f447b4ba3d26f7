package migration_test

import (
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/migration"
)

// A look: what is known goes in; the next state and what is due come out. The
// caller stores the state before it performs the actions.
func ExampleConfig_Step() {
	config := migration.Config{}.Complete()
	at := time.Date(2026, 3, 20, 8, 0, 0, 0, time.UTC)
	spec := migration.Spec{ID: "move-web", VM: "web", Created: at}
	state := migration.State{Phase: migration.Running, Source: "n1", Target: "n2"}
	seen := migration.Observation{
		Now:       at.Add(time.Minute),
		VM:        migration.VMStatus{Exists: true, Running: true},
		Ownership: migration.ClaimedBySelf,
		Report:    migration.Report{TargetNamed: true, Address: true, Began: true, Started: true},
		Target:    migration.Instance{Exists: true, Ready: true},
		Canceled:  true,
	}

	d := config.Step(&spec, &state, &seen)
	fmt.Println(d.State.Phase, d.Rule, d.State.Conditions.Words())
	for a := range d.Actions.All() {
		fmt.Println("do", a)
	}

	state = d.State // stored; the source abandons the transfer and says so
	seen.Report.Failed = true
	d = config.Step(&spec, &state, &seen)
	fmt.Println(d.State.Phase, d.Rule, "because", d.State.Because)
	// Output:
	// Running canceled [migrationAbortRequested]
	// do requestAbort
	// Failed source-kept-vm because canceled
}

// Slots answer whether one more migration may start.
func ExampleSlots() {
	limits := migration.DefaultLimits()
	var slots migration.Slots
	for _, target := range []string{"n2", "n3", "n4"} {
		gate := slots.Admit(limits, "n1")
		fmt.Printf("n1 to %s: %s\n", target, gate)
		if gate == migration.Open {
			slots.Take(migration.Slot{Source: "n1", Recorded: "n1"})
		}
	}
	slots.Return(migration.Slot{Source: "n1", Recorded: "n1"})
	fmt.Println("one ends:", slots.Admit(limits, "n1"))
	// Output:
	// n1 to n2: open
	// n1 to n3: open
	// n1 to n4: source limit
	// one ends: open
}

// A retry that the system makes by itself waits longer after every failure.
func ExampleConfig_Backoff() {
	config := migration.Config{}.Complete()
	at := time.Date(2026, 3, 20, 8, 0, 0, 0, time.UTC)
	attempts := []migration.Attempt{
		{ID: "a", By: migration.Evacuation, Created: at, Phase: migration.Failed,
			FailedAt: at.Add(10 * time.Second), Target: "n2", Because: "target-down"},
		{ID: "b", By: migration.Evacuation, Created: at.Add(time.Minute), Phase: migration.Failed,
			FailedAt: at.Add(2 * time.Minute), Target: "n3", Because: "canceled"},
		{ID: "c", By: migration.Evacuation, Created: at.Add(3 * time.Minute)},
	}
	fmt.Println("not before", config.Backoff("c", attempts).Format(time.TimeOnly))
	fmt.Println("not first to", config.Avoid(attempts, at.Add(3*time.Minute)))
	// Output:
	// not before 08:02:40
	// not first to [n2]
}

// A rule decides, and says which one it was; the phase never moves back.
func ExampleDecision() {
	config := migration.Config{}.Complete()
	at := time.Date(2026, 3, 20, 8, 0, 0, 0, time.UTC)
	state := migration.State{Phase: migration.PreparingTarget, Deadline: at}
	seen := migration.Observation{
		Now:       at.Add(time.Second),
		VM:        migration.VMStatus{Exists: true, Running: true},
		Ownership: migration.ClaimedBySelf,
		Target:    migration.Instance{Exists: true, Ready: true},
	}
	d := config.Step(&migration.Spec{ID: "move-web"}, &state, &seen)
	fmt.Println(d.State.Phase, "by", d.Rule)
	for _, n := range d.Notes() {
		fmt.Println(n, n.Reason(), n.Warning())
	}
	// Output:
	// Failed by overdue
	// overdue FailedMigration true
}

// A caller that has no hosts: each action takes effect before the next look, and the reports of
// source and target are made up. What is printed is the whole life of a migration.
func ExampleConfig_Step_withoutHosts() {
	config := migration.Config{}.Complete()
	at := time.Date(2026, 3, 20, 8, 0, 0, 0, time.UTC)
	spec := migration.Spec{ID: "move-web", VM: "web", Created: at}
	state := migration.State{Source: "n1"}
	seen := migration.Observation{Now: at, VM: migration.VMStatus{Exists: true, Running: true},
		Running: true, Instances: 1, Gate: migration.Open}
	for !state.Phase.Final() {
		d := config.Step(&spec, &state, &seen)
		state = d.State // store it before the actions
		fmt.Println(state.Phase, d.Actions)
		for action := range d.Actions.All() {
			switch action {
			case migration.CreateTarget:
				state.Target = "n2" // package placement says which
				seen.Target = migration.Instance{Exists: true, Ready: true, Created: seen.Now}
			case migration.HandOff:
				seen.Ownership = migration.ClaimedBySelf
			case migration.TellTarget:
				seen.Target.Told = true
			}
		}
		switch r := &seen.Report; state.Phase { // what the hosts have done meanwhile
		case migration.Scheduled:
			r.TargetNamed = true
		case migration.PreparingTarget:
			r.Address = true
		case migration.TargetReady:
			r.Began, r.Started = true, true
		case migration.Running:
			r.Arrived, r.Completed = true, true
		}
		seen.Now = seen.Now.Add(time.Second)
	}
	// Output:
	// Pending none
	// Pending createTarget
	// Scheduling none
	// Scheduled none
	// Scheduled handOff
	// PreparingTarget none
	// TargetReady none
	// Running none
	// Succeeded tellTarget
}
