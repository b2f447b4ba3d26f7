package rehearse

// Unfold is for tests.
var Unfold = unfold
