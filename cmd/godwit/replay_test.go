package main

import (
	"context"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/cli"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// journal FILE writes the audit log of a controller that sees three hosts, of which one with
// three VMs is drained; no agent does anything about it.
func journal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: journal FILE")
	}
	file, err := audit.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	s, err := config.ParseSettings("configuration", []byte("timeouts: {pending: 12h}\n"))
	ts.Check(err)
	records, now := store.NewMemory(), time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)
	boss := &audit.Recorder{Store: records, Recorder: store.DiscardEvents{}, Config: s.Text, Build: cli.BuildName(),
		History: &audit.History{File: file, By: "controller/a", Now: func() time.Time { return now }},
		Begin: func(s2 store.Store, n store.EventRecorder) store.Participant {
			return controller.New(s.Controller, s2, n)
		}}
	put := func(r store.Record) {
		_, err := records.Put(context.Background(), r)
		ts.Check(err)
	}
	look := func() {
		now = now.Add(time.Second)
		_, err := boss.Reconcile(context.Background(), now)
		ts.Check(err)
	}
	for _, name := range []hypervisor.HostName{"n1", "n2", "n3"} {
		put(&store.Host{Host: hypervisor.Host{Name: name, Memory: 16 * hypervisor.GiB, CPUs: 8}})
	}
	for i, id := range []hypervisor.VMID{"default/small", "default/middle", "default/large"} {
		put(&store.VM{VM: hypervisor.VM{ID: id, Memory: hypervisor.GiB << i, CPUs: 1}, Host: "n1",
			Migratable: true})
	}
	look()
	drained, _ := records.Get(context.Background(), (&store.Host{
		Host: hypervisor.Host{Name: "n1"}}).Key())
	next := *drained.(*store.Host)
	next.Taints = []placement.Taint{{Key: "kubevirt.io/drain", Effect: placement.NoSchedule}}
	put(&next)
	look()
	look()
	ts.Check(file.Close())
}
