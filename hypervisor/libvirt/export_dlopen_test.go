//go:build linux && libvirt_dlopen

package libvirt

// What the tests in package libvirt_test see of the inside.

type Node = node
