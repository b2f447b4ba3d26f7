package simtest_test

import (
	"fmt"
	"os"

	"github.com/godwit-vm/godwit/sim/simtest"
)

// A policy promises that web and db come to different hosts, because the emptiest host is chosen
// first. The shortest way to the mistake is that n1 is slow once: web's move to n3 is given up, and
// the next goes to n2, too. The transcript has what usually happens until then as one command,
// and then that the controller's time comes before that of n1.
func ExampleExplore() {
	t := printing{} // in a test it is the test's
	apart := simtest.Everywhere("web and db are apart", func(w simtest.Observation) error {
		if web, db := w.VM("web"), w.VM("db"); web.Host == db.Host && web.Host != "n1" {
			return fmt.Errorf("both are on %s", web.Host)
		}
		return nil
	})
	dir, err := os.MkdirTemp("", "transcripts") // a test leaves that out: testdata is better
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	simtest.Explore(t, "hosts n1 n2 n3\nvms web@n1 db@n1\nscript drain n1\n", apart,
		simtest.Bounds(simtest.ExploreConfig{Faults: simtest.Delays, Budget: 1, Odd: 1}),
		simtest.Transcript(dir))
	// Output:
	// simtest: web and db are apart: both are on n2
}
