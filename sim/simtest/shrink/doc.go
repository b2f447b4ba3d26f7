// Package shrink makes a world smaller for as long as something about it stays true: that a
// policy fails in it, say.
//
//	small := shrink.World(large, fails)
//
// It drops events, VMs, hosts and settings, many at a time and then one by one, moves events to
// the beginning, shortens what lasts, and gives VMs and hosts the plainest sizes and loads.
// With each it tries a few seeds: which message is late by how much is then another matter, and
// few failures are about that alone. It ends when nothing that it knows makes the world smaller.
//
// The package plays no world. Whoever is asked says no to end it early.
package shrink
