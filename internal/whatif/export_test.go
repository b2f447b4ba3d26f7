package whatif

import "time"

// Unfold is for tests.
var Unfold = unfold

// Narrow is [Play.narrow].
func Narrow(p *Play) *Play { return p.narrow() }

// Links is [Play.links].
func (p *Play) Links(than time.Duration) []Obstacle { return p.links(than) }

// Bound is bound.
var Bound = bound

// Missed is [Trial.missed].
func Missed(t Trial, g Goal) bool { return t.missed(&g) }
