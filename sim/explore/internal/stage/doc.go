// Package stage is a small world of the real controller and the real agents, in which one
// step after the other is taken: a participant looks, modelled time goes on, an operator
// does something, or something breaks. Which step is next the caller decides; which are
// possible, and which would be usual, the world says.
//
// Every step is checked against the invariants as it is taken. The world says which of its
// parts a step has touched, so that the others need not be looked at again.
package stage
