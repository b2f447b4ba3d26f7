package sweep_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/godwit-vm/godwit/internal/sweep"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// TestLook writes pictures of the pages to the folder that GODWIT_LOOK names, to check
// changes of how they look.
func TestLook(t *testing.T) {
	folder := os.Getenv("GODWIT_LOOK")
	if folder == "" {
		t.Skip("skipped: it writes pictures to the folder in GODWIT_LOOK, which is not set")
	}
	b := testutil.StartBrowser(t)
	for place, s := range map[string]screen{"desktop-light": testutil.Desktop,
		"phone-dark":   testutil.Phone,
		"desktop-dark": {Width: 1280, Height: 900, Scheme: "dark"},
		"phone-light":  {Width: 360, Height: 740, Scheme: "light"}} {
		all := documents(t)
		all["many"], all["large"] = sweep.Many(10_000), sweep.Many(3*sweep.MaxListed)
		for name, d := range all {
			p := open(t, b, d, s)
			file := filepath.Join(folder, name+"-"+place+".png")
			if err := os.WriteFile(file, p.Picture(s), 0o644); err != nil {
				t.Fatal(err)
			}
			quiet(p)
		}
	}
}
