package config_test

import (
	"testing"

	"github.com/godwit-vm/godwit/internal/config"
)

func TestAnEventTakesTheRangesThatHostsTake(t *testing.T) {
	s, err := config.Parse("s.yaml", []byte(`
hosts: [{name: "n[1-12]", memory: 64GiB, cpus: 8}]
vms: [{name: "v[1-3]", host: n1, memory: 1GiB}]
events: ["1s drain n[2-11]", "2s stop v[1,3]", "3s open n1"]
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Events) != 13 || s.Events[9].Text != "1s drain n11" ||
		s.Events[11].Text != "2s stop v3" {
		t.Errorf("%+v", s.Events)
	}
	if _, err := config.Parse("s.yaml", []byte(`
hosts: [{name: "n[1-2]", memory: 64GiB, cpus: 8}]
events: ["1s drain n[1-3]"]
`)); err == nil {
		t.Error("a range beyond the hosts is accepted")
	}
}
