package heap

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// promises reports whether the kernel is sure to promise so many bytes that may never be used: a
// process that it refuses them would end.
// Source: proc_sys_vm(5) (overcommit_memory), getrlimit(2) (RLIMIT_AS), proc_meminfo(5).
func promises(bytes int64) bool {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &limit) != nil || limit.Cur != unix.RLIM_INFINITY {
		return false
	}
	mode, err := os.ReadFile("/proc/sys/vm/overcommit_memory")
	if err != nil || strings.TrimSpace(string(mode)) == "2" {
		return false
	}
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return false
	}
	return available(string(info)) > bytes
}

// available returns how much memory may be used without taking it from others, as /proc/meminfo
// says; 0 is that it does not.
func available(info string) int64 {
	for line := range strings.Lines(info) {
		if text, is := strings.CutPrefix(line, "MemAvailable:"); is {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 53)
			if err == nil && n >= 0 {
				return n << 10
			}
		}
	}
	return 0
}
