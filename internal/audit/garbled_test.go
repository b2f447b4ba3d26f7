package audit_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/testutil"
)

var (
	seq  = regexp.MustCompile(`^\{"seq":[0-9]+`)
	prev = regexp.MustCompile(`,"prev":"[0-9a-f]*"\}$`)
)

// rechain gives the lines of a log the numbers and hashes that they would have.
func rechain(log string) string {
	var b strings.Builder
	before := ""
	for i, line := range strings.Split(strings.TrimSuffix(log, "\n"), "\n") {
		line = seq.ReplaceAllString(line, fmt.Sprintf(`{"seq":%d`, i+1))
		if line = prev.ReplaceAllString(line, "}"); before != "" {
			line = strings.TrimSuffix(line, "}") + `,"prev":"` + before + `"}`
		}
		sum := sha256.Sum256([]byte(line))
		before = hex.EncodeToString(sum[:8])
		b.WriteString(line + "\n")
	}
	return b.String()
}

// TestAChainThatIsMadeAnewIsSound: what follows tests more than hashes.
func TestAChainThatIsMadeAnewIsSound(t *testing.T) {
	log := string(drained(t, "{}\n"))
	if rechain(log) != log {
		t.Error("the chain of a sound log is another than its own")
	}
}

// TestGarbledLogsAreRefusedOrReplayed, and nothing panics: lines are left out, doubled and
// swapped, and words in them exchanged.
func TestGarbledLogsAreRefusedOrReplayed(t *testing.T) {
	testutil.Unraced(t)
	whole := string(story(t))
	words := regexp.MustCompile(`"[^"]*"|-?[0-9]+|true|false|null|[{}]`)
	refused, replayed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		lines := strings.SplitAfter(strings.TrimSuffix(whole, "\n"), "\n")
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			i := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
			switch rapid.SampledFrom([]string{"word", "out", "twice", "swap"}).Draw(t, "how") {
			case "out":
				lines = slices.Delete(lines, i, min(i+1, len(lines)-1))
			case "twice":
				lines = slices.Insert(lines, i, lines[i])
			case "swap":
				j := rapid.IntRange(0, len(lines)-1).Draw(t, "with")
				lines[i], lines[j] = lines[j], lines[i]
			case "word":
				at := words.FindAllStringIndex(lines[i], -1)
				w := rapid.SampledFrom(at).Draw(t, "word")
				by := rapid.SampledFrom([]string{`""`, "0", "-1", "null", "{}", "[]", "true",
					"9223372036854775807", `"default/big"`, `"n1"`, `"Succeeded"`}).Draw(t, "by")
				lines[i] = lines[i][:w[0]] + by + lines[i][w[1]:]
			}
		}
		if try(t, rechain(strings.Join(lines, ""))) {
			replayed++
		} else {
			refused++
		}
	})
	if refused == 0 || replayed == 0 {
		t.Errorf("%d logs are refused, %d replayed", refused, replayed)
	}
}

// try replays a log and makes a scenario of it; it reports whether there was a result.
func try(t tester, log string) bool {
	t.Helper()
	o := audit.Options{Configure: configure}
	r, err := audit.Replay(strings.NewReader(log), o)
	if (r == nil) != (err != nil) {
		t.Fatalf("a result %v and an error %v", r, err)
	}
	if err != nil && !strings.HasPrefix(err.Error(), "line ") {
		t.Fatalf("the error names no line: %v", err)
	}
	if r != nil {
		var b bytes.Buffer
		if err := r.WriteText(&b, true); err != nil {
			t.Fatalf("%v", err)
		}
	}
	if _, err := audit.Scenario(strings.NewReader(log)); err != nil && err.Error() == "" {
		t.Fatalf("an error without words")
	}
	return r != nil
}

// FuzzReplay: whatever the log, with a chain that is sound, nothing panics.
func FuzzReplay(f *testing.F) {
	f.Add("{}\n")
	f.Add(`{"seq":1,"look":1,"kind":"look","journal":{}}`)
	f.Add(begins + "\n" + `{"seq":2,"kind":"look","look":1,"journal":{"changes":[{"record":` +
		`"host n1","version":1,"text":{"Host":{"Name":"n1","Memory":-5,"CPUs":-1}}},{"record":` +
		`"vm v","version":2,"text":{"VM":{"ID":"v"},"Host":"n1"}}]}}`)
	f.Add(begins + "\n" + `{"seq":2,"kind":"look","look":1,"journal":{"failed":"stale"}}`)
	f.Fuzz(func(t *testing.T, log string) { try(t, rechain(log)) })
}

const begins = `{"seq":1,"kind":"start","journal":{"origin":{"format":1,"records":1,` +
	`"config":"{}\n"}}}`

// BenchmarkReplay replays the log of a drain.
func BenchmarkReplay(b *testing.B) {
	c := newCluster(b, b.TempDir(), "{}\n")
	drainMany(c, 40)
	log := c.log()
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		wantSame(b, replay(b, log))
	}
	b.ReportMetric(float64(len(log))/40, "bytes/migration")
}
