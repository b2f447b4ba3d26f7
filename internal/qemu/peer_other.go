//go:build !linux

package qemu

import "net"

// rights passes nothing: a command with a file is answered with an error by
// QEMU, which then has no file to take.
func rights(int) []byte { return nil }

func peerOf(net.Conn) (pid int, err error) {
	return 0, &UnsupportedError{"the peer's credentials"}
}
