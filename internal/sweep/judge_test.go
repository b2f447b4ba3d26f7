package sweep_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/internal/sweep"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// A source draws what both sides measure in one world. They have the world in common, and
// nothing else tells them apart.
type source struct {
	name string
	kind sweep.Kind
	draw func(*rand.Rand) (ours, theirs float64)
}

var nan, never = math.NaN(), math.Inf(1)

// sources are of all shapes: heavy tails, many ties, numbers that are never there, and mixtures
// whose middle is empty.
var sources = []source{
	{"time", sweep.Seconds, func(r *rand.Rand) (float64, float64) {
		world := math.Exp(2 * r.NormFloat64())
		return world * math.Exp(r.NormFloat64()/5), world * math.Exp(r.NormFloat64()/5)
	}},
	{"tail", sweep.Seconds, func(r *rand.Rand) (float64, float64) {
		return 1 / (1 - r.Float64()), 1 / (1 - r.Float64())
	}},
	{"rare failures", sweep.Count, func(r *rand.Rand) (float64, float64) {
		return float64(r.IntN(12) / 11), float64(r.IntN(12) / 11)
	}},
	{"many failures", sweep.Count, func(r *rand.Rand) (float64, float64) {
		return float64(r.IntN(9)), float64(r.IntN(9))
	}},
	{"mostly alike", sweep.Bytes, func(r *rand.Rand) (float64, float64) {
		if r.IntN(5) > 0 {
			return 7, 7
		}
		return 1 + r.Float64(), 1 + r.Float64()
	}},
	{"never", sweep.Seconds, func(r *rand.Rand) (float64, float64) {
		side := func() float64 { return []float64{1, 2, never, nan}[r.IntN(4)] }
		return side(), side()
	}},
	{"two lumps", sweep.Number, func(r *rand.Rand) (float64, float64) {
		side := func() float64 { return float64(1-2*r.IntN(2)) * math.Exp(3*r.NormFloat64()) }
		return side(), side()
	}},
	{"zeros", sweep.Bytes, func(r *rand.Rand) (float64, float64) {
		return float64(r.IntN(3)), float64(r.IntN(3))
	}},
}

// compare draws so many worlds. better makes ours smaller by a factor.
func compare(r *rand.Rand, worlds int, better float64) []sweep.ComparisonResult {
	var list []sweep.MeasureKind
	for _, s := range sources {
		m := sweep.MeasureKind{Name: s.name, Kind: s.kind}
		for range worlds {
			ours, theirs := s.draw(r)
			m.Ours, m.Theirs = append(m.Ours, ours*better), append(m.Theirs, theirs)
		}
		list = append(list, m)
	}
	return sweep.Judge(list)
}

// TestTwoThatAreAlikeAreNotToldApart: in at most one comparison of 20 anything at all is called
// better or worse. 300 comparisons are drawn; three standard deviations are allowed for.
func TestTwoThatAreAlikeAreNotToldApart(t *testing.T) {
	testutil.Unraced(t)
	r := rand.New(rand.NewPCG(1, 2))
	const comparisons = 300
	wrong := 0
	for i := range comparisons {
		for _, v := range compare(r, 8+i%30, 1) {
			if v.Outcome == sweep.Better || v.Outcome == sweep.Worse {
				wrong++
				break
			}
		}
	}
	most := sweep.Level*comparisons + 3*math.Sqrt(sweep.Level*(1-sweep.Level)*comparisons)
	if float64(wrong) > most {
		t.Errorf("%d of %d comparisons of equals found a difference, at most %.0f may", wrong,
			comparisons, most)
	}
	t.Logf("%d of %d comparisons of equals found a difference", wrong, comparisons)
}

// TestWhatIsBetterIsFound: a tenth less, where the same world measured again differs by a fifth,
// is found in 200 worlds, and the interval has the true ratio in nearly all comparisons.
func TestWhatIsBetterIsFound(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	found, held := 0, 0
	for range 100 {
		m := sweep.MeasureKind{Name: "time", Kind: sweep.Seconds}
		for range 200 {
			ours, theirs := sources[0].draw(r)
			m.Ours, m.Theirs = append(m.Ours, 0.9*ours), append(m.Theirs, theirs)
		}
		list := []sweep.MeasureKind{m, {Name: "swapped", Ours: m.Theirs, Theirs: m.Ours}}
		got := sweep.Judge(list)
		if got[0].Outcome == sweep.Better && got[1].Outcome == sweep.Worse {
			found++
		}
		if in := got[0].Effect; in.Low <= 0.9 && 0.9 <= in.High {
			held++
		}
	}
	if found < 90 || held < 88 {
		t.Errorf("found in %d of 100 comparisons; %d intervals have the true ratio", found, held)
	}
}

