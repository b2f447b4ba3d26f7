package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/store"
)

// Version is the version of this source, by semantic versioning: CHANGELOG.md says what is new.
const Version = "0.1.0"

// commit is set by the linker where go build does not know it: -X .../internal/cli.commit=ID.
var commit string

// buildCommit returns the revision that this program was built from, "" if that is unknown, and
// whether files had been changed since.
func buildCommit() (id string, modified bool) {
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

// BuildName returns the version of this program, the revision that it was built from, and whether
// that had been modified.
func BuildName() string {
	name := Version
	id, modified := buildCommit()
	if id != "" {
		name += " " + id
	}
	if modified {
		name += " modified"
	}
	return name
}

// versions are what godwit version prints.
type versions struct {
	Version  string   `json:"version"`
	Commit   string   `json:"commit,omitempty"`
	Modified bool     `json:"modified,omitempty"`
	Go       string   `json:"go"`
	Platform string   `json:"platform"`
	Backends []string `json:"backends"`
	Records  int      `json:"recordFormat"`
	File     int      `json:"fileFormat"`
	Protocol int      `json:"socketProtocol"`
}

const versionHelp = `Print the version of this program, the commit that it was built from, the backends that it
has, and the newest formats of the store that it reads. A store with a newer format is refused, and
nothing in it is changed.`

// VersionCommand returns the command that names this program.
func VersionCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{Use: "version", Short: "Print version, commit, backends and formats",
		Long: versionHelp, Args: cobra.NoArgs}
	c.RunE = func(c *cobra.Command, _ []string) error {
		v := versions{Version: Version, Go: runtime.Version(),
			Platform: runtime.GOOS + "/" + runtime.GOARCH, Backends: daemon.Backends(),
			Records: store.Format, File: boltstore.Format, Protocol: boltstore.Protocol}
		v.Commit, v.Modified = buildCommit()
		if asJSON {
			return json.NewEncoder(c.OutOrStdout()).Encode(v)
		}
		commit := v.Commit
		switch {
		case commit == "":
			commit = "unknown"
		case v.Modified:
			commit += ", modified"
		}
		t := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
		fmt.Fprintf(t, "godwit\t%s\ncommit\t%s\nbuilt with\t%s for %s\n", v.Version, commit, v.Go,
			v.Platform)
		fmt.Fprintf(t, "backends\t%s\n", strings.Join(v.Backends, ", "))
		fmt.Fprintf(t, "store\trecords of format %d, files of format %d, socket protocol %d\n",
			v.Records, v.File, v.Protocol)
		return t.Flush()
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
