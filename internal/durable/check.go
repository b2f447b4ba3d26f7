package durable

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// CheckDir reads every record in the directory of an agent, and changes nothing. It answers how many
// there are, and what is wrong with each that cannot be read.
func CheckDir(dir string) (records int, wrong []error) {
	err := filepath.WalkDir(dir, func(path string, f fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		switch {
		case err != nil:
			wrong = append(wrong, err)
			return nil
		case f.IsDir() || !isRecord(name):
			return nil
		}
		records++
		var any json.RawMessage
		if err := Read(path, &any); err != nil {
			wrong = append(wrong, err)
		} else if !strings.HasPrefix(string(any), "{") {
			wrong = append(wrong, fmt.Errorf("%s: it is no record", path))
		}
		return nil
	})
	if err != nil {
		wrong = append(wrong, err)
	}
	return records, wrong
}

// isRecord reports whether a file in the directory of an agent is a record, by its name: what a
// process was at when it died is none, and neither are disks, sockets, locks and logs.
func isRecord(name string) bool {
	dir, base := filepath.Split(name)
	switch first, _, _ := strings.Cut(dir, "/"); {
	case strings.HasSuffix(base, Unfinished):
		return false
	case dir == "":
		return base == "identity" || base == "seen"
	case first == "vms":
		return base == "domain" || filepath.Clean(dir) == "vms"
	case first == "ledger" || first == "jobs":
		return filepath.Clean(dir) == first
	}
	return false
}
