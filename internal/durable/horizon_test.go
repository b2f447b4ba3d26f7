package durable_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/durable"
)

// TestHorizon: nothing is old for a clock that jumped, before files of a week say the same.
func TestHorizon(t *testing.T) {
	const day, age = 24 * time.Hour, 90 * 24 * time.Hour
	today := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	ago := func(days ...int) (all []time.Time) {
		for _, d := range days {
			all = append(all, today.Add(-time.Duration(d)*day))
		}
		return all
	}
	week := ago(0, 1, 2, 3, 4, 5, 6)
	never := time.Time{}
	for _, row := range []struct {
		name    string
		written []time.Time
		now     time.Time
		want    time.Time
	}{
		{"an empty directory", nil, today, never},
		{"files of six days", week[:6], today, never},
		{"many files of one day", append(ago(0, 0, 0, 0, 0, 0, 0, 0), week[:6]...), today, never},
		{"a week in which something was written each day", week, today,
			time.Date(2026, 4, 25, 0, 0, 0, 0, time.UTC).Add(-age)},
		{"a clock that jumped forward before this start", week, today.Add(3000 * day),
			time.Date(2026, 4, 25, 0, 0, 0, 0, time.UTC).Add(-age)},
		{"a clock that jumped forward, and files that were written since",
			append(ago(-3000, -3001, -3002, -3003, -3004, -3005), week...), today.Add(3006 * day),
			time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC).Add(-age)},
		{"a clock that was set back since", week, today.Add(-30 * day), today.Add(-30 * day).Add(-age)},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := private(t)
			for i, at := range row.written {
				path := filepath.Join(dir, fmt.Sprint(i))
				must(t, os.WriteFile(path, nil, 0o600))
				must(t, os.Chtimes(path, at, at))
			}
			files, err := os.ReadDir(dir)
			must(t, err)
			if got := durable.Horizon(files, row.now, age); !got.Equal(row.want) {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}
