// Package incident lets a controller decide again what it has decided: from the audit log of
// a real one, long after.
//
//	log ──► terms ──► looks ──► [a controller of today] ──► the same? or the first difference
//
// A controller is a function of its configuration, of what it reads and of the time at which
// it looks. Package daemon/audit writes all three down. [Replay] hands them to a fresh
// controller, look by look, answers its writings as the store did, and compares each, byte
// for byte, with what was written. It ends with the first that differs, and says what the
// controller saw: what comes after would be another history. With [Options.All] it goes on in
// the history that was recorded: what this version decides otherwise is refused, as if somebody
// else had been faster, and what it does not decide it learns. From then on the order of the
// decisions of a look does not count, and a look may differ only because one before it has.
//
// A caller (1) opens the log, (2) says how the configuration in it is read, (3) reads the
// [Result]. The log is read once and never held: its size does not matter. [Scenario] makes
// a world of it that godwit simulate plays; that is an approximation.
//
// What is replayed is package controller. Who fences hosts and rebuilds VMs, and what agents
// do, is in the log as what the controller has read. Looks happen when they happened: a
// controller that would have looked at other times is only said to.
package incident
