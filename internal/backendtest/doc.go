// Package backendtest is what the tests of the backends have in common: drawn records for
// journals, a search through all that may happen to a state machine, and agents that are
// killed at every step. Such a test's program is an [Agent] that serves a host of any
// backend, kills itself after so many changes or is killed at a [Moment], and is replaced:
// to the test it is a [Host], a [hypervisor.Hypervisor].
//
// The package's own test is of the whole: three agents, two controllers
// and three etcd members run as processes of their own, with real QEMUs, and are killed
// in the middle of a drain, again and again. The guests are the witnesses: they count
// their heartbeats and stamp their memory.
//
// The test runs as root in namespaces of its own, of processes, mounts and the network.
// Whatever becomes of it, the kernel ends and removes all that it has started.
package backendtest
