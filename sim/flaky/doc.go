// Package flaky holds the connections of a simulated process: to the store and to
// its hypervisor, with what can go wrong on them. Either passes everything on
// until a fault is switched on. It decides nothing.
package flaky
