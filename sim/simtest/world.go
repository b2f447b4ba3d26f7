package simtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/inventory"
)

// A World is a fleet and what happens to it, in the words of a scenario: it has the fields of an
// [inventory.Spec] (Hosts, VMs, Policies), its Events, one a line, and a Seed. The Seed makes the
// free choices: how late messages are, which participant is first.
type World struct{ spec }

// spec is what a scenario's file says.
type spec = config.Spec

// Clone returns a copy that can be changed by adding, dropping and replacing hosts, VMs,
// policies and events.
func (w *World) Clone() *World {
	c := *w
	c.Hosts, c.VMs = slices.Clone(w.Hosts), slices.Clone(w.VMs)
	c.Policies, c.Events = slices.Clone(w.Policies), slices.Clone(w.Events)
	return &c
}

// HostNames lists the hosts.
func (w *World) HostNames() (names []string) {
	for i := range w.Hosts {
		names = append(names, w.Hosts[i].Name)
	}
	return names
}

// VMNames lists the VMs.
func (w *World) VMNames() (names []string) {
	for i := range w.VMs {
		names = append(names, w.VMs[i].Name)
	}
	return names
}

// Commands counts the lines that one would type to play the world by hand: each
// host, VM, event and policy is one, and so is every other setting but the seed and the name.
func (w *World) Commands() int {
	return len(w.Hosts) + len(w.VMs) + len(w.Events) + len(w.Policies) + len(w.settings())
}

// String writes the world as a scenario, one line each command.
func (w *World) String() string {
	var b strings.Builder
	if w.Name != "" {
		b.WriteString("name: " + flow(w.Name))
	}
	b.WriteString("seed: " + flow(w.Seed))
	list(&b, "hosts", w.Hosts)
	list(&b, "vms", w.VMs)
	list(&b, "policies", w.Policies)
	for _, s := range w.settings() {
		b.WriteString(fmt.Sprint(s.Key) + ": " + flow(s.Value))
	}
	list(&b, "events", w.Events)
	return b.String()
}

// list writes the entries of a field, each on a line.
func list[T any](b *strings.Builder, field string, entries []T) {
	if len(entries) == 0 {
		return
	}
	b.WriteString(field + ":\n")
	for i := range entries {
		b.WriteString("- " + flow(entries[i]))
	}
}

// settings are the fields that are no lists, in order.
func (w *World) settings() yaml.MapSlice {
	rest := w.spec
	rest.Name, rest.Seed = "", 0
	rest.Hosts, rest.VMs, rest.Policies, rest.Events = nil, nil, nil, nil
	text, err := yaml.Marshal(rest)
	var fields yaml.MapSlice
	if err == nil {
		err = yaml.Unmarshal(text, &fields)
	}
	if err != nil {
		panic("worlds: a specification cannot be written: " + err.Error())
	}
	return slices.DeleteFunc(fields, func(f yaml.MapItem) bool {
		m, is := f.Value.(map[string]any)
		return is && len(m) == 0
	})
}

// flow writes a value on one line.
func flow(v any) string {
	text, err := yaml.MarshalWithOptions(v, yaml.Flow(true))
	if err != nil {
		panic("worlds: a specification cannot be written: " + err.Error())
	}
	return strings.TrimSpace(string(text)) + "\n"
}

// Parse reads a world that [World.String] has written, or any scenario whose fleet is written
// in place. Problems name file, line and field.
func Parse(name string, data []byte) (*World, error) {
	doc, err := yamldoc.Parse(name, 1, data)
	if err != nil {
		return nil, err
	}
	var w World
	if err := doc.Decode(&w.spec); err != nil {
		return nil, err
	}
	return &w, nil
}

// amount reads a size that was written by a part.
func amount(text string) hypervisor.Bytes {
	b, err := inventory.ParseBytes(text)
	if err != nil {
		return 0
	}
	return b
}
