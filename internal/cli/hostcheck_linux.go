package cli

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// userfaultfd opens one as QEMU does: for faults in the kernel, too.
// Source: userfaultfd(2); Linux 5.11 (vm.unprivileged_userfaultfd).
func userfaultfd() error {
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|unix.O_NONBLOCK, 0, 0)
	if errno != 0 {
		return fmt.Errorf("userfaultfd: %w", errno)
	}
	return unix.Close(int(fd))
}

// synchronised reports whether a service keeps the clock right.
// Source: adjtimex(2) (STA_UNSYNC).
func synchronised() (bool, error) {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return false, err
	}
	return t.Status&unix.STA_UNSYNC == 0, nil
}

// roomOf returns how much others than root may still write below dir, in bytes.
func roomOf(dir string) (room int64, readOnly bool, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false, fmt.Errorf("%s: %w", dir, err)
	}
	if s.Bsize <= 0 {
		return 0, false, errors.New(dir + ": the size of a block is not known")
	}
	return int64(s.Bavail) * s.Bsize, s.Flags&unix.ST_RDONLY != 0, nil
}

// pathMTU returns the largest packet that passes to the other side of a connection, as far as the kernel
// has found out.
// Source: tcp(7) (TCP_INFO, tcpi_pmtu).
func pathMTU(c net.Conn) (int, error) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return 0, fmt.Errorf("%T is no TCP connection", c)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, err
	}
	var info *unix.TCPInfo
	var errInfo error
	err = raw.Control(func(fd uintptr) {
		info, errInfo = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	if err = errors.Join(err, errInfo); err != nil {
		return 0, err
	}
	return int(info.Pmtu), nil
}
