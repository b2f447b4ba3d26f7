//go:build linux && libvirt_dlopen

package conn

import (
	"libvirt.org/go/libvirt"
)

// subscribe asks libvirt for the events of all domains.
func (l *link) subscribe(tell func(Event)) error {
	say := func(d *libvirt.Domain, e Event) {
		e.Domain, _ = d.GetName() // both are in the message: no call is made
		e.UUID, _ = d.GetUUIDString()
		tell(e)
	}
	for _, register := range []func(*libvirt.Connect, func(*libvirt.Domain, Event)) (int, error){
		onLifecycle, onReboot, onIteration, onJobCompleted, onDeviceRemoved, onDeviceKept,
	} {
		id, err := register(l.conn, say)
		if err != nil {
			return observing(classify("ask for events", err))
		}
		l.handlers = append(l.handlers, id)
	}
	return nil
}

func onLifecycle(conn *libvirt.Connect, say func(*libvirt.Domain, Event)) (int, error) {
	return conn.DomainEventLifecycleRegister(nil,
		func(_ *libvirt.Connect, d *libvirt.Domain, e *libvirt.DomainEventLifecycle) {
			say(d, lifecycle(e.Event, e.Detail))
		})
}

func onReboot(conn *libvirt.Connect, say func(*libvirt.Domain, Event)) (int, error) {
	return conn.DomainEventRebootRegister(nil, func(_ *libvirt.Connect, d *libvirt.Domain) {
		say(d, Event{What: Rebooted})
	})
}

func onIteration(conn *libvirt.Connect, say func(*libvirt.Domain, Event)) (int, error) {
	return conn.DomainEventMigrationIterationRegister(nil,
		func(_ *libvirt.Connect, d *libvirt.Domain, e *libvirt.DomainEventMigrationIteration) {
			say(d, Event{What: Iterated, Iteration: e.Iteration})
		})
}

func onJobCompleted(conn *libvirt.Connect, say func(*libvirt.Domain, Event)) (int, error) {
	return conn.DomainEventJobCompletedRegister(nil,
		func(_ *libvirt.Connect, d *libvirt.Domain, e *libvirt.DomainEventJobCompleted) {
			say(d, Event{What: JobCompleted, Job: completed(e.Info)})
		})
}

func onDeviceRemoved(conn *libvirt.Connect, say func(*libvirt.Domain, Event)) (int, error) {
	return conn.DomainEventDeviceRemovedRegister(nil,
		func(_ *libvirt.Connect, d *libvirt.Domain, e *libvirt.DomainEventDeviceRemoved) {
			say(d, Event{What: DeviceRemoved, Device: e.DevAlias})
		})
}

func onDeviceKept(conn *libvirt.Connect, say func(*libvirt.Domain, Event)) (int, error) {
	return conn.DomainEventDeviceRemovalFailedRegister(nil,
		func(_ *libvirt.Connect, d *libvirt.Domain, e *libvirt.DomainEventDeviceRemovalFailed) {
			say(d, Event{What: DeviceKept, Device: e.DevAlias})
		})
}

// sorts names libvirt's lifecycle events.
var sorts = map[libvirt.DomainEventType]What{
	libvirt.DOMAIN_EVENT_DEFINED:     Defined,
	libvirt.DOMAIN_EVENT_UNDEFINED:   Undefined,
	libvirt.DOMAIN_EVENT_STARTED:     Started,
	libvirt.DOMAIN_EVENT_SUSPENDED:   Suspended,
	libvirt.DOMAIN_EVENT_RESUMED:     Resumed,
	libvirt.DOMAIN_EVENT_STOPPED:     Stopped,
	libvirt.DOMAIN_EVENT_SHUTDOWN:    ShutDown,
	libvirt.DOMAIN_EVENT_PMSUSPENDED: Asleep,
	libvirt.DOMAIN_EVENT_CRASHED:     Crashed,
}

// details names the details of lifecycle events, in libvirt's order.
var details = map[libvirt.DomainEventType][]Detail{
	libvirt.DOMAIN_EVENT_DEFINED:   {"added", "updated", "renamed", "from snapshot"},
	libvirt.DOMAIN_EVENT_UNDEFINED: {"removed", "renamed"},
	libvirt.DOMAIN_EVENT_STARTED: {Booted, Migrated, "restored", "from snapshot", "wake-up",
		"recreated"},
	libvirt.DOMAIN_EVENT_SUSPENDED: {Paused, Migrated, IOError, "watchdog", "restored",
		"from snapshot", APIError, PostCopy, PostCopyFailed, "guest shutdown"},
	libvirt.DOMAIN_EVENT_RESUMED: {Unpaused, Migrated, "from snapshot", PostCopy,
		PostCopyFailed},
	libvirt.DOMAIN_EVENT_STOPPED: {Shutdown, Destroyed, ProcessCrashed, Migrated, "saved",
		Failed, "from snapshot", "recreated"},
	libvirt.DOMAIN_EVENT_SHUTDOWN:    {"finished", "guest", "host"},
	libvirt.DOMAIN_EVENT_PMSUSPENDED: {"memory", "disk"},
	libvirt.DOMAIN_EVENT_CRASHED:     {"panicked", "crash loaded"},
}

// lifecycle makes an event of libvirt's numbers.
func lifecycle(event libvirt.DomainEventType, detail int) Event {
	e := Event{What: sorts[event]}
	if known := details[event]; detail >= 0 && detail < len(known) {
		e.Detail = known[detail]
	}
	return e
}
