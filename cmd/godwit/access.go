package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os/user"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/internal/pki"
)

// accessFlags are the groups whose members have a role at the socket of a controller, and the people who
// have one over a network.
type accessFlags struct {
	viewers, operators, admins []string
	listen                     string
	people                     boltstore.Names
}

func (f *accessFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.viewers, "viewer-group", nil, "`GROUP` whose members may read the store at "+
		"the socket of\nbolt's file; may be repeated")
	flags.StringSliceVar(&f.operators, "operator-group", nil, "`GROUP` whose members may also drain hosts, "+
		"and change and\nmigrate VMs")
	flags.StringSliceVar(&f.admins, "admin-group", nil, "`GROUP` whose members may do everything there, as "+
		"root and\nthe user of the controller; default: only these two reach\nthe socket")
	flags.StringVar(&f.listen, "store-listen", "", "`ADDRESS` to serve the store at over TLS, to hosts and "+
		"people\nwith certificates: 0.0.0.0:7443 is on all interfaces; needs\n--tls-dir; default: none")
	flags.StringSliceVar(&f.people.Viewers, "viewers", nil, "`NAME` in a certificate that reads the store "+
		"there;\nmay be repeated")
	flags.StringSliceVar(&f.people.Operators, "operators", nil, "`NAME` in a certificate that also drains "+
		"hosts, and\nchanges and migrates VMs")
	flags.StringSliceVar(&f.people.Admins, "admins", nil, "`NAME` in a certificate that does everything there")
}

// server configures the rights of clients over a network. It tells the audit log as the socket does.
func (f *accessFlags) server(u daemon.URL, files daemon.TLS, socket boltstore.Access, log *slog.Logger) (
	daemon.StoreServer, error) {
	s := daemon.StoreServer{Address: f.listen, Files: pki.Dir(files.Dir), Log: log,
		Access: boltstore.Access{Certified: &f.people, Asked: socket.Asked}}
	role := map[string]bool{}
	for _, name := range slices.Concat(f.people.Viewers, f.people.Operators, f.people.Admins) {
		if role[name] {
			return s, fmt.Errorf("%q is to have two roles: name each once in --viewers, --operators and --admins", name)
		}
		role[name] = true
		if err := named("--viewers, --operators and --admins", name); err != nil {
			return s, err
		}
	}
	switch {
	case u.Kind == daemon.Served:
		return s, fmt.Errorf("--store: a controller keeps the store: give bolt:PATH or etcd://…, and not %s", u)
	case f.listen == "" && len(role) > 0:
		return s, errors.New("--viewers, --operators and --admins are about --store-listen: give that, too")
	case f.listen != "" && files.Dir == "":
		return s, errors.New("--store-listen needs --tls-dir DIR with ca-cert.pem, server-cert.pem and " +
			"server-key.pem: godwit pki issue makes them")
	}
	return s, nil
}

// access configures the rights of clients at the socket, and has the audit log record their requests.
func (f *accessFlags) access(u daemon.URL, d *daemon.Controller) (a boltstore.Access, err error) {
	for _, g := range []struct {
		flag  string
		names []string
		ids   *[]uint32
	}{{"viewer", f.viewers, &a.Viewers}, {"operator", f.operators, &a.Operators},
		{"admin", f.admins, &a.Admins}} {
		for _, name := range g.names {
			id, errGroup := groupID(name)
			if errGroup != nil {
				err = errors.Join(err, fmt.Errorf("--%s-group: %w", g.flag, errGroup))
			}
			*g.ids = append(*g.ids, id)
		}
	}
	if a.Open() && u.Kind != daemon.Bolt {
		err = errors.Join(err, errors.New("--viewer-group, --operator-group and --admin-group are about the "+
			"socket of bolt's file"))
	}
	if d.Audit != nil {
		trail := &audit.History{File: d.Audit, By: "controller/" + d.Name, Now: time.Now}
		a.Asked = func(q boltstore.Asked) { trail.Asked(q.Peer.String(), q.What(), q.Record) }
	}
	return a, err
}

// groupID returns the number of a group: it is named, or is a number itself.
func groupID(name string) (uint32, error) {
	if g, err := user.LookupGroup(name); err == nil {
		name = g.Gid
	}
	id, err := strconv.ParseUint(name, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("there is no group %q on this machine: make it, or write its number", name)
	}
	return uint32(id), nil
}
