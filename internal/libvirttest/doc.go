// Package libvirttest is a lab for tests of live migration with real libvirt: two
// hosts, "hosta" and "hostb", on one machine. It never decides anything about a
// migration, and nothing but tests imports it.
//
// A host has mount, UTS, IPC, network and PID namespaces of its own, and so its
// own name, /run, /etc/libvirt, /var/lib/libvirt, libvirtd and QEMUs. The two are
// plugged into a switch in a third network namespace; the machine's own network
// is not touched. This needs root.
//
//	func TestMain(m *testing.M) { os.Exit(libvirttest.Main(m)) }
//
//	func TestMoves(t *testing.T) {
//		lab := libvirttest.Shared(t, libvirttest.Options{})
//		rom := cli.Guest(t, guest.Params{})            // the firmware of a domain
//		pulse := cli.Listen(t, "web")                  // hears it on both hosts
//		conn := cli.URI(libvirttest.HostA)             // from the test
//		peer := cli.PeerURI(libvirttest.HostB)         // from the other host's libvirtd
//		cli.CutLink()                                  // and so on
//	}
//
// What a caller must do:
//
//  1. call [Main] in TestMain: the hosts' first processes are copies of the test's
//     own program;
//  2. leave nothing to the lab that it should tidy beyond a test, except through
//     [Shared]: a lab ends with its test.
//
// Nothing outlives the test's process, however that ends. The first process of a
// host reads a pipe that only the test's process holds; at its end it dies, and
// the kernel ends all that is in the host, mounts, links and all. What is left is
// files, and one more process, the reaper, waits to remove those.
//
// # Namespaces
//
// This part runs programs in Linux namespaces of their own, and ends them with
// the test that asked for them. It knows nothing of libvirt.
//
// A [Sandbox] has a first process, which is a copy of the test's own program. It
// takes requests from a pipe that only the test's process holds: when that ends, in
// whatever way, the pipe does, the first process does, and with it all that is in its
// PID namespace. The first process reaps orphans at once; libvirt waits for a
// QEMU to be gone, and a zombie is not.
//
// The program's main function, or TestMain, must look at [Role] before anything else,
// and call [serve] when it is [roleInit].
package libvirttest
