package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/build"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/store"
)

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
		v := versions{Version: build.Version, Go: runtime.Version(),
			Platform: runtime.GOOS + "/" + runtime.GOARCH, Backends: daemon.Backends(),
			Records: store.Format, File: boltstore.Format, Protocol: boltstore.Protocol}
		v.Commit, v.Modified = build.Commit()
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
