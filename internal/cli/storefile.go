package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/internal/durable"
	"github.com/godwit-vm/godwit/store"
)

const backupHelp = `Write a copy of the store, as it is at one moment, to a new file that only you can read.
Controllers and agents keep working meanwhile. A file of that name is never replaced.

Of bolt:PATH the copy is a store file: the controller makes it, or the command reads the file when no
controller has it open. The copy is checked before it is written. Of etcd it is a snapshot of all of
etcd, its other keys included.

A backup is older than the cluster as soon as a VM moves. See godwit store restore.

Exit status: 0 done, 2 bad input or failed.`

func backupCommand(f *sessionFlags) *cobra.Command {
	return &cobra.Command{Use: "backup FILE", Short: "Write a copy of the store while it is in use",
		Long: backupHelp, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if _, err := os.Lstat(args[0]); err == nil {
				return fmt.Errorf("%s exists already: name a new file", args[0])
			}
			u, text, err := f.copied(c.Context())
			if err != nil {
				return err
			}
			switch err := durable.Create(args[0], text); {
			case errors.Is(err, fs.ErrExist):
				return fmt.Errorf("%s exists already: name a new file", args[0])
			case err != nil:
				return fmt.Errorf("the backup is not written: %w", err)
			}
			what := fmt.Sprintf("%d bytes, a snapshot of all of etcd: etcdutl snapshot restore reads it", len(text))
			if u.Kind != daemon.Etcd {
				what = boltstore.Examine(text).String()
			}
			fmt.Fprintf(Plain(c.OutOrStdout()), "wrote %s: %s\n", args[0], what)
			return nil
		}}
}

// copied makes a copy of the store.
func (f *sessionFlags) copied(ctx context.Context) (u daemon.URL, text []byte, err error) {
	if u, err = f.Parse(); err != nil {
		return u, nil, err
	}
	var all bytes.Buffer
	opening, cancel := context.WithTimeout(ctx, patience)
	s, err := daemon.OpenStore(opening, u, f.TLS)
	cancel()
	if _, absent := errors.AsType[*daemon.AbsentError](err); absent && u.Kind == daemon.Bolt {
		_, err = boltstore.Copy(u.Path, &all)
		return u, all.Bytes(), err
	}
	if err != nil {
		return u, nil, err
	}
	b, can := s.(interface {
		Backup(context.Context, io.Writer) (int64, error)
	})
	if !can {
		return u, nil, errors.Join(fmt.Errorf("the store %s makes no copies of itself", u), s.Close())
	}
	_, err = b.Backup(ctx, &all)
	return u, all.Bytes(), errors.Join(err, s.Close())
}

const checkHelp = `Check store files and agents' directories, and change nothing. Without arguments the store of
--store is checked, also while a controller has it open.

Of a store file every page, every record and the sum over all records are checked; every damaged record
is named. Of an agent's directory (its --dir) every record is read: what it knows of its VMs, its
migrations, its identity, and what it has seen of the store.

Exit status: 0 everything is whole, 2 bad input, 4 something is damaged.`

func checkCommand(f *sessionFlags) *cobra.Command {
	return &cobra.Command{Use: "check [FILE|DIRECTORY…]", Short: "Check store files and agents' directories",
		Long: checkHelp,
		RunE: func(c *cobra.Command, args []string) error {
			out := Plain(c.OutOrStdout())
			if len(args) == 0 {
				u, text, err := f.copied(c.Context())
				if u.Kind == daemon.Etcd && err == nil {
					return errors.New("etcd checks its data itself: etcdctl endpoint hashkv --cluster")
				}
				if err != nil && !errors.Is(err, store.Unreadable) && !boltstore.Damaged(err) {
					return err
				} else if err != nil {
					return checked(out, u.Path, "", []error{err})
				}
				s := boltstore.Examine(text)
				return checked(out, u.Path, s.String(), s.Wrong)
			}
			var bad []error
			for _, path := range args {
				err := check(out, path)
				if err != nil && !errors.Is(err, ErrDamaged) {
					return err
				}
				bad = append(bad, err)
			}
			if errors.Join(bad...) != nil {
				return ErrDamaged
			}
			return nil
		}}
}

// ErrDamaged: a check has found damage, which has been printed.
var ErrDamaged = errors.New("something is damaged: it is named above")

