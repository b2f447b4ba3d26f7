package main

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/daemon"
)

// accessFlags are the groups whose members have a role at the socket of a controller.
type accessFlags struct{ viewers, operators, admins []string }

func (f *accessFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.viewers, "viewer-group", nil, "`GROUP` whose members may read the store at "+
		"the socket of\nbolt's file; may be repeated")
	flags.StringSliceVar(&f.operators, "operator-group", nil, "`GROUP` whose members may also drain hosts, "+
		"and change and\nmigrate VMs")
	flags.StringSliceVar(&f.admins, "admin-group", nil, "`GROUP` whose members may do everything there, as "+
		"root and\nthe user of the controller; default: only these two reach\nthe socket")
}

// access says who may do what at the socket, and has the audit log told who asked for what.
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
