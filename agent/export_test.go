package agent

// What the tests in package agent_test see of the inside.

type (
	LocalVMs       = localVMs
	MigrationCache = migrationCache
	Present        = present
	WorkQueue      = workQueue
)

var (
	MonitorOptions = monitorOptions
)
