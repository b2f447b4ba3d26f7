package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/inventory"
)

// own are fields at the beginning of a line that godwit's own files have: a fleet, or
// a scenario, which may name a file with the fleet.
var own = regexp.MustCompile(`(?m)^(hosts|inventory|events|limits|vary):`)

// FleetFlags say how the fleet of a store is read, and what its controller is configured with.
type FleetFlags struct {
	files  StoreFlags // without --store: the fleet is the store
	config string
	begin  time.Time // when the plan begins; zero is now
}

// Add adds the flags to a command's.
func (f *FleetFlags) Add(c *cobra.Command) {
	flags := c.Flags()
	f.files.addFiles(flags)
	flags.StringVar(&f.config, "config", "", "the controller's configuration `FILE`, if the fleet is a store's:\n"+
		"limits, policies, quotas, timeouts (default: the defaults of controllers)")
}

// useless returns an error when a flag would do nothing to a fleet that is no store's.
func (f *FleetFlags) useless(path string) error {
	for _, flag := range []struct{ name, value string }{{"config", f.config}, {"tls-dir", f.files.dir},
		{"etcd-ca", f.files.TLS.CA}, {"etcd-cert", f.files.TLS.Cert}, {"etcd-key", f.files.TLS.Key}} {
		if flag.value != "" {
			return fmt.Errorf("--%s is for the URL of a store, and %s is a file: a scenario says itself how its controller "+
				"is configured", flag.name, path)
		}
	}
	return nil
}

// Read reads a scenario, or a fleet in any format, and prints its warnings.
func (f *FleetFlags) Read(path string, warnings io.Writer) (*config.Scenario, error) {
	return f.readWith(path, "", warnings)
}

// Warn prints the warnings of a fleet or a scenario.
func Warn(out io.Writer, about []inventory.Problem) {
	for _, p := range about {
		fmt.Fprintln(Plain(out), "warning:", p.Error())
	}
}

// readWith is Read, and applies measured workloads to the fleet: a CSV file; "" is none.
func (f *FleetFlags) readWith(path, workloads string, warnings io.Writer) (*config.Scenario, error) {
	s, err := f.read(path)
	if err != nil {
		return nil, err
	}
	if workloads != "" {
		measured, err := os.Open(workloads)
		if err != nil {
			return nil, err
		}
		defer measured.Close()
		if err := s.Fleet.LayWorkloads(workloads, measured); err != nil {
			return nil, err
		}
		s.Files = append(s.Files, workloads)
	}
	Warn(warnings, s.Fleet.Warnings)
	return s, nil
}

func (f *FleetFlags) read(path string) (*config.Scenario, error) {
	if isStore(path) {
		return f.readStore(path)
	}
	if err := f.useless(path); err != nil {
		return nil, err
	}
	if at, err := os.Stat(path); err == nil && !at.Mode().IsRegular() && !at.IsDir() {
		return readPipe(path)
	}
	mine, err := isOwn(path)
	switch {
	case err != nil:
		return nil, err
	case mine:
		return config.ReadFile(path)
	}
	path = filepath.Clean(path) // what a scenario names is beside it
	return config.Parse(path, fmt.Appendf(nil, "inventory: %q\n", filepath.Base(path)))
}

// readPipe reads what can be read once: one of godwit's own files. Other formats are told from
// their beginning, and then read from there.
func readPipe(path string) (*config.Scenario, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := yamldoc.ReadAll(path, f, yamldoc.MaxSize)
	if err == nil && own.Match(data) {
		return config.Parse(path, data)
	}
	return nil, fmt.Errorf("%s is a pipe, and holds no fleet in godwit's own YAML: write it to a "+
		"file, which can be read twice", path)
}

// isOwn reports whether a file begins as godwit's own do; a folder does not.
func isOwn(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if at, err := f.Stat(); err != nil || at.IsDir() {
		return false, err
	}
	head, err := io.ReadAll(io.LimitReader(f, 1<<20))
	return own.Match(head), err
}
