//go:build linux

package libvirttest

// Root is where all files of this process's labs are.
func Root() string { return world.root }
