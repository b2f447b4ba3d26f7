// Package audit lets a controller decide again what it has decided: from the audit log of
// a real one, long after.
//
//	log ──► terms ──► looks ──► [a controller of today] ──► the same? or the first difference
//
// A controller is a function of its configuration, of what it reads and of the time at which
// it looks. Package internal/audit writes all three down. [Replay] hands them to a fresh
// controller, look by look, answers its writings as the store did, and compares each, byte
// for byte, with what was written. It ends with the first that differs, and says what the
// controller saw: what comes after would be another history. With [Options.All] it goes on in
// the history that was recorded: what this version decides otherwise is refused, as if another
// process had been faster, and what it does not decide it learns. From then on the order of the
// decisions of a look does not count, and a look may differ only because one before it has.
//
// A caller (1) opens the log, (2) says how the configuration in it is read, (3) reads the
// [Result]. The log is read once and never held: its size does not matter. [Scenario] makes
// a world of it that godwit simulate plays; that is an approximation.
//
// What is replayed is package controller. What fences hosts and rebuilds VMs, and what agents
// do, is in the log as what the controller has read. Looks happen when they happened: a
// controller that would have looked at other times is only said to.
//
// # Differences
//
// This part tells people what is in a store's records: how hosts and VMs are, what moves,
// and in which fields two records differ.
//
// # Audit
//
// This part keeps a file of everything that was decided, and why: one line of JSON for
// each note and each writing of a record, in order, and only ever added to.
//
//	{"seq":7,"at":"…","by":"controller/a","kind":"write","vm":"default/web",
//	 "migration":"default/web#1","what":"Scheduling → Failed: conflict","reasons":[…],
//	 "record":"migration default/web#1","was":12,"version":13,"term":2,"prev":"…"}
//
// Every line has a number, one more than the line before, and the hash of that line, so
// that [Verify] notices what was taken out, put in or changed before the last line. Of the
// last ones are found only with their number and hash, kept elsewhere. A line that was torn by a
// crash stays where it is; the next begins on a line of its own. A file
// that is full is moved away (see [Rotation]), or is by another program, which then asks for
// [File.Reopen]: numbers and hashes go on in the new one, and a replay of it needs no other.
//
// A [Recorder] also writes down what a participant has read, and when it looked, so that
// package internal/audit can let it decide again.
package audit
