// Package daemon runs a controller, or the agent of a host, in real time.
//
//	Controller   lease.Led ── failover.Warden, controller.Controller     over a store
//	Agent        lease.Beater, Registrar, agent.Agent                    over a store and a host
//
// It puts together what decides ([controller.Controller], [agent.Agent]) with what waits
// (package drive), and tells others how that goes: logs, an audit log, health and metrics. It
// decides nothing itself.
//
// A daemon ends when its context does: the look that is under way ends, leadership and lease
// are given back, and VMs run on. It may be killed at any moment instead.
package daemon
