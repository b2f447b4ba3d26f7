//go:build !linux

package daemon

import "time"

// uptime is how long the process has run. Setting the clock does not change it.
func uptime() time.Duration { return sinceStart() }
