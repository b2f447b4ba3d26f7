// Package placement decides which hosts can take a VM, and which of them takes it.
//
// [Check] answers every [Reason] why one host cannot take one VM; none means it
// can. [Index] keeps many hosts in order of preference, most free memory first,
// finds the best one that can take a VM, and counts what is reserved
// on them.
//
// A caller of the Index
//
//  1. reserves room as soon as it has chosen a target ([Index.Reserve]),
//  2. says how that ended: [Index.Arrive] when the VM runs at the target,
//     [Index.Cancel] when it never will,
//  3. says when the VM is gone from its source ([Index.Leave]),
//  4. hands in what it learns about a host anew ([Index.Update]).
//
// What is known about hosts beside size and marks, [Facts], and what is taken
// beside memory and CPUs, [Load], may be left out. What is unknown refuses
// no VM, unless its [Constraints] ask for it. Further parts build on it:
//
//	Filter, AllFilters   every condition on a target, by name
//	Weigher              which of the hosts that take a VM is best
//	Decide, Explain      a request for a target, its decision, and why
//	Ledger, Reservation  what VMs and moves hold while VMs move
//	TopologyRequest      NUMA cells, pinned CPUs, pages
//	Aggregate            Nova's language of operators
//	DeviceInventory      inventories and devices
//
// The basic conditions are those of the Kubernetes scheduler, which places KubeVirt's
// targets, and two that it lacks: a limit of migrations into one host, and a
// memory of hosts that have refused the VM. What Kubernetes merely prefers
// (PreferNoSchedule, soft affinity) is not looked at. The package does no I/O,
// starts no goroutine and reads no clock.
//
// In code (the example of [Check] runs):
//
//	for _, reason := range placement.Check(&vm, &host, placement.Options{}) {
//		fmt.Println(reason.Check, "needs", reason.Need, "has", reason.Have)
//	}
//
// # Host aggregates
//
// This part decides whether the metadata of groups of hosts satisfies
// what a VM's flavor asks for, in Nova's language of operators.
//
// [NewAggregate] reads an aggregate's metadata as Nova does. What Nova answers with an
// exception, such as "= many" on a value that is no number, does not match here.
// Nothing is stored, and nothing panics.
//
// # Choosing a destination
//
// This part answers a request for a target: which host takes the VM, or
// every reason why none does, and what an operator's force has violated.
//
//	host  force   filters                                      a refusal is
//	----  ------  -------------------------------------------  -------------
//	none  absent  all, on every host; the best one is chosen   NoHost
//	none  no      the same                                     NoHost
//	none  yes     none: it is bad input                        BadRequest
//	given absent  all, on that host; with Compat as yes        Conflict
//	given no      all, on that host                            Conflict
//	given yes     all; what policy refuses becomes a debt      Conflict
//
// Force overrules policy and capacity and never physics: an architecture, a CPU,
// memory that does not exist, a host that is down. The VM's constraints are those
// that are stored with it, for every request.
//
// [Decide] decides and consumes nothing, [Explain] says why for every host, and
// [Confirm] decides again under the target's reservation. A caller
//
//  1. decides, 2. reserves ([Index.Reserve], or a [Ledger]), also
//     for a forced target, 3. confirms when the target is prepared,
//  4. stores the debts, so that a planner can pay them back.
//
// # Filters
//
// This part lists all conditions on the target of a move, by name.
//
// [AllFilters] has them in order, the basic ones first; [SelectFilters]
// takes the names that an operator has enabled; [HardFilters] are those that
// no force overrules. Each is a pure predicate that cites its source, and
// every one is asked: a refusal has all reasons. Their order is the order of the
// reasons and changes no decision.
//
// A fact that is not known refuses no VM, unless its constraints ask for
// it.
//
// # Quotas
//
// This part bounds what VMs that belong together may ask for together, all their copies
// counted: while a VM migrates it has two. It is the arithmetic of Kubernetes' ResourceQuota.
//
// A [QuotaLimit] is one resource of one quota, a [QuotaCharge] is what one copy of a VM takes of it. The
// caller says how many copies each VM has ([QuotaUsage.Set]), and asks whether one more is admitted
// ([QuotaUsage.Lacks]).
// Source: Kubernetes v1.34 plugin/pkg/admission/resourcequota/controller.go (checkRequest: used
// plus asked must not exceed hard); KubeVirt v1.8.0 watch/migration/migration.go (a target pod
// that is refused for its quota leaves the migration Pending).
//
// # Ledger of reservations
//
// This part accounts for what each VM and each move holds of which host while VMs move.
//
//	           source            target
//	at home    held by the VM
//	moving     held by the move  held by the VM     after [Ledger.Accept]
//	rolled back held by the VM                      after [Ledger.RollBack]
//
// Each step is one change: there is nothing between its two sides for a crash to
// find. What a tenant holds is counted on both sides. A [Ledger] is made again
// from its claims, so that a store keeps only these.
//
// A move that succeeded leaves the target with the VM: [Ledger.Drop], and [Ledger.Settle] there. A
// deadline frees nothing: a target that may run a VM keeps its reservation until the outcome is
// known. The package reads no clock and holds no history: every step returns its [LedgerEntry].
// Source: Nova conductor/tasks/migrate.py (replace_allocation_with_migration): the
// migration holds the source's allocation and the instance the target's.
//
// # Devices
//
// This part counts what hosts have: amounts of which a part is reserved
// and some is given away more than once, and devices by class.
//
// It is arithmetic only.
//
// # NUMA topology
//
// This part decides whether a VM with a NUMA layout fits into the cells
// of a host, and where: on which CPUs, with which pages.
//
// Every part of the VM goes into a cell of its own. The match is exact: when there is a way to seat
// all parts, it is found.
//
// Only VMs that ask for a layout are counted in the cells.
//
// # Weighers
//
// This part orders the hosts that can take a VM, best first.
//
// Every [Weigher] gives each host a number; the numbers of one weigher are
// normalised to [0, 1], multiplied by its multiplier, and added up. The highest
// sum is best; of equal sums the smaller name. When a weigher finds all hosts
// alike it says nothing: the numbers are 0 then, not 1.
//
// The result depends on which hosts are compared, as in Nova: the same host has
// another score among others. Nothing is decided at random.
package placement
