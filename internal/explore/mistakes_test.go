package explore_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/godwit-vm/godwit/internal/explore"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// mistaken are the worlds in which people err.
var mistaken = []struct {
	name, text string
	faults     explore.Fault
}{
	{"a second agent of a host, with a copy of its directory",
		"hosts n1 n2\nvms web@n1\nsecond n1 copied\nscript migrate web\n", explore.AllFaults},
	{"a second agent of a host, with a copy of its directory, comes while nothing happens",
		"hosts n1 n2\nvms web@n1\nsecond n1 copied\n", explore.AllFaults},
	{"a second agent of a host, with a directory of its own",
		"hosts n1 n2\nvms web@n1\nsecond n1 new\nscript migrate web\n", explore.AllFaults},
	{"a second agent of the host that a VM comes to",
		"hosts n1 n2\nvms web@n1\nsecond n2 copied\nscript migrate web\n", explore.AllFaults},
	{"the directory of an agent is lost",
		"hosts n1 n2\nvms web@n1\nclaims\nscript migrate web\n",
		explore.AllFaults | explore.Directories},
	{"the directory of an agent is lost, and its VM is stopped",
		"hosts n1 n2\nvms web@n1\nclaims\nscript stop web\n",
		explore.AllFaults | explore.Directories},
	{"the directory of an agent is lost, and its VM is to start elsewhere",
		"hosts n1 n2\nvms web@n1\nclaims\nscript stop web\nscript drain n1\nscript start web\n",
		explore.AllFaults | explore.Directories},
	{"a host is said to be off, and is not",
		"hosts n1 n2\nvms web@n1\nscript dead n1\n", explore.AllFaults},
	{"a host is said to be off, and is not, while a VM leaves it",
		"hosts n1 n2\nvms web@n1\nscript migrate web\nscript dead n1\n", explore.AllFaults},
	{"a host is said to be off, and is not, while a VM comes to it",
		"hosts n1 n2\nvms web@n1\nscript migrate web\nscript dead n2\n", explore.AllFaults},
	{"a host with two VMs is said to be off, and is not",
		"hosts n1 n2 n3\nvms web@n1 db@n1\nscript migrate web\n",
		explore.AllFaults | explore.Words},
	{"a host is said to be off, and is not, while a VM leaves it by post-copy",
		"hosts n1 n2\nvms web@n1,busy\npost-copy\nscript migrate web\n",
		explore.AllFaults | explore.Words},
	{"the store is set back when a VM has moved",
		"hosts n1 n2\nvms web@n1\nbackup\nscript migrate web\n",
		explore.AllFaults | explore.Backups},
	{"the store is set back when a host was drained",
		"hosts n1 n2 n3\nvms web@n1 db@n1\nbackup\nscript drain n1\nscript undrain n1\n",
		explore.AllFaults | explore.Backups},
	{"a VM is deleted, and another one of its name is added",
		"hosts n1 n2\nvms web@n1\nbackup\nscript stop web\nscript renew web\nscript migrate web\n",
		explore.AllFaults},
	{"a VM that has moved is deleted, and another one of its name is added where it was before",
		"hosts n1 n2\nvms web@n1\nbackup\nscript migrate web\nscript stop web\nscript renew web\n",
		explore.AllFaults},
	{"the store is set back when a VM was deleted, and another one of its name has moved",
		"hosts n1 n2\nvms web@n1\nbackup\nscript stop web\nscript renew web\nscript migrate web\n",
		explore.Backups | explore.Crashes},
	{"the store is set back, and all who have seen it remember that",
		"hosts n1 n2\nvms web@n1\nmarks\nscript migrate web\n",
		explore.AllFaults | explore.Backups},
	{"the store is set back while a host is off whose VM was rebuilt",
		"hosts n1 n2\nvms web@n1\nmarks\n", explore.Power | explore.Backups},
	{"the store is set back on another machine while a host is off whose VM was rebuilt",
		"hosts n1 n2\nvms web@n1\nforgotten\n", explore.Power | explore.Backups | explore.Crashes},
	{"the store is set back, and hosts and agents come and go",
		"hosts n1 n2 n3\nvms web@n1 db@n2\nforgotten\nscript migrate db\n",
		explore.AllFaults | explore.Backups},
	{"people do all of that at once",
		"hosts n1 n2\nvms web@n1\nsecond n1 copied\nscript drain n1\n",
		explore.AllFaults | explore.Mistakes},
}

// Nor does any way on which people err.
func TestNothingIsViolatedWhenPeopleErr(t *testing.T) {
	testutil.Unraced(t)
	total := 0
	for _, s := range mistaken {
		for _, c := range []explore.Config{{Budget: 1, Odd: 1}, {Budget: 1, Odd: 2},
			{Budget: 2, Odd: 1}} {
			t.Run(fmt.Sprintf("%s/%d, %d", s.name, c.Budget, c.Odd-1), func(t *testing.T) {
				c.Scene, c.Faults = scene(t, s.text), s.faults
				c.States = people(t)
				r, err := explore.Run(t.Context(), c)
				fail(t, r, err)
				total += r.States
				t.Log(r)
			})
		}
	}
	fmt.Printf("explored %d states in which people err\n", total)
	if testutil.InLongTier() && os.Getenv(peopleKey) == "" && !t.Failed() && total < 500_000 {
		t.Errorf("%d states were explored, fewer than half a million", total)
	}
}

// peopleKey says how many states of each world are explored in which people err.
const peopleKey = "GODWIT_PEOPLE"

// people is how many states of each world are explored in which people err.
func people(t *testing.T) int {
	if n, err := strconv.Atoi(os.Getenv(peopleKey)); err == nil {
		return n
	}
	states := testutil.Rounds(t, 300, 20_000) // it says that there is more
	if testutil.Raced {
		return 100
	}
	return states
}
