// Package hypervisortest is the conformance suite of backends: what every
// implementation of [hypervisor.Hypervisor] does, as cases that are run on two
// hosts and a VM. It looks at a backend through its port only, and at no clock:
// it waits for what must come, and never demands that something is quick.
//
// A backend's author writes a [Lab], a small world with two hosts, and runs the
// suite on it:
//
//	func TestConformance(t *testing.T) {
//		hypervisortest.Run(t, func(t *testing.T) *hypervisortest.Lab {
//			one, other := openHosts(t) // fresh ones, closed by t.Cleanup
//			return &hypervisortest.Lab{
//				Source: one, Target: other,
//				VM: func(id hypervisor.VMID) hypervisor.VM {
//					return hypervisor.VM{ID: id, Memory: 64 * hypervisor.MiB, CPUs: 1}
//				},
//			}
//		})
//	}
//
// Where the port leaves something open the suite demands what hypervisor/fake does:
// a Paused VM is not asked to Stop (Conflict) and may be killed; to Forget or to
// Detach what is not there is done already; an Adjust of a job that has ended is a
// Conflict, but a Cancel of one that failed or was cancelled is done already; a job
// that has ended at a host is never received there again. It accepts both answers
// where backends notice at different times: a migration to where nobody listens, or
// where another machine is expected, is refused, or begins and fails while the VM
// runs on.
//
// A host without [hypervisor.CanTakeBack] has a hypervisor with a hand-over of its
// own. What the port allows it to refuse while that is under way it may refuse, and
// nothing may change by that; what needs take-back is replaced by cases that demand
// the opposite: that a target which holds everything is the only copy and is kept.
// They run only on such hosts. A host that has the ability is held to it.
//
// Everything else in a Lab is optional. What it lacks is skipped, and so is what
// a host cannot do, once the host has answered Unsupported to it; [Run] counts the
// reasons at its end.
package hypervisortest
