// Package event gives the events of one QEMU to any number of listeners, and
// never waits for one: a listener that is too slow loses the oldest events and
// is told so. It starts no goroutine and knows nothing of connections.
package event
