//go:build !linux || !libvirt_dlopen

package conn

import (
	"errors"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
)

// TestWithoutLibvirt: a build without libvirt says in every answer what to do.
func TestWithoutLibvirt(t *testing.T) {
	c, open := Open(t.Context(), Config{})
	if c != nil {
		t.Error("opened")
	}
	_, ask := Ask(t.Context(), c, func(*Connect) (int, error) { return 0, nil })
	for name, err := range map[string]error{"Open": open, "Ask": ask,
		"Look":  c.Look(t.Context(), nil),
		"Act":   c.Act(t.Context(), nil),
		"Begin": c.Begin(t.Context(), nil, nil)} {
		if !errors.Is(err, hypervisor.Unsupported) || Classify(err) != hypervisor.Unsupported ||
			!strings.Contains(err.Error(), "rebuild it for Linux with -tags libvirt_dlopen") ||
			!strings.Contains(err.Error(), "apt-get install libvirt0") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
