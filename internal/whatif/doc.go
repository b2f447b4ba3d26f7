// Package whatif says what a plan would do before anyone carries it out. It checks the plan
// without the planner's code, and plays it in simulated worlds, with the real controller and agents:
// how long it takes, and what becomes of every VM.
//
//	hosts are closed ──► wave 1 ──► wave 2 … ──► what is left is drained ──► [Run]
//
// An operator follows the plan: he asks for the moves of a wave in order, again when
// one has failed, and for the next wave when all have ended. The limits say how many
// run at once. What then is left on the hosts is drained, as the controller does it.
//
// The caller makes a [Play], and (1) plays it once as the fleet is, (2) plays it in
// many worlds that differ as the scenario says, (3) searches for settings with which
// it ends in time. What comes out follows from the seed alone, however many worlds run
// at once.
//
// # Checks
//
// [CheckMoves], [CheckEmpties] and [CheckCertificate] do not trust the maker of a plan or a proof. They
// share with planners the conditions of package placement and the types of package plan, and
// nothing else: they are in the files verify_*.go, which are short enough to be read.
//
// # Timetables
//
// This part plays a plan for the maintenance of many hosts in a simulated world, batch
// after batch, with the real controller and agents, and says when each batch begins, when
// its hosts are empty, and when they are back.
//
// The caller passes the scenario that the plan was made for, with its limits, and gets a
// [Schedule]. What takes time besides moves is an argument. The same input gives the same
// schedule.
package whatif
