package conn

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

func TestTheDefaultsAreThoseThatTheDocumentationNames(t *testing.T) {
	c, err := Config{}.complete()
	if err != nil || c.URI != "qemu:///system" || c.KeepAliveInterval != 5*time.Second ||
		c.KeepAliveCount != 5 || c.Timeout != 30*time.Second {
		t.Errorf("got %+v, %v", c, err)
	}
	c.Events(Event{}) // nothing is called, and nothing panics
	c.Connected()
	c.Lost(nil)
}

func TestConfigsThatAreRefused(t *testing.T) {
	for name, row := range map[string]struct {
		config Config
		want   string
	}{
		"half a second": {Config{KeepAliveInterval: 1500 * time.Millisecond},
			"whole seconds"},
		"a negative interval":   {Config{KeepAliveInterval: -time.Second}, "from 1s to 1h"},
		"an endless interval":   {Config{KeepAliveInterval: 2 * time.Hour}, "from 1s to 1h"},
		"a negative count":      {Config{KeepAliveCount: -1}, "it must be 1 to 1000"},
		"an endless count":      {Config{KeepAliveCount: 1001}, "it must be 1 to 1000"},
		"a negative timeout":    {Config{Timeout: -1}, "must not be negative"},
		"a URI that is no good": {Config{URI: "x"}, "no scheme"},
	} {
		_, err := Open(t.Context(), row.config)
		if !errors.Is(err, hypervisor.Invalid) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", name, err, row.want)
		}
	}
}

func TestWords(t *testing.T) {
	for got, want := range map[string]string{DeviceKept.String(): "device kept",
		JobCompleted.String(): "job completed", JobCancelled.String(): "cancelled",
		SnapshotDelete.String(): "snapshot delete", Other.String(): "other",
		(DeviceKept + 1).String(): "invalid", (JobCancelled + 1).String(): "invalid",
		(SnapshotDelete + 1).String(): "invalid"} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
