// Package worlds makes random worlds for tests: fleets, and what happens to them, each
// generator named by what its worlds are guaranteed to be.
//
//	drain := worlds.Of(worlds.Roomy(worlds.Small), worlds.Converging(), worlds.Drain())
//
// A [Generator] is put together from [Part]s, which add to a [World] one after the other. A
// part says what it guarantees, [Part.Holds], so that whoever makes a world smaller can keep
// it what it was: a cluster that has room for everybody does not lose the host that gave it.
//
//	fleets    [Roomy] [Cramped] [OneFull] [Generations] [AnyFleet]
//	loads     [Converging] [Endless] [AnyLoad]
//	rules     [Limits] [Means] [ConflictingPolicies]
//	events    [Drain] [SecondThoughts] [Swarm] of [Faults], [HostFaults], [ProcessFaults],
//	          [Orders], [Wishes]
//	together  [Calm] [Busy] [Turmoil]
//
// A part of one's own is a function that adds to [Maker.World]. All chance comes from the
// maker's [sim.Chooser]: a seed's, or rapid's ([Drawn], [Generator.Rapid]), so that a world
// shrinks. A world is a scenario: [World.String] writes what `godwit simulate` reads.
//
// The package does nothing but make worlds: it runs none and judges none.
package worlds
