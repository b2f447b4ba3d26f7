package main

const controllerHelp = `Controller decides for the cluster: migrations, drains, and what becomes
of hosts that fall silent. With bolt:PATH it opens the file and serves it to the agents and
operators of this machine at a socket; with etcd://… several controllers may run, of which one
leads.

It ends on SIGTERM or SIGINT, when what it is about is done; at once when it is told twice. It
may be killed at any moment. On SIGHUP it reopens its audit log.

Everything in the file of --config is optional:

  evictionStrategy: None                         # of VMs that say nothing; default: LiveMigrate
  config: {parallelMigrationsPerCluster: 10, bandwidthPerMigration: 2Gbit/s,
           convergence: Forecast}                # or Watermark (default), Legacy, Stall
  policies:
  - {name: slow, selectors: {virtualMachineInstanceSelector: {app: db}}, allowPostCopy: true}
  namespaces: {prod: {tier: gold}}
  evacuation: {mode: FreeSpots, order: SmallestFirst}
                                                 # order: Adaptive follows a model of the links
  onUnmovable: Restart                           # or Keep, ShutDown: see godwit help drain
  grace: 5m                                      # that guests have to shut down then
  timeouts: {pending: 12h, transfer: 2h}
  backoff: {base: 20s, cap: 5m}
  quotas: {acme: {memory: 512GiB, cpus: 128}}
  failover: {grace: 30s, fenceAfter: 1m, stormShare: 0.34}
  compatible: true                               # decide as KubeVirt does

A controller that begins with another bandwidthPerMigration changes the limit of migrations that
are under way, too; all other options hold for those to come. What a scenario of godwit simulate
says of the controller (config, policies, limits, mode, order, timeouts…) may stand here as it is.

The file of --fencing, which nobody else may read, has the levels of each host, tried in turn, and
the options of fence agents:

  hosts:
    n1:
    - devices:
      - {agent: fence_ipmilan, options: {ip: 10.0.0.1, username: godwit, password: secret}}`
