package conformance

// What the tests in package conformance_test see of the inside.

type (
	Trial = trial
)

var (
	FailureGroups   = failureGroups
	LifecycleGroups = lifecycleGroups
	MigrationGroups = migrationGroups
	New             = newWorld
)

// Lacks is lacks.
func (l *Lab) Lacks(n need) string { return l.lacks(n) }
