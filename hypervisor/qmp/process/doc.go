//go:build linux

// Package process runs programs that outlive whoever started them, and finds
// them again.
//
// A QEMU must not notice that its agent died: it runs in a session of its own,
// with files of its own. A new agent finds it with [Find] or by its stored
// [Identity], takes it over with [Open], and from then on cannot tell it from a
// child, except that it will not learn the exit code.
//
// A process is never signalled by its number, which the kernel gives to another
// one after it has ended, but through a pidfd. It has ended for everybody when it
// is a zombie, reaped or not.
//
// This package knows nothing about virtual machines, restarts nothing and never
// ends a process unasked. It needs Linux 5.11.
package process
