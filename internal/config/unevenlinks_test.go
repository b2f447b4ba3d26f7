package config_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/config"
)

// move is one request in a network of uneven links.
type move struct{ vm, event string }

// uneven draws a network of uneven links, and ten moves over it that are asked for at once, or
// nearly. Each guest dirties its memory at up to a share of the narrowest link on its way: alone,
// it converges. The kinds of networks and guests are those of the literature on migrating many
// VMs: Akoush et al. 2010 (links and dirty rates), Bari et al. 2014 (CQNCR: sequences of
// migrations over uneven links), SimGrid's migration examples (working sets).
func uneven(seed uint64, order string) (head string, moves []move) {
	r := rand.New(rand.NewPCG(seed, 25))
	links := []float64{100, 200, 500, 1000, 1000, 2500, 10000}
	hosts := 3 + r.IntN(6)
	racks := r.IntN(3) == 0
	var b strings.Builder
	fmt.Fprintf(&b, "name: uneven links %d\norder: %s\nevictionStrategy: LiveMigrate\nhosts:\n",
		seed, order)
	speed, rack := make([]float64, hosts), make([]int, hosts)
	uplink := []float64{500, 1000, 2000}[r.IntN(3)]
	for i := range hosts {
		speed[i], rack[i] = links[r.IntN(len(links))], i%2
		fmt.Fprintf(&b, "- {name: n%d, memory: 512GiB, cpus: 256, link: %.0fMbit/s", i, speed[i])
		if racks {
			fmt.Fprintf(&b, ", rack: r%d", rack[i])
		}
		fmt.Fprintln(&b, "}")
	}
	if racks {
		fmt.Fprintf(&b, "racks: {r0: {uplink: %.0fMbit/s}, r1: {uplink: %.0fMbit/s}}\n",
			uplink, uplink)
	}
	fmt.Fprintln(&b, "vms:")
	for i := range 10 {
		from := r.IntN(hosts)
		to := (from + 1 + r.IntN(hosts-1)) % hosts
		narrow := min(speed[from], speed[to])
		if racks && rack[from] != rack[to] {
			narrow = min(narrow, uplink)
		}
		memory := []int{512, 1024, 2048, 4096, 8192}[r.IntN(5)]
		rate := narrow / 8 * (0.05 + 0.65*r.Float64()) // MB/s
		fmt.Fprintf(&b, "- {name: v%d, host: n%d, memory: %dMiB, cpus: 1, dirty: %.1fMB/s, "+
			"workingSet: %.0fMiB}\n", i, from, memory, rate, float64(memory)*(0.05+0.5*r.Float64()))
		at := []int{0, 0, 0, 1, 10}[r.IntN(5)]
		moves = append(moves, move{fmt.Sprintf("v%d", i),
			fmt.Sprintf("- %ds migrate v%d to=n%d\n", at, i, to)})
	}
	fmt.Fprint(&b, "until: 48h\nevents:\n")
	return b.String(), moves
}

func TestMovesThatShareUnevenLinksAllSucceed(t *testing.T) {
	moves, failed, ratios := 0, 0, []float64(nil)
	for seed := range uint64(50) {
		head, all := uneven(seed, "Adaptive")
		text := head
		for _, m := range all {
			if r := came(t, head+m.event); r.Migrations.Succeeded == 1 {
				text += m.event
				moves++
			}
		}
		r := came(t, text)
		ratios = append(ratios, r.VirtualSeconds/r.LowerBoundSeconds)
		if n := r.Migrations.Failed + r.Migrations.Aborted; n > 0 {
			failed += n
			t.Logf("seed %d: %+v", seed, r.Migrations)
		}
	}
	if failed > 0 || moves < 450 { // 179 of 495 when the links were not asked
		t.Errorf("%d of %d moves failed", failed, moves)
	}
	slices.Sort(ratios)
	if median, worst := ratios[25], ratios[49]; median > 1.5 || worst > 2.5 {
		t.Errorf("it took %.2f times the lower bound in the median, %.2f at most", median, worst)
	}
}

// eight are eight moves over one link on which one of them converges at a time.
const eight = `
name: eight moves asked for at once
order: Adaptive
evictionStrategy: LiveMigrate
hosts:
- {name: "n[0-2]", memory: 32GiB, cpus: 32, link: 500Mbit/s}
vms:
- {name: "v[1-8]", host: n0, memory: 2GiB, cpus: 1, dirty: 48MB/s, workingSet: 96MB, coldDirty: 2MB/s}
until: 2h
events:
`

func TestMovesThatAreAskedForAtOnceShareALinkAsADrainDoes(t *testing.T) {
	asked, mixed := eight, eight+"- 0s drain n0\n"
	for i := range 8 {
		asked += fmt.Sprintf("- 0s migrate v%d to=n%d\n", i+1, 2-i%2)
		mixed += fmt.Sprintf("- %ds migrate v%d\n", i, i+1)
	}
	for name, text := range map[string]string{"asked": asked, "drained": eight + "- 0s drain n0\n",
		"both": mixed} {
		r := came(t, text)
		if r.Migrations.Succeeded != 8 || r.Migrations.Aborted > 0 {
			t.Errorf("%s: %+v", name, r.Migrations)
		}
		if ratio := r.VirtualSeconds / r.LowerBoundSeconds; ratio > 1.25 {
			t.Errorf("%s: it took %.2f times the lower bound", name, ratio)
		}
	}
}

// Four sources that are fast enough send to one target that is not.
func TestATargetsLinkIsSharedByAsManyAsConvergeThere(t *testing.T) {
	text := `
name: one slow target
order: Adaptive
evictionStrategy: LiveMigrate
hosts:
- {name: "n[1-4]", memory: 32GiB, cpus: 32, link: 10Gbit/s}
- {name: slow, memory: 128GiB, cpus: 32, link: 500Mbit/s}
vms:
- {name: "v[1-4]", host: "n[1-4]", memory: 2GiB, cpus: 1, dirty: 48MB/s, workingSet: 96MB}
until: 20s
events:
`
	for i := range 4 {
		text += fmt.Sprintf("- 0s migrate v%d to=slow\n", i+1)
	}
	s, err := config.Parse("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Build(s.Config(1))
	if err != nil {
		t.Fatal(err)
	}
	w.Run(s.Until)
	why := fmt.Sprint(w.Why("default/v2"))
	if want := "its turn on slow's link"; !strings.Contains(why, want) {
		t.Errorf("v2 waits for %s, want %s", why, want)
	}
	if r := came(t, strings.Replace(text, "20s", "2h", 1)); r.Migrations.Succeeded != 4 {
		t.Errorf("%+v", r.Migrations)
	}
}

func TestNoLowerBoundWhereNothingHasMoved(t *testing.T) {
	r := came(t, strings.Replace(eight, "2h", "1s", 1)+"- 0s migrate v1\n")
	text, err := json.Marshal(r)
	if err != nil || strings.Contains(string(text), "lowerBound") {
		t.Errorf("%s, %v", text, err)
	}
}
