// Package durable keeps records in private directories so that they survive the
// death of the process, and of the host, that writes them.
//
//	NAME        a record: one JSON value
//	NAME.new    a record that was being written when its process died
//	NAME.gone   a directory that was being removed when its process died
//
// A record is replaced as a whole, so that it is the old or the new one whenever a
// process dies. A caller
//
//  1. makes each directory with [Private] and owns the outermost one with [Own];
//  2. names records with [Name], and refuses with [Text] what cannot be kept;
//  3. asks [Swept] and [SweptDir] of what it finds, before it reads it, whether it is
//     a leftover.
//
// What is read may have been changed in any way: [Read] says what is
// wrong with it and where. The package knows nothing of what a record says, and
// removes nothing but what it made itself.
package durable
