package explore

import (
	"github.com/godwit-vm/godwit/sim/explore/internal/fingerprint"
	"github.com/godwit-vm/godwit/sim/explore/internal/stage"
)

// fixed are the types that nobody changes, or that belong to another part.
var fixed = []string{
	"stage.line", "stage.phone", "stage.World",
	"record.Migration", "record.VM", "record.Host", "record.Rebuild", "record.Lease",
	"policy.Cluster", "policy.Set", "migration.Config", "controller.Config",
	"placement.VM", "placement.Facts", "hypervisor.Hardware", "fake.Model",
	"choose.Config", "books.Config",
}

// rules say what of the stage.Parts makes a state.
var rules = fingerprint.Rules{
	Epoch: stage.Epoch.UnixNano(),
	Held: []string{"record.Migration", "record.VM", "record.Host", "record.Rebuild",
		"record.Lease"},
	Skip: []string{
		// Records: versions say only who has read what, which is found by comparing.
		"record.Migration.Version", "record.VM.Version", "record.Host.Version",
		"record.Rebuild.Version", "record.Lease.Version",
		// The store: who has read how much of the feeds is a process's.
		"record.Memory.feeds", "record.Memory.all", "record.Memory.revision",
		"record.Memory.signs",
		"record.Memory.changed", "record.Memory.told", "record.Memory.news",
		"record.Memory.answers", "record.Memory.made",
		"record.Memory.watch",
		"record.place.seats",
		// Participants: what is given, and what follows from the rest.
		"agent.Agent.host", "agent.Agent.config", "agent.Agent.hv", "agent.Agent.store",
		"agent.Agent.noter", "lease.Claim.config", "lease.Claim.store", "lease.Beater.config",
		"lease.Beater.store", "lease.Beater.last", "lease.pace.from", "agent.Agent.seen", "moves.List.byVM", "moves.List.free",
		"moves.Move.other", "room.Home.names", "room.Home.unsettled",
		"controller.Controller.config", "controller.Controller.core",
		"controller.Controller.limits",
		"controller.Controller.store", "controller.Controller.noter",
		"controller.Controller.seen", "controller.Controller.unread",
		"controller.Controller.asked", "controller.Controller.guests",
		"controller.Controller.sight",
		"controller.Controller.answer", "controller.Controller.options",
		"controller.Controller.next", "controller.Controller.nextVM", "agent.Agent.draft",
		"controller.traffic.sharer", "controller.traffic.network",
		"controller.view.slots", "controller.view.drain", "controller.view.eager",
		"controller.view.unfinished", "controller.view.nowhere", "controller.view.moves",
		"controller.guest.place", "controller.guest.flights", "controller.guest.one",
		"controller.guest.site", "controller.guest.at", "controller.flight.guest",
		"controller.flight.source", "controller.flight.target",
		"controller.site.guests", "controller.site.marked", "controller.site.drains",
		"books.Books.config", "books.Books.chooser", "books.Books.index",
		"books.Books.ledger", "books.Books.hosts",
		"books.Account.id", "books.Account.vm", "books.Account.size",
		"books.Account.at", "books.Books.accounts", "books.Books.plain", "books.Books.free",
		"books.Books.sizes", "books.Books.spare",
		"controller.view.plain", "controller.view.made", "controller.view.latest",
		"queue.Queue[*github.com/godwit-vm/godwit/controller.flight].bySource",
		"queue.stander[*github.com/godwit-vm/godwit/controller.flight].rank",
		"due.Work[github.com/godwit-vm/godwit/hypervisor.HostName].in",
		"due.Work[*github.com/godwit-vm/godwit/controller.flight].in",
		"due.Timers[github.com/godwit-vm/godwit/hypervisor.HostName].queue",
		"due.Alarms[*github.com/godwit-vm/godwit/controller.flight].near",
		"due.Alarms[*github.com/godwit-vm/godwit/controller.flight].far",
		"due.Alarms[*github.com/godwit-vm/godwit/controller.flight].now",
		"due.Timers[github.com/godwit-vm/godwit/hypervisor.HostName].seq",
		"due.Alarms[*github.com/godwit-vm/godwit/controller.flight].seq",
		"due.Alarms[*github.com/godwit-vm/godwit/controller.flight].set",
		"due.Alarm[*github.com/godwit-vm/godwit/controller.flight].Of",
		"due.Alarm[*github.com/godwit-vm/godwit/controller.flight].seq",
		"todo.items.free", "todo.item.timed",
		"due.Alarms[*github.com/godwit-vm/godwit/agent/todo.item].near",
		"due.Alarms[*github.com/godwit-vm/godwit/agent/todo.item].far",
		"due.Alarms[*github.com/godwit-vm/godwit/agent/todo.item].now",
		"due.Alarms[*github.com/godwit-vm/godwit/agent/todo.item].seq",
		"due.Alarms[*github.com/godwit-vm/godwit/agent/todo.item].set",
		"due.Alarm[*github.com/godwit-vm/godwit/agent/todo.item].Of",
		"due.Alarm[*github.com/godwit-vm/godwit/agent/todo.item].seq",
		"due.wish.seq",
		// Hypervisors: what is given, what leads back, and what follows from the rest.
		"fake.Fabric.mu", "fake.Fabric.model", "fake.Fabric.touched", "fake.Fabric.hinted",
		"fake.Fabric.given", "fake.Fabric.round", "fake.Fabric.gone", "fake.Fabric.alike",
		"fake.Fabric.machines", "fake.Fabric.domains",
		"fake.Host.fabric", "fake.Host.host", "fake.Host.busy",
		"fake.Host.listed", "fake.Fabric.free",
		"fake.Fabric.guests",
		"fake.domain.host", "fake.domain.machine", "fake.domain.next", "fake.domain.hinted",
		"transfer.World.Now", "transfer.World.Start", "transfer.World.Agenda",
		"transfer.World.costs", "transfer.World.network",
		"transfer.World.racks", "transfer.World.shared",
		"transfer.Host.up", "transfer.Host.down", "transfer.Host.rack",
		"transfer.Host.transfers", "transfer.Host.world",
		"transfer.World.idle", "transfer.World.made", "transfer.World.failures",
		"transfer.World.coming",
		"transfer.Transfer.VM", "transfer.underWay.of",
		"transfer.underWay.flow", "transfer.underWay.alone", "transfer.underWay.options",
		"agenda.Timer.order", "agenda.Timer.Fire",
		"memory.Stream.Options",
	},
	Times: []string{
		"due.wish.at", "agenda.Timer.At",
		"due.Alarm[*github.com/godwit-vm/godwit/controller.flight].at",
		"due.Alarm[*github.com/godwit-vm/godwit/agent/todo.item].at",
		"transfer.Transfer.begun", "transfer.Transfer.stopped", "transfer.Transfer.wakes",
		"memory.guest.at", "memory.pass.began", "memory.pass.at", "memory.pace.origin",
		"memory.gauge.origin", "memory.brake.judged", "transfer.mirror.at",
	},
	Named: map[string]string{
		"controller.flight": "rec.Spec.ID", "transfer.Transfer": "",
		"transfer.Host": "Name", "fake.domain": "",
	},
	Own: []string{"controller.view.flights", "fake.Host.sorted", "fake.Host.unseen",
		"fake.Host.jobs", "fake.Host.shelf"},
	Over: map[string]fingerprint.Over{
		"agenda.Timer": {Field: "place", Is: 0},
		"due.Alarm[*github.com/godwit-vm/godwit/controller.flight]": {Field: "seq", Is: 0},
		"due.Alarm[*github.com/godwit-vm/godwit/agent/todo.item]":   {Field: "seq", Is: 0},
		"transfer.Transfer": {Field: "stage", Is: 8, Only: ended},
	},
}

// ended is what counts of a transfer that is over.
var ended = []string{"Hold", "From", "To", "Refused", "stage", "status", "failure", "mode"}
