package etcdstore_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/etcdstore"
	"github.com/godwit-vm/godwit/internal/etcdtest"
	"github.com/godwit-vm/godwit/store"
)

// A guarded is an etcd that asks for rights, and what its users open.
type guarded struct {
	t       *testing.T
	cluster *etcdtest.Cluster
	as      map[string]*etcdstore.Store
}

func guard(t *testing.T) *guarded {
	t.Helper()
	ca := etcdtest.NewAuthority(t)
	g := &guarded{t: t, as: map[string]*etcdstore.Store{},
		cluster: etcdtest.StartWith(t, etcdtest.Options{Authority: ca})}
	rights := etcdstore.Rights{Hosts: []string{"n1", "n2"}, Controllers: []string{"boss"},
		Operators: []string{"bob"}, Viewers: []string{"alice"}}
	open := func(user string) {
		cert, key := ca.Issue(t, user)
		g.as[user] = openWith(t, etcdstore.Config{Endpoints: g.cluster.Endpoints, CA: ca.File, Cert: cert, Key: key})
	}
	open("root")
	for range 2 { // it may be repeated
		if err := g.as["root"].Apply(t.Context(), rights.Roles("/godwit")); err != nil {
			t.Fatal(err)
		}
	}
	for _, user := range []string{"n1", "n2", "boss", "bob", "alice"} {
		open(user)
	}
	return g
}

// TestEtcdRefusesEachWriteThatIsNotGiven: each user tries each key.
func TestEtcdRefusesEachWriteThatIsNotGiven(t *testing.T) {
	t.Parallel()
	g := guard(t)
	for _, c := range []struct{ key, may string }{
		{"/godwit/r/host/n1", "n1 bob boss"},
		{"/godwit/r/host/n2", "n2 bob boss"},
		{"/godwit/r/host/n1x", "bob boss"}, // a name that begins alike
		{"/godwit/s/lease/host%2Fn1", "n1 boss"},
		{"/godwit/s/lease/host%2Fn2", "n2 boss"},
		{"/godwit/s/lease/controller%2Fa", "boss"},
		{"/godwit/s/leader/cluster", "boss"},
		{"/godwit/r/vm/default%2Fweb", "n1 n2 bob boss"},
		{"/godwit/r/migration/default%2Fweb%231", "n1 n2 bob boss"},
		{"/godwit/r/rebuild/default%2Fweb@n1", "n1 n2 boss"},
		{"/godwit/r/plan/upgrade", "bob boss"},
		{"/godwit/f/n1/vm/default%2Fweb", "n1 n2 bob boss"},
		{"/godwit/h/all", "n1 n2 bob boss"},
		{"/godwit/history", "n1 n2 boss"},
		{"/godwitness/r/vm/x", ""},
		{"/other", ""},
	} {
		for user, s := range g.as {
			if user == "root" {
				continue
			}
			may := strings.Contains(" "+c.may+" ", " "+user+" ")
			for what, op := range map[string]clientv3.Op{"put": clientv3.OpPut(c.key, "x"),
				"delete": clientv3.OpDelete(c.key)} {
				_, err := s.Raw().Do(t.Context(), op)
				if denied := errors.Is(rpctypes.Error(err), rpctypes.ErrPermissionDenied); err == nil != may || denied == may {
					t.Errorf("%s %ss %s: %v", user, what, c.key, err)
				}
			}
			_, err := s.Raw().Get(t.Context(), c.key)
			if ours := strings.HasPrefix(c.key, "/godwit/"); err == nil != ours {
				t.Errorf("%s reads %s: %v", user, c.key, err)
			}
		}
	}
	_, err := g.as["alice"].Put(t.Context(), vmOn("default/web", "n1"))
	if !errors.Is(err, store.Forbidden) || !strings.Contains(err.Error(), "its role") {
		t.Errorf("what a viewer is told: %v", err)
	}
	if _, err := g.as["n1"].Raw().Auth.UserAdd(t.Context(), "mallory", "x"); err == nil {
		t.Error("an agent makes users")
	}
}

// TestADrainWithTheseRights: agents, a controller and an operator, each with its own certificate.
func TestADrainWithTheseRights(t *testing.T) {
	t.Parallel()
	g := guard(t)
	ctx, now := t.Context(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fabric := fake.NewNetwork(now, fake.QEMU())
	agents := map[hypervisor.HostName]*agent.Agent{}
	bob := &client.Client{Store: g.as["bob"], Now: func() time.Time { return now }}
	for _, name := range []hypervisor.HostName{"n1", "n2"} {
		h := hypervisor.Host{Name: name, Memory: 8 * hypervisor.GiB, CPUs: 8, Link: 10 * hypervisor.Gbit}
		_, err := fabric.AddHost(h)
		must(err)
		_, err = g.as[string(name)].Put(ctx, &store.Host{Host: h})
		must(err)
		agents[name] = agent.New(name, agent.Config{}, fabric.Host(name), g.as[string(name)], store.DiscardEvents{})
	}
	_, err := store.NewLife(ctx, g.as["boss"], "") // a controller that begins gives the store its id
	must(err)
	_, err = bob.Add(ctx, client.NewVM{Name: "web", Memory: "256MiB", CPUs: 1, Host: "n1",
		Strategy: "LiveMigrate"})
	must(err)
	boss := controller.New(controller.Config{}, g.as["boss"], store.DiscardEvents{})
	drained := false
	for step := 0; ; step++ {
		for name, a := range agents {
			if _, err := a.Reconcile(ctx, now); err != nil && !errors.Is(err, store.Stale) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if _, err := boss.Reconcile(ctx, now); err != nil && !errors.Is(err, store.Stale) {
			t.Fatal(err)
		}
		now = now.Add(200 * time.Millisecond)
		fabric.AdvanceTo(now)
		v, err := store.VMNamed(ctx, g.as["alice"], "default/web")
		must(err)
		switch {
		case v.Host == "n2" && v.ActiveMigration == "":
			return
		case step == 400:
			t.Fatalf("after %d steps: %+v", step, v)
		case !drained && v.Boots > 0:
			_, err := bob.Drain(ctx, "n1")
			must(err)
			drained = true
		}
	}
}

// TestTheCommandsOfEtcdctl name each grant, and a user has one role.
func TestTheCommandsOfEtcdctl(t *testing.T) {
	var b bytes.Buffer
	r := etcdstore.Rights{Hosts: []string{"n1"}, Viewers: []string{"alice"}}
	if err := etcdstore.Print(&b, r.Roles("/godwit/")); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"etcdctl role add godwit-agent-n1",
		"etcdctl role grant-permission godwit-agent-n1 --prefix read /godwit/",
		"etcdctl role grant-permission godwit-agent-n1 readwrite /godwit/r/host/n1",
		"etcdctl role grant-permission godwit-agent-n1 readwrite /godwit/s/lease/host%2Fn1",
		"etcdctl role grant-permission godwit-viewer --prefix read /godwit/",
		"etcdctl user add alice --no-password", "etcdctl auth enable"} {
		if !strings.Contains(b.String(), line+"\n") {
			t.Errorf("%q is missing:\n%s", line, &b)
		}
	}
	for _, bad := range []etcdstore.Rights{{Hosts: []string{"n1"}, Viewers: []string{"n1"}},
		{Operators: []string{"root"}}, {Hosts: []string{"n1", "n1"}}} {
		if bad.Check() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
}
