// Package explore runs the real controller and the real agents through every order of
// events in a small world, up to a bound, and at random beyond.
//
// A [Scene] is the world before anything has happened. A step is one thing that happens
// in it: a participant looks, modelled time goes on to the hypervisors' next event, an
// operator does something, or something breaks. Wherever several steps are possible all
// are taken, each from the same state. Faults cost a unit of the budget each, and may come
// at every step: a process dies before any of its writes or commands; the answer to one is
// lost, or it is refused; a notification is lost; a participant looks twice, late, or at an
// old view of the store, or hangs; a VM's process dies; a link is cut; a connection breaks;
// a host loses its power, or is fenced, and its VMs are given to others.
//
// People err, too ([Mistakes], and scenes): a second agent claims the name of a host, with a copy of
// its directory or another one; an agent comes with an empty directory, until operators give it
// the right one back; an operator says that a host is off whose agent is silent, and it comes
// back with what has run there all the time; the store is set back to the beginning, and only the
// agents' ledgers tell. Where a scene says "marks" every process remembers what it has seen of the
// store, the first that misses it stops all, and a leader admits an agent before it acts; where it
// says "forgotten" the backup is restored on another machine, and the controller remembers nothing.
// By a wrong word of an operator VMs run twice, whatever godwit does. So what the word is about is dead to the invariants, until it runs anew; what is not dead must be
// told to operators when its host is heard again. Where a scene says "claims" every agent claims
// its host's name, and one that is refused ends, as in production.
//
// Without [Config.Odd] participants that have been told of something, or whose time has
// come, look in any order, however long that takes, and [Run] goes breadth first: up to
// [Result.Depth] steps nothing was left out. With it, one order is the usual one, and only
// so many steps may be other than that; all ways are then followed to their end.
//
// Two states are the same when records, hypervisors, the memory of all participants and
// what is left of the budget are, whatever the clock says: times count by their distance
// from now. Each is expanded once. States are told apart by numbers of 64 bits: of a
// million states a false match is less likely than one in ten million.
//
// All ways are taken, none is pruned; what makes that fast changes nothing that is found. A
// step copies and sums up again only the parts of the world that it touched: a participant,
// the store, the hypervisors. Where only one step is possible the state is not kept, since
// no way comes back to it. A test plays every way of small worlds anew, without all that,
// and meets the same states.
//
// A violation is made shorter by leaving out what is not needed, and taking what is usual
// wherever that will do ([Counterexample]). Its transcript is a text that [Replay] plays. It
// has one step a line, or as many as come as usual:
//
//	usual N                  N steps, as they come when nothing breaks and no participant is late
//	look WHO [dies-before=N|unanswered=N|refused=N]   N is a write or a command
//	look-stale, look-first, look-again, lose-hint, crash, restart, hang, go-on WHO
//	time                     something happens in a hypervisor
//	operator                 what is next in the script; operator-waits puts it off
//	kill HOST VM             cut, heal, reset HOST HOST
//	power-off, power-on, fencing-begins, fence, call-lost HOST
//	rebuild HOST VM          a VM of a fenced host is given to another
//	false-word HOST          an operator says that it is off
//	empty-directory, return-directory HOST
//	adopt HOST               an operator gives its name to the agent that was refused it
//	lease-ends HOST          its agent has been silent for so long
//	set-back                 the store is as it was at the beginning
//	admit HOST               a leader has listened, and admits its agent
//
// WHO is "controller" or a host, for its agent.
//
// What is not explored: two participants in the middle of a look at the same time. A
// look is one step, and what another does meanwhile is seen as a stale view, a refused
// write, or a lost answer. What a failover controller does is played, not run: it gives away VMs of
// fenced hosts and does nothing wrong. The order of two wishes of a participant for the
// same instant is not part of a state.
//
// Policies of one's own are plugged in by [Scene.Configure]; package simtest wraps all of this
// for tests of them. The rebuild of VMs of fenced hosts asks none of them.
//
// The package holds the only goroutines of the exploration. Each has a world of its own.
//
// # Snapshots
//
// This part keeps what a graph of Go values holds, and brings it back in
// place: every value keeps its address, so that pointers into the graph, and functions
// that have captured some, stay true. What is allocated later is simply forgotten.
//
// It follows pointers, slices, maps and interfaces, through fields that are not
// exported too. It does not look behind types that it was told are fixed: what is not
// changed, and what belongs to another graph. A slice is kept up to its length.
//
// The caller that restores a graph owns all of it: nothing else may read it meanwhile.
//
// It knows how slices, interfaces and maps from texts to pointers are laid out; its tests
// fail should that ever change.
//
// # State hash
//
// This part sums up what a graph of Go values holds in a few numbers that two
// graphs share when they hold the same.
//
// The order of a map's entries does not matter, nor do addresses, nor whether what is
// empty is nil. Times count by their distance from a moment that is named later: the
// sum of their products with numbers that depend on where they are found is kept, so
// that the moment can move and the graph need not be looked at again.
//
// A fingerprint has 64 bits. Of a hundred million graphs that differ, two have the same
// one with a probability of less than one in three thousand.
//
// It knows how slices, interfaces and maps from texts to pointers are laid out; its tests
// fail should that ever change.
//
// # Initial states
//
// This part is the description of a small world, and the text that it is written as.
//
// # Harness
//
// This part is a small world of the real controller and the real agents, in which one
// step after the other is taken: a participant looks, modelled time goes on, an operator
// does something, or something breaks. Which step is next the caller decides; which are
// possible, and which would be usual, the world says.
//
// Every step is checked against the invariants as it is taken. The world says which of its
// parts a step has touched, so that the others need not be looked at again.
//
// # Transitions
//
// This part has the steps that are taken in a world, what they cost, and the lines of a
// transcript that they are written as. What they do is found in this package.
package explore
