package explore

import (
	"slices"
	"testing"
)

func TestSmallScenesDiffer(t *testing.T) {
	names, texts := map[string]bool{}, map[string]bool{}
	for name, text := range small(3, 3) {
		if names[name] || texts[text] {
			t.Errorf("%s is there twice:\n%s", name, text)
		}
		names[name], texts[text] = true, true
		s, err := parse(text)
		if err != nil || s.String() != text || len(s.Hosts) > 3 || len(s.VMs) > 3 {
			t.Errorf("%s is %+v, %v", name, s, err)
		}
	}
	// On two hosts 1+0, 2+0, 1+1, 3+0, 2+1 and 1+2, on three those and 1+1+1.
	if want := (6 + 7) * 4 * len(orders); len(texts) != want {
		t.Errorf("%d scenes, want %d", len(texts), want)
	}
	for range small(1, 3) {
		t.Error("no VM moves from the only host")
	}
}

func TestSpreads(t *testing.T) {
	want := [][]int{{3, 0, 0}, {2, 1, 0}, {1, 2, 0}, {1, 1, 1}}
	if got := spreads(3, 3); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%v, want %v", got, want)
	}
}
