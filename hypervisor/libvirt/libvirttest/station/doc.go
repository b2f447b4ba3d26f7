// Package station runs programs in Linux namespaces of their own, and ends them with
// the test that asked for them. It knows nothing of libvirt.
//
// A [Station] has a first process, which is a copy of the test's own program. It
// takes requests from a pipe that only the test's process holds: when that ends, in
// whatever way, the pipe does, the first process does, and with it all that is in its
// PID namespace. The first process reaps orphans at once; libvirt waits for a
// QEMU to be gone, and a zombie is not.
//
// The program's main function, or TestMain, must look at [Role] before anything else,
// and call [Serve] when it is [RoleInit].
package station
