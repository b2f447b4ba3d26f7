//go:build !linux

package cli

import (
	"errors"
	"net"
)

var errElsewhere = errors.New("this is known on Linux only")

func userfaultfd() error { return errElsewhere }

func synchronised() (bool, error) { return false, errElsewhere }

func roomOf(string) (room int64, readOnly bool, err error) { return 0, false, errElsewhere }

func pathMTU(net.Conn) (int, error) { return 0, errElsewhere }
