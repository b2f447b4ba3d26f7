package config_test

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/config"
)

// A migration that the backup knows as unfinished is over when the store is set back. The next one of its VM has
// another name: the host that it brought the VM to remembers the first, and would do nothing.
func TestAfterASetBackNoNameIsGivenTwice(t *testing.T) {
	s, err := config.Parse("s.yaml", []byte(`
hosts:
- {name: n1, memory: 32GiB, cpus: 64, link: 10Gbit/s}
- {name: n2, memory: 64GiB, cpus: 64, link: 10Gbit/s}
- {name: n3, memory: 64GiB, cpus: 64, link: 10Gbit/s}
vms:
- {name: v1, host: n1, memory: 1GiB, dirty: 4GiB/s}
events:
- 0s mark v1
- 1s backup
- 187s set-back
- 520s reconcile
- 560s mark v1
`))
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Build(s.Config(s.Seed))
	if err != nil {
		t.Fatal(err)
	}
	w.Run(2 * time.Hour)
	w.CheckAtRest()
	for _, v := range w.Violations() {
		t.Errorf("%s: %s", v.Invariant, v.Detail)
	}
}
