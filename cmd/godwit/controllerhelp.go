package main

const controllerHelp = `Run the cluster controller: it decides migrations, drains and placements, and
fences and fails over hosts without heartbeats. With bolt:PATH it opens the file and serves it at a
socket to the agents and operators of this machine; with etcd://… several controllers may run, of
which one is the leader.

With --store-listen and --tls-dir every controller also serves the store over TLS, to agents and people
with certificates of the same authority (--store tls://HOST:PORT). An agent may change only what belongs
to the host that its certificate names (godwit pki issue HOST); people have the roles that --viewers,
--operators and --admins give to the names in theirs.

On SIGTERM or SIGINT it finishes current work and exits; a second signal exits immediately. It may
be killed at any time. On SIGHUP it reopens its audit log.

With --page it serves a page that shows the state of the cluster and follows it: alarms, drains,
migrations, hosts, and why a VM stays. The page changes nothing and asks for no password, so it is
served to this machine only, unless the address says otherwise. godwit top shows the same.

Everything in the file of --config is optional:

  evictionStrategy: None                         # default for VMs that set none; without it LiveMigrate
  config: {parallelMigrationsPerCluster: 10, bandwidthPerMigration: 2Gbit/s,
           convergence: Forecast}                # or Watermark (default), Legacy, Stall
  policies:
  - {name: slow, selectors: {virtualMachineInstanceSelector: {app: db}}, allowPostCopy: true}
  namespaces: {prod: {tier: gold}}
  evacuation: {mode: FreeSpots, order: SmallestFirst}
                                                 # order: Adaptive uses a model of the links
  onUnmovable: Restart                           # or Keep, ShutDown: see godwit help drain
  grace: 5m                                      # for guests to shut down then
  timeouts: {pending: 12h, transfer: 2h}
  backoff: {base: 20s, cap: 5m}
  quotas: {acme: {memory: 512GiB, cpus: 128}}
  failover: {grace: 30s, fenceAfter: 1m, stormShare: 0.34}
  compatible: true                               # decide as KubeVirt does

A controller that starts with another bandwidthPerMigration also changes the limit of running
migrations; all other options apply to new migrations. The controller's part of a scenario for godwit
simulate (config, policies, limits, mode, order, timeouts…) can be used here without changes.

The file of --fencing, which must be readable by its owner only, lists each host's fencing levels,
tried in order, with the options of their fence agents:

  hosts:
    n1:
    - devices:
      - {agent: fence_ipmilan, options: {ip: 10.0.0.1, username: godwit, password: secret}}`
