package plan

// MaintenanceUnbounded is Maintenance without the bound on batches.
func MaintenanceUnbounded(r *Request) MaintenancePlan {
	all := *r
	all.unbounded = true
	return Maintenance(&all)
}
