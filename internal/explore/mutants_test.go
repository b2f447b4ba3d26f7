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
// in the long tier, for one in three of each commit. In the default tier only the texts that they replace are looked for.
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
				world, states := where(m.Name)
				mustBeFound(t, overlay, "TestNothingIsViolatedWhenPeopleErr)$/^("+world, states)
			}
		})
	}
}

// shows are the worlds in which the mistakes show, by the names of their tests. The others are not explored:
// a mistake that shows in one of them is found where all are explored.
var shows = map[string]string{
	"acts before it holds its host's name":                                    "a_second_agent_of_a_host,_with_a_copy_of_its_directory",
	"takes a copy of a host's directory for the directory":                    "a_second_agent_of_a_host,_with_a_copy_of_its_directory,_comes_while_nothing_happens",
	"takes a VM that its directory does not know for one that has stopped":    "the_directory_of_an_agent_is_lost",
	"ignores the lock of a process that another directory has started":        "the_directory_of_an_agent_is_lost",
	"gives VMs away of a host that was found to live":                         "a_host_is_said_to_be_off,_and_is_not",
	"starts a VM again on a host that comes back, although it was given away": "a_second_agent_of_a_host,_with_a_copy_of_its_directory",
	"does not tell of a VM that runs twice":                                   "a_host_is_said_to_be_off,_and_is_not",
	"believes a record that is older than what its host knows":                "the_store_is_set_back_when_a_VM_has_moved",
	"takes a VM that was added anew for the one that was deleted":             "a_VM_that_has_moved_is_deleted,_and_another_one_of_its_name_is_added_where_it_was_before",
	"takes a VM that was deleted for the one that was added anew":             "the_store_is_set_back_when_a_VM_was_deleted,_and_another_one_of_its_name_has_moved",
	"takes a store that was set back for the one that it has seen":            "the_store_is_set_back_while_a_host_is_off_whose_VM_was_rebuilt",
	"acts before a leader has admitted it":                                    "the_store_is_set_back_on_another_machine_while_a_host_is_off_whose_VM_was_rebuilt",
	"admits an agent to a backup before all hosts were heard":                 "the_store_is_set_back_on_another_machine_while_a_host_is_off_whose_VM_was_rebuilt",
	"takes a migration that has failed for what explains a second copy":       "a_host_is_said_to_be_off,_and_is_not,_while_a_VM_leaves_it",
}

// where returns the worlds in which a mistake is looked for, all where it is not known, and in how many
// states of each.
func where(mistake string) (world string, states int) {
	if world = shows[mistake]; world != "" {
		return world, 300_000
	}
	return ".*", 30_000
}

// mustBeFound explores with a mutant in place of a file, so many states of each world in which people err.
func mustBeFound(t *testing.T, overlay, tests string, people int) {
	t.Helper()
	if os.Getenv("GODWIT_MUTANTS") == "" {
		testutil.SampleLong(t, 3)
	}
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
