package godwit_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// One look at a migration: what is known goes in, what is to be done comes out, and all of it can
// be logged and stored as it is.
func Example() {
	config := migration.Config{}.Complete()
	at := time.Date(2026, 3, 20, 8, 0, 0, 0, time.UTC)
	spec := migration.Spec{ID: "move-web", VM: "web", Created: at}
	state := migration.State{Phase: migration.Running, Source: "n1", Target: "n2", Entered: at}
	seen := migration.Observation{Now: at.Add(time.Minute), Ownership: migration.ClaimedBySelf,
		VM:     migration.VMStatus{Exists: true, Running: true},
		Report: migration.Report{TargetNamed: true, Address: true, Began: true, Started: true},
		Target: migration.Instance{Exists: true, Ready: true}, Canceled: true}
	d := config.Step(&spec, &state, &seen)

	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
	log.Info("decided", "do", d.Actions, "conditions", d.State.Conditions, "claim", seen.Ownership)
	text, err := json.Marshal(d.Actions)
	fmt.Println(string(text), err)
	fmt.Println(hypervisor.CanPostCopy | hypervisor.CanRecover)
	// Output:
	// level=INFO msg=decided do=requestAbort conditions=migrationAbortRequested claim=claimed-by-self
	// ["requestAbort"] <nil>
	// post-copy, recover
}
