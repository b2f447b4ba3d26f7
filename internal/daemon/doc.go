// Package daemon runs a controller, or the agent of a host, in real time.
//
//	Controller   store.LeaderRunner ── controller.FailoverController, controller.Controller     over a store
//	Agent        store.Renewer, Registrar, agent.Agent                    over a store and a host
//
// It puts together what decides ([controller.Controller], [agent.Agent]) with what waits
// (package controller), and tells others how that goes: logs, an audit log, health and metrics. It
// decides nothing itself.
//
// A daemon ends when its context does: the look that is under way ends, leadership and lease
// are given back, and VMs run on. It may be killed at any moment instead.
//
// # Fencing
//
// This part cuts hosts off by running fence agents: the programs of Debian's and
// Red Hat's fence-agents packages, or any other that speaks like them.
//
//	$ printf 'action=off\nip=10.0.0.1\npassword=…\n' | fence_ipmilan; echo $?
//
// An agent reads options as lines of its standard input. Of "off" and "monitor" it exits
// with 0 when all is well; of "status" with 0 when the host is on and with 2 when it is
// off; with anything else when it does not know.
// Source: ClusterLabs fence-agents doc/FenceAgentAPI.md.
//
// That an agent says that it has switched a host off proves nothing. A host counts as off
// when "off" has succeeded and "status" says so afterwards. Passwords go to the agents'
// standard input only, and are cut out of what they print.
//
// A caller calls [Fence.Check] at the start, to learn of wrong passwords before they are
// needed, and [Fence.Close] at the end.
//
// # HTTP server
//
// This part answers over HTTP whether a daemon lives, whether it is ready, and what it
// measures.
//
//	/healthz  200 while its participants look, 503 and why otherwise: restart it
//	/readyz   200 while store and hypervisor answer, 503 and why otherwise: wait
//	/metrics  what Prometheus collects
//
// It serves nothing that changes anything, and listens on the loopback unless it is told
// another address.
//
// A controller serves a page for operators at an address of its own, if it is told one: see package
// page.
//
// # Backends of hosts
//
// This part opens what runs the VMs of a host, for its agent.
//
// # Ledger of an agent
//
// This part keeps on a host what its agent knows of VMs that are there, or were: one
// directory, one file for each.
//
//	DIR/NAME   a [store.Holding]: the record as it was last seen, and how the VM left
//
// A file is replaced as a whole and synced. What says that a VM has left is forgotten a year
// later: no backup is older than that.
//
// # Metrics
//
// This part measures what daemons do, for Prometheus. Names and labels are KubeVirt's,
// with the prefix godwit_; what KubeVirt does not have is when a migration, and a drain, will
// have ended.
//
// No label takes values without bound: series of transfers that have ended are dropped, and
// of a VM's ended migrations only the last is told.
//
// # Logging
//
// This part writes what participants decide to logs: one line per transition, as text
// or as JSON, and hands it on to another recorder. It decides nothing.
//
// # Stores
//
// This part finds the store that a URL names, and says what to do when it is not there.
//
//	bolt:PATH                        one file, of one controller, which serves it at PATH.sock
//	unix:PATH                        the socket of a controller on this machine
//	etcd://a:2379,b:2379/PREFIX      a cluster of etcd, for many machines
package daemon
