package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// Rights are the users of etcd that use a store, by what they do. etcd knows a user by the common name
// of the certificate that it shows.
type Rights struct {
	// Hosts are the users of agents: each is called as its host is.
	Hosts []string
	// Controllers write everything, Operators what operators do, and Viewers nothing.
	Controllers, Operators, Viewers []string
}

// A Grant lets a role of etcd do something with keys.
type Grant struct {
	Key string
	// Prefix: with all keys that begin so. Default: with this one.
	Prefix bool
	Write  bool // and read; default: read only
}

// A Role is a role of etcd, with the users that have it.
type Role struct {
	Name   string
	Grants []Grant
	Users  []string
}

// Roles returns the roles for a store whose keys begin with a prefix. Everyone reads everything of
// it. An agent writes its own host's record and lease, the records of VMs, migrations and rebuilds,
// of any host, and what tells others of that: a record has fields of several writers, and etcd knows
// keys only.
func (r Rights) Roles(prefix string) (all []Role) {
	prefix = strings.TrimRight(prefix, "/")
	if prefix == "" {
		prefix = "/godwit"
	}
	p := keys(prefix)
	read := Grant{Key: prefix + "/", Prefix: true}
	write := func(key string) Grant { return Grant{Key: key, Prefix: strings.HasSuffix(key, "/"), Write: true} }
	kind := func(k store.Kind) Grant { return write(p.records(signs(k)) + k.String() + "/") }
	told := []Grant{read, write(prefix + "/f/"), write(prefix + "/h/")}
	for _, h := range r.Hosts {
		all = append(all, Role{Name: "godwit-agent-" + h, Users: []string{h}, Grants: slices.Concat(told, []Grant{
			write(p.record(store.Key{Kind: store.HostKind, Name: h})),
			write(p.record(store.Key{Kind: store.LeaseKind, Name: string(store.HostLease(hypervisor.HostName(h)))})),
			kind(store.VMKind), kind(store.MigrationKind), kind(store.RebuildKind), write(p.history())})})
	}
	if len(r.Controllers) > 0 {
		all = append(all, Role{"godwit-controller", []Grant{write(prefix + "/")}, r.Controllers})
	}
	if len(r.Operators) > 0 {
		all = append(all, Role{"godwit-operator", slices.Concat(told, []Grant{kind(store.HostKind),
			kind(store.VMKind), kind(store.MigrationKind), kind(store.PlanKind),
			kind(store.MaintenanceKind)}), r.Operators})
	}
	if len(r.Viewers) > 0 {
		all = append(all, Role{"godwit-viewer", []Grant{read}, r.Viewers})
	}
	return all
}

// Check refuses a user with two roles: it would have the rights of both.
func (r Rights) Check() error {
	has := map[string]string{"root": "root"}
	for _, role := range r.Roles("") {
		for _, u := range role.Users {
			if had := has[u]; had != "" {
				return fmt.Errorf("user %q is to have the roles %s and %s: name each user once", u, had, role.Name)
			}
			has[u] = role.Name
		}
	}
	return nil
}

// Print writes the commands of etcdctl that make roles.
func Print(w io.Writer, roles []Role) error {
	var b strings.Builder
	b.WriteString("etcdctl user add root --no-password\netcdctl user grant-role root root\n")
	for _, r := range roles {
		fmt.Fprintf(&b, "etcdctl role add %s\n", r.Name)
		for _, g := range r.Grants {
			how, prefix := "read", ""
			if g.Write {
				how = "readwrite"
			}
			if g.Prefix {
				prefix = "--prefix "
			}
			fmt.Fprintf(&b, "etcdctl role grant-permission %s %s%s %s\n", r.Name, prefix, how, g.Key)
		}
		for _, u := range r.Users {
			fmt.Fprintf(&b, "etcdctl user add %s --no-password\netcdctl user grant-role %s %s\n", u, u, r.Name)
		}
	}
	b.WriteString("etcdctl auth enable\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Apply makes roles and their users in etcd, with root beside them, and has etcd ask for rights from
// then on. What is there stays; it may be repeated. The store's client has to be root once etcd asks.
func (s *Store) Apply(ctx context.Context, roles []Role) error {
	auth := s.client.Auth
	there := func(err error) error {
		if is(err, rpctypes.ErrRoleAlreadyExist, rpctypes.ErrUserAlreadyExist) {
			return nil
		}
		return err
	}
	user := func(name, role string) error {
		_, err := auth.UserAddWithOptions(ctx, name, "", &clientv3.UserAddOptions{NoPassword: true})
		_, errRole := auth.UserGrantRole(ctx, name, role)
		return errors.Join(there(err), errRole)
	}
	_, err := auth.RoleAdd(ctx, "root")
	err = errors.Join(there(err), user("root", "root"))
	for _, r := range roles {
		_, errRole := auth.RoleAdd(ctx, r.Name)
		err = errors.Join(err, there(errRole))
		for _, g := range r.Grants {
			end, how := "", clientv3.PermRead
			if g.Write {
				how = clientv3.PermReadWrite
			}
			if g.Prefix {
				end = clientv3.GetPrefixRangeEnd(g.Key)
			}
			_, errGrant := auth.RoleGrantPermission(ctx, r.Name, g.Key, end, clientv3.PermissionType(how))
			err = errors.Join(err, errGrant)
		}
		for _, u := range r.Users {
			err = errors.Join(err, user(u, r.Name))
		}
	}
	if err == nil {
		_, err = auth.AuthEnable(ctx)
	}
	if err != nil {
		return fmt.Errorf("make etcd's roles: %w", advised(err))
	}
	return nil
}
