//go:build !linux || !libvirt_dlopen

package daemon

// Backends returns the backends that this program has.
func Backends() []string { return []string{QMP} }
