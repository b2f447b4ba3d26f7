// Package qemu is what the backend for QMP knows of one QEMU: how its command line
// describes a machine, how its process is started and found again, what it can do, and
// how it is spoken to over QMP. It knows nothing of journals, of other hosts, or of what
// is due next.
//
// # Machine
//
// This part says how QEMU builds a virtual machine: its command line, and the
// arguments that plug a disk into it later.
//
// The machine at the target of a migration must be the machine at the source,
// device by device, or the target refuses the state. Therefore what the guest can
// see follows from [hypervisor.VM] alone, never from a host's [Settings], and a
// disk that is plugged in later comes to the very place where [Args] puts it when
// the machine is started with it.
//
// What comes from outside reaches QEMU as JSON, or with its commas doubled, so
// that no name and no path can become an option.
//
// It does no I/O: it looks at no file, asks no QEMU, and starts
// nothing.
//
// # Errors
//
// This part makes and classifies the errors of the QMP backend: every error of
// its port has a kind, and nothing is decided on an error's text.
//
// # Instances
//
// This part starts QEMUs and tells one what to do: processes that outlive us,
// what they must be told before memory and disks move, and what is left of them. It makes
// and changes the images of disks that none of them uses.
//
// # Abilities of a QEMU
//
// This part finds out what a QEMU can do on this host, by starting it without
// a machine and asking it, never by its version alone.
//
// It changes nothing on the host, runs no guest, and leaves no process behind:
// what it starts has ended when it answers.
//
// # Processes
//
// This part runs programs that outlive the process that started them, and finds
// them again.
//
// A QEMU must not notice that its agent died: it runs in a session of its own,
// with files of its own. A new agent finds it with [Find] or by its stored
// [Identity], takes it over with [Open], and from then on cannot tell it from a
// child, except that it will not learn the exit code.
//
// A process is never signalled by its number, which the kernel gives to another
// one after it has ended, but through a pidfd. It has ended when it
// is a zombie, reaped or not.
//
// This part knows nothing about virtual machines, restarts nothing and never
// ends a process unasked. It needs Linux 5.11.
//
// # Monitor
//
// A [Monitor] carries commands and events between a program and one QEMU over QMP,
// and never decides what they mean: it repeats nothing and interprets no event.
//
//	not connected ──Connect──► connected ──Disconnect, loss──► not connected
//	      └──────────────────────Close─┴──► closed, for ever
//
// [Dial] connects to QEMU's monitor socket. [Monitor.Execute] may be called by
// many goroutines at once. Whatever it answers falls into one of these:
//
//   - nil: QEMU carried the command out, and the reply is decoded;
//   - an [*Error]: QEMU refused the command, with a [Class] and a description;
//   - a [*Failure] with the [Outcome] [NotSent]: not one byte of the command
//     left, so it surely had no effect;
//   - a [*Failure] with the Outcome [Unknown]: it left, and no answer came;
//   - a [*Failure] with the Outcome [CarriedOut]: it succeeded, and the reply
//     does not fit the variable that it was to be decoded into.
//
// [Monitor.Subscribe] listens to events. A listener that is too slow loses the
// oldest events and is told so by a [*Gap]; it never holds up others. A
// subscription outlives a connection and is told of its end and of its renewal.
//
// A caller's duties: (1) Close, (2) treat Unknown as unknown, (3) observe again
// after a Gap, (4) keep the bytes of an [Event] as they are, because all
// listeners share them.
//
// [Adapt] makes a [Client] out of any Monitor of the go-qemu library, and
// [Monitor] is one of those itself.
//
// # Events
//
// This part gives the events of one QEMU to any number of listeners, and
// never waits for one: a listener that is too slow loses the oldest events and
// is told so. It starts no goroutine and knows nothing of connections.
//
// # Typed commands
//
// This part has the QMP commands that running and migrating VMs take, with
// types. It names them as QEMU does, so that QEMU's reference manual explains
// them, and decides nothing.
//
// # Wire format
//
// This part reads and writes the lines of QMP, and never opens, waits for or
// closes anything: it is bytes in and values out. What no QMP server says is a
// [*ProtocolError]; no input makes it panic or hold more than a stated limit.
package qemu
