package explore

import (
	"math/rand/v2"
	"testing"
)

// Every step is read as it is written.
func TestStepsAreReadAsTheyAreWritten(t *testing.T) {
	set, err := parse("hosts n1 n2 n3\nvms web@n1 db@n1,busy\npost-copy\nsecond n1 new\nforgotten\n" +
		"script drain n1\n")
	if err != nil {
		t.Fatal(err)
	}
	met := map[Op]bool{}
	for seed := range uint64(40) {
		chance := rand.New(rand.NewPCG(seed, 1))
		w := newModel(set, 8)
		for range 60 {
			list := w.possible(nil, AllFaults|Mistakes)
			for _, s := range list {
				met[s.Op] = true
				if got, err := Read(set, s.Write(set)); err != nil || got != s {
					t.Fatalf("%q is read as %+v, %v; want %+v", s.Write(set), got, err, s)
				}
			}
			s, ok := w.Usual()
			if len(list) > 0 && (!ok || chance.IntN(3) == 0) {
				s = list[chance.IntN(len(list))]
			}
			w.apply(s)
		}
	}
	for _, s := range (Step{A: 2}).Fated(3, AllFaults) {
		if got, err := Read(set, s.Write(set)); err != nil || got != s {
			t.Errorf("%q is read as %+v, %v", s.Write(set), got, err)
		}
	}
	for o := range Ops {
		if !met[o] {
			t.Errorf("no walk came to where %s is possible", (Step{Op: o}).Write(set))
		}
	}
	for _, bad := range []string{"", "look", "look n9", "look n1 dies-before",
		"look n1 dies-before=0", "kill n1 n2", "jump", "look n1 unanswered=1 more",
		"power-off controller", "look n1 dies-before=300"} {
		if s, err := Read(set, bad); err == nil {
			t.Errorf("%q is read as %+v", bad, s)
		}
	}
}
