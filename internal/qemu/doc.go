// Package qemu says how QEMU builds a virtual machine: its command line, and
// the arguments that plug a disk into it later.
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
// This package does no I/O: it looks at no file, asks no QEMU, and starts
// nothing.
//
// # Errors
//
// This part makes and classifies the errors of the QMP backend: every error of
// its port has a kind, and nothing is decided on an error's text.
//
// # Qemu
//
// This part starts QEMUs and tells one what to do: processes that outlive us,
// what they must be told before memory and disks move, and what is left of them. It makes
// and changes the images of disks that none of them uses.
//
// It knows one process at a time and nothing of journals, of other hosts, or of
// what is due next.
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
// This package knows nothing about virtual machines, restarts nothing and never
// ends a process unasked. It needs Linux 5.11.
package qemu
