// Package monitor carries commands and events between a program and one QEMU
// over QMP, and never decides what they mean: it repeats nothing, interprets no
// event and knows no command but qmp_capabilities and getfd.
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
package monitor
