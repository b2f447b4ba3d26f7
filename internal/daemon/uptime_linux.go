package daemon

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime is how long the machine has run, its sleep included. Setting the clock does not change it.
func uptime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return sinceStart()
	}
	return time.Duration(t.Nano())
}
