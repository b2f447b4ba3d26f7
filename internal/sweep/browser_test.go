package sweep_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/sweep"
	"github.com/godwit-vm/godwit/internal/testutil"
)

type (
	tab    = testutil.Tab
	screen = testutil.Screen
)

// open shows a document in a tab of its own.
func open(t testing.TB, browser *testutil.Browser, d *sweep.ReportDocument, s screen) *tab {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.WriteHTML(out); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	p := testutil.OpenTab(t, browser, "file://"+file, s)
	p.WaitReady("html[data-ready]")
	return p
}

// quiet fails the test if the page has complained, or asked for anything but itself.
func quiet(p *tab) {
	p.Helper()
	if said := p.Complaints(); len(said) > 0 {
		p.Errorf("the browser says: %s", strings.Join(said, "\n"))
	}
	if r := p.Requests(); len(r) != 1 || !strings.HasPrefix(r[0], "file://") {
		p.Errorf("the page asked for %q, want itself only", r)
	}
}
