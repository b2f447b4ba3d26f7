package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/config"
)

// The values that drawn scenarios are made of: everyday ones, and the ends of
// what is accepted.
var (
	amounts   = rapid.SampledFrom([]string{"1B", "5KiB", "4GiB", "48GiB", "3TiB", "100PiB"})
	speeds    = rapid.SampledFrom([]string{"1B/s", "1Mbit/s", "10Gbit/s", "1TiB/s", "7000PiB/s"})
	classes   = rapid.SampledFrom([]string{"idle", "web", "database", "busy", "in-memory"})
	durations = rapid.SampledFrom([]string{"1ns", "3ms", "1s", "40s", "10m", "2h", "876000h"})
	drawHosts = rapid.SampledFrom([]string{"n1", "n2", "n3"})
	drawVMs   = rapid.SampledFrom([]string{"a", "b", "c"})
	phases    = rapid.SampledFrom([]string{"Pending", "Scheduling", "Scheduled",
		"PreparingTarget", "TargetReady", "Running", "Succeeded", "Failed"})
)

// drawnEvent draws one of the rows of the tables of events, about other hosts and
// VMs, at any time.
func drawnEvent(t *rapid.T) string {
	text := rapid.SampledFrom(slices.Concat(operators, faults)).Draw(t, "event").text
	words := strings.Fields(text)
	for i, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch {
		case i == 0:
		case key == "for" || key == "delay":
			words[i] = key + "=" + durations.Draw(t, key)
		case key == "by" && strings.HasSuffix(value, "s"):
			words[i] = key + "=" + rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign") +
				durations.Draw(t, key)
		case key == "rate":
			words[i] = key + "=" + speeds.Draw(t, key)
		case key == "hot":
			words[i] = key + "=" + amounts.Draw(t, key)
		case key == "to":
			words[i] = key + "=" + drawHosts.Draw(t, key)
		case len(word) == 2 && word[0] == 'n':
			words[i] = drawHosts.Draw(t, "host")
		case strings.HasSuffix(word, "web-1") || word == "prod/db":
			words[i] = drawVMs.Draw(t, "VM")
		}
	}
	text = strings.Join(words, " ")
	if rapid.Bool().Draw(t, "when") {
		return fmt.Sprintf("when %s=%s %s", drawVMs.Draw(t, "of"), phases.Draw(t, "phase"), text)
	}
	return durations.Draw(t, "at") + " " + text
}

func drawnScenario(t *rapid.T) string {
	var b strings.Builder
	fmt.Fprintf(&b, "model: %s\nmode: %s\ncompatible: %t\n"+
		"limits: {perCluster: %d, perTarget: %d}\n",
		rapid.SampledFrom([]string{"qemu", "ideal"}).Draw(t, "model"),
		rapid.SampledFrom([]string{"QueueAll", "FreeSpots"}).Draw(t, "mode"),
		rapid.Bool().Draw(t, "compatible"),
		rapid.IntRange(0, 3).Draw(t, "in cluster"), rapid.IntRange(0, 2).Draw(t, "to target"))
	fmt.Fprintf(&b, "config: {allowPostCopy: %t, allowAutoConverge: %t}\nhosts:\n",
		rapid.Bool().Draw(t, "post-copy"), rapid.Bool().Draw(t, "auto-converge"))
	for n := range 3 {
		fmt.Fprintf(&b, "- {name: n%d, memory: %s, cpus: %d, link: %s}\n", n+1,
			amounts.Draw(t, "memory"), rapid.IntRange(1, 64).Draw(t, "CPUs"),
			speeds.Draw(t, "link"))
	}
	b.WriteString("vms:\n")
	for _, name := range []string{"a", "b", "c"} {
		fmt.Fprintf(&b, "- {name: %s, host: %s, memory: %s, class: %s}\n", name,
			drawHosts.Draw(t, "host"), amounts.Draw(t, "memory"), classes.Draw(t, "class"))
	}
	b.WriteString("events:\n")
	for range rapid.IntRange(0, 6).Draw(t, "events") {
		fmt.Fprintf(&b, "- %s\n", drawnEvent(t))
	}
	return b.String()
}

// TestWhateverIsAcceptedPlays: at the ends of what is accepted, too, sums do not
// overflow, times do not wrap and nothing panics.
func TestWhateverIsAcceptedPlays(t *testing.T) {
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		text := drawnScenario(t)
		s, err := config.Parse("drawn.yaml", []byte(text))
		if err != nil {
			if !strings.Contains(err.Error(), "is more than the memory") {
				t.Fatalf("%v\nin\n%s", err, text)
			}
			return
		}
		accepted++
		play(t, s)
	})
	if accepted == 0 {
		t.Error("nothing was accepted: the test shows nothing")
	}
}
