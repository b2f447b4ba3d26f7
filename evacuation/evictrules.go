package evacuation

// instanceUnknown: what cannot be read cannot be protected.
// Source: KubeVirt v1.9.0 pod-eviction-admitter.go:86-217 (Admit).
func instanceUnknown(_ Strategy, e Eviction) bool { return e.Seen != Found }

// attachmentInUse: taking the volumes away would break a running VM.
// Source: KubeVirt v1.9.0 pod-eviction-admitter.go (admitHotplugPod).
func attachmentInUse(_ Strategy, e Eviction) bool {
	return e.Instance == Attachment && e.Owner == Found && !e.Ended && e.VM == Found
}

// attachmentUnclear: a question failed, so the volumes may be in use.
// Source: KubeVirt v1.9.0 pod-eviction-admitter.go (admitHotplugPod).
func attachmentUnclear(_ Strategy, e Eviction) bool {
	return e.Instance == Attachment &&
		(e.Owner == Unreadable || e.Owner == Found && !e.Ended && e.VM == Unreadable)
}

// attachmentUnused: the owner, or its VM, is gone.
// Source: KubeVirt v1.9.0 pod-eviction-admitter.go (admitHotplugPod).
func attachmentUnused(_ Strategy, e Eviction) bool { return e.Instance == Attachment }

// unclassified: the caller did not say what the instance is.
// Source: godwit; a forgotten field does not let a VM be killed.
func unclassified(_ Strategy, e Eviction) bool {
	return e.Instance != Foreign && e.Instance != Compute
}

// notAVM: evictions of anything else are none of our business.
// Source: KubeVirt v1.9.0 pod-eviction-admitter.go (isVirtLauncher).
func notAVM(_ Strategy, e Eviction) bool { return e.Instance == Foreign }

// instanceEnded: nothing runs in it any more.
// Source: KubeVirt v1.9.0 pod-eviction-admitter.go (isCompleted).
func instanceEnded(_ Strategy, e Eviction) bool { return e.Ended }

// vmUnknown: a VM that cannot be read, or was not found, may still run here.
// Source: KubeVirt v1.9.0 pod-eviction-admitter.go (admitLauncherPod).
func vmUnknown(_ Strategy, e Eviction) bool { return e.VM != Found }

// unprotected: no strategy protects the VM. One that is not known protects
// nothing.
// Source: KubeVirt v1.9.0 pod-eviction-admitter.go (admitLauncherPod).
func unprotected(s Strategy, _ Eviction) bool {
	return s != LiveMigrate && s != LiveMigrateIfPossible && s != External
}

// cannotMove: the eviction is denied until an operator acts.
// Source: KubeVirt v1.9.0 pod-eviction-admitter.go:148 (admitLauncherPod).
func cannotMove(s Strategy, e Eviction) bool { return s == LiveMigrate && !e.Migratable }

// mayBeKilled: the strategy allows it when moving is not possible.
// Source: KubeVirt v1.9.0 pod-eviction-admitter.go:148 (admitLauncherPod).
func mayBeKilled(s Strategy, e Eviction) bool {
	return s == LiveMigrateIfPossible && !e.Migratable
}

// alreadyMarked: the VM was asked to leave before; whichever host the mark
// names, it is not overwritten.
// Source: KubeVirt v1.9.0 pod-eviction-admitter.go (admitLauncherPod).
func alreadyMarked(_ Strategy, e Eviction) bool { return e.EvacuateFrom != "" }

// evictsTarget: the VM is not at home where the instance is.
// Source: KubeVirt v1.9.0 pod-eviction-admitter.go (admitLauncherPod).
func evictsTarget(_ Strategy, e Eviction) bool { return e.On != e.Home }
