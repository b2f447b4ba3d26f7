// Package lease tells who lives, and who leads, without comparing clocks.
//
// Whoever lives changes its lease in the store again and again ([Beater]). Whoever
// watches takes an owner for silent when it has not seen the lease change for a
// while by its own clock ([Watch]): clocks may differ by minutes, or run backwards.
// Of several controllers one leads ([Elector]); what it writes is on condition that
// nobody has taken over since ([Guard]).
//
// Silence proves nothing about what a host runs. Who is silent may only be slow.
package lease
