// Package machine says how QEMU builds a virtual machine: its command line, and
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
package machine
