package qemu

import (
	"net"
	"syscall"
)

// rights is the control message that passes a file descriptor.
func rights(fd int) []byte { return syscall.UnixRights(fd) }

// peerOf asks the kernel which process is at the other end.
func peerOf(conn net.Conn) (pid int, err error) {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, &UnsupportedError{"the peer's credentials"}
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return 0, err
	}
	var who *syscall.Ucred
	controlled := raw.Control(func(fd uintptr) {
		who, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if controlled != nil {
		return 0, controlled
	}
	if err != nil {
		return 0, err
	}
	return int(who.Pid), nil
}
