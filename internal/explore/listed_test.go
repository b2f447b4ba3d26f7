package explore

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-vm/godwit/migration"
)

// What is known of the migrations is what is found when they are listed and counted anew.
func TestTheListIsRight(t *testing.T) {
	set, err := parse("hosts n1 n2 n3\nvms web@n1 db@n1,busy\npost-copy\n" +
		"script drain n1\nscript migrate web\nscript cancel db\n")
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for seed := range uint64(20) {
		chance, w := rand.New(rand.NewPCG(seed, 1)), newModel(set, 6)
		for range 120 {
			s, ok := w.Usual()
			if list := w.possible(nil, AllFaults); len(list) > 0 &&
				(!ok || chance.IntN(4) == 0) {
				s = list[chance.IntN(len(list))]
			}
			w.apply(s)
			known, slots := slices.Clone(w.all()), w.Slots()
			w.forget()
			if !slices.Equal(known, w.all()) {
				t.Fatalf("after %s the list is not what is stored", s.Write(set))
			}
			if !same(w, slots, w.Slots()) {
				t.Fatalf("after %s the slots are not those that are held", s.Write(set))
			}
			most = max(most, slots.Running())
			w.listed = listed{list: known, known: true, slots: slots}
		}
	}
	if most < 2 {
		t.Errorf("never were more than %d slots held", most)
	}
}

func same(w *World, a, b *migration.Slots) bool {
	for _, h := range w.Scene.Hosts {
		if a.From(h.Name) != b.From(h.Name) || a.To(h.Name) != b.To(h.Name) {
			return false
		}
	}
	return a.Running() == b.Running()
}
