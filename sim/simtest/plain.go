package simtest

import (
	"reflect"
	"strings"

	"github.com/godwit-vm/godwit/inventory"
)

// settings leaves out what is set, all of it and then one by one.
func (s *shrinker) settings() {
	s.drop(func() int { return len(s.best.Policies) }, func(w *World, from, to int) {
		w.Policies = append(w.Policies[:from], w.Policies[to:]...)
	})
	for _, how := range []func(*World){
		func(w *World) { w.Config = inventory.ConfigSpec{} },
		func(w *World) { w.Limits.PerCluster, w.Limits.PerSource = nil, nil },
		func(w *World) { w.Limits.PerTarget = nil },
		func(w *World) { w.Limits.PerSource = nil },
		func(w *World) { w.Limits.PerCluster = nil },
		func(w *World) { w.Mode = "" },
		func(w *World) { w.Order = "" },
		func(w *World) { w.Compatible = false },
		func(w *World) { w.Config.AllowAutoConverge = nil },
		func(w *World) { w.Config.AllowPostCopy = nil },
		func(w *World) { w.Config.AllowWorkloadDisruption = nil },
		func(w *World) { w.Config.MaxDowntimeMs = nil },
		func(w *World) { w.Config.CompletionTimeoutPerGiB = "" },
	} {
		s.simpler(how)
	}
}

// simpler tries a change, unless it changes nothing.
func (s *shrinker) simpler(how func(*World)) {
	w := s.best.Clone()
	how(w)
	if !reflect.DeepEqual(w, s.best) {
		s.try(w)
	}
}

// plain gives everything that is left the plainest values.
func (s *shrinker) plain() {
	for i := range s.best.VMs {
		for _, how := range []func(*inventory.VMSpec){
			func(v *inventory.VMSpec) {
				*v = inventory.VMSpec{Name: v.Name, Host: v.Host, Memory: "1GiB"}
			},
			func(v *inventory.VMSpec) {
				*v = inventory.VMSpec{Name: v.Name, Host: v.Host, Memory: v.Memory,
					LoadSpec: v.LoadSpec}
			},
			func(v *inventory.VMSpec) { v.LoadSpec = inventory.LoadSpec{} },
			func(v *inventory.VMSpec) { v.Memory = "1GiB" },
		} {
			s.simpler(func(w *World) { how(&w.VMs[i]) })
		}
	}
	for i := range s.best.Hosts {
		for _, how := range []func(*inventory.HostSpec){
			func(h *inventory.HostSpec) {
				*h = inventory.HostSpec{Name: h.Name, Memory: h.Memory, CPUs: h.CPUs, Link: h.Link}
			},
			func(h *inventory.HostSpec) { h.Link = "10Gbit/s" },
			func(h *inventory.HostSpec) { h.Memory = "64GiB" },
		} {
			s.simpler(func(w *World) { how(&w.Hosts[i]) })
		}
	}
	for i := range s.best.Events {
		s.event(i)
	}
}

// event lets an event happen at the beginning, or at least at some time, and last shortly.
func (s *shrinker) event(i int) {
	for _, time := range []string{"0s", "1s", "10s"} {
		_, what := split(s.best.Events[i])
		if when, _ := split(s.best.Events[i]); when != time {
			if s.change(func(w *World) { w.Events[i] = time + " " + what }) {
				break
			}
		} else {
			break
		}
	}
	for k, word := range strings.Fields(s.best.Events[i]) {
		key, _, found := strings.Cut(word, "=")
		if !found || strings.HasPrefix(s.best.Events[i], "when ") && k == 1 {
			continue
		}
		for _, plainer := range []string{"", key + "=1s", key + "=1"} {
			s.simpler(func(w *World) {
				words := strings.Fields(w.Events[i])
				if k < len(words) && words[k] == word {
					words[k] = plainer
					w.Events[i] = strings.Join(strings.Fields(strings.Join(words, " ")), " ")
				}
			})
		}
	}
}

// split returns when an event happens, and what it is.
func split(e string) (when, what string) {
	words := strings.Fields(e)
	n := 1
	if words[0] == "when" {
		n = 2
	}
	return strings.Join(words[:n], " "), strings.Join(words[n:], " ")
}
