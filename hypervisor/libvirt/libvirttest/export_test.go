//go:build linux

package libvirttest

// PID is the first process of a host as seen from outside, or 0 when it is off.
func (l *Lab) PID(host string) int { return l.host(host).PID() }

// Root is where all files of this process's labs are.
func Root() string { return world.root }
