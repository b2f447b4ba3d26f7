package apiserver

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestBuild builds what other tests run. It takes as long as it takes: see internal/tools/testrun.
func TestBuild(t *testing.T) {
	if os.Getenv("GODWIT_LONG") == "" {
		t.Skip("in the long tier (GODWIT_LONG=1): it builds a control plane")
	}
	for _, k := range []*Kit{&Kubernetes, &KubeVirt, &Release, &Krew} {
		began := time.Now()
		dir, err := k.Build()
		if err != nil {
			t.Skipf("what needs them is skipped, too: %v", err)
		}
		t.Logf("%s: %v", dir, time.Since(began).Round(time.Second))
		for _, p := range k.programs {
			if s, err := os.Stat(filepath.Join(dir, p.name)); err != nil || s.Mode()&0o111 == 0 {
				t.Errorf("%s cannot be run: %v", p.name, err)
			}
		}
	}
}
