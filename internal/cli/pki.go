package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/internal/pki"
)

const pkiHelp = `Make and renew a private certificate authority for the hosts of a small cluster: what QEMU and
libvirt need to encrypt migrations, and etcd and its clients to know each other.

The directory of the authority holds ca-cert.pem and ca-key.pem. With ca-key.pem one can pose as
any host: keep the directory on one machine that runs no VMs, mode 0700, with a backup. Each host gets a
directory of its own in it: ca-cert.pem, server-cert.pem, server-key.pem, client-cert.pem,
client-key.pem and dh-params.pem. Copy that to the host, for godwit agent --tls-dir.

There is no list of revoked certificates. Certificates end after 90 days instead; run godwit pki
renew from a timer, and copy what it names to its host. Keys stay as they are, so that nothing has
to be restarted: QEMU and godwit's daemons read the files for each migration and each connection. To
shut out a host whose key was stolen make another authority in another directory, and issue anew.`

// PKICommand returns the commands of the authority.
func PKICommand() *cobra.Command {
	var dir string
	c := &cobra.Command{Use: "pki", Short: "Make and renew the certificates of a cluster", Long: pkiHelp,
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.PersistentFlags().StringVar(&dir, "dir", "pki", "private `DIR` of the authority")
	c.AddCommand(pkiInit(&dir), pkiIssue(&dir), pkiRenew(&dir), pkiShow(&dir))
	return c
}

// days adds a flag for a time that is given in days, as openssl's -days.
func days(c *cobra.Command, name string, lasts time.Duration, text string) func() (time.Duration, error) {
	n := c.Flags().Int(name, int(lasts/(24*time.Hour)), text)
	return func() (time.Duration, error) {
		const most = 100 * 365
		if *n < 1 || *n > most {
			return 0, fmt.Errorf("--%s: %d is not a number of days: write 1 to %d", name, *n, most)
		}
		return time.Duration(*n) * 24 * time.Hour, nil
	}
}

func pkiInit(dir *string) *cobra.Command {
	var name string
	c := &cobra.Command{Use: "init", Short: "Make an authority; one that is there is never replaced",
		Args: cobra.NoArgs}
	lasts := days(c, "days", pki.AuthorityLasts, "`DAYS` until its certificate ends")
	c.Flags().StringVar(&name, "name", "godwit", "`NAME` of the authority")
	c.RunE = func(c *cobra.Command, _ []string) error {
		valid, err := lasts()
		if err != nil {
			return err
		}
		a, err := pki.Init(*dir, name, valid, time.Now())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s: an authority until %s; keep ca-key.pem secret, and a "+
			"backup\n", *dir, day(a.Cert.NotAfter))
		return err
	}
	return c
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

const pkiIssueHelp = `Make keys and certificates for a host, in DIR/NAME. They carry NAME, and every --dns and
--address: other hosts check the address that they connect to (godwit agent --address), or the name
that --tls-hostname gives. With --client there is only a client's certificate: for a controller, an
operator or a monitor that nothing connects to; with --controller it is of a controller that serves the
store. etcd, and a controller that serves the store, know a client by NAME; a controller knows a host's by
the organizational unit godwit-host.`

func pkiIssue(dir *string) *cobra.Command {
	var r pki.Request
	c := &cobra.Command{Use: "issue NAME", Short: "Make the certificates of a host, or of a client",
		Long: pkiIssueHelp, Args: cobra.ExactArgs(1)}
	lasts := days(c, "days", pki.HostLasts, "`DAYS` until they end")
	flags := c.Flags()
	flags.IPSliceVar(&r.IPs, "address", nil, "`IP` where the host is reached; may be repeated")
	flags.StringSliceVar(&r.DNS, "dns", nil, "another `NAME` of the host; may be repeated")
	flags.BoolVar(&r.ClientOnly, "client", false, "nothing connects to it")
	flags.BoolVar(&r.Controller, "controller", false, "it is a controller that serves the store, and no host")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		r.Name = args[0]
		if r.Lasts, err = lasts(); err != nil {
			return err
		}
		if r.ClientOnly && r.Controller {
			return fmt.Errorf("--client and --controller: one of the two: agents connect to a controller that " +
				"serves the store")
		}
		if r.ClientOnly && len(r.IPs)+len(r.DNS) > 0 {
			return fmt.Errorf("--client: a certificate that nothing connects to carries no --address and " +
				"no --dns")
		}
		a, err := pki.Open(*dir)
		if err != nil {
			return err
		}
		made, err := a.Issue(r, time.Now())
		if err != nil {
			return err
		}
		if !r.ClientOnly && len(r.IPs) == 0 && net.ParseIP(r.Name) == nil {
			fmt.Fprintln(Plain(c.ErrOrStderr()), "it carries no IP address: hosts that reach it by one "+
				"refuse it: see --address")
		}
		_, err = fmt.Fprintln(c.OutOrStdout(), made)
		return err
	}
	return c
}

