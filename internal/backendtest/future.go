package backendtest

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// An Event is something that may happen to a world W, and then changes it.
type Event[W any] interface {
	Title() string
	Can(*W) bool
	Happen(W) W
}

// Explore visits every world that can come of one, and returns how many there are, and how the first
// came about with which check finds something wrong; "" is none. Check is told how many came before.
// Most bounds how many are visited.
func Explore[W comparable, E Event[W]](from W, may []E, most int,
	check func(w *W, visited int) string) (int, string) {
	type step struct {
		before uint64
		name   string
	}
	seed := maphash.MakeSeed()
	seen := map[uint64]step{maphash.Comparable(seed, from): {}}
	for next := []W{from}; len(next) > 0; {
		w := next[0]
		next = next[1:]
		before := maphash.Comparable(seed, w)
		for _, e := range may {
			if !e.Can(&w) {
				continue
			}
			after := e.Happen(w)
			id := maphash.Comparable(seed, after)
			if _, visited := seen[id]; visited {
				continue
			}
			seen[id] = step{before, e.Title()}
			if broken := check(&after, len(seen)); broken != "" {
				var story []string
				for at := id; seen[at].name != ""; at = seen[at].before {
					story = append(story, seen[at].name)
				}
				slices.Reverse(story)
				return len(seen), tell(broken, story, after)
			}
			next = append(next, after)
		}
		if len(seen) > most {
			return len(seen), fmt.Sprintf("more than %d worlds: take fewer kinds of faults", most)
		}
	}
	return len(seen), ""
}

func tell(broken string, story []string, w any) string {
	return fmt.Sprintf("%s, after:\n%s\n%+v", broken, strings.Join(story, "\n"), w)
}

// Walk lets some events happen to a world, one after the other, as long as any can. Check says what is
// wrong after each, and end when they are over.
func Walk[W any, E Event[W]](t *rapid.T, w W, may []E, length int, check func(*W) string,
	end func(W) error) {
	var story []string
	for range length {
		can := slices.DeleteFunc(slices.Clone(may), func(e E) bool { return !e.Can(&w) })
		if len(can) == 0 {
			break
		}
		e := can[rapid.IntRange(0, len(can)-1).Draw(t, "what")]
		story = append(story, e.Title())
		w = e.Happen(w)
		if broken := check(&w); broken != "" {
			t.Fatal(tell(broken, story, w))
		}
	}
	if err := end(w); err != nil {
		t.Fatalf("%v, after:\n%s", err, strings.Join(story, "\n"))
	}
}
