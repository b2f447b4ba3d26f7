package sweep_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/godwit-vm/godwit/internal/sweep"
)

// TestLook writes pictures of the pages to the folder that GODWIT_LOOK names, for whoever
// has changed how they look.
func TestLook(t *testing.T) {
	folder := os.Getenv("GODWIT_LOOK")
	if folder == "" {
		t.Skip("skipped: it writes pictures to the folder in GODWIT_LOOK, which is not set")
	}
	b := browser(t)
	for place, s := range map[string]screen{"desktop-light": desktop, "phone-dark": phone,
		"desktop-dark": {1280, 900, "dark"}, "phone-light": {360, 740, "light"}} {
		all := documents(t)
		all["many"], all["large"] = sweep.Many(10_000), sweep.Many(3*sweep.MaxListed)
		for name, d := range all {
			p := open(t, b, d, s)
			whole := eval[int64](p, "document.documentElement.scrollHeight")
			var picture []byte
			p.do(chromedp.EmulateViewport(s.width, whole), chromedp.Sleep(settle),
				chromedp.CaptureScreenshot(&picture))
			file := filepath.Join(folder, name+"-"+place+".png")
			if err := os.WriteFile(file, picture, 0o644); err != nil {
				t.Fatal(err)
			}
			p.quiet()
		}
	}
}
