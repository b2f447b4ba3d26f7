package audit_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/audit"
)

var (
	sealer  = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	forger  = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
	sealDay = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

func readers(files []string) (all []io.Reader) {
	for _, f := range files {
		all = append(all, strings.NewReader(f))
	}
	return all
}

func checkSeals(t interface{ Fatal(...any) }, files []string, seals []audit.Seal, since uint64) audit.Sealed {
	found, err := audit.CheckSeals(readers(files), seals, sealer.Public().(ed25519.PublicKey), since)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// drawLog is a log of one to three files that was sealed now and then, and all of whose lines are sealed.
func drawLog(t *rapid.T) (files []string, seals []audit.Seal) {
	for part := range rapid.IntRange(1, 3).Draw(t, "files") {
		files = append(files, "")
		for range rapid.IntRange(1, 3).Draw(t, "rounds") {
			for range rapid.IntRange(1, 4).Draw(t, "lines") {
				text, err := json.Marshal(audit.Line{At: sealDay, By: "agent/n1", Kind: audit.NoteKind,
					What: rapid.StringMatching("[a-z]{1,8}").Draw(t, "what")})
				if err != nil {
					t.Fatal(err)
				}
				files[part] += rapid.SampledFrom([]string{"", "", `{"seq":9,"at` + "\n"}).Draw(t, "torn") +
					string(text) + "\n"
			}
			files = relink(t, files)
			more, err := audit.MakeSeals(readers(files), seals, sealer, 0, sealDay)
			if err != nil || len(more) != 1 {
				t.Fatalf("%d seals: %v", len(more), err)
			}
			seals = append(seals, more...)
		}
	}
	return files, seals
}

// relink gives lines the numbers and hashes that they would have if they had been written so: an attacker
// who may write to the files does.
func relink(t *rapid.T, files []string) []string {
	seq, prev := uint64(0), ""
	for i, f := range files {
		var out strings.Builder
		for text := range strings.Lines(f) {
			var l audit.Line
			if err := json.Unmarshal([]byte(text), &l); err != nil {
				out.WriteString(text)
				continue
			}
			seq++
			l.Seq, l.Prev = seq, prev
			now, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(now)
			prev = hex.EncodeToString(sum[:8])
			out.Write(append(now, '\n'))
		}
		files[i] = out.String()
	}
	return files
}

// TestEveryChangeOfASealedLogIsFound: of its lines, and of its seals.
func TestEveryChangeOfASealedLogIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files, seals := drawLog(t)
		if found := checkSeals(t, files, seals, 0); len(found.Findings) > 0 || found.Unsealed > 0 {
			t.Fatalf("an untouched log: %+v\n%q", found, files)
		}
		was, wasSeals := slices.Clone(files), slices.Clone(seals)
		part := rapid.IntRange(0, len(files)-1).Draw(t, "part")
		lines := slices.Collect(strings.Lines(files[part]))
		i := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
		k := rapid.IntRange(0, len(seals)-1).Draw(t, "seal")
		what := rapid.SampledFrom([]string{"change", "drop", "swap", "add", "cut", "drop a file", "drop a seal",
			"swap seals", "change a seal", "forge a seal"}).Draw(t, "harm")
		switch what {
		case "change":
			lines[i] = strings.Replace(lines[i], `"what":"`, `"what":"not `, 1)
		case "drop":
			lines = slices.Delete(lines, i, i+1)
		case "swap":
			j := rapid.IntRange(0, len(lines)-1).Draw(t, "other")
			lines[i], lines[j] = lines[j], lines[i]
		case "add":
			lines = slices.Insert(lines, i, lines[i])
		case "cut":
			lines = lines[:i]
			files = files[:part+1]
		case "drop a file":
			lines = nil
		case "drop a seal":
			if k == len(seals)-1 {
				k = max(0, k-1)
			}
			seals = slices.Delete(seals, k, k+1)
		case "swap seals":
			j := rapid.IntRange(0, len(seals)-1).Draw(t, "other seal")
			seals[k], seals[j] = seals[j], seals[k]
		case "change a seal":
			seals[k].To++
		case "forge a seal":
			made, err := audit.MakeSeals(readers(files), seals[:k], forger, 0, sealDay)
			if err == nil {
				seals = append(seals[:k:k], made...)
			}
		}
		files[part] = strings.Join(lines, "")
		if rapid.Bool().Draw(t, "relinked") {
			files = relink(t, files)
		}
		if strings.Join(files, "") == strings.Join(was, "") && slices.Equal(seals, wasSeals) {
			return // nothing has changed
		}
		found := checkSeals(t, files, seals, 0)
		if strings.HasPrefix(strings.Join(files, ""), strings.Join(was, "")) && slices.Equal(seals, wasSeals) &&
			what == "add" && found.Unsealed > 0 {
			return // a line after all that are sealed
		}
		if last := what == "drop a seal" && len(seals) == 0; len(found.Findings) == 0 && (!last || found.Unsealed == 0) {
			t.Fatalf("%s is not found: %+v\n%q\n%+v", what, found, files, seals)
		}
		if _, err := audit.MakeSeals(readers(files), seals, sealer, 0, sealDay); err == nil && len(seals) > 0 {
			t.Fatalf("%s: what was changed is sealed", what)
		}
	})
}

func TestLinesBeforeSinceMayBeMissing(t *testing.T) {
	line := func(seq int) string {
		return fmt.Sprintf(`{"seq":%d,"at":"2026-01-01T00:00:00Z","by":"a","kind":"note","what":"x"}`+"\n", seq)
	}
	old, now := line(1)+line(2)+"torn\n", line(3)+"torn\n"+line(4)
	seals, err := audit.MakeSeals(readers([]string{old, now}), nil, sealer, 0, sealDay)
	if err != nil || len(seals) != 2 {
		t.Fatalf("%+v, %v", seals, err)
	}
	if found := checkSeals(t, []string{now}, seals, 3); len(found.Findings) > 0 || found.First != 3 || found.Last != 4 {
		t.Errorf("rotated: %+v", found)
	}
	if found := checkSeals(t, []string{now}, seals, 0); len(found.Findings) != 1 ||
		found.Findings[0].What != "the lines 1 to 2 are sealed, and not all here" {
		t.Errorf("missing: %+v", found)
	}
	if found := checkSeals(t, []string{old, now + line(5)}, seals, 0); found.Unsealed != 1 {
		t.Errorf("a line that is not sealed: %+v", found)
	}
	if _, err := audit.MakeSeals(readers([]string{line(6)}), seals, sealer, 5, sealDay); err == nil ||
		!strings.Contains(err.Error(), "the lines 5 to 5 have no seal, and are not here") {
		t.Errorf("a gap is sealed: %v", err)
	}
}
