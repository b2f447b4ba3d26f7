// Package failover decides what becomes of a host that is silent, and of its VMs.
//
//	heard ──silent for Grace──► lost ──silent for FenceAfter──► being cut ──proved──► fenced
//	  ▲                          │                                 │                    │
//	  └──────── it beats ────────┴───────────── it beats ──────────┘    its VMs are rebuilt
//	  ▲                                                                 on other hosts
//	  └───────────────────────── another start of the machine ──────────────────────────┘
//
// Silence proves nothing: a VM is given to another host only when its own was fenced,
// or when an operator gave their word for it. Every such writing is on condition that
// host and lease are still stored as they were read, so neither a stale view nor a
// second warden can act on what is no longer so. [Judge] decides about one host and
// [Allowed] about all; [Warden] carries it out.
//
// A host whose agent begins may have been away while its VMs went elsewhere, and while the store was
// set back to before that. Its agent is admitted by the leader, when that has listened who knows a
// newer store: see [Hearing].
//
// A caller (1) lets one warden write at a time, by giving it a lease.Guard as store;
// (2) gives every agent a lease; (3) lets agents start nothing while the record of
// their host says that it is being fenced or was.
//
// This package starts no VM, cleans up none, and switches no host on again.
package failover
