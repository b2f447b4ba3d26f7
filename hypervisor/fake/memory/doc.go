// Package memory says how the memory of a running guest is sent: what the guest
// dirties, what passes over its memory cost, and when the rest is small enough.
//
// It is arithmetic on times that the caller gives. It knows no hosts, no links
// and nothing of what a migration is for.
package memory
