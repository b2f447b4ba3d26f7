// Package disttest tests what make dist builds: that the same source gives the same bytes, and
// that a host is drained with the package, in a root of its own. It has no code of its own.
package disttest
