package migration

// HoldsSlot reports whether an unfinished migration counts against the limits.
// Source: KubeVirt v1.9.0 migration.go:2440 (findRunningMigrations).
func HoldsSlot(p Phase, hasTarget, vmExists bool) bool {
	return p.Active() || !p.Final() && hasTarget && vmExists
}
