package daemon_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/migration/placement"
)

// TestOneLineATransition, with who, what and of which VM; reservations are details.
func TestOneLineATransition(t *testing.T) {
	for level, want := range map[slog.Level]int{slog.LevelInfo: 2, slog.LevelDebug: 3} {
		var out bytes.Buffer
		log, err := daemon.Logger(&out, daemon.JSON, level)
		if err != nil {
			t.Fatal(err)
		}
		all := daemon.All{daemon.Log{To: log}}
		all.Note(time.Unix(1, 0), "n1", "default/web", "starts\nanew")
		all.Note(time.Unix(1, 0), "", "", "Pending")
		all.Audit(placement.LedgerEntry{Step: placement.StepAccepted, VM: "default/web"})
		lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
		if len(lines) != want {
			t.Fatalf("at %v: %d lines, want %d:\n%s", level, len(lines), want, &out)
		}
		var line map[string]any
		if err := json.Unmarshal(lines[0], &line); err != nil {
			t.Fatal(err)
		}
		if line["msg"] != "starts\nanew" || line["by"] != "agent/n1" ||
			line["vm"] != "default/web" {
			t.Errorf("%v", line)
		}
		if err := json.Unmarshal(lines[1], &line); err != nil || line["by"] != "controller" {
			t.Errorf("%v, %v", line, err)
		}
	}
	if _, err := daemon.Logger(nil, "xml", slog.LevelInfo); err == nil {
		t.Error("xml is a format")
	}
}
