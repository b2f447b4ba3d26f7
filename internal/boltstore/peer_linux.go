package boltstore

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// PeerOf returns the process at the other end of a connection of a Unix socket.
func PeerOf(c net.Conn) Peer {
	u, is := c.(*net.UnixConn)
	if !is {
		return Peer{}
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return Peer{}
	}
	var p Peer
	if raw.Control(func(fd uintptr) { p, err = peerOf(int(fd)) }) != nil || err != nil {
		return Peer{}
	}
	return p
}

// peerOf asks the kernel which process has connected. Source: unix(7), SO_PEERCRED; Linux 4.13,
// net/core/sock.c (SO_PEERGROUPS: the supplementary groups).
func peerOf(fd int) (Peer, error) {
	who, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Peer{}, err
	}
	p := Peer{Known: true, PID: who.Pid, UID: who.Uid}
	groups := make([]uint32, 64)
	for {
		size := uint32(4 * len(groups))
		_, _, no := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case no == unix.ERANGE && int(size) > 4*len(groups): // it says how many there are
			groups = make([]uint32, size/4)
			continue
		case no != 0: // an old kernel: the group of the process is all that is known
			size = 0
		}
		p.Groups = append(groups[:size/4:size/4], who.Gid)
		return p, nil
	}
}
