package config_test

import (
	"testing"

	"github.com/godwit-vm/godwit/sim"
)

// What is above the hosts' links makes a drain take longer, and nothing else: one VM of
// 64 GiB is moved at a time over 10 Gbit/s, or over what is narrower on its way.
func TestRacksAndNetworkSlowMovesDown(t *testing.T) {
	const hosts = `
hosts:
- {name: n1, memory: 256GiB, cpus: 64, link: 10Gbit/s, rack: a}
- {name: n2, memory: 256GiB, cpus: 64, link: 10Gbit/s, rack: b}
vms:
- {name: v, host: n1, memory: 64GiB, class: idle}
model: ideal
events:
- drain n1
`
	empty := func(above string) float64 {
		w := build(t, parse(t, above+hosts))
		if end := w.Run(1e15); end != sim.AtRest {
			t.Fatal(end)
		}
		if w.CheckAtRest(); len(w.Violations()) > 0 {
			t.Fatal(w.Violations()[0])
		}
		return *w.Evacuations()[0].EmptySeconds
	}
	alone := empty("")
	for _, test := range []struct {
		name, above string
		times       float64
	}{
		{"up-links that are wide enough", "racks: {a: {uplink: 40Gbit/s}, b: {}}", 1},
		{"out of a rack", "racks: {a: {uplink: 1Gbit/s}, b: {}}", 10},
		{"into a rack", "racks: {a: {}, b: {uplink: 2Gbit/s}}", 5},
		{"the network", "network: {speed: 5Gbit/s}", 2},
		{"the narrowest counts", "racks: {a: {}, b: {uplink: 2Gbit/s}}\nnetwork: {speed: 1Gbit/s}",
			10},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := alone * test.times
			if got := empty(test.above); got < want*0.98 || got > want*1.02 {
				t.Errorf("it takes %.1f s, want %.1f s", got, want)
			}
		})
	}
}
