package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
)

// words reads an event's words one after the other; the first error stays.
type words struct {
	names names
	rest  []string
	used  map[string]bool
	err   error
}

func (w *words) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// next returns the next word that is no key=value.
func (w *words) next(what string) string {
	for i, word := range w.rest {
		if !strings.Contains(word, "=") {
			w.rest = append(append([]string(nil), w.rest[:i]...), w.rest[i+1:]...)
			return word
		}
	}
	w.fail("%s is missing", what)
	return ""
}

// value returns what key= is set to; "" when it is not there.
func (w *words) value(key string) string {
	value := ""
	for _, word := range w.rest {
		k, v, found := strings.Cut(word, "=")
		switch {
		case !found || k != key:
			continue
		case v == "":
			w.fail("%s= says nothing", key)
		case w.used[key]:
			w.fail("%s= is there twice", key)
		}
		w.used[key] = true
		value = v
	}
	return value
}

// time reads when an event happens: after a duration, when a VM's migration
// comes to a phase, or now.
func (w *words) time() (time.Duration, *sim.When) {
	if len(w.rest) > 1 && w.rest[0] == "when" {
		vm, phase, _ := strings.Cut(w.rest[1], "=")
		w.rest = w.rest[2:]
		t := &sim.When{VM: w.knownVM(vm)}
		if err := t.Phase.UnmarshalText([]byte(phase)); err != nil || t.Phase == migration.Unset {
			w.fail("when VM=PHASE: %q is no phase", phase)
		}
		return 0, t
	}
	if len(w.rest) > 0 && w.rest[0] != "" && w.rest[0][0] >= '0' && w.rest[0][0] <= '9' {
		at, err := readDuration(w.rest[0])
		if err != nil {
			w.fail("%v", err)
		}
		w.rest = w.rest[1:]
		return at, nil
	}
	return 0, nil
}

func (w *words) host() hypervisor.HostName { return w.known(w.next("a host")) }

func (w *words) known(name string) hypervisor.HostName {
	host := hypervisor.HostName(name)
	if !w.names.hosts[host] {
		w.fail("there is no host %q", name)
	}
	return host
}

func (w *words) vm() hypervisor.VMID { return w.knownVM(w.next("a VM")) }

// knownVM accepts names in the default namespace without it.
func (w *words) knownVM(name string) hypervisor.VMID {
	id := hypervisor.VMID(name)
	if !strings.Contains(name, "/") {
		id = "default/" + id
	}
	if _, known := w.names.vms[id]; !known {
		w.fail("there is no VM %q", id)
	}
	return id
}

// participant reads the name of a participant: a host's agent, or the controller.
func (w *words) participant() hypervisor.HostName {
	name := w.next("a host, or controller,")
	if name == "controller" {
		return ""
	}
	return w.known(name)
}

// duration reads key=TIME; zero when it is not there.
func (w *words) duration(key string) time.Duration {
	text := w.value(key)
	if text == "" {
		return 0
	}
	back := strings.HasPrefix(text, "-") && key == "by" // a clock may be behind
	if back {
		text = text[1:]
	}
	d, err := readDuration(text)
	if err != nil {
		w.fail("%s=: %v", key, err)
	}
	if back {
		return -d
	}
	return d
}

// longest is longer than any cluster is simulated, and short enough that times
// can be added up.
const longest = 100 * 365 * 24 * time.Hour

// readDuration reads a duration of at most a hundred years.
func readDuration(text string) (time.Duration, error) {
	d, err := inventory.ParseDuration(text)
	if err == nil && d > longest {
		err = fmt.Errorf("%q is longer than a hundred years", text)
	}
	return d, err
}

// lasts reads for=TIME, which must be there.
func (w *words) lasts() time.Duration {
	d := w.duration("for")
	if d <= 0 {
		w.fail("for=TIME is missing: how long does it last?")
	}
	return d
}

// count reads key=N; nil when it is not there.
func (w *words) count(key string) *int {
	text := w.value(key)
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		w.fail("%s=: %q is no count", key, text)
	}
	return &n
}

// end complains about words that were not read.
func (w *words) end(usage string) error {
	for _, word := range w.rest {
		if key, _, found := strings.Cut(word, "="); !found || !w.used[key] {
			w.fail("%q does not belong here; write: %s", word, usage)
		}
	}
	return w.err
}
