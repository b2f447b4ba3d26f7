// Package build names the program that runs, so that what two of them have made can be told
// apart.
package build

import "runtime/debug"

// Name returns the version of this program, the revision that it was built from, and whether
// that had been modified.
func Name() string {
	about, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	name := about.Main.Version
	for _, s := range about.Settings {
		switch {
		case s.Key == "vcs.revision":
			name += " " + s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			name += " modified"
		}
	}
	return name
}
