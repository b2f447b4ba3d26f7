package explore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/explore"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// count is how many states are explored of scenes that are too large to be explored to
// their end with what may happen in them: GODWIT_EXPLORE, or enough for a look. A tenth more
// makes up for those that end before.
func count(t *testing.T) int {
	text, set := os.LookupEnv("GODWIT_EXPLORE")
	if !set {
		states := testutil.Rounds(t, 4_000, 1_000_000) / 10 * 11 // it says that there is more
		if testutil.Raced {
			return 1
		}
		return states
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		t.Fatalf("GODWIT_EXPLORE=%q: write how many states are to be explored", text)
	}
	return n / 10 * 11
}

// ways are the ways in which scenes are explored. Each has its share, in parts of a hundred, of
// the states, and what those before it have left when there were no more; one without goes on
// until there are no more.
var ways = []struct {
	name   string
	share  int
	scenes []int // all when nil
	begin  int
	explore.Config
}{
	{"one fault, the usual order", 0, nil, 0, explore.Config{Budget: 1, Odd: 1}},
	{"one fault, one step out of order", 0, []int{0}, 0, explore.Config{Budget: 1, Odd: 2}},
	{"two faults, the usual order", 32, []int{0}, 0, explore.Config{Budget: 2, Odd: 1}},
	{"one fault, one step out of order", 32, []int{1, 2, 3}, 0,
		explore.Config{Budget: 1, Odd: 2}},
	{"two faults, the usual order", 12, []int{1, 2, 3, 4, 5, 6, 7, 8}, 0,
		explore.Config{Budget: 2, Odd: 1}},
	{"any order, no fault", 10, nil, 0, explore.Config{}},
	{"two faults in any order, from each step of the usual way", 14, nil, 200,
		explore.Config{Budget: 2}},
}

// endless is how many steps no way has that comes to an end; the longest has 150.
const endless = 1000

// No way leads to a violation. The long tier explores a million states,
// GODWIT_EXPLORE=10000000 so many.
func TestNothingIsViolated(t *testing.T) {
	testutil.Unraced(t)
	total, spare, began, before := 0, 0, time.Now(), used()
	for _, way := range ways {
		if way.scenes == nil {
			for i := range scenes {
				way.scenes = append(way.scenes, i)
			}
		}
		for _, i := range way.scenes {
			t.Run(way.name+"/"+scenes[i].name, func(t *testing.T) {
				c := way.Config
				c.Scene, c.Faults = scene(t, scenes[i].text), explore.AllFaults
				c.Scene.Begin = way.begin
				if way.share > 0 {
					c.States = spare + max(300, count(t)*way.share/100/len(way.scenes))
				}
				if c.Depth = endless; testutil.Raced {
					c.States = 600
				}
				r, err := explore.Run(t.Context(), c)
				fail(t, r, err)
				if c.States == 0 && !r.Exhausted {
					t.Fatalf("violated after %d states: some way has more than %d steps", r.States,
						endless)
				}
				total, spare = total+r.States, max(0, c.States-r.States)
				t.Log(r)
			})
		}
	}
	took, cpu := time.Since(began), used()-before
	fmt.Printf("explored %d states in %v: %.0f states per second of a processor\n", total,
		took.Round(time.Millisecond), float64(total)/cpu.Seconds())
	if total < count(t)/11*10 && !t.Failed() {
		t.Errorf("%d states were explored, fewer than were asked for", total)
	}
}

// Nor does any in the small scenes: GODWIT_EXPLORE=1000000 explores so many states of them.
func TestNothingIsViolatedInSmallScenes(t *testing.T) {
	scenes, states := 0, 0
	for name, text := range explore.Scenes(3, 2) {
		t.Run(name, func(t *testing.T) {
			r, err := explore.Run(t.Context(), explore.Config{Scene: scene(t, text),
				Faults: explore.AllFaults, Budget: 1, Odd: 1, States: max(50, count(t)/100)})
			fail(t, r, err)
			states += r.States
		})
		scenes++
	}
	if t.Logf("%d states of %d scenes", states, scenes); scenes < 100 || states < 40*scenes {
		t.Errorf("%d states of %d scenes: fewer than there are", states, scenes)
	}
}

// used returns the processor time that this process has used.
func used() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 1
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Nor do random ways: those on which a few things go wrong, and those on which many do.
func TestRandomWays(t *testing.T) {
	runs := max(testutil.Rounds(t, 5, 40), count(t)/2000) // four, and one, of them for each scene
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			for _, c := range []explore.Config{{Budget: 3, Runs: 4 * runs, Calm: 12},
				{Budget: 12, Runs: runs, Calm: 2}} {
				c.Scene, c.Faults = scene(t, s.text), explore.AllFaults
				r, err := explore.Deep(t.Context(), c)
				fail(t, r, err)
				t.Log(r)
			}
		})
	}
}

// fail reports a violation with its transcript.
func fail(t *testing.T, r *explore.Result, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if v := r.Violation; v != nil {
		t.Fatalf("violated after %d states, shown in %d commands: %s\nkeep this under "+
			"testdata:\n%s", r.States, v.Commands(), v.Violation.String(), v.Transcript())
	}
}

// Every scene without faults comes to an end: all of its states are explored, by any number of
// workers, and their number is always the same.
func TestASceneIsExhausted(t *testing.T) {
	c := explore.Config{Scene: scene(t, scenes[4].text), Faults: explore.AllFaults, Budget: 1,
		Odd: 1}
	var states []int
	for _, workers := range []int{1, max(2, runtime.GOMAXPROCS(0))} {
		c.Workers = workers
		r, err := explore.Run(t.Context(), c)
		fail(t, r, err)
		if !r.Exhausted {
			t.Errorf("with %d workers it is not exhausted: %v", workers, r)
		}
		states = append(states, r.States)
	}
	if states[0] != states[1] || states[0] < 1000 {
		t.Errorf("one worker finds %d states, several find %d", states[0], states[1])
	}
}

// What violated something once does so no more, and is played again.
func TestTranscripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		violation, err := explore.Replay(string(text))
		if err != nil || violation != nil {
			t.Errorf("%s: %v %v", path, violation, err)
		}
	}
}
