package names_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/names"
)

// What is kept is what was given, however much is kept later.
func TestNamesStayWhatTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var store names.Store
		given := rapid.SliceOfN(rapid.StringN(0, 40, 200), 1, 300).Draw(t, "names")
		kept := make([]string, len(given))
		for i, name := range given {
			kept[i] = store.Keep(name)
		}
		for i, name := range given {
			if kept[i] != name {
				t.Fatalf("name %d is %q, want %q", i, kept[i], name)
			}
		}
	})
}

// Many names take few pieces.
func TestNamesLieTogether(t *testing.T) {
	name := strings.Repeat("x", 20)
	if n := testing.AllocsPerRun(1, func() {
		var store names.Store
		for range 100_000 {
			store.Keep(name)
		}
	}); n > 80 {
		t.Errorf("100,000 names took %v pieces", n)
	}
}
