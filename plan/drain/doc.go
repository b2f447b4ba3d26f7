// Package drain plans how hosts are emptied with as few moves as possible.
//
//	direct: each VM to a host that takes it ──► room: others make room ──► [Answer.Waves]
//	                                                │ small fleets
//	                                                └──► every arrangement, nearest first
//	                                                         └──► [plan.Certificate]
//
// The caller passes the fleet as it is and the hosts to be emptied; nobody enters
// those. [Plan] is total and deterministic. It says what can be done, and of what
// cannot be done either a proof or that the search was given up.
//
// It does not say how long anything takes, and moves nothing.
package drain
