package placement

// Hold reserves room for vm, which is on the host, in place: as [Host.With], but nothing is copied and
// no VM is on the way. It is false when that is refused (see [Index.Reserve]), and then
// nothing has changed. The host is to share neither its Groups nor its Load.
func (h *Host) Hold(vm *VM) bool {
	e := entry{vm, +1, 0}
	if !h.may(e) {
		return false
	}
	h.apply(e)
	return true
}
