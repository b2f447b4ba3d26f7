package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/internal/etcdstore"
)

const etcdRightsHelp = `Print the commands of etcdctl that give each user of the store its rights in etcd, or give them
with --apply. etcd knows a user by the common name of its certificate (etcd --client-cert-auth): a
host's agent shows the certificate of the host's name, as godwit pki issue makes it.

Everyone that is named may read the store. An agent may write its own host's record and lease, and
the records of VMs, migrations and rebuilds, of any host; no other host's record or lease, not who
leads, and nothing outside of the store. A controller may write the whole store, an operator hosts,
VMs and migrations, a viewer nothing. docs/security.md says what that leaves open.

Agents that use the store through controllers (godwit controller --store-listen) need no user: leave
--hosts out. They change only what is their host's, field by field.

With --apply show root's certificate: godwit pki issue root --client. From then on etcd asks for
rights, and what no user is named for stops. It may be repeated, to add a host; nothing is taken away.

Exit status: 0 done, 2 bad input, or etcd refuses.`

// EtcdCommand returns the commands about etcd itself.
func EtcdCommand() *cobra.Command {
	c := &cobra.Command{Use: "etcd", Short: "Give agents, controllers and operators their rights in etcd",
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(etcdRightsCommand())
	return c
}

func etcdRightsCommand() *cobra.Command {
	var f StoreFlags
	var r etcdstore.Rights
	apply := false
	c := &cobra.Command{Use: "rights --controllers USER,… [--hosts HOST,…]", Short: "Print or apply roles and users of etcd",
		Long: etcdRightsHelp, Args: cobra.NoArgs}
	c.RunE = func(c *cobra.Command, _ []string) error {
		u, err := f.Parse()
		if err != nil {
			return err
		}
		if u.Kind != daemon.Etcd {
			return fmt.Errorf("--store: %s is not etcd: give etcd://HOST:PORT/PREFIX", u)
		}
		if err := checkRights(r); err != nil {
			return err
		}
		if len(r.Hosts) == 0 {
			fmt.Fprintln(Plain(c.ErrOrStderr()), "no --hosts: agents reach the store only through controllers that "+
				"serve it (--store-listen)")
		}
		if !apply {
			return etcdstore.Print(c.OutOrStdout(), r.Roles(u.Prefix))
		}
		ctx, cancel := context.WithTimeout(c.Context(), patience)
		defer cancel()
		s, err := etcdstore.Open(ctx, etcdstore.Config{Endpoints: u.Endpoints, Prefix: u.Prefix, CA: f.TLS.CA,
			Cert: f.TLS.Cert, Key: f.TLS.Key})
		if err != nil {
			return err
		}
		return errors.Join(s.Apply(ctx, r.Roles(u.Prefix)), s.Close())
	}
	f.Add(c)
	flags := c.Flags()
	flags.StringSliceVar(&r.Hosts, "hosts", nil, "`HOST` whose agent is the user of this name; may be repeated")
	flags.StringSliceVar(&r.Controllers, "controllers", nil, "`USER` of a controller; may be repeated")
	flags.StringSliceVar(&r.Operators, "operators", nil, "`USER` that is an operator; may be repeated")
	flags.StringSliceVar(&r.Viewers, "viewers", nil, "`USER` that reads only; may be repeated")
	flags.BoolVar(&apply, "apply", false, "make them in etcd, and have it ask for rights from then on")
	return c
}

// checkRights refuses names that are none, no names, and a name with two roles.
func checkRights(r etcdstore.Rights) error {
	if len(r.Controllers) == 0 {
		return errors.New("--controllers is needed: without it controllers are refused as soon as etcd asks for rights")
	}
	for _, role := range r.Roles("") {
		for _, u := range role.Users {
			if !client.IsName(u) {
				return fmt.Errorf("%.100q is not a name: write a-z A-Z 0-9 . _ -", u)
			}
		}
	}
	return r.Check()
}