// repeat writes numbers out n times.
func repeat(n int, values ...float64) (all []float64) {
	for range n {
		all = append(all, values...)
	}
	return all
}

func TestOutcomes(t *testing.T) {
	const same, cannot = "no difference seen", "cannot say"
	for _, test := range []struct {
		name         string
		kind         sweep.Kind
		ours, theirs []float64
		want         string
	}{
		{"a little less each time", sweep.Seconds, repeat(50, 8.8, 17.6), repeat(50, 10, 20),
			"better: 12 % shorter (95 %: 12 to 12 %), 100 worlds"},
		{"longer in half of the worlds", sweep.Seconds, repeat(20, 13, 10), repeat(20, 10, 10),
			"worse: 30 % longer (95 %: 30 to 30 %) where they differ, 20 of 40 worlds"},
		{"many times as much", sweep.Bytes, repeat(50, 8, 6), repeat(50, 2, 2),
			"worse: 3.5 times as much (95 %: 3 to 4), 100 worlds"},
		{"seven of eight", sweep.Seconds, append(repeat(7, 1), 1.1), repeat(8, 1.05),
			cannot + ": between 4.8 % shorter and 4.8 % longer (95 %), 8 worlds"},
		{"sometimes longer", sweep.Seconds, append(repeat(6, 10), repeat(4, 13)...),
			repeat(10, 10), cannot + ": between 0 % shorter and 30 % longer (95 %), 10 worlds, " +
				"6 of them alike"},
		{"mostly less, by little", sweep.Seconds,
			slices.Concat(repeat(60, 0.98), repeat(35, 1.05), repeat(1, 1e-6)), repeat(96, 1),
			cannot + ": 2.0 % shorter, but that may be chance, 96 worlds"},
		{"five worlds", sweep.Seconds, repeat(5, 1), repeat(5, 9),
			cannot + ": too few worlds, 5 worlds"},
		{"no world", sweep.Seconds, repeat(9, nan), repeat(9, 1),
			cannot + ": too few worlds, 0 worlds"},
		{"the same, in a few worlds", sweep.Seconds, repeat(6, 4), repeat(6, 4),
			same + ", 6 worlds"},
		{"hardly different", sweep.Seconds, repeat(500, 0.999, 1.002), repeat(500, 1, 1),
			same + ", 1,000 worlds"},
		{"now more, now less", sweep.Seconds, repeat(8, 1, 3), repeat(8, 3, 1),
			cannot + ": between 67 % shorter and 200 % longer (95 %), 16 worlds"},
		{"mostly less, rarely a lot more", sweep.Seconds, append(repeat(40, 1), 9000, 9000),
			append(repeat(40, 1.1), 1, 1),
			cannot + ": shorter in most worlds, and the opposite on average, 42 worlds"},
		{"it never ends", sweep.Seconds, repeat(20, never), repeat(20, 30),
			"worse: longer without bound, 20 worlds"},
		{"neither ever ends", sweep.Seconds, repeat(20, never), repeat(20, never),
			same + ", 20 worlds"},
		{"fewer failures", sweep.Count, repeat(30, 0, 0, 1), repeat(30, 0, 1, 1),
			"better: 0.33 fewer a world (95 %: 0.23 to 0.43), 90 worlds, 60 of them alike"},
		{"no failures", sweep.Count, repeat(30, 0), repeat(30, 0), same + ", 30 worlds"},
		{"as many failures", sweep.Count, repeat(9, 0, 1), repeat(9, 1, 0),
			cannot + ": between 0.44 fewer a world and 0.44 more a world (95 %), 18 worlds"},
		{"below zero", sweep.Number, repeat(20, -3), repeat(20, -1),
			"better: 2 less a world (95 %: 2 to 2), 20 worlds"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := sweep.MeasureKind{Name: "it", Kind: test.kind, Ours: test.ours, Theirs: test.theirs}
			got := sweep.Judge([]sweep.MeasureKind{m})[0]
			if diff := cmp.Diff("it: "+test.want, got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s\n%+v", diff, got)
			}
		})
	}
}

