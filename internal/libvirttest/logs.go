//go:build linux

package libvirttest

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tailBytes is how much of a log is shown.
const tailBytes = 6 << 10

// showLogs shows what the hosts have logged if the test has failed.
func (l *Lab) showLogs(t testing.TB) {
	if !t.Failed() {
		return
	}
	for _, h := range l.hosts {
		t.Log(h.log())
	}
}

// log is the end of what the host's programs have logged since its last test.
func (h *host) log() string {
	var text strings.Builder
	show := func(path string, from int64) {
		if s := tail(path, from); s != "" {
			fmt.Fprintf(&text, "%s: %s:\n%s\n", h.name, filepath.Base(path), s)
		}
	}
	show(filepath.Join(h.dir, "init.log"), 0)
	show(h.lab.Outside(h.name, daemonLog), h.shown)
	show(h.lab.Outside(h.name, daemonOut), 0)
	qemus, _ := filepath.Glob(h.lab.Outside(h.name, "/var/log/libvirt/qemu/*.log"))
	for _, path := range qemus {
		show(path, 0)
	}
	return text.String()
}

// markLog lets the next test see only what is logged from now on.
func (h *host) markLog() {
	if info, err := os.Stat(h.lab.Outside(h.name, daemonLog)); err == nil {
		h.shown = info.Size()
	}
}

// tail is the end of a file, at most tailBytes of it, after an offset.
func tail(path string, from int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	begin := max(from, info.Size()-tailBytes)
	text, _ := io.ReadAll(io.NewSectionReader(f, begin, max(0, info.Size()-begin)))
	return strings.TrimSpace(string(text))
}
