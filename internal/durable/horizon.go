package durable

import (
	"os"
	"slices"
	"time"
)

// witnesses is on how many later days something must have been written before a file counts as old.
const witnesses = 7

// Horizon returns the time before which the files of a directory, which ReadDir has listed, were last
// written if they are older than age. A clock that is far in the future makes no file old: files of
// seven other days must be newer by as much, and with a wrong clock these take a week to write. The
// zero time is that no file is old.
func Horizon(files []os.DirEntry, now time.Time, age time.Duration) time.Time {
	var days []int64
	for _, f := range files {
		if i, err := f.Info(); err == nil {
			days = append(days, i.ModTime().Unix()/(24*60*60))
		}
	}
	slices.Sort(days)
	days = slices.Compact(days)
	if len(days) < witnesses {
		return time.Time{}
	}
	newer := time.Unix(days[len(days)-witnesses]*24*60*60, 0)
	if now.Before(newer) {
		newer = now
	}
	return newer.Add(-age)
}
