package explore_test

import (
	"cmp"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/mutant"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// root is the module's directory.
const root = "../.."

// GODWIT_MUTANTS=all makes every mistake but the survivors' in turn; another text makes those
// whose names contain it. The exploration must find each. So it does
// in the long tier. In the default tier only the texts that they replace are looked for.
func TestMutants(t *testing.T) {
	which := os.Getenv("GODWIT_MUTANTS")
	if planted := testutil.Rounds(t, 0, len(mutant.Planted)); planted > 0 {
		which = cmp.Or(which, "all")
	}
	for i, m := range slices.Concat(mutant.Planted, mutant.Survivors) {
		t.Run(m.Name, func(t *testing.T) {
			overlay, err := m.Plant(root, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			survives := i >= len(mutant.Planted)
			if which == "all" && !survives || which != "" && strings.Contains(m.Name, which) {
				mustBeFound(t, overlay, "TestNothingIsViolated|TestRandomWays", 30_000)
			}
		})
	}
}

// The same for the mistakes that show where people err.
func TestMutantsWherePeopleErr(t *testing.T) {
	which := os.Getenv("GODWIT_MUTANTS")
	if planted := testutil.Rounds(t, 0, len(mutant.Mistakes)); planted > 0 {
		which = cmp.Or(which, "all")
	}
	for _, m := range mutant.Mistakes {
		t.Run(m.Name, func(t *testing.T) {
			overlay, err := m.Plant(root, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if which == "all" || which != "" && strings.Contains(m.Name, which) {
				worlds, states := "TestNothingIsViolatedWhenPeopleErr", 30_000
				if deep[m.Name] != "" {
					worlds, states = worlds+")$/("+deep[m.Name], 300_000
				}
				mustBeFound(t, overlay, worlds, states)
			}
		})
	}
}

// deep are the worlds in which a mutant is found after more states than the others take, by the names of
// their tests.
var deep = map[string]string{
	"takes a VM that its directory does not know for one that has stopped": "the_directory_of_an_agent_is_lost.*",
}

// mustBeFound explores with a mutant in place of a file, so many states of each world in which people err.
func mustBeFound(t *testing.T, overlay, tests string, people int) {
	c := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-failfast", "-vet=off",
		"-overlay", overlay, "-run", "^("+tests+")$", ".")
	c.Env = append(slices.Clone(os.Environ()), "GODWIT_MUTANTS=", "GODWIT_LONG=",
		"GODWIT_EXPLORE=1000000", "GODWIT_PEOPLE="+strconv.Itoa(people))
	out, err := c.CombinedOutput()
	if strings.Contains(string(out), "[build failed]") {
		t.Fatalf("the mistake does not compile any more; write it anew:\n%s", out)
	}
	_, found, ok := strings.Cut(string(out), "violated after ")
	if err == nil || !ok {
		t.Fatalf("survived (%v):\n%s", err, out)
	}
	line, _, _ := strings.Cut(found, "\n")
	t.Log(line)
}
