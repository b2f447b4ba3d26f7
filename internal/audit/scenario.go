package audit

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/store"
)

// Scenario reads a log, and writes the fleet in it and what has happened to it as a scenario
// that godwit simulate plays. It is an approximation, and its head says of what. The error is
// a *[Wrong], problems of what cannot be written as a scenario, or a failure to read.
func Scenario(log io.Reader) ([]byte, error) {
	c := &timeline{known: map[store.Key]store.Record{}, lost: map[hypervisor.HostName]*loss{},
		fleet: map[store.Key]store.Record{}}
	r := reader{begun: c.begin, looked: c.look}
	if err := r.read(log); err != nil {
		return nil, err
	}
	c.finish()
	if _, err := c.spec.Scenario("the scenario of the log"); err != nil {
		return nil, fmt.Errorf("this log makes no scenario: %w", err)
	}
	return c.write()
}

func byName(a, b store.Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// timeline is what a log says about a fleet and what has happened to it.
type timeline struct {
	spec  config.Spec
	fleet map[store.Key]store.Record // as each was when it was first read
	known map[store.Key]store.Record // as they are now
	drain string                     // the key of the taint
	begun time.Time                  // the first look
	now   time.Time                  // the last
	lost  map[hypervisor.HostName]*loss
	// homeless counts VMs that never had a host, and are left out.
	homeless int
	unknown  int // events that are left out
	happened
}

// begin takes in a controller that begins: the configuration of the first counts.
func (c *timeline) begin(t *term) error {
	if !c.begun.IsZero() {
		if gap := t.begin.At.Sub(c.now); gap >= time.Millisecond {
			c.at(c.now, "crash-controller for=%s", rounded(gap))
		}
		return nil
	}
	const name = "the log's configuration"
	doc, err := yamldoc.Parse(name, 1, []byte(t.origin.Config))
	if err != nil {
		return err
	}
	var f config.File
	if err := doc.Decode(&f); err != nil {
		return err
	}
	s, err := config.ParseSettings(name, []byte(t.origin.Config))
	if err != nil {
		return err
	}
	c.drain = s.Controller.Complete().Evacuation.DrainKey
	c.spec.Name = "after the log of " + t.begin.By
	c.spec.Config, c.spec.Policies, c.spec.Namespaces = f.Config, f.Policies, f.Namespaces
	c.spec.Control = f.Control
	c.spec.Mode = cmp.Or(f.Mode, f.Evacuation.Mode)
	c.spec.Order, c.spec.Evacuation = cmp.Or(f.Order, f.Evacuation.Order), config.Evacuation{}
	c.spec.OnUnmovable = cmp.Or(f.OnUnmovable, f.Evacuation.OnUnmovable)
	c.spec.Grace = cmp.Or(f.Grace, f.Evacuation.Grace)
	c.spec.EvictionStrategy = s.Controller.Evacuation.Strategy.String()
	c.spec.Defaults = inventory.DefaultsSpec{LoadSpec: inventory.LoadSpec{Class: "web"}}
	return nil
}

// look takes in what others have written before a look, and then what the look wrote.
func (c *timeline) look(_ *term, k *look) error {
	if c.begun.IsZero() {
		c.begun, c.happened.zero = k.at, k.at
	}
	c.now = k.at
	for _, r := range k.changes.Records {
		key := r.Key()
		if old := c.known[key]; old == nil || old.RecordVersion() < r.RecordVersion() {
			c.changed(old, r)
			c.known[key] = r
		}
	}
	for _, key := range k.changes.Gone {
		if v, is := c.known[key].(*store.VM); is {
			c.at(k.at, "delete %s", v.VM.ID)
		}
		delete(c.known, key)
	}
	for _, d := range k.writes {
		key, _ := Key(d.line.Record)
		switch {
		case d.failed != "":
		case d.record == nil:
			delete(c.known, key)
		default:
			c.known[key] = d.record
		}
	}
	return nil
}

// changed takes in what another process has written; old is nil when it is new.
func (c *timeline) changed(old, now store.Record) {
	c.see(now)
	switch now := now.(type) {
	case *store.Host:
		if was, is := old.(*store.Host); is {
			c.host(was, now, c.now)
		} else {
			c.host(&store.Host{}, now, c.now)
		}
	case *store.VM:
		if was, is := old.(*store.VM); is {
			c.vm(was, now, c.now)
		}
	case *store.Migration:
		was, _ := old.(*store.Migration)
		c.migration(was, now, c.now)
	}
}

// finish ends what has not ended in the log, and writes down the fleet and the events.
func (c *timeline) finish() {
	for _, key := range slices.SortedFunc(maps.Keys(c.fleet), byName) {
		c.add(c.fleet[key])
	}
	for _, name := range slices.Sorted(maps.Keys(c.lost)) {
		c.regain(name, c.now.Add(time.Hour), false)
	}
	slices.SortStableFunc(c.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	for _, e := range c.events {
		if slices.ContainsFunc(e.keys, func(k store.Key) bool { return c.fleet[k] == nil }) {
			c.unknown++
			continue
		}
		c.spec.Events = append(c.spec.Events, rounded(e.at)+" "+e.what)
	}
}

const head = `# Made by godwit replay --scenario from an audit log. It is an approximation:
# - hosts and VMs that appeared later are there from the beginning; %d VMs that never had a
#   host, and %d events that name others, are left out;
# - what guests write is not in the log: they are taken for web servers (defaults.class);
# - transfers take as long as the model says, not as long as they took;
# - events happen when the controller read of them; hosts that fell silent did so %s before;
# - of what hosts have and VMs ask for, sizes, labels, taints, tolerations, selectors, affinity,
#   groups and neighbours are kept, and of the configuration all but failover.
`

// write writes the scenario, one line for each host, VM and event.
func (c *timeline) write() ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, head, c.homeless, c.unknown, grace)
	fields := []struct {
		name  string
		value any
	}{
		{"name", c.spec.Name}, {"config", c.spec.Config}, {"policies", c.spec.Policies},
		{"namespaces", c.spec.Namespaces}, {"evictionStrategy", c.spec.EvictionStrategy},
		{"limits", c.spec.Limits},
		{"mode", c.spec.Mode}, {"order", c.spec.Order}, {"compatible", c.spec.Compatible},
		{"onUnmovable", c.spec.OnUnmovable}, {"grace", c.spec.Grace}, {"groups", c.spec.Groups},
		{"timeouts", c.spec.Timeouts}, {"backoff", c.spec.Backoff},
		{"avoidFor", c.spec.AvoidFor}, {"keep", c.spec.Keep}, {"quotas", c.spec.Quotas},
		{"defaults", c.spec.Defaults},
	}
	for _, f := range fields {
		text, err := flow(f.value)
		if err != nil {
			return nil, err
		}
		if !slices.Contains([]string{"{}", "[]", `""`, "false", "null", "0"}, text) {
			fmt.Fprintf(&b, "%s: %s\n", f.name, text)
		}
	}
	err := cmp.Or(list(&b, "hosts", c.spec.Hosts), list(&b, "vms", c.spec.VMs),
		list(&b, "events", c.spec.Events))
	return []byte(b.String()), err
}

func list[T any](b *strings.Builder, field string, all []T) error {
	if len(all) > 0 {
		b.WriteString(field + ":\n")
	}
	for _, v := range all {
		text, err := flow(v)
		if err != nil {
			return err
		}
		b.WriteString("- " + text + "\n")
	}
	return nil
}

// flow writes a value on one line.
func flow(v any) (string, error) {
	text, err := yaml.MarshalWithOptions(v, yaml.Flow(true))
	return strings.TrimSpace(string(text)), err
}

// rounded writes a duration to the millisecond.
func rounded(d time.Duration) string { return max(0, d.Round(time.Millisecond)).String() }