// check checks a file or a directory.
func check(out io.Writer, path string) error {
	i, err := os.Stat(path)
	if err != nil {
		return err
	}
	if i.IsDir() {
		n, wrong := durable.CheckDir(path)
		if n == 0 && len(wrong) == 0 {
			return fmt.Errorf("%s: no record of an agent is here: name the --dir of an agent", path)
		}
		return checked(out, path, fmt.Sprintf("%d records", n), wrong)
	}
	s, err := boltstore.CheckFile(path)
	if err != nil {
		return err
	}
	return checked(out, path, s.String(), s.Wrong)
}

// checked prints what was found.
func checked(out io.Writer, path, whole string, wrong []error) error {
	if len(wrong) == 0 {
		fmt.Fprintf(out, "%s is whole: %s\n", path, whole)
		return nil
	}
	for _, err := range wrong {
		fmt.Fprintf(out, "%s: %s\n", path, client.Plain(err.Error()))
	}
	return ErrDamaged
}

const restoreHelp = `Put a backup in the place of the store file of --store bolt:PATH, which no controller may have
open. The file that is there is kept as PATH.replaced-TIME. A backup that is damaged is refused.

A backup is older than the cluster: VMs have moved since. Agents and controllers detect that. Then they
start, stop and remove nothing, and VMs keep running. So after the controller has started, run
godwit store reconcile: it compares the backup with what the hosts report, and raises the epoch of the
store. Leave PATH.seen where it is: by that file the controller recognizes an older store.

A snapshot of etcd is restored by etcdutl snapshot restore, with a new --initial-cluster-token.

Exit status: 0 done, 2 bad input or refused.`

func restoreCommand(f *sessionFlags) *cobra.Command {
	return &cobra.Command{Use: "restore FILE", Short: "Put a backup in the place of a store file",
		Long: restoreHelp, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			u, err := f.Parse()
			if err != nil {
				return err
			}
			if u.Kind != daemon.Bolt {
				return fmt.Errorf("%s: only the file of bolt:PATH is restored here; a snapshot of etcd is "+
					"restored by etcdutl snapshot restore, with a new --initial-cluster-token", u)
			}
			if served(u.Socket()) {
				return fmt.Errorf("a controller serves %s: stop it first", u.Path)
			}
			kept, s, err := boltstore.Restore(args[0], u.Path, time.Now())
			if err != nil {
				return err
			}
			out := Plain(c.OutOrStdout())
			fmt.Fprintf(out, "restored %s from %s: %s\n", u.Path, args[0], s)
			if kept != "" {
				fmt.Fprintf(out, "the file that was there is kept as %s\n", kept)
			}
			fmt.Fprintln(out, "next: start the controller and the agents; VMs keep running, and nothing is "+
				"started or stopped, until you run: godwit store reconcile")
			return nil
		}}
}

// served reports whether a process answers at a socket.
func served(path string) bool {
	c, err := net.DialTimeout("unix", path, patience)
	if err == nil {
		c.Close()
	}
	return err == nil
}

const rebuildHelp = `Rebuild a store that was lost, when there is no backup: from what the hosts report.

Start a controller on a new path (or move the damaged file away first), and start the agents with the
same --dir as before. The agents recognize that the store does not know what they have seen: they start,
stop and remove nothing, VMs keep running, and every agent stores a report of the VMs on its host, those
that have left it included. Then run this command.

It prints what it would write, and the conflicts that only you can decide: nothing is guessed. With
--write it writes the records. What no host knows is lost: labels of hosts, drains, and VMs that have
never been started. The flags are those of godwit store reconcile; a store that holds VMs is refused.

Exit status: 0 done, 2 bad input or refused, 4 the reports are printed, and --write was not given.`

func rebuildCommand(f *sessionFlags) *cobra.Command {
	c := reconcileCommand(f)
	reconcile := c.RunE
	c.Use, c.Short, c.Long = "rebuild [--write --by NAME]", "Rebuild a lost store from the hosts' reports",
		rebuildHelp
	c.RunE = func(c *cobra.Command, args []string) error {
		err := f.once(c, func(ctx context.Context, d *session) error {
			all, err := d.past.Changes(ctx, store.Everything, 0)
			for _, r := range all.Records {
				if r.Key().Kind == store.VMKind {
					return fmt.Errorf("the store was not lost: it holds the VM %s: use godwit store reconcile",
						r.Key().Name)
				}
			}
			return err
		})
		if err != nil {
			return err
		}
		return reconcile(c, args)
	}
	return c
}
