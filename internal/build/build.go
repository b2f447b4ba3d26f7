// Package build names the program that runs, so that what two of them have made can be told
// apart. Its tests build the distribution: the same source gives the same bytes, and a host is
// drained with the package, in a root of its own.
package build

import "runtime/debug"

// Version is the version of this source, by semantic versioning: CHANGELOG.md says what is new.
const Version = "0.1.0"

// commit is set by the linker where go build does not know it: -X .../internal/build.commit=ID.
var commit string

// Commit returns the revision that this program was built from, "" if that is unknown, and
// whether files had been changed since.
func Commit() (id string, modified bool) {
	if commit != "" {
		return commit, false
	}
	about, ok := debug.ReadBuildInfo()
	if !ok {
		return "", false
	}
	for _, s := range about.Settings {
		switch s.Key {
		case "vcs.revision":
			id = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	return id, modified
}

// Name returns the version of this program, the revision that it was built from, and whether
// that had been modified.
func Name() string {
	name := Version
	id, modified := Commit()
	if id != "" {
		name += " " + id
	}
	if modified {
		name += " modified"
	}
	return name
}
