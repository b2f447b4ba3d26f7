package kubectl

import (
	"io"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/kubevirt/internal/apiserver"
)

// A cluster without the custom resource says that it is not installed, and how to install it.
func TestDrainWithoutTheController(t *testing.T) {
	s := apiserver.Start(t)
	c := Command()
	c.SetOut(io.Discard)
	c.SetErr(io.Discard)
	c.SetArgs([]string{"--kubeconfig", s.Kubeconfig, "drain", "n1"})
	if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "install godwit-kubevirt") {
		t.Errorf("got %v, want that godwit-kubevirt is to be installed", err)
	}
}
