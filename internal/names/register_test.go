package names_test

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/names"
)

// A register answers as a map does, whatever it was asked before.
func TestARegisterIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var register names.Register[string, int]
		want := map[string]*int{}
		name := rapid.StringMatching("(long)?[a-c]{0,4}")
		t.Repeat(map[string]func(*rapid.T){
			"one is entered": func(t *rapid.T) {
				name, v := name.Draw(t, "name"), new(int)
				register.Put(name, v)
				want[name] = v
			},
			"one is dropped": func(t *rapid.T) {
				name := name.Draw(t, "name")
				register.Drop(name)
				delete(want, name)
			},
			"": func(t *rapid.T) {
				if got := maps.Collect(register.All()); register.Len() != len(want) ||
					!maps.Equal(got, want) {
					t.Fatalf("there are %v, want %v", got, want)
				}
			},
			"one is asked for": func(t *rapid.T) {
				if name := name.Draw(t, "name"); register.Get(name) != want[name] {
					t.Fatalf("Get(%q) = %p, want %p", name, register.Get(name), want[name])
				}
			},
		})
	})
}
