package main

import (
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/store"
)

// block returns what is indented below a line of a help text, up to the next that is not.
func block(t *testing.T, help, after string) []byte {
	t.Helper()
	_, rest, found := strings.Cut(help, after)
	if !found {
		t.Fatalf("the help does not say %q", after)
	}
	var text strings.Builder
	for line := range strings.Lines(strings.TrimLeft(rest, "\n")) {
		if !strings.HasPrefix(line, "  ") {
			break
		}
		text.WriteString(line)
	}
	return []byte(text.String())
}

// TestTheFilesInTheHelpAreRight reads the files that the controller's help shows.
func TestTheFilesInTheHelpAreRight(t *testing.T) {
	s, err := config.ParseSettings("config", block(t, controllerHelp, "is optional:\n"))
	if err != nil || s.Controller.Quotas["acme"].CPUs != 128 {
		t.Errorf("the configuration is read as %+v, %v", s, err)
	}
	c, err := daemon.ParseFence("fencing", block(t, controllerHelp, "fence agents:\n"))
	if err != nil || len(c.Hosts["n1"]) != 1 {
		t.Errorf("the devices are read as %+v, %v", c, err)
	}
}

// TestAnUnknownNameNamesACommandThatThereIs, of every kind of thing that has names.
func TestAnUnknownNameNamesACommandThatThereIs(t *testing.T) {
	for _, what := range []string{"disk", store.VMKind.String(), store.HostKind.String(), store.MigrationKind.String(),
		store.PlanKind.String(), store.MaintenanceKind.String()} {
		text := (&client.UnknownError{What: what, Name: "nosuch"}).Error()
		_, command, _ := strings.Cut(text, ": see godwit ")
		if c, rest, err := rootCommand().Find(strings.Fields(command)); err != nil || len(rest) > 0 || !c.Runnable() {
			t.Errorf("%s: there is no such command", text)
		}
	}
}
