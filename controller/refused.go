package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

const (
	fewHosts = 10 // so many are explained one by one
	fewSay   = 3  // so many hosts, or answers of theirs, stand for all
)

// Why returns the reasons of every host, each with the host's name, or of the one that was
// asked for. Where many hosts refuse, those with the same reason have it together, with how
// many they are, the most first: ten thousand lines are not read. The answer must not be changed.
func (b *reservations) Why(r *placement.Request) []placement.Reason {
	b.notice(r.VM)
	switch {
	case r.Host != "":
		return b.Check(r, r.Host)
	case b.index.Len() <= fewHosts || b.detailed || !plain(r) || b.config.Placement.Filters != nil:
		return together(elsewhere(b.Refusals(r), r.Source))
	}
	if now := b.index.Changes(); b.lastReasons.to == nil || b.lastReasons.at != now {
		b.lastReasons = lastReasons{now, map[placement.Size][]placement.Reason{}}
	}
	why, known := b.lastReasons.to[placement.SizeOf(r.VM)]
	if !known {
		anywhere := *r
		anywhere.Source = ""
		why = slices.Clip(together(b.Refusals(&anywhere)))
		b.lastReasons.to[placement.SizeOf(r.VM)] = why
	}
	return without(why, r.Source)
}

// elsewhere leaves out what speaks against the host that the VM is on: the question is not why it does not
// move to where it is. Where no other host refuses it says at least that another one is needed.
func elsewhere(all []placement.Refusal, source hypervisor.HostName) []placement.Refusal {
	own := func(r placement.Refusal) bool { return r.Host == source }
	if slices.ContainsFunc(all, func(r placement.Refusal) bool { return !own(r) }) {
		return slices.DeleteFunc(slices.Clone(all), own)
	}
	kept := slices.Clone(all)
	for i := range kept {
		kept[i].Why = slices.DeleteFunc(slices.Clone(kept[i].Why), func(r placement.Reason) bool {
			return r.Check != "source"
		})
	}
	return kept
}

// without is elsewhere, of answers that are shared by VMs on many hosts: it leaves out what only the
// source says. In a crowd the source is one host of many.
func without(why []placement.Reason, source hypervisor.HostName) []placement.Reason {
	own := string(source) + ": "
	is := func(r placement.Reason) bool { return strings.HasPrefix(r.Check, own) }
	if source == "" || !slices.ContainsFunc(why, is) {
		return why
	}
	rest := slices.DeleteFunc(slices.Clone(why), is)
	if len(rest) == 0 {
		rest = append(rest, placement.Reason{Check: own + "source", Need: "another host",
			Have: "the source " + string(source)})
	}
	return rest
}

// plain reports whether a request asks for nothing but room: where no more than sizes is known,
// the answer depends on the VM's size alone, and the source is a host like any other.
func plain(r *placement.Request) bool {
	return r.VM != nil && !placement.Asks(&r.VM.Constraints) && !r.Rebuild && len(r.Avoid) == 0 &&
		len(r.Ignored) == 0
}

// lastReasons are what Why has said about hosts since the reservations have changed, by the VM's size: many
// VMs are alike, and a look at all hosts for each of them takes minutes where there are many.
type lastReasons struct {
	at int // [placement.Index.Changes]
	to map[placement.Size][]placement.Reason
}

// A refusalGroup is hosts that refuse for the same reason.
type refusalGroup struct {
	why   placement.Reason
	hosts []hypervisor.HostName // the first of them
	n     int
}

// together returns the reasons of all refusals, which are in the order of their hosts.
func together(all []placement.Refusal) []placement.Reason {
	var why []placement.Reason
	if len(all) <= fewHosts {
		for _, refusal := range all {
			for _, reason := range refusal.Why {
				reason.Check = string(refusal.Host) + ": " + reason.Check
				why = append(why, reason)
			}
		}
		return why
	}
	crowds := alike(all)
	asked := map[[2]string][]*refusalGroup{} // what they need is the same
	for _, c := range crowds {
		asked[c.need()] = append(asked[c.need()], c)
	}
	for _, first := range crowds {
		same := asked[first.need()]
		if delete(asked, first.need()); len(same) > fewSay {
			same = []*refusalGroup{joined(same)}
		}
		for _, c := range same {
			reason := c.why
			reason.Check = c.names() + ": " + reason.Check
			why = append(why, reason)
		}
	}
	return why
}

// alike groups the hosts by the reason of their refusal, the largest group first.
func alike(all []placement.Refusal) []*refusalGroup {
	by, crowds := map[placement.Reason]*refusalGroup{}, []*refusalGroup(nil)
	for _, refusal := range all {
		for _, reason := range refusal.Why {
			c := by[reason]
			if c == nil {
				c = &refusalGroup{why: reason}
				by[reason], crowds = c, append(crowds, c)
			}
			if c.n++; c.n <= fewSay {
				c.hosts = append(c.hosts, refusal.Host)
			}
		}
	}
	slices.SortStableFunc(crowds, func(a, b *refusalGroup) int { return cmp.Compare(b.n, a.n) })
	return crowds
}

// need returns what they are held against.
func (c *refusalGroup) need() [2]string { return [2]string{c.why.Check, c.why.Need} }

// joined returns crowds that need the same, of which each has something else, as one.
func joined(all []*refusalGroup) *refusalGroup {
	one := &refusalGroup{why: all[0].why}
	var have []string
	for i, c := range all {
		if one.n += c.n; i < fewSay {
			have = append(have, c.why.Have+" ("+string(c.hosts[0])+")")
			one.hosts = append(one.hosts, c.hosts[0])
		}
	}
	one.why.Have = strings.Join(have, ", ") + ", …"
	return one
}

// names says who they are.
func (c *refusalGroup) names() string {
	names := make([]string, len(c.hosts))
	for i, h := range c.hosts {
		names[i] = string(h)
	}
	text := strings.Join(names, ", ")
	if c.n > len(names) {
		return fmt.Sprintf("%d hosts (%s, …)", c.n, text)
	}
	return text
}
