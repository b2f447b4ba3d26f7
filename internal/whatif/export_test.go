package whatif

// Unfold is for tests.
var Unfold = unfold

// Narrow is [Play.narrow].
func Narrow(p *Play) *Play { return p.narrow() }