// Who measures more sees more by chance: what one measure alone shows is not enough of two.
func TestManyMeasuresTakeMoreToShow(t *testing.T) {
	six := sweep.MeasureKind{Name: "six of six", Ours: repeat(6, 1), Theirs: repeat(6, 2)}
	seven := sweep.MeasureKind{Name: "seven of seven", Ours: repeat(7, 1), Theirs: repeat(7, 2)}
	alone := sweep.Judge([]sweep.MeasureKind{six})[0]
	both := sweep.Judge([]sweep.MeasureKind{six, seven})
	three := sweep.Judge([]sweep.MeasureKind{six, seven, six})
	if alone.Outcome != sweep.Better || both[1].Outcome != sweep.Better ||
		both[0].Outcome != sweep.Better || three[0].Outcome != sweep.CannotSay ||
		three[0].String() != "six of six: cannot say: 50 % less, but that may be chance, 6 worlds" {
		t.Errorf("alone %v, of two %v, of three %v", &alone, &both[0], &three[0])
	}
}

// Not to be worse has to be shown: that nothing is known does not do.
func TestNotWorse(t *testing.T) {
	for _, row := range []struct {
		name         string
		ours, theirs []float64
		want         bool
	}{
		{"better", repeat(20, 1), repeat(20, 2), true},
		{"worse", repeat(20, 2), repeat(20, 1), false},
		{"the same", repeat(20, 2), repeat(20, 2), true},
		{"a little worse, in every world", repeat(20, 1.001), repeat(20, 1), false},
		{"too few worlds", repeat(3, 1), repeat(3, 2), false},
		{"now more, now less", repeat(9, 1, 3), repeat(9, 3, 1), false},
		{"less or the same, of few", append(repeat(7, 2), repeat(4, 1)...), repeat(11, 2), true},
	} {
		v := sweep.Judge([]sweep.MeasureKind{{Name: row.name, Ours: row.ours,
			Theirs: row.theirs}})[0]
		if v.NotWorse() != row.want {
			t.Errorf("%s: want %t: %+v", &v, row.want, v)
		}
	}
}

func TestTable(t *testing.T) {
	list := sweep.Judge([]sweep.MeasureKind{
		{Name: "time to empty", Kind: sweep.Seconds, Ours: repeat(600, 88, 176),
			Theirs: repeat(600, 100, 200)},
		{Name: "downtime", Kind: sweep.Seconds, Ours: repeat(1200, 0.065),
			Theirs: repeat(1200, 0.065)},
		{Name: "bytes", Kind: sweep.Bytes, Ours: repeat(600, 3<<30, nan),
			Theirs: repeat(600, 2<<30, 0)},
		{Name: "left", Kind: sweep.Count, Ours: repeat(1200, 0), Theirs: repeat(300, 1, 0, 0, 0)},
	})
	want := `
measure        ours   theirs  worlds with less  more  alike  p
time to empty  2m12s  2m30s   1,200             0     0      <0.0001
downtime       65ms   65ms    0                 0     1,200  1
bytes          3GiB   2GiB    0                 600   0      <0.0001
left           0      0.25    300               0     900    <0.0001

time to empty: better: 12 % shorter (95 %: 12 to 12 %), 1,200 worlds
downtime: no difference seen, 1,200 worlds
bytes: worse: 50 % more (95 %: 50 to 50 %), 600 worlds
left: better: 0.25 fewer a world (95 %: 0.23 to 0.27), 1,200 worlds, 900 of them alike
`
	got := sweep.Table("ours", "theirs", list)
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNoNumberIsBeyondJudging: whatever was measured there is an outcome, and it can be read.
func TestNoNumberIsBeyondJudging(t *testing.T) {
	odd := []float64{0, 1, -1, never, -never, nan, math.MaxFloat64, math.SmallestNonzeroFloat64}
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		m := sweep.MeasureKind{Kind: sweep.Kind(r.IntN(4))}
		for range r.IntN(30) {
			m.Ours = append(m.Ours, odd[r.IntN(len(odd))])
			m.Theirs = append(m.Theirs, odd[r.IntN(len(odd))])
		}
		for _, v := range sweep.Judge([]sweep.MeasureKind{m}) {
			if !(v.P >= 0 && v.P <= 1) || v.Less+v.More+v.Alike != v.Worlds {
				t.Fatalf("%+v", v)
			}
		}
		if text := sweep.Table("a", "b", sweep.Judge([]sweep.MeasureKind{m})); text == "" {
			t.Fatal("nothing is said")
		}
	}
}