const pkiRenewHelp = `Renew the certificates that end within --within days, or those of each NAME, and print the
files that were written: copy these to their hosts. Keys stay as they are, so a migration that is
under way goes on, and nothing has to be restarted. The authority is renewed in the same way.`

func pkiRenew(dir *string) *cobra.Command {
	c := &cobra.Command{Use: "renew [NAME…]", Short: "Renew certificates that end soon",
		Long: pkiRenewHelp}
	lasts := days(c, "days", pki.HostLasts, "`DAYS` until they end then")
	authority := days(c, "ca-days", pki.AuthorityLasts, "`DAYS` until the authority ends then")
	within := days(c, "within", pki.RenewBefore, "`DAYS` before its end at which one is renewed")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		r := pki.Renewal{Names: args}
		for to, from := range map[*time.Duration]func() (time.Duration, error){&r.Lasts: lasts,
			&r.Authority: authority, &r.Before: within} {
			if *to, err = from(); err != nil {
				return err
			}
		}
		a, err := pki.Open(*dir)
		if err != nil {
			return err
		}
		done, err := a.Renew(r, time.Now())
		for _, e := range done {
			fmt.Fprintf(c.OutOrStdout(), "%s: until %s\n", e.File, day(e.Ends))
		}
		if err == nil && len(done) == 0 {
			fmt.Fprintf(c.OutOrStdout(), "no certificate ends within %s\n",
				humanize.Count(int(r.Before/(24*time.Hour)), "day"))
		}
		return err
	}
	return c
}

const pkiShowHelp = `List the certificates of an authority, of what kind they are, and when they end. The kind is what a
controller that serves the store takes the holder for: a host's agent, a controller, or a client, which has
the role of its name. One that is unmarked is taken for a client: an earlier version of godwit has issued it to
a host, and godwit pki renew NAME makes it a host's.

Exit status: 0 all are valid, 2 bad input, 3 one has ended.`

func pkiShow(dir *string) *cobra.Command {
	asJSON := false
	c := &cobra.Command{Use: "show", Short: "List certificates, their kinds and when they end", Long: pkiShowHelp,
		Args: cobra.NoArgs}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON instead of a table")
	c.RunE = func(c *cobra.Command, _ []string) error {
		all, err := pki.List(*dir)
		if err != nil {
			return err
		}
		now, ended := time.Now(), false
		for _, e := range all {
			ended = ended || !now.Before(e.Ends)
		}
		if asJSON {
			err = json.NewEncoder(c.OutOrStdout()).Encode(all)
		} else {
			err = pkiTable(c, all, now)
		}
		if err == nil && ended {
			err = ErrNotDone
		}
		return err
	}
	return c
}

func pkiTable(c *cobra.Command, all []pki.Entry, now time.Time) error {
	t := tabwriter.NewWriter(Plain(c.OutOrStdout()), 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tKIND\tENDS\tFILE\tFOR")
	for _, e := range all {
		name, end := e.Name, day(e.Ends)
		if name == "" {
			name = "(authority)"
		}
		if !now.Before(e.Ends) {
			end += ", ENDED"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", client.Plain(name), e.Kind, end, client.Plain(e.File),
			client.Plain(e.Names()))
	}
	return t.Flush()
}
