package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/store"
)

// These environment variables replace --store and, for a store that controllers serve, --tls-dir.
const (
	storeVariable = "GODWIT_STORE"   // The store, where --store is not given.
	tlsVariable   = "GODWIT_TLS_DIR" // The directory of certificates for a store over TLS, where --tls-dir is not given.
)

// patience is how long a command waits for the store.
const patience = 15 * time.Second

// ClientCommands returns the commands of operators.
func ClientCommands() []*cobra.Command {
	return []*cobra.Command{statusCommand(), topCommand(), vmCommand(), hostCommand(), migrateCommand(),
		drainCommand(), applyCommand(), maintenanceGroup(), cancelCommand(), auditCommand(),
		storeCommand()}
}

// StoreFlags say where the store is.
type StoreFlags struct {
	url, dir string
	// TLS are the files for connections to the store.
	TLS daemon.TLS
}

// Dir returns what --tls-dir says.
func (f *StoreFlags) Dir() string { return f.dir }

// Add adds the flags to a command and those below it.
func (f *StoreFlags) Add(c *cobra.Command) {
	flags := c.PersistentFlags()
	flags.StringVar(&f.url, "store", os.Getenv(storeVariable),
		"the `URL` of the store: bolt:PATH, unix:PATH, tls://HOST:PORT,… or\n"+
			"etcd://HOST:PORT,…/PREFIX; default: $"+storeVariable)
	f.addFiles(flags)
}

// addFiles adds the flags for the files that a connection to the store needs.
func (f *StoreFlags) addFiles(flags *pflag.FlagSet) {
	flags.StringVar(&f.dir, "tls-dir", "", "`DIR` with ca-cert.pem, client-cert.pem and client-key.pem to show "+
		"to\ncontrollers that serve the store; default: $"+tlsVariable)
	flags.StringVar(&f.TLS.CA, "etcd-ca", "", "`FILE` with the certificates that sign etcd's")
	flags.StringVar(&f.TLS.Cert, "etcd-cert", "", "`FILE` with the certificate to show to etcd")
	flags.StringVar(&f.TLS.Key, "etcd-key", "", "`FILE` with its key")
}

// Parse reads the URL.
func (f *StoreFlags) Parse() (daemon.URL, error) {
	if f.url == "" {
		return daemon.URL{}, errors.New("--store is missing: write --store bolt:PATH, or set " +
			storeVariable)
	}
	u, err := daemon.ParseURL(f.url)
	if f.TLS.Dir = f.dir; f.dir == "" && u.Kind == daemon.Served {
		f.TLS.Dir = os.Getenv(tlsVariable)
	}
	return u, err
}

// sessionFlags are the flags of an operator's commands.
type sessionFlags struct {
	StoreFlags
	config string
	json   bool
	by     string // the operator; default: the current user
}

func (f *sessionFlags) add(c *cobra.Command) {
	f.addStore(c)
	c.PersistentFlags().BoolVar(&f.json, "json", false, "print JSON instead of a table")
}

// addStore adds the flags of a command that prints no JSON.
func (f *sessionFlags) addStore(c *cobra.Command) {
	f.StoreFlags.Add(c)
	c.PersistentFlags().StringVar(&f.config, "config", "", "the controller's configuration `FILE`, "+
		"if it sets\nlimits or a drain taint")
}

// A session is what one command of an operator works with.
type session struct {
	client.Client
	settings config.Settings
	// configured: they are the controller's, not the defaults.
	configured bool
	past       store.Store // as it is, whatever its past
	out, err   io.Writer
	in         io.Reader
	json       bool
}

// at opens the store, runs work, and closes the store.
func (f *sessionFlags) at(c *cobra.Command, work func(context.Context, *session) error) error {
	s, err := config.ReadSettings(f.config)
	if err != nil {
		return err
	}
	u, err := f.Parse()
	if err != nil {
		return err
	}
	opening, cancel := context.WithTimeout(c.Context(), patience)
	store, err := daemon.OpenStore(opening, u, f.TLS)
	cancel()
	if err != nil {
		return err
	}
	d := &session{settings: s, configured: f.config != "", past: store, out: c.OutOrStdout(), in: c.InOrStdin(),
		err:  Plain(c.ErrOrStderr()),
		json: f.json, Client: client.Client{Store: daemon.Judged(store), Now: time.Now,
			DrainKey: s.Controller.Complete().Evacuation.DrainKey, By: f.operator()}}
	return errors.Join(work(c.Context(), d), store.Close())
}

// operator returns the user that gives the commands; "" is that it is not known.
func (f *sessionFlags) operator() string {
	if f.by != "" {
		return f.by
	}
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// once is at with a limit on the time.
func (f *sessionFlags) once(c *cobra.Command, work func(context.Context, *session) error) error {
	return f.at(c, func(ctx context.Context, d *session) error {
		ctx, cancel := context.WithTimeoutCause(ctx, patience,
			errors.New("the store has not answered within "+patience.String()))
		defer cancel()
		return work(ctx, d)
	})
}

// look reads the whole store.
func (d *session) look(ctx context.Context) (*client.Cluster, error) {
	var c client.Cluster
	return &c, c.Pull(ctx, d.Store)
}

// print prints a value as JSON or as a table.
func (d *session) print(v any, table func(io.Writer) error) error {
	if !d.json {
		return table(Plain(d.out))
	}
	e := json.NewEncoder(d.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
